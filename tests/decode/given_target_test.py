"""Given targets are scored in the same batch as searches."""

from __future__ import annotations

import random

import pytest
from decode_lines import EOS, SOURCES, as_given, eager_model, forced_scores, line, with_options


def scored(line: dict, ids: list[int]) -> dict:
    return line | {"target_ids": ids}


def test_scores_equal_those_of_the_search(decode):
    """Bit-identical: the same logits in any batch, and the same sums."""
    asked = with_options(SOURCES, n_best=5, length_penalty=0.6, temperature=1.3)
    found = decode(asked)
    lines = [
        (scored(line, h["ids"]), [as_given(h)])
        for line, best in zip(asked, found, strict=True)
        for h in best
    ]
    random.Random(3).shuffle(lines)
    for flags in (("--batch", "1"), ("--batch", "32")):
        answers = decode([line for line, _ in lines], *flags)
        assert answers == [expected for _, expected in lines]


def test_mixed_batch_is_invariant(decode):
    searches = decode(SOURCES)
    mixed, expected = [], []
    for asked, best in zip(SOURCES, searches, strict=True):
        mixed += [scored(asked, best[0]["ids"]), asked]
        expected += [[as_given(best[0])], best]
    assert decode(mixed, "--batch", "7") == expected
    assert decode(mixed, "--batch", "7", threads=1) == expected


def test_scores_equal_training_path(decode):
    model = eager_model()
    draw = random.Random(5)
    lines = [
        scored(line, [draw.randrange(3, 600) for _ in range(draw.randrange(0, 30))] + [EOS])
        for line in SOURCES
    ]
    for asked, (answer,) in zip(lines, decode(lines), strict=True):
        assert answer["ids"] == asked["target_ids"]
        # 1e-4: float32 sums in another order
        expected = forced_scores(model, asked["source_ids"], asked["target_ids"])
        assert answer["token_scores"] == pytest.approx(expected, abs=1e-4)
        assert answer["score"] == pytest.approx(sum(expected) / len(expected), abs=1e-4)


def test_text_target_is_its_tokens_and_end(decode, bundle):
    from sentencepiece import SentencePieceProcessor

    pieces = SentencePieceProcessor(model_file=str(bundle / "source.spm"))
    text = "Runa bado kelim 3."
    source = {"text": "Bado runa."}
    by_text, by_ids, empty = decode(
        [
            source | {"target": text},
            source | {"target_ids": [*pieces.encode(text), EOS]},
            source | {"target": ""},
        ]
    )
    assert by_text == by_ids
    assert by_text[0]["text"] == text
    assert empty[0]["ids"] == [EOS]


def test_search_options_do_not_affect_given_targets(decode):
    ids = [9] * 40 + [EOS]
    ((plain,),) = decode([scored(line(1), ids)])
    options = {
        "beam_size": 32,
        "n_best": 32,
        "max_target_tokens": 3,
        "min_target_tokens": 3,
        "no_repeat_ngram_size": 1,
    }
    assert decode([scored(line(1, **options), ids)]) == [[plain]]


BAD_TARGETS = [
    ({"target_ids": []}, "the target is empty, it must end with the end token"),
    ({"target_ids": [9, 8]}, "the target ends with token 8, it must end with the end token 2"),
    ({"target_ids": [9, EOS, EOS]}, "target token 2 is the end token"),
    ({"target_ids": [600, EOS]}, "target token 600 is outside the vocabulary of 600 tokens"),
    ({"target_ids": [9] * 1025 + [EOS]}, "the target has 1025 tokens, this model writes at most"),
    ({"target_ids": [9, "x"]}, 'target_ids[1] is "x", it must be an integer'),
    ({"target_ids": [9, EOS], "target": "Runa."}, "the line has both target and target_ids"),
    ({"target_ids": [9, EOS], "prefix_ids": [9]}, "leave the prefix out"),
    ({"target_ids": [9, EOS], "options": {"seed": 1}}, "nothing is drawn"),
    ({"target": 3}, "target is 3, it must be a string"),
]


def test_refuses_bad_targets(run, bundle, bundle_without_tokenizer):
    done = run(bundle, lines=[{"source_ids": [9, EOS]} | bad for bad, _ in BAD_TARGETS])
    assert done.status == 1
    for (bad, message), answer in zip(BAD_TARGETS, done.answers, strict=True):
        assert answer["error"]["code"] == "INVALID_ARGUMENT"
        assert message in answer["error"]["message"], bad
    done = run(bundle_without_tokenizer, lines=[{"source_ids": [9, EOS], "target": "Runa."}])
    assert "give target_ids instead of target" in done.answers[0]["error"]["message"]
