"""Imported Marian models give the same answers in linnet-decode as in transformers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import tiny_marian as marian

COUNT = 12
TOLERANCE = 1e-4  # float32, summed in another order


@pytest.fixture(scope="module", params=["shared", "separate"])
def served(request, tmp_path_factory, run):
    """(the model of transformers, decode of its bundle)."""
    from linnet_model.importers.huggingface_marian.import_huggingface_marian import (
        import_huggingface_marian,
    )

    folder = tmp_path_factory.mktemp("marian")
    tiny = marian.make_tiny_marian(folder / "model", separate=request.param == "separate")
    import_huggingface_marian(folder / "model", folder / "bundle", ["en"], ["de"])

    def decode(lines, *flags: str):
        done = run(folder / "bundle", *flags, lines=lines)
        assert done.status == 0, (done.stderr, done.answers)
        return [answer["hypotheses"] for answer in done.answers]

    return tiny, decode


def by_ids(tiny) -> list[dict]:
    return [{"source_ids": tiny.tokenizer(text).input_ids} for text in marian.SOURCES[:COUNT]]


def test_greedy_tokens_equal_generate(served):
    tiny, decode = served
    lines = by_ids(tiny)
    answers = [hypotheses[0]["ids"] for hypotheses in decode(lines, "--beam", "1")]
    expected = [marian.greedy(tiny, line["source_ids"]) for line in lines]
    assert answers == expected
    assert len({len(answer) for answer in answers}) > 2, "all answers are alike"
    # transformers counts the start token and the end token.
    short = [h[0]["ids"] for h in decode(lines, "--beam", "1", "--max-target-tokens", "2")]
    assert short == [marian.greedy(tiny, line["source_ids"], max_length=4) for line in lines]
    assert short != answers


def test_beam_scores_equal_transformers(served):
    tiny, decode = served
    lines = by_ids(tiny)
    for line, hypotheses in zip(lines, decode(lines, "--n-best", "3"), strict=True):
        assert len(hypotheses) == 3
        for h in hypotheses:
            expected = marian.log_probabilities(tiny, line["source_ids"], h["ids"])
            assert h["token_scores"] == pytest.approx(expected.tolist(), abs=TOLERANCE)
            assert h["score"] == pytest.approx(float(expected.mean()), abs=TOLERANCE)
            assert tiny.config.pad_token_id not in h["ids"]


def test_tokenization_equals_transformers(served):
    tiny, decode = served
    texts = [*marian.SOURCES[:COUNT], "Unseen wörds & 日本 signs…", "  two   spaces  "]
    by_text = decode([{"text": text} for text in texts])
    numbered = decode([{"source_ids": tiny.tokenizer(text).input_ids} for text in texts])
    assert by_text == numbered
    unknown = tiny.tokenizer.unk_token_id
    compared = 0
    for hypotheses in by_text:
        if unknown not in hypotheses[0]["ids"]:
            compared += 1
            assert hypotheses[0]["text"] == tiny.tokenizer.decode(
                hypotheses[0]["ids"], skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
    assert compared > COUNT // 2


def test_attention_equals_transformers(served):
    import torch

    tiny, decode = served
    tiny.model.set_attn_implementation("eager")  # the others do not return their weights
    lines = [line | {"align": True} for line in by_ids(tiny)]
    for line, hypotheses in zip(lines, decode(lines, "--beam", "2"), strict=True):
        source = torch.tensor([line["source_ids"]])
        target = torch.tensor([hypotheses[0]["ids"]])
        start = torch.tensor([[tiny.model.config.decoder_start_token_id]])
        with torch.no_grad():
            said = tiny.model(
                input_ids=source,
                decoder_input_ids=torch.cat([start, target[:, :-1]], dim=1),
                output_attentions=True,
            )
        layers = said.cross_attentions
        expected = layers[max(len(layers) - 2, 0)][0].mean(0)
        attention = torch.tensor(hypotheses[0]["attention"])
        torch.testing.assert_close(attention, expected, rtol=0, atol=TOLERANCE)
