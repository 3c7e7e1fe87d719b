"""Repeats searches of fairseq: checkpoint -> import -> bundle -> linnet-decode, in float32.

Runs every setting of every model, each sentence with its own prefix and max length: once with one
sentence at a time, and once with all settings of a model mixed in one batch.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import fairseq_oracle as oracle

TOLERANCE = 1e-4  # of log-probabilities and scores: float32 sums in another order


@pytest.fixture(scope="module", params=oracle.MODELS)
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def imported(name, tmp_path_factory) -> Path:
    from linnet_model.importers.fairseq.import_fairseq import TextFiles, import_fairseq

    out = tmp_path_factory.mktemp("fairseq") / name
    source, target = oracle.dictionaries(name)
    import_fairseq(
        [oracle.checkpoint(name)],
        source,
        target,
        out,
        TextFiles(),
        source_language="de",
        target_language="en",
    )
    return out


def searches(name: str) -> list[tuple[dict[str, Any], int]]:
    """Every setting with every sentence."""
    sentences = range(len(oracle.forward(name)["source"]))
    return [(setting, i) for setting in oracle.MODELS[name]["settings"] for i in sentences]


def line(name: str, found: Any, sources: list[np.ndarray], setting: dict, i: int) -> dict[str, Any]:
    prefix = []
    if setting["prefix"] is not None:
        prefix = [int(t) for t in found[f"{setting['id']}.prefix"][i] if t != oracle.PAD]
    return {
        "source_ids": sources[i].tolist(),
        "prefix_ids": prefix,
        "options": {
            "beam_size": setting["beam"],
            "n_best": setting["beam"],
            "length_penalty": setting["lenpen"],
            "min_target_tokens": setting["min_len"],
            "max_target_tokens": oracle.cap(setting, len(sources[i])),
            "unknown_penalty": setting["unkpen"],
            "no_repeat_ngram_size": setting["ngram"],
            "normalize_scores": setting["normalize"],
            "temperature": setting["temperature"],
        },
    }


def expected_hypotheses(found: Any, setting: dict, i: int) -> list[dict[str, Any]]:
    """Hypotheses in the format of linnet-decode, best first."""
    key = setting["id"]
    lengths = found[f"{key}.lengths"][i]
    return [
        {
            "ids": found[f"{key}.tokens"][i, rank, :length].tolist(),
            "score": float(found[f"{key}.scores"][i, rank]),
            "token_scores": found[f"{key}.positional_scores"][i, rank, :length].tolist(),
        }
        for rank, length in enumerate(lengths)
        if length > 0
    ]


def compare(found: Any, setting: dict, i: int, answers: list[dict[str, Any]]) -> None:
    expected = expected_hypotheses(found, setting, i)
    where = f"setting {setting['id']}, sentence {i}"
    key = setting["id"]
    near = min(found[f"{key}.search_margin"][i], found[f"{key}.score_gap"][i]) < oracle.CLEAR
    if near:  # near ties may be swapped by rounding
        expected.sort(key=lambda h: h["ids"])
        answers = sorted(answers, key=lambda h: h["ids"])
    assert [h["ids"] for h in answers] == [h["ids"] for h in expected], where
    for answer, hypothesis in zip(answers, expected, strict=True):
        assert answer["score"] == pytest.approx(hypothesis["score"], abs=TOLERANCE), where
        assert answer["token_scores"] == pytest.approx(hypothesis["token_scores"], abs=TOLERANCE), (
            where
        )


@pytest.mark.parametrize(
    ("batch", "threads", "search"),
    [("1", 1, "host"), ("64", 2, "host"), ("64", 1, "device")],
    ids=("alone", "mixed in one batch", "mixed, searched beside the model"),
)
def test_hypotheses_equal_fairseq(run, name, imported, batch, threads, search):
    todo = searches(name)
    random.Random(7).shuffle(todo)  # so that a batch mixes all settings
    sources = oracle.forward(name)["source"]
    found = np.load(oracle.folder(name) / "generation.npz", allow_pickle=False)
    lines = [line(name, found, sources, s, i) for s, i in todo]
    done = run(imported, "--batch", batch, "--search", search, lines=lines, threads=threads)
    assert done.status == 0, (done.stderr, [a for a in done.answers if "error" in a])
    assert len(done.answers) == len(todo) == 18 * 16
    for (setting, i), answer in zip(todo, done.answers, strict=True):
        compare(found, setting, i, answer["hypotheses"])


def test_near_ties_are_rare(name):
    """The tests above accept swaps of near ties; near ties must be rare."""
    found = np.load(oracle.folder(name) / "generation.npz", allow_pickle=False)
    near = [
        (setting["id"], i)
        for setting, i in searches(name)
        if min(found[f"{setting['id']}.search_margin"][i], found[f"{setting['id']}.score_gap"][i])
        < oracle.CLEAR
    ]
    assert len(near) <= 1, near


@pytest.mark.parametrize(
    ("words", "text", "symbols"),
    [
        ("none", "don , .", ["don", ",", "."]),
        ("moses", "don's, don.", ["don", "&apos;s", ",", "don", "."]),
    ],
)
def test_text_uses_ids_of_fairseq_dictionary(run, tmp_path, words, text, symbols):
    from linnet_model.importers.fairseq.dictionary import read_dictionary
    from linnet_model.importers.fairseq.import_fairseq import TextFiles, import_fairseq

    name = "light-noglu-prenorm-untied"
    source, target = oracle.dictionaries(name)
    codes = tmp_path / "codes"
    merges = ["d o", "do n</w>", "& a", "&a p", "&ap o", "&apo s", "&apos ;", "&apos; s</w>"]
    codes.write_text("\n".join(["#version: 0.2", *merges, ""]))
    import_fairseq(
        [oracle.checkpoint(name)],
        source,
        target,
        tmp_path / "bundle",
        TextFiles(bpe_codes=codes, word_tokenizer=words),
        source_language="en",
        target_language="de",
    )
    dictionary = read_dictionary(source)
    ids = [dictionary.indices[symbol] for symbol in symbols] + [2]
    done = run(tmp_path / "bundle", lines=[{"text": text}, {"source_ids": ids}], threads=1)
    assert done.status == 0, (done.stderr, done.answers)
    by_text, by_ids = done.answers
    assert by_text == by_ids
    assert by_text["hypotheses"][0]["text"]
