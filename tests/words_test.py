"""Retired words and sentence fragments do not come back: words.py says which, and why."""

from __future__ import annotations

import pytest
from words import check, tree, violations


def test_the_tree_uses_the_words_of_the_field() -> None:
    found = violations(tree())
    assert not found, "\n" + "\n".join(str(one) for one in found)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("server/a.h", "// The sequence is seated.\n"),
        ("server/a.h", "int kMostRows = 4;\n"),
        ("model/torch/a.cc", "int lanes = 4;\n"),
        ("docs/a.md", "The house is full.\n"),
        ("model/linnet_model/a.py", '"""What a model returns."""\n'),
    ],
)
def test_a_retired_word_is_found(path: str, text: str) -> None:
    assert len(list(check(path, text))) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("model/ops/cpu/vectors.h", "// One value in each lane.\n"),
        ("server/a.h", "// At most four rows; the most probable token first.\n"),
    ],
)
def test_a_word_in_its_own_meaning_is_allowed(path: str, text: str) -> None:
    assert list(check(path, text)) == []
