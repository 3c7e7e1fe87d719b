"""Imported models of Marian give Marian's own answers in linnet-decode, as read from a file of
float32 or of int8."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import marian_models as marian


@pytest.fixture(scope="module", params=["shared", "split", "attention", "int8"])
def served(request, tmp_path_factory, operators, run):
    """(name, decode of the model's bundle)."""
    from linnet_model.importers.marian.import_marian import main

    place = tmp_path_factory.mktemp("native")
    folder = marian.folder(request.param, place / "model")
    flags = ["--source-language", "en", "--target-language", "de", "--out", str(place / "bundle")]
    assert main(["--model", str(folder), "--no-golden", *flags]) == 0

    def decode(lines, *flags: str):
        # Marian's answers are those of a search among all tokens, unless a test asks for the list.
        chosen = any(flag.startswith("--shortlist") for flag in flags)
        flags = flags if chosen else ("--shortlist=false", *flags)
        done = run(place / "bundle", *flags, lines=lines)
        assert done.status == 0, (done.stderr, done.answers)
        return [answer["hypotheses"][0] for answer in done.answers]

    return request.param, decode


def sources(name: str) -> list[dict]:
    """Limits are those that Marian had."""
    factor = marian.ORACLE["length_factor"]
    return [
        {"source_ids": ids, "options": {"max_target_tokens": factor * len(ids)}}
        for ids in marian.ORACLE[name]["sources"]
    ]


def test_greedy_answers_and_scores_equal_marian(served):
    name, decode = served
    cases = marian.ORACLE[name]["greedy"]
    for answer, wanted in zip(decode(sources(name)), cases, strict=True):
        assert answer["ids"] == wanted["ids"]
        # 5e-7 a token: float32 near 10, where logits are, and the 6 digits that Marian prints
        total = sum(answer["token_scores"])
        assert total == pytest.approx(wanted["score"], rel=1e-5, abs=5e-7 * len(answer["ids"]))


def test_int8_answers_are_mostly_those_of_float32(served):
    """Weights of an int8 file are exact; activations have seven bits."""
    name, decode = served
    rounded = decode(sources(name), "--compute", "int8")
    wanted = [answer["ids"] for answer in marian.ORACLE[name]["greedy"]]
    same = sum(answer["ids"] == ids for answer, ids in zip(rounded, wanted, strict=True))
    assert same >= len(wanted) * 3 // 4


@pytest.mark.parametrize("compute", ["float32", "int8"])
def test_answers_are_batch_invariant(served, compute: str):
    name, decode = served
    alone = decode(sources(name), "--compute", compute, "--batch", "1")
    assert decode(sources(name), "--compute", compute, "--batch", "31") == alone


def test_reads_texts_with_its_vocabulary(served):
    import sentencepiece

    name, decode = served
    folder = marian.HERE / ("shared" if name == "int8" else name)
    model = sentencepiece.SentencePieceProcessor(str(sorted(folder.glob("*.spm"))[0]))
    texts = [model.decode(ids) for ids in marian.ORACLE[name]["sources"][:5]]
    assert decode([{"text": text} for text in texts]) == decode(
        [{"source_ids": [*model.encode(text), 0]} for text in texts]
    )


def test_shortlist_limits_answers(served):
    name, decode = served
    if name != "shared":
        pytest.skip("it has no shortlist")
    table = marian.ORACLE["shortlist"]
    lines = sources(name)
    for line, answer in zip(lines, decode(lines, "--shortlist"), strict=True):
        allowed = {*range(table["first"]), *line["source_ids"]}
        allowed |= {t for s in line["source_ids"] for t in table["candidates"].get(str(s), [])}
        assert set(answer["ids"]) <= allowed
