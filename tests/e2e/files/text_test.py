"""Plain text: what is one text, and how a paragraph is written."""

from __future__ import annotations

import asyncio

import linnet
import pytest
from file_samples import SAMPLES, Shouter
from linnet.v1 import text_service_pb2 as api
from linnet_files import Options, read, translate


def texts(data: str) -> list[str]:
    return [fragment.text for fragment in read("a.txt", data.encode()).fragments]


def test_lines_that_may_be_a_paragraph_are_one_text():
    said = [it.text for it in read("text.txt", SAMPLES["text.txt"]).fragments]
    assert said == [
        "The Title",
        "A paragraph that somebody has wrapped at a width of sixty\n"
        "  columns. It has two sentences, and the second goes on in the\n"
        "  third line.",
        "Shopping:",
        "- milk",
        "- a loaf of bread that is described in so many words that it\n  goes on in a second line",
        "- nested",
        "Mary Smith\n    12 High Street",
    ]


def test_a_paragraph_is_wrapped_again_at_its_width():
    data = SAMPLES["text.txt"].decode().replace("\n", "\r\n").encode()
    document = read("a.txt", data)
    # As the server answers: a paragraph is one line, all other line ends are kept.
    answers = [
        (fragment.text.replace("\n  ", " ") if number < 5 else fragment.text,)
        for number, fragment in enumerate(document.fragments)
    ]
    answers[1] = (answers[1][0].replace("A paragraph", "This long paragraph"),)
    answers[6] = ("Mary Smith-Jones, who has moved\n    12 High Street",)
    said = document.write(answers).decode()
    assert "\n" not in said.replace("\r\n", "")
    expected = SAMPLES["text.txt"].decode()
    expected = expected.replace(
        "A paragraph that somebody has wrapped at a width of sixty\n"
        "  columns. It has two sentences, and the second goes on in the\n"
        "  third line.",
        "This long paragraph that somebody has wrapped at a width of\n"
        "  sixty columns. It has two sentences, and the second goes on\n"
        "  in the third line.",
    ).replace("Mary Smith", "Mary Smith-Jones, who has moved")
    assert said.replace("\r\n", "\n") == expected


TABLE = """\
     The Price List

  Item            Price     In stock
  --------------------------------
  apple juice     2.50      yes
  tea               10      no, not until
                            next week

A sentence.   Another one that is so long that it is
wrapped at a width.
-   a point of a list, which may go on
    in another line
10)   one with a number, and (a)
"""


def test_cells_of_a_row_are_texts_and_keep_their_columns():
    document = read("a.txt", TABLE.encode())
    said = [it.text for it in document.fragments]
    assert said == [
        *("The Price List", "Item", "Price", "In stock", "--------------------------------"),
        *("apple juice", "2.50", "yes", "tea", "10", "no, not until", "next week"),
        "A sentence.   Another one that is so long that it is\nwrapped at a width.",
        "-   a point of a list, which may go on\n    in another line",
        "10)   one with a number, and (a)",
    ]
    assert document.write([None] * len(said)).decode() == TABLE
    assert document.write([(it,) for it in said]).decode() == TABLE
    words = {"apple juice": "Apfelsaft", "tea": "ein Tee mit Zucker", "yes": "ja"}
    written = document.write([(words[it],) if it in words else None for it in said]).decode()
    assert "  Apfelsaft       2.50      ja\n" in written
    assert "  ein Tee mit Zucker   10   no, not until\n" in written


@pytest.mark.parametrize("ending", ["", "\n", "\r", "\r\n"])
def test_a_file_may_be_empty_or_blank(ending: str):
    for text in ("", " \t", "\ufeff", " \n\n\n"):
        data = (text + ending).encode()
        document = read("a.txt", data)
        assert document.fragments == []
        assert document.write([]) == data


def test_a_long_block_is_many_texts_that_end_with_sentences():
    line = "word " * 12
    found = texts(f"{line}goes on\n{line}and ends.\n" * 200)
    assert [it.count("\n") for it in found] == [19] * 20
    assert all(it.endswith("ends.") for it in found)
    assert max(it.count("\n") for it in texts(f"{line}\n" * 1000)) == 99


def test_the_server_joins_the_lines_of_a_paragraph():
    class Client(Shouter):
        async def translate_document(self, settings, lines):
            assert settings.line_breaks == api.LINE_BREAKS_JOIN_PARAGRAPHS
            async for it in super().translate_document(settings, lines):
                yield it

    settings = linnet.TranslateRequest(target_language_code="de")
    fragments = read("a.txt", b"one\ntwo", Options()).fragments
    (answer,) = asyncio.run(translate(Client(), settings, fragments))
    assert answer.parts == ("ONE\nTWO",)
