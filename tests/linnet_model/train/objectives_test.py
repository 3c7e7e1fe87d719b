"""Tests of language modelling, span corruption and classification."""

import itertools
import json
import lzma
import math
import re
from collections import Counter
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet_model.bundle import read_manifest
from linnet_model.config import ConfigError, read_recipe
from linnet_model.data_config import DataConfig
from linnet_model.evaluation import score
from linnet_model.evaluation.score_run import unigram_perplexities
from linnet_model.export.command import main as export_main
from linnet_model.network.encoder_decoder import EOS, PAD
from linnet_model.text_files import Pair
from linnet_model.tokenizer import known_placeholders
from linnet_model.train.checkpoint import load_checkpoint
from linnet_model.train.command import main as train_main
from linnet_model.train.datasets import epoch_batches, make_batch
from linnet_model.train.objectives import (
    LanguageModelDataset,
    SpanCorruptionDataset,
    corrupted,
    gaps_of,
    make_dataset,
)
from linnet_model.train.validation import label_scores, perplexities, text_scores

SENTINELS = list(range(1000, 1100))


def filled(source: list[int], target: list[int]) -> list[int]:
    """Restores the text: replaces each placeholder of the source by its span in the target."""
    gaps: dict[int, list[int]] = {}
    for token in target:
        if token in SENTINELS:
            gaps[token] = last = []
        else:
            last.append(token)
    return [t for token in source for t in gaps.get(token, [token])]


@given(st.integers(2, 400), st.floats(0.05, 0.5), st.floats(1.0, 6.0), st.integers(0, 1000))
def test_source_and_target_restore_text(tokens, share, mean, seed):
    ids = list(range(tokens))
    source, target = corrupted(ids, SENTINELS * 3, share, mean, numpy.random.default_rng(seed))
    if gaps_of(tokens, share, mean)[1] <= len(SENTINELS):
        assert filled(source, target) == ids
    removed, gaps = gaps_of(tokens, share, mean)
    assert len(source) == tokens - removed + gaps
    assert len(target) == removed + gaps
    marks = [token for token in source if token >= 1000]
    assert marks == [token for token in target if token >= 1000] == (SENTINELS * 3)[:gaps]
    # No two placeholders are adjacent, and none has an empty span.
    for side in (source, target):
        assert not any(a >= 1000 and b >= 1000 for a, b in itertools.pairwise(side))
    assert target[-1] < 1000


def test_removes_fifteen_percent_in_spans_of_three():
    removed = gaps = total = 0
    for tokens in range(20, 400):
        cut, spans = gaps_of(tokens, 0.15, 3.0)
        removed, gaps, total = removed + cut, gaps + spans, total + tokens
    assert removed / total == pytest.approx(0.15, abs=0.002)
    assert removed / gaps == pytest.approx(3.0, abs=0.05)
    assert gaps_of(2, 0.15, 3.0) == (1, 1)


def test_gaps_are_uniform_including_ends():
    """Two of 12 tokens are removed in one span: its eleven positions are equally likely."""
    rng = numpy.random.default_rng(1)
    places = Counter(
        corrupted(list(range(12)), SENTINELS, 0.15, 3.0, rng)[0].index(1000) for _ in range(2200)
    )
    assert sorted(places) == list(range(11))
    # 200 expected per position, standard deviation 13.5
    assert all(140 < count < 260 for count in places.values())


def data(**more) -> DataConfig:
    config = DataConfig(folder="x", domains={"x": 1.0}, **more)
    config.check()
    return config


def test_gaps_depend_on_seed_epoch_and_row(tokenizer):
    config = data(objective="span_corruption", text="source")
    pairs = [Pair("Ba be bi bo bu da de di do du.", "x", "x"), Pair("Ra re ri ro ru sa.", "y", "x")]
    dataset = make_dataset(pairs, tokenizer, config, seed=1)
    assert isinstance(dataset, SpanCorruptionDataset)
    again = make_dataset(pairs, tokenizer, config, seed=1)
    other = make_dataset(pairs, tokenizer, config, seed=2)
    seen = set()
    for epoch in range(20):
        for row in range(2):
            source, target = dataset.pair(row, epoch)
            assert source.tolist() == again.pair(row, epoch)[0].tolist()
            assert len(source) == dataset.source_lengths[row]
            assert len(target) == dataset.target_lengths[row]
            assert source[-1] == target[-1] == EOS
        seen.add(tuple(dataset.pair(0, epoch)[0].tolist()))
    assert len(seen) > 5
    differing = [
        epoch
        for epoch in range(20)
        if dataset.pair(0, epoch)[0].tolist() != other.pair(0, epoch)[0].tolist()
    ]
    assert len(differing) > 10
    batch = make_batch(dataset, numpy.array([0, 1]), epoch=3)
    assert batch.source[0, : dataset.source_lengths[0]].tolist() == dataset.pair(0, 3)[0].tolist()


def test_skips_texts_with_placeholder_or_one_token(tokenizer):
    config = data(objective="span_corruption")
    pairs = [Pair("", text, "x") for text in ("Ba be bi.", "Ba <ph1> be bi.", "B")]
    dataset = make_dataset(pairs, tokenizer, config, seed=1)
    single = len(tokenizer.encode("B")) == 1
    assert len(dataset) == 1 + (not single)
    assert dataset.statistics()["x"]["dropped_as_too_long"] == 1 + single


def test_refuses_more_gaps_than_placeholders(tokenizer):
    assert len(known_placeholders(tokenizer)) == 8
    config = data(objective="span_corruption", max_source_tokens=400, max_target_tokens=400)
    with pytest.raises(ConfigError, match=r"20 gaps and the tokenizer has 8 placeholders, raise"):
        make_dataset([Pair("a", "b", "x")], tokenizer, config, seed=1)


def test_splits_long_texts_without_loss(tokenizer):
    text = "Ba be bi bo bu. " * 20
    dataset = make_dataset(
        [Pair("ignored", text, "x"), Pair("ignored", "Ba.", "x")],
        tokenizer,
        data(objective="language_model", max_target_tokens=16),
        seed=1,
    )
    assert isinstance(dataset, LanguageModelDataset)
    ids = tokenizer.encode(text)
    parts = [dataset.target(row).tolist() for row in range(len(dataset) - 1)]
    assert [token for part in parts for token in part] == [*ids, EOS]
    assert {len(part) for part in parts[:-1]} == {16}
    assert dataset.source_lengths.tolist() == [0] * len(dataset)
    assert dataset.words["x"] == 100 + 1 + 1 + 1
    batch = make_batch(dataset, numpy.array([0, len(dataset) - 1]))
    assert batch.source.shape == (2, 0)
    assert batch.target[1, -1] == PAD
    assert epoch_batches(dataset, {"x": 1.0}, 1, 0, 40, 40)


def test_reads_both_sides_and_single_file_once(tokenizer):
    config = data(objective="language_model", text="both")
    dataset = make_dataset(
        [Pair("Ba.", "Be.", "x"), Pair("Bi.", "Bi.", "x")], tokenizer, config, seed=1
    )
    assert [tokenizer.decode(dataset.target(row)[:-1].tolist()) for row in range(3)] == [
        "Ba.",
        "Be.",
        "Bi.",
    ]


def test_word_perplexity_is_independent_of_pieces(tokenizer):
    dataset = make_dataset(
        [Pair("x", "Ba be bi.", "x")], tokenizer, data(objective="language_model"), seed=1
    )
    found = perplexities(dataset, {"all": (8.0, 10), "x": (8.0, 10)})
    assert found["perplexity"] == pytest.approx(math.exp(0.8))
    assert found["word_perplexity"] == pytest.approx(math.exp(8.0 / 4))  # three words and the end


def test_unigram_baseline_uses_frequencies(tokenizer):
    config = data(objective="language_model")
    training = make_dataset([Pair("x", "Ba be ba.", "x")] * 40, tokenizer, config, seed=1)
    test = make_dataset([Pair("x", "Be ba bo.", "x")], tokenizer, config, seed=1)
    counts = Counter(training.target_ids.tolist())
    size = max(int(training.target_ids.max()), int(test.target_ids.max())) + 1
    total = len(training.target_ids) + size
    nll = -sum(math.log((counts[token] + 1) / total) for token in test.target(0).tolist())
    found = unigram_perplexities(training, test)
    assert found["perplexity"] == pytest.approx(math.exp(nll / len(test.target(0))))
    assert found["word_perplexity"] == pytest.approx(math.exp(nll / 4))


def test_macro_f1_averages_labels():
    scores = label_scores(["a", "a", "a", "b"], ["a", "a", "b", "c"])
    assert scores["accuracy"] == pytest.approx(50.0)
    # a: precision 1, recall 2/3; b: one answer, wrong, and missed
    assert scores["macro_f1"] == pytest.approx(100 * (0.8 + 0.0) / 2)
    assert label_scores(["a", "b"], ["a", "b"]) == {"accuracy": 100.0, "macro_f1": 100.0}
    assert text_scores("parse", ["a b", "c"], ["a b", "d"]) == {"exact_match": 50.0}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["data.objective='language_model'"], "a language model has none"),
        (["model.encoder_kernels=[]"], "'pairs' with 0 encoder layers"),
        (["data.objective='span_corruption'"], "it must be 'pretrain'"),
        (["data.target_column='domain'"], "it must be 'classify'"),
        (["bundle.task='pretrain'"], "it must be translate or summarize or classify or parse"),
        (["data.objective='guess'"], "known are pairs, language_model, span_corruption"),
        (["data.corrupted_share=1.0"], "data.corrupted_share is 1.0, must be above 0 and below 1"),
        (["data.mean_span_tokens=0.5"], "must be at least 1"),
        (["data.train_source='a'"], "data.train_source and data.train_target belong together"),
        (["tokenizer.placeholders=101"], "must be 0 to 100"),
        (
            ["data.target_column='domain'", "bundle.task='classify'", "data.copy_share=0.1"],
            "data.copy_share is 0.1, added rows are pairs with a target",
        ),
    ],
)
def test_refuses_inconsistent_objectives(recipe_file: Path, settings: list[str], message: str):
    with pytest.raises(ConfigError) as error:
        read_recipe(recipe_file, ["data.copy_share=0", *settings])
    assert message in str(error.value)


def train(recipe: Path, folder: Path, out: Path, *settings: str, more: tuple = ()) -> int:
    arguments = ["--recipe", recipe, "--data", folder, "--out", out, "--device", "cpu", *more]
    for setting in ("data.copy_share=0", "train.learning_rate=1e-2", *settings):
        arguments += ["--set", setting]
    return train_main([str(argument) for argument in arguments])


def scored(run: Path, folder: Path, *more: str) -> dict:
    assert score.main(["--run", str(run), "--data", str(folder), "--write", *more]) == 0
    return json.loads((run / "scores.json").read_text())


def test_language_model_is_scored_but_not_exported(
    recipe_file: Path, data_folder: Path, tmp_path: Path, capsys
):
    language_model = [
        "model.encoder_kernels=[]",
        "data.objective='language_model'",
        "bundle.task='language_model'",
        "train.updates=80",
        "train.average_decay=0.9",
        "data.domains.odd=1.0",
    ]
    run = tmp_path / "run"
    assert train(recipe_file, data_folder, run, *language_model) == 0
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    losses = [entry["nll"] for entry in log if entry["kind"] == "train"]
    assert losses[0] > 5.5  # log(400) = 5.99
    valid = next(entry for entry in log if entry["kind"] == "valid")
    assert valid["perplexity"] == pytest.approx(math.exp(valid["nll_all"]))
    assert valid["word_perplexity"] > valid["perplexity"]
    (test,) = scored(run, data_folder)["tests"]
    assert test["model"]["perplexity"] < test["baseline"]["perplexity"] < 400
    assert test["model"]["word_perplexity"] < test["baseline"]["word_perplexity"]
    answers = ["--run", str(run), "--data", str(data_folder), "--answers", str(tmp_path / "a")]
    assert score.main(answers) == 1
    assert "which gives no answers: leave out --answers" in capsys.readouterr().err
    capsys.readouterr()
    assert (
        export_main(["--run", str(run), "--out", str(tmp_path / "b"), "--bundle-version", "1"]) == 1
    )
    assert (
        "has the task language_model, bundles exist only for translate and summarize: measure "
        in (capsys.readouterr().err)
    )
    assert not (tmp_path / "b").exists()


def test_finetunes_pretrained_model_with_its_vocabulary(
    recipe_file: Path, data_folder: Path, tmp_path: Path, capsys
):
    pretrain = ["data.objective='span_corruption'", "data.text='both'", "bundle.task='pretrain'"]
    run, fine = tmp_path / "run", tmp_path / "fine"
    assert train(recipe_file, data_folder, run, *pretrain) == 0
    assert "<ph0>" in (run / "samples.txt").read_text()
    (test,) = scored(run, data_folder)["tests"]
    assert 1.0 < test["model"]["perplexity"] < 1000.0
    capsys.readouterr()
    assert (
        export_main(["--run", str(run), "--out", str(tmp_path / "b"), "--bundle-version", "1"]) == 1
    )
    assert "start another training from it with linnet-train --init-from" in capsys.readouterr().err
    once = ["train.updates=1", "train.learning_rate=1e-12"]
    assert train(recipe_file, data_folder, fine, *once, more=("--init-from", run)) == 0
    assert (fine / "source.spm").read_bytes() == (run / "source.spm").read_bytes()
    before, after = load_checkpoint(run)["average"], load_checkpoint(fine)["model"]
    assert all(numpy.allclose(before[n], after[n], atol=1e-9) for n in after)
    scratch = tmp_path / "scratch"
    assert train(recipe_file, data_folder, scratch, *once, more=("--tokenizer-from", run)) == 0
    assert (scratch / "source.spm").read_bytes() == (run / "source.spm").read_bytes()
    assert not all(
        numpy.allclose(before[n], v, atol=1e-3)
        for n, v in load_checkpoint(scratch)["model"].items()
    )


def test_classifier_beats_most_frequent_label(
    recipe_file: Path, data_folder: Path, tmp_path: Path, capsys
):
    # Sentences of one domain are in capitals, so that the classes are separable.
    folder = data_folder / "toy"
    for name in ("train", "valid"):
        lines = lzma.decompress((folder / f"{name}.tsv.xz").read_bytes()).decode().splitlines()
        marked = [
            line if line.endswith("even") else f"{line.split('.')[0].upper()}.\tx\todd"
            for line in lines
        ]
        (folder / f"{name}.tsv.xz").write_bytes(lzma.compress("\n".join(marked).encode()))
        if name == "valid":
            for domain in ("even", "odd"):
                rows = [line for line in marked if line.endswith(f"\t{domain}")]
                (folder / f"test.{domain}.tsv").write_text("\n".join(rows) + "\n")
    classify = [
        "data.target_column='domain'",
        "bundle.task='classify'",
        "data.domains.odd=1.0",
        "train.updates=150",
        "train.average_decay=0.8",
        "model.dropout=0.0",
        "train.label_smoothing=0.0",
    ]
    run = tmp_path / "run"
    assert train(recipe_file, data_folder, run, *classify) == 0
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    (valid,) = [entry for entry in log if entry["kind"] == "valid"][-1:]
    assert {"accuracy", "macro_f1"} <= set(valid)
    (test,) = scored(run, data_folder, "--answers", str(tmp_path / "answers"))["tests"]
    assert test["rows"] == 30
    assert test["baseline"]["accuracy"] == pytest.approx(50.0)
    assert test["model"]["accuracy"] > 90.0
    assert set(test["found_of_label"]) == {"even", "odd"}
    answers = (tmp_path / "answers" / "labels.tsv").read_text().splitlines()
    assert {line.split("\t")[2] for line in answers} <= {"even", "odd"}
    capsys.readouterr()
    assert (
        export_main(["--run", str(run), "--out", str(tmp_path / "b"), "--bundle-version", "1"]) == 1
    )
    assert "has the task classify" in capsys.readouterr().err


def test_plain_files_train_export_and_score(
    recipe_file: Path, tmp_path: Path, tokenizer_file: Path
):
    from linnet_model.export.random_bundle import made_up_lines

    folder = tmp_path / "own" / "mine"
    folder.mkdir(parents=True)
    lines = made_up_lines(80, seed=5)
    for split, part in (("train", lines[:60]), ("valid", lines[60:70]), ("test", lines[70:])):
        for side in ("en", "de"):
            (folder / f"{split}.{side}").write_text("\n".join(part) + "\n")
    text = re.sub(r"\[data.domains\].*?(?=\[train\])", "", recipe_file.read_text(), flags=re.DOTALL)
    text = text.replace('folder = "toy"', 'folder = "mine"')
    recipe_file.write_text(text)
    files = [f"data.{s}_{n}='{s}.{e}'" for s in ("train", "valid", "test") for n, e in SIDES]
    run, bundle = tmp_path / "run", tmp_path / "bundle"
    start = ("--tokenizer-from", tokenizer_file)
    export = ["--run", str(run), "--out", str(bundle), "--bundle-version", "1"]
    assert train(recipe_file, folder.parent, run, *files, more=start) == 1
    assert not run.exists(), "whose texts these are is not known, and nothing was begun"
    terms = "{ what='w', author='me', licence='CC0', attribution='a' }"
    with_terms = [*files, f"data.terms.text={terms}"]
    assert train(recipe_file, folder.parent, run, *with_terms, more=start) == 0
    assert export_main(export) == 0
    assert read_manifest(bundle)["license"] == "trained on texts under CC0"
    said = tmp_path / "said.toml"  # overrides for the same run
    named = "\n".join(["[data]", *(file.removeprefix("data.") for file in files)])
    later = f"[data.terms]\ntext = {terms.replace('CC0', 'MIT')}\n"
    said.write_text(recipe_file.read_text().replace("[data]", named) + later)
    assert export_main([*export, "--recipe", str(said)]) == 0
    assert read_manifest(bundle)["license"] == "trained on texts under MIT"
    arguments = ["--bundle", bundle, "--data", folder.parent, "--engine", "python", "--write"]
    assert score.main([str(argument) for argument in arguments]) == 0
    scores = json.loads((bundle / "scores.json").read_text())
    assert [(test["domain"], test["rows"]) for test in scores["tests"]] == [("text", 10)]
    assert "| text | w |" in (bundle / "ATTRIBUTION.md").read_text()


SIDES = (("source", "en"), ("target", "de"))
