"""Targets constrained to contain phrases, in the same batch as others."""

from __future__ import annotations

import random

import pytest
import sentencepiece
from decode_lines import EOS, SOURCES, line


@pytest.fixture(scope="module")
def lines(bundle) -> list[dict]:
    """Phrases of up to three whole words."""
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(bundle / "source.spm"))
    words = [i for i in range(4, len(pieces)) if pieces.id_to_piece(i).startswith("▁")]
    return [constrained(seed, 1 + seed % 4, words) for seed in range(8)]


def constrained(seed: int, phrases: int, words: list[int]) -> dict:
    draw = random.Random(seed)
    wanted = [[draw.choice(words) for _ in range(draw.randrange(1, 4))] for _ in range(phrases)]
    return line(seed, 9, beam_size=4, n_best=4, max_target_tokens=24) | {"constraint_ids": wanted}


def contains(ids: list[int], phrase: list[int]) -> bool:
    return any(ids[i : i + len(phrase)] == phrase for i in range(len(ids)))


def test_answers_contain_phrases(decode, lines):
    for asked, hypotheses in zip(lines, decode(lines), strict=True):
        for h in hypotheses[:1]:
            assert all(contains(h["ids"], phrase) for phrase in asked["constraint_ids"])
            assert h["unmet_constraints"] == []
            assert h["ids"][-1] == EOS
    plain = decode([{k: v for k, v in asked.items() if k != "constraint_ids"} for asked in lines])
    assert any(
        not contains(best[0]["ids"], phrase)
        for asked, best in zip(lines, plain, strict=True)
        for phrase in asked["constraint_ids"]
    ), "the model says all of it anyway"


def test_answers_list_unmet_phrases(decode, lines):
    """Only the best must have all; with room for half of the phrases, every answer lacks some."""
    short = [x | {"options": x["options"] | {"max_target_tokens": 12}} for x in lines]
    lacking = 0
    for asked, hypotheses in zip([*lines, *short], decode([*lines, *short]), strict=True):
        for h in hypotheses:
            wanted = dict(enumerate(asked["constraint_ids"]))
            for number in h["unmet_constraints"]:
                lacking += not contains(h["ids"], wanted.pop(number))
            assert all(contains(h["ids"], phrase) for phrase in wanted.values())
    assert lacking > 0
    plain = decode([{k: v for k, v in lines[0].items() if k != "constraint_ids"}])
    assert "unmet_constraints" not in plain[0][0]


def test_phrase_that_goes_on_as_another_word_is_unmet(decode, bundle):
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(bundle / "source.spm"))
    names = [pieces.id_to_piece(i) for i in range(len(pieces))]
    word = next(i for i, name in enumerate(names) if name[:1] == "▁" and name[1:].isalpha())
    rest = next(i for i, name in enumerate(names) if name.isalpha() and name[0] != "▁")
    asked = line(1, 9, [word, rest], max_target_tokens=2) | {"constraint_ids": [[word]]}
    (hypotheses,) = decode([asked])
    assert hypotheses[0]["ids"][:2] == [word, rest]
    assert hypotheses[0]["unmet_constraints"] == [0]


def test_constrained_search_is_batch_invariant(decode, lines):
    mixed = [x for pair in zip(lines, SOURCES, strict=True) for x in pair]
    mixed[2] = mixed[2] | {"align": True}
    alone = decode(mixed, "--batch", "1")
    assert decode(mixed, "--batch", "7") == alone
    assert decode(mixed, "--batch", "16", threads=1) == alone
    assert alone[1::2] == decode(SOURCES)


def test_empty_list_is_no_constraint(decode):
    assert decode([SOURCES[1] | {"constraint_ids": []}]) == decode(SOURCES[1:2])


BAD = [
    ({"constraint_ids": [[]]}, "a constraint is empty"),
    ({"constraint_ids": [9]}, "constraint_ids[0] is 9, it must be a list of token ids"),
    ({"constraint_ids": [[600]]}, "constraint token 600 is outside the vocabulary of 600 tokens"),
    ({"constraint_ids": [[9, EOS]]}, "constraint token 2 is the end token"),
    ({"constraint_ids": [[3]]}, "a constraint contains the unknown token"),
    ({"constraint_ids": [[9]] * 33}, "33 constraints are given, at most 32"),
    ({"constraint_ids": [[9] * 13]}, "13 tokens together, max_target_tokens is 12"),
    ({"constraint_ids": [[9]], "target_ids": [9, EOS]}, "nothing is searched"),
    ({"constraint_ids": [[9]], "options": {"seed": 1}}, "sampling cannot enforce constraints"),
    ({"constraint_ids": [[9]], "options": {"beam_size": 1}}, "it must be at least 2"),
    ({"align": 1}, "align is 1, it must be true or false"),
]


def test_refuses_impossible_constraints(run, bundle):
    lines = []
    for bad, _ in BAD:
        asked = line(1)
        lines.append(asked | bad | {"options": asked["options"] | bad.get("options", {})})
    done = run(bundle, lines=lines)
    assert done.status == 1
    for (bad, message), answer in zip(BAD, done.answers, strict=True):
        assert message in answer["error"]["message"], bad
