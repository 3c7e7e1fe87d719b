"""Codes come back exactly once and nested, whatever the server answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from linnet_files.fragment import ALONE, CLOSE, OPEN, Code, Part, from_xml, joined, placed, to_xml

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=12)


def _trees(children: st.SearchStrategy[list[Part]]) -> st.SearchStrategy[list[Part]]:
    def pair(inner: list[Part]) -> list[Part]:
        return [Code("<b>", OPEN), *inner, Code("</b>", CLOSE)]

    return st.lists(children, max_size=4).map(lambda them: [it for part in them for it in part]) | (
        children.map(pair)
    )


PARTS = st.recursive(
    TEXTS.map(lambda text: [text]) | st.just([Code("%s", ALONE, is_word=True)]),
    _trees,
    max_leaves=9,
).map(joined)


def nested(parts: tuple[Part, ...]) -> bool:
    depth = 0
    for part in parts:
        depth += part.kind if isinstance(part, Code) else 0
        if depth < 0:
            return False
    return depth == 0


@given(PARTS)
def test_the_form_as_xml_gives_the_parts_back(parts: tuple[Part, ...]):
    text, codes = to_xml(parts)
    assert from_xml(text, codes) == parts


@given(PARTS, TEXTS)
def test_placed_codes_are_there_once_in_order_and_nested(parts: tuple[Part, ...], text: str):
    found = placed(parts, text)
    assert [it for it in found if isinstance(it, Code)] == [
        it for it in parts if isinstance(it, Code)
    ]
    assert "".join(it for it in found if isinstance(it, str)) == text
    assert nested(found)


def test_answers_that_lost_doubled_or_crossed_codes_are_refused():
    bold, end, name = Code("<b>", OPEN), Code("</b>", CLOSE), Code("%s", is_word=True)
    text, codes = to_xml(("a ", bold, "b", end, " ", name))
    assert text == 'a <g id="1">b</g> <x id="5" translate="no">5</x>'
    assert from_xml(text, codes) == ("a ", bold, "b", end, " ", name)
    assert from_xml('<x id="5"/> <g id="1">B</g>A', codes) == (name, " ", bold, "B", end, "A")
    assert from_xml('<g id="1"><x id="5"></x></g>', codes) == (bold, name, end)
    for wrong in (
        '<g id="1">b</g>',
        '<g id="1">b</g><x id="5"/><x id="5"/>',
        '</g><g id="1"><x id="5"/>',
        '<g id="1"><x id="5"/>',
        '<g id="1">b</g><x id="5"/><b>',
        '<g id="2">b</g><x id="5"/>',
        "a b",
    ):
        assert from_xml(wrong, codes) is None, wrong


def test_breaks_split_texts():
    """Without a blank "line.<x/>Next" is a word for the server; an element that splits is none."""
    lines = Code("<br>"), Code(r"\n"), Code("\t"), Code("   "), Code('<x ctype="lb"/>')
    for code in lines:
        text, codes = to_xml(("a.", code, "B"))
        assert text == 'a.<br id="1"/>B'
        assert from_xml('A.<br id="1"/>B', codes) == ("A.", code, "B")
    for code in (Code("<wbr>"), Code("<img>"), Code("<br>", is_word=True)):
        assert "<br" not in to_xml(("a", code, "b"))[0]


def test_a_blank_that_is_written_twice_is_a_blank():
    twice = Code("  ")
    text, codes = to_xml(("One.", twice, "Two"))
    assert text == 'One. <x id="1"/>Two'
    for said in ('Eins. <x id="1"/>Zwei', 'Eins.<x id="1"/>Zwei', 'Eins.<x id="1"/> Zwei'):
        assert from_xml(said, codes) == ("Eins.", twice, "Zwei")


def test_placed_codes_stand_at_words():
    bold, end = Code("<b>", OPEN), Code("</b>", CLOSE)
    assert placed(("one two ", bold, "three", end), "eins zwei drei") == (
        *("eins zwei", bold, " drei", end),
    )
