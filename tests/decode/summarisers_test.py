"""Imported BART and PEGASUS models give in linnet-decode the answers of transformers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import tiny_multilingual
import tiny_summarisers as tiny_models

TOLERANCE = 1e-4  # float32, summed in another order


class Decoder:
    """One linnet-decode for all tests of a bundle, since loading LibTorch takes seconds."""

    def __init__(self, process):
        self._process = process

    def __call__(self, lines: list[dict], **options) -> list[list[dict]]:
        answers = self._process.ask([line | {"options": options} for line in lines])
        assert all("hypotheses" in answer for answer in answers), answers
        return [answer["hypotheses"] for answer in answers]


@pytest.fixture(scope="module", params=tiny_models.KINDS)
def served(request, tmp_path_factory, start_decode):
    """(the model of transformers, decode of its bundle)."""
    from linnet_model.importers.summarisers.import_summariser import import_summariser

    folder = tmp_path_factory.mktemp("summarisers")
    tiny = tiny_models.make_tiny_summariser(request.param, folder / "model")
    import_summariser(folder / "model", folder / "bundle", "en")
    return tiny, Decoder(start_decode(folder / "bundle"))


def limit(tiny) -> int:
    """Tokens of the longest target, with its end token."""
    return tiny_models.MAX_LENGTH - tiny.silent


def compare(tiny, texts: list[str], answers: list[list[dict]], **options) -> int:
    """Compares targets, but not those that the limit ends, which transformers ranks otherwise.
    Returns how many were compared."""
    compared = 0
    for text, hypotheses in zip(texts, answers, strict=True):
        ids, expected = hypotheses[0]["ids"], tiny.generate(text, **options)
        if limit(tiny) in (len(ids), len(expected)):
            continue
        compared += 1
        assert ids == expected, text
    return compared


def test_best_hypothesis_with_the_defaults_equals_generate(served):
    """Beam, length penalty, lengths, blocked n-grams and the forced token are the folder's."""
    tiny, decode = served
    texts = tiny_models.texts(tiny.kind, 20)
    answers = decode([{"text": text} for text in texts])
    lengths = {len(hypotheses[0]["ids"]) for hypotheses in answers}
    assert compare(tiny, texts, answers) >= 8
    # Without the tokens before it, with the end token.
    assert min(lengths) >= tiny_models.MIN_LENGTH - tiny.silent + 1
    assert len(lengths) > 2, "all answers are alike"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"beam_size": 1}, {"num_beams": 1}),
        ({"length_penalty": 0.5}, {"length_penalty": 0.5}),
        ({"no_repeat_ngram_size": 2}, {"no_repeat_ngram_size": 2}),
        ({"repetition_penalty": 1.5}, {"repetition_penalty": 1.5}),
        (
            {"repetition_penalty": 1.5, "beam_size": 1},
            {"repetition_penalty": 1.5, "num_beams": 1},
        ),
    ],
    ids=["greedy", "penalty", "ngrams", "repetition", "greedy-repetition"],
)
def test_each_option_has_the_meaning_of_transformers(served, ours: dict, theirs: dict):
    tiny, decode = served
    texts = tiny_models.texts(tiny.kind, 10)
    answers = decode([{"text": text} for text in texts], **ours)
    assert compare(tiny, texts, answers, **theirs) >= 3


def test_repetition_penalty_of_the_folder_is_the_default(tmp_path: Path):
    from linnet_model.importers.summarisers.import_summariser import import_summariser
    from linnet_model.network.model_config import ConfigError

    tiny_models.make_tiny_summariser("bart", tmp_path / "model")
    file = tmp_path / "model/generation_config.json"
    search = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps(search | {"repetition_penalty": 1.5}), "utf-8")
    import_summariser(tmp_path / "model", tmp_path / "bundle", "en")
    manifest = json.loads((tmp_path / "bundle/manifest.json").read_text("utf-8"))
    assert manifest["default_options"]["repetition_penalty"] == 1.5
    file.write_text(json.dumps(search | {"repetition_penalty": 0}), "utf-8")
    with pytest.raises(ConfigError, match="repetition_penalty 0, it must be between"):
        import_summariser(tmp_path / "model", tmp_path / "refused", "en")


def test_forced_token_scores_nothing(served):
    """It counts in the length of the score, and nowhere else."""
    tiny, decode = served
    texts = tiny_models.texts(tiny.kind, 8)
    for hypotheses in decode([{"text": text} for text in texts], n_best=2, length_penalty=1.0):
        for h in hypotheses:
            assert len(h["ids"]) == len(h["token_scores"])
            mean = sum(h["token_scores"]) / (len(h["ids"]) + tiny.silent - 1)
            assert h["score"] == pytest.approx(mean, abs=1e-5)


def test_ids_equal_the_tokenizer_on_fuzzed_unicode(served):
    """Equal answers and scores of a random model mean equal sources."""
    tiny, decode = served
    fuzzed = tiny_multilingual.fuzzed_texts(120, seed=4)
    texts = [text for text in fuzzed if 2 < len(tiny.ids(text)) <= 64]
    assert len(texts) > 60
    by_text = decode([{"text": text} for text in texts], beam_size=1)
    before = 1 if tiny.kind == "bart" else 0
    pair = {"source_language": "en", "target_language": "en"}
    numbered = [{"source_ids": tiny.ids(text)[before:], **pair} for text in texts]
    for text, one, other in zip(texts, by_text, decode(numbered, beam_size=1), strict=True):
        assert one == other, text


def test_slow_and_fast_tokenizer_of_bart_agree(tmp_path: Path):
    """So that an answer for one is an answer for both."""
    fast = tiny_models.make_bart_tokenizer(tmp_path)
    slow = tiny_models.make_bart_tokenizer(tmp_path, fast=False)
    for text in tiny_multilingual.fuzzed_texts(80, seed=9):
        assert fast(text).input_ids == slow(text).input_ids


def test_text_equals_the_tokenizers(served):
    tiny, decode = served
    texts = tiny_models.texts(tiny.kind, 12)
    compared = 0
    for hypotheses in decode([{"text": text} for text in texts]):
        ids = hypotheses[0]["ids"]
        if tiny.tokenizer.unk_token_id in ids or max(ids) >= len(tiny.tokenizer):
            continue
        compared += 1
        assert hypotheses[0]["text"] == tiny.tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
    assert compared > 0


def test_names_of_special_tokens_are_text(served):
    tiny, decode = served
    text = tiny_models.texts(tiny.kind, 1)[0]
    plain = decode([{"text": f"a {text}", "align": True}])[0][0]
    for name in ("<s>", "</s>", "<mask>", "<mask_1>", "<unk_5>"):
        marked = decode([{"text": f"a {name} {text}", "align": True}])[0][0]
        tokens = len(marked["attention"][0]) - len(plain["attention"][0])
        assert tokens > 1, f"{name} was read as one token"
