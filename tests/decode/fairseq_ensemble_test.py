"""Ensembles of fairseq's checkpoints are served as one model."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import fairseq_oracle as oracle

NAME = "dyn-glu-postnorm-tied"
TOLERANCE = 1e-4  # float32, summed in another order


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory, operators) -> list[Path]:
    """A model of fairseq, and two others of the same sizes."""
    import torch

    from linnet_model.importers.fairseq.checkpoint import read_checkpoint

    first = oracle.checkpoint(NAME)
    files = [first]
    for seed in (1, 2):
        read = read_checkpoint(first)
        generator = torch.Generator().manual_seed(seed)
        for name, weight in read.weights.items():
            if weight.dim() > 1:
                noise = torch.randn(weight.shape, generator=generator)
                read.weights[name] = weight + 0.3 * weight.std() * noise
        for tied in ("decoder.embed_tokens.weight", "decoder.embed_out"):
            if tied in read.weights:
                read.weights[tied] = read.weights["encoder.embed_tokens.weight"]
        file = tmp_path_factory.mktemp(f"member-{seed}") / first.name
        args = argparse.Namespace(**read.options)
        torch.save({"args": args, "model": read.weights}, file)
        files.append(file)
    return files


def convert(files: list[Path], out: Path) -> int:
    from linnet_model.importers.fairseq.import_fairseq import main

    source, target = oracle.dictionaries(NAME)
    words = ["--source-dict", str(source), "--target-dict", str(target), "--out", str(out)]
    words += ["--source-language", "de", "--target-language", "en"]
    return main([*words, *(word for file in files for word in ("--checkpoint", str(file)))])


@pytest.fixture(scope="module")
def served(checkpoints, tmp_path_factory, start_decode):
    out = tmp_path_factory.mktemp("ensemble") / "bundle"
    assert convert(checkpoints, out) == 0
    return out, start_decode(out)


def log_probabilities(checkpoints: list[Path], source: list[int], target: list[int]):
    """The log of the mean probability at each token of the target [T, V], by the training path."""
    import torch

    from linnet_model.importers.fairseq.import_fairseq import read_model
    from linnet_model.network.encoder_decoder import forced_logits

    ids, targets = torch.tensor([source]), torch.tensor([target])
    lengths = torch.tensor([len(source)], dtype=torch.int32)
    with torch.no_grad():
        each = [
            forced_logits(read_model(file).model, ids, lengths, targets)[0].log_softmax(-1)
            for file in checkpoints
        ]
    return torch.stack(each).exp().mean(0).log()


def sources() -> list[list[int]]:
    return [row.tolist() for row in oracle.forward(NAME)["source"]][:6]


def test_scores_are_those_of_averaged_probabilities(served, checkpoints):
    _, process = served
    lines = [{"source_ids": source, "options": {"beam_size": 4}} for source in sources()]
    for source, answer in zip(sources(), process.ask(lines), strict=True):
        best = answer["hypotheses"][0]
        log_p = log_probabilities(checkpoints, source, best["ids"])
        expected = [float(row[token]) for row, token in zip(log_p, best["ids"], strict=True)]
        assert best["token_scores"] == pytest.approx(expected, abs=TOLERANCE)


def test_greedy_targets_follow_averaged_probabilities(served, checkpoints):
    _, process = served
    lines = [{"source_ids": source, "options": {"beam_size": 1}} for source in sources()]
    for source, answer in zip(sources(), process.ask(lines), strict=True):
        ids = answer["hypotheses"][0]["ids"]
        log_p = log_probabilities(checkpoints, source, ids)
        log_p[:, 1] = float("-inf")  # padding is never chosen
        log_p[0, 2] = float("-inf")  # nor an empty target
        assert ids[:-1] == log_p.argmax(-1).tolist()[: len(ids) - 1]


def test_answers_differ_from_those_of_one_member(served, checkpoints, tmp_path, start_decode):
    _, process = served
    assert convert(checkpoints[:1], tmp_path / "one") == 0
    lines = [{"source_ids": source} for source in sources()]
    alone = start_decode(tmp_path / "one").ask(lines)
    together = process.ask(lines)
    assert [a["hypotheses"][0]["score"] for a in alone] != [
        a["hypotheses"][0]["score"] for a in together
    ]


def test_scores_do_not_depend_on_the_batch(served):
    _, process = served
    lines = [{"source_ids": source, "options": {"beam_size": 3}} for source in sources()]
    together = process.ask(lines)
    for line, answer in zip(lines, together, strict=True):
        [alone] = process.ask([line])
        assert alone["hypotheses"] == answer["hypotheses"]


def test_attention_is_a_distribution(served):
    _, process = served
    [answer] = process.ask([{"source_ids": sources()[0], "align": True}])
    for row in answer["hypotheses"][0]["attention"]:
        assert sum(row) == pytest.approx(1, abs=1e-3)


def test_manifest_names_all_members(served, checkpoints):
    out, _ = served
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["description"].startswith("imported from 3 models of fairseq")
    card = (out / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert card.count("- checkpoint: `") == len(checkpoints)
    assert "3 checkpoints of fairseq, whose probabilities are averaged" in card


def test_refuses_members_that_do_not_fit(checkpoints, tmp_path, capsys):
    assert convert([checkpoints[0]] * 2, tmp_path / "twice") == 1
    assert "--checkpoint names a file twice" in capsys.readouterr().err
    other = oracle.checkpoint("light-noglu-prenorm-untied")
    assert convert([checkpoints[0], other], tmp_path / "other") == 1
    assert "model 2 of the ensemble has vocabularies of" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_training_from_an_ensemble_is_refused(served):
    from linnet_model.bundle import read_bundle_weights
    from linnet_model.config import ConfigError

    out, _ = served
    with pytest.raises(ConfigError, match="it is an ensemble"):
        read_bundle_weights(out)


def test_shortlist_of_an_ensemble_is_refused(served, command, tmp_path):
    from linnet_model.bundle import add_shortlist

    bundle = Path(shutil.copytree(served[0], tmp_path / "bundle"))
    add_shortlist(bundle, [5, 6], {})
    done = subprocess.run(
        command(bundle, "--shortlist"), input="", capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "an ensemble has no shortlists: set shortlist to auto or false" in done.stderr
