"""What holds for every format."""

from __future__ import annotations

import pytest
from file_samples import SAMPLES, answers_of, shouted
from linnet_files import FORMATS, FileError, Options, read

BESIDE = (".po", ".pot", ".xlf", ".xliff")  # these keep the source beside the translation


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_without_answers_stays_as_it_is(name: str):
    document = read(name, SAMPLES[name])
    assert document.write([None] * len(document.fragments)) == SAMPLES[name]
    if not name.endswith(BESIDE):
        assert document.write([it.parts for it in document.fragments]) == SAMPLES[name]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_translated_file_has_the_same_fragments_and_codes(name: str):
    options = Options(all_entries=True)
    document = read(name, SAMPLES[name], options)
    assert document.fragments
    again = read(name, document.write(answers_of(document)), options)
    if name.endswith(BESIDE):
        assert [it.parts for it in again.fragments] == [it.parts for it in document.fragments]
        return
    assert [it.text for it in again.fragments] == [it.text.upper() for it in document.fragments]
    # The text of an attribute is in the code of its tag.
    assert [[code.raw.upper() for code in it.codes] for it in again.fragments] == [
        [code.raw.upper() for code in it.codes] for it in document.fragments
    ]


def test_every_format_has_two_samples():
    for format_ in FORMATS:
        assert sum(name.endswith(format_.extensions) for name in SAMPLES) >= 2, format_.name


def test_an_unknown_ending_lists_the_known_ones():
    with pytest.raises(FileError, match=r"\.xyz is no known format: use .*\.srt"):
        read("a.xyz", b"")


@pytest.mark.parametrize("name", [name for name in SAMPLES if not name.endswith((".po", ".xhtml"))])
def test_bytes_that_are_not_utf_8_name_their_line(name: str):
    if b"\n" not in SAMPLES[name] or SAMPLES[name].startswith(b"PK"):
        return
    with pytest.raises(FileError, match=r"line 2: byte \d+ is not utf-8"):
        read(name, SAMPLES[name].replace(b"\n", b"\n\xff", 1))


def test_characters_that_the_encoding_lacks_convert_the_file():
    data = "1\n00:00:01,000 --> 00:00:02,000\nNa\u00efve\n".encode("latin-1")
    document = read("a.srt", data, Options(encoding="latin-1"))
    assert "\u0421".encode() in document.write([("\u0421",)])  # as UTF-8
    page = b"<?xml version='1.0' encoding='ascii'?><p>text</p>"
    assert read("a.xhtml", page).write([("\u0421",)]).endswith(b"<p>&#1057;</p>")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("big_endian", [False, True])
def test_a_byte_order_mark_and_its_encoding_stay(encoding: str, big_endian: bool):
    text = SAMPLES["cues.srt"].decode()
    data = text.encode(encoding)
    if big_endian and encoding != "utf-8-sig":
        data = ("\ufeff" + text).encode(encoding + "-be")
    out = shouted("a.srt", data)
    assert out.decode(encoding).count("WHEN I FIRST SAW") == 1
    assert out[:4] == data[:4]
