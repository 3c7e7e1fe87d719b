"""Imported models with several languages give in linnet-decode the answers of transformers."""

from __future__ import annotations

import itertools
import sys
import unicodedata
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import tiny_marian as marian
import tiny_multilingual as tiny_models

COUNT = 7
LIMIT = tiny_models.MAX_LENGTH - 2  # tokens of a target, with the end token
PAIRS = [("en", "de"), ("de", "fr"), ("fr", "en")]
TOLERANCE = 1e-4  # float32, summed in another order


def line(text: str, source: str, target: str, **more) -> dict:
    return {"text": text, "source_language": source, "target_language": target, **more}


class Decoder:
    """One linnet-decode for all tests of a bundle, since loading LibTorch takes seconds."""

    def __init__(self, process):
        self._process = process

    def answers(self, lines: list[dict], **options) -> list[dict]:
        """`options` are those of each line, which may have more."""
        return self._process.ask(
            [one | {"options": options | one.get("options", {})} for one in lines]
        )

    def __call__(self, lines: list[dict], **options) -> list[list[dict]]:
        answers = self.answers(lines, **options)
        assert all("hypotheses" in answer for answer in answers), answers
        return [answer["hypotheses"] for answer in answers]


@pytest.fixture(scope="module", params=tiny_models.KINDS)
def served(request, tmp_path_factory, start_decode):
    """(the model of transformers, decode of its bundle)."""
    from linnet_model.importers.card_flags import CardFlags
    from linnet_model.importers.multilingual.import_multilingual import import_multilingual

    folder = tmp_path_factory.mktemp("multilingual")
    tiny = tiny_models.make_tiny_multilingual(request.param, folder / "model")
    import_multilingual(
        folder / "model", folder / "bundle", tiny.languages, stated=CardFlags("none")
    )
    return tiny, Decoder(start_decode(folder / "bundle"))


def cases() -> list[tuple[str, str, str]]:
    texts = marian.SOURCES[:COUNT] + marian.TARGETS[:COUNT]
    return [(text, *pair) for text, pair in zip(texts, itertools.cycle(PAIRS), strict=False)]


def test_greedy_targets_equal_generate(served):
    tiny, decode = served
    answers = decode([line(*case) for case in cases()], beam_size=1)
    for case, hypotheses in zip(cases(), answers, strict=True):
        ids, expected = hypotheses[0]["ids"], tiny.generate(*case, num_beams=1)
        if len(expected) == LIMIT:  # where some models of transformers have no end token
            ids, expected = ids[:-1], expected[:-1]
        assert ids == expected, case
    assert len({len(hypotheses[0]["ids"]) for hypotheses in answers}) > 2, "all answers are alike"


@pytest.mark.parametrize("penalty", [1.0, 0.6])
def test_best_hypothesis_of_beam_equals_generate(served, penalty: float):
    tiny, decode = served
    answers = decode([line(*case) for case in cases()], beam_size=4, length_penalty=penalty)
    compared = 0
    for case, hypotheses in zip(cases(), answers, strict=True):
        ids = hypotheses[0]["ids"]
        expected = tiny.generate(*case, num_beams=4, length_penalty=penalty)
        # Where the limit ends a target, transformers ranks it otherwise.
        if LIMIT in (len(ids), len(expected)):
            continue
        compared += 1
        assert ids == expected, case
    assert compared >= len(answers) // 4


def test_forced_language_is_in_no_answer(served):
    tiny, decode = served
    for (text, source, target), hypotheses in zip(
        cases(), decode([line(*case) for case in cases()], n_best=2), strict=True
    ):
        for h in hypotheses:
            assert tiny.language_id(target) not in h["ids"][:1]
            assert len(h["ids"]) == len(h["token_scores"])
            # It counts in the length of the score, and nowhere else.
            mean = sum(h["token_scores"]) / (len(h["ids"]) + 1)
            assert h["score"] == pytest.approx(mean, abs=1e-5)
            tag = tiny_models.NAMES[tiny.kind][target]
            assert tag not in h["text"] or tag in text, (text, source)


def test_composed_and_decomposed_text_are_read_alike(served):
    """tokenizers, in which transformers has most tokenizers, drops the second mark of a letter."""
    _, decode = served
    texts = ["Việt một nền ẩm thực", "ᾧ ᾄδω", "한국어 번역", "été déjà lich"]
    composed = [unicodedata.normalize("NFC", text) for text in texts]
    decomposed = [unicodedata.normalize("NFD", text) for text in texts]
    assert all(one != other for one, other in zip(composed, decomposed, strict=True))
    ones, others = (
        decode([line(t, "en", "de") for t in group]) for group in (composed, decomposed)
    )
    assert ones == others


def test_ids_equal_the_tokenizer_on_fuzzed_unicode(served):
    """Equal answers and scores of a random model mean equal sources."""
    tiny, decode = served
    fuzzed = tiny_models.fuzzed_texts(120, seed=4)
    # Some texts have no tokens, others are longer than the model reads.
    texts = [text for text in fuzzed if 2 < len(tiny.ids(text, "en")) <= 48]
    assert len(texts) > 80
    by_text = decode([line(text, "en", "de") for text in texts], beam_size=1)
    language, forced = tiny.language_id("en"), tiny.language_id("de")
    numbered = []
    for text in texts:
        ids = tiny.ids(text, "en")
        assert ids[0] == language
        assert ids[-1] == 2
        numbered.append({"source_ids": ids[1:], "source_language": "en", "target_language": "de"})
    by_ids = decode(numbered, beam_size=1)
    for text, one, other in zip(texts, by_text, by_ids, strict=True):
        assert one == other, text
    # The same as with every id written out, but for the score of the forced one, and for the limit,
    # which counts a prefix.
    raw = [{"source_ids": tiny.ids(text, "en"), "prefix_ids": [forced]} for text in texts]
    within = LIMIT - 3
    for one, other in zip(by_text, decode(raw, beam_size=1), strict=True):
        assert other[0]["ids"][: within + 1] == [forced, *one[0]["ids"][:within]]
        assert other[0]["token_scores"][1 : within + 1] == pytest.approx(
            one[0]["token_scores"][:within], abs=TOLERANCE
        )


def test_text_equals_the_tokenizers(served):
    tiny, decode = served
    compared = 0
    pieces = len(tiny.tokenizer.sp_model)
    for hypotheses in decode([line(*case) for case in cases()]):
        ids = hypotheses[0]["ids"]
        # transformers fails at ids without a token, and shows languages of M2M-100.
        if tiny.tokenizer.unk_token_id in ids or max(ids) >= pieces:
            continue
        compared += 1
        assert hypotheses[0]["text"] == tiny.tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
    assert compared > 0


def test_text_leaves_out_every_language_token(served):
    """A random model also writes languages in the middle of a target."""
    tiny, decode = served
    tags = [f"__{tag}__" for tag in tiny_models.NAMES["m2m100"].values()]
    tags += [*tiny_models.NAMES["nllb"].values(), *tiny_models.NAMES["mbart50"].values()]
    lines = [line("Kalo.", "en", "de", target_ids=[20, tiny.language_id("fr"), 21, 2])]
    for hypotheses in decode(lines):
        assert hypotheses[0]["text"]
        assert not any(tag in hypotheses[0]["text"] for tag in tags)


def test_names_of_languages_in_a_text_are_text(served):
    _, decode = served
    tags = [f"__{tag}__" for tag in tiny_models.NAMES["m2m100"].values()]
    tags += [*tiny_models.NAMES["nllb"].values(), *tiny_models.NAMES["mbart50"].values(), "</s>"]
    text = marian.SOURCES[0]
    plain = decode([line(text, "en", "de", align=True)])[0][0]
    marked = decode([line(f"{tag} {text}", "en", "de", align=True) for tag in tags])
    for tag, hypotheses in zip(tags, marked, strict=True):
        tokens = len(hypotheses[0]["attention"][0]) - len(plain["attention"][0])
        assert tokens > 1, f"{tag} was read as one token"


def test_attention_equals_transformers(served):
    import torch

    tiny, decode = served
    tiny.model.set_attn_implementation("eager")  # the others do not return their weights
    lines = [line(*case, align=True) for case in cases()]
    for (text, source, target), hypotheses in zip(cases(), decode(lines, beam_size=2), strict=True):
        ids = hypotheses[0]["ids"]
        previous = [2, tiny.language_id(target), *ids[:-1]]
        with torch.no_grad():
            said = tiny.model(
                input_ids=torch.tensor([tiny.ids(text, source)]),
                decoder_input_ids=torch.tensor([previous]),
                output_attentions=True,
            )
        layers = said.cross_attentions
        # Without the languages: the first target row and the first source column.
        expected = layers[max(len(layers) - 2, 0)][0].mean(0)[1:, 1:]
        attention = torch.tensor(hypotheses[0]["attention"])
        torch.testing.assert_close(attention, expected, rtol=0, atol=TOLERANCE)


def test_given_target_has_the_score_of_the_search(served):
    _, decode = served
    found = [h[0] for h in decode([line(*case) for case in cases()])]
    lines = [line(*case, target_ids=h["ids"]) for case, h in zip(cases(), found, strict=True)]
    for h, scored in zip(found, decode(lines), strict=True):
        assert scored[0]["token_scores"] == h["token_scores"]
        assert scored[0]["score"] == h["score"]


def test_prefix_follows_the_forced_language(served):
    _, decode = served
    prefix = [20, 30]
    lines = [line(*case, prefix_ids=prefix) for case in cases()]
    for hypotheses in decode(lines):
        assert hypotheses[0]["ids"][:2] == prefix


def test_constraints_are_met_behind_the_forced_language(served):
    _, decode = served
    lines = [line(*case, constraint_ids=[[25, 26]]) for case in cases()]
    for hypotheses in decode(lines, beam_size=6):
        assert hypotheses[0]["unmet_constraints"] == []
        assert (25, 26) in list(itertools.pairwise(hypotheses[0]["ids"]))


def test_unknown_pair_is_refused_with_those_there_are(served):
    _, decode = served
    [answer] = decode.answers([line("A text.", "en", "it")])
    assert answer["error"]["code"] == "INVALID_ARGUMENT"
    assert "it has en to de/fr, de to en/fr, fr to en/de" in answer["error"]["message"]


@pytest.fixture(scope="module")
def opus(tmp_path_factory, start_decode):
    """An OPUS-MT model with several targets."""
    from linnet_model.importers.huggingface_marian.import_huggingface_marian import (
        import_huggingface_marian,
    )

    folder = tmp_path_factory.mktemp("opus")
    tiny = tiny_models.add_targets(marian.make_tiny_marian(folder / "model"))
    targets = [f"{code}={tag}" for code, tag in tiny_models.TAGS.items()]
    import_huggingface_marian(folder / "model", folder / "bundle", ["en"], targets)
    return tiny, Decoder(start_decode(folder / "bundle"))


def test_opus_ids_equal_the_tokenizer_on_fuzzed_unicode(opus):
    tiny, decode = opus
    for code, tag in tiny_models.TAGS.items():
        tagged = {
            t: tiny.tokenizer(f">>{tag}<< {t}").input_ids
            for t in tiny_models.fuzzed_texts(60, seed=5)
        }
        texts = [text for text, ids in tagged.items() if 2 < len(ids) <= 40 and "<<" not in text]
        number = tiny.tokenizer.convert_tokens_to_ids(f">>{tag}<<")
        assert all(tagged[text][0] == number for text in texts)
        by_text = decode([line(text, "en", code) for text in texts], beam_size=1)
        by_ids = decode([{"source_ids": tagged[text]} for text in texts], beam_size=1)
        for text, one, other in zip(texts, by_text, by_ids, strict=True):
            assert one == other, text


def test_opus_greedy_targets_equal_generate(opus):
    tiny, decode = opus
    for code, tag in tiny_models.TAGS.items():
        lines = [line(text, "en", code) for text in marian.SOURCES[:COUNT]]
        found = [hypotheses[0]["ids"] for hypotheses in decode(lines, beam_size=1)]
        assert found == [
            marian.greedy(tiny, tiny.tokenizer(f">>{tag}<< {text}").input_ids)
            for text in marian.SOURCES[:COUNT]
        ]


def test_opus_tag_of_a_text_is_text(opus):
    tiny, decode = opus
    del tiny
    text = marian.SOURCES[0]
    plain = decode([line(text, "en", "de", align=True)])[0][0]
    marked = decode([line(f">>nld<< {text}", "en", "de", align=True)])[0][0]
    assert len(marked["attention"][0]) > len(plain["attention"][0]) + 1
