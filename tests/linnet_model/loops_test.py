"""Tests of the count of answers that repeat themselves."""

import pytest

from linnet_model.loops import has_loop, looping_share


@pytest.mark.parametrize(
    "text",
    [
        "das das das",
        "Er sagt, er sagt, er sagt, er sagt, ja",
        "sehr, sehr, sehr.",
        "Nein! „Nein“ – Nein! „Nein“ – Nein! „Nein“ –",
        "- - -",
        "Republublublublu",
    ],
)
def test_loop_is_found(text):
    assert has_loop(text)


@pytest.mark.parametrize(
    "text", ["", "das das Pferd", "Papa und Mama, Papa und Mama", "ja – nein – ja", "Kokosnuss"]
)
def test_text_without_loop_is_not_found(text):
    assert not has_loop(text)


def test_share_leaves_out_sources_that_loop():
    sources = ["go go go", "a tree", "a dog"]
    assert looping_share(sources, ["los los los", "Baum Baum Baum", "ein Hund"]) == 0.5
    assert looping_share(["no no no"], ["nein nein nein"]) == 0
