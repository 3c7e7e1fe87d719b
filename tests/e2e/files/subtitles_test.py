"""SubRip and WebVTT, against pysubs2 and webvtt-py."""

from __future__ import annotations

import io

import pysubs2
import pytest
import webvtt
from file_samples import SAMPLES, SRT, VTT, answers_of, shouted
from linnet_files import Code, FileError, Options, read


def srt(*cues: str, seconds: float = 2) -> bytes:
    times = [f"00:00:{2 * number:02},000" for number in range(len(cues) + 1)]
    return "\n".join(
        f"{number + 1}\n{times[number]} --> {times[number + 1]}\n{text}\n"
        for number, text in enumerate(cues)
    ).encode()


def said(data: bytes, *answer: str, **options: int) -> list[str]:
    """The texts of the cues when the fragments have these answers; "|" is a border of cues."""
    document = read("a.srt", data, Options(**options))
    answers = []
    for fragment, text in zip(document.fragments, answer, strict=True):
        borders = iter([it for it in fragment.codes if "-->" in it.raw])
        pieces = [
            [next(borders)] if it == "|" else [it] for it in text.replace("|", "\0|\0").split("\0")
        ]
        answers.append(tuple(part for piece in pieces for part in piece))
    return [
        block.split("\n", 2)[2].strip() for block in document.write(answers).decode().split("\n\n")
    ]


def test_a_backslash_braces_and_angle_brackets_are_text():
    out = shouted("a.srt", SRT.encode()).decode()
    assert "- OPEN C:\\new\\home!\n- WHY A <B AND C> D?" in out
    assert "I {SIC} KNEW" in out


def test_times_order_numbers_and_coordinates_stay():
    before, after = SRT.splitlines(), shouted("a.srt", SRT.encode()).decode().splitlines()
    fixed = [line for line in before if "-->" in line or line.isdigit()]
    assert [line for line in after if "-->" in line or line.isdigit()] == fixed
    old = pysubs2.SSAFile.from_string(SRT, "srt")
    new = pysubs2.SSAFile.from_string("\n".join(after), "srt")
    assert [(it.start, it.end) for it in new] == [(it.start, it.end) for it in old]


def test_a_sentence_over_cues_is_one_fragment():
    (first, *rest) = read("a.srt", SRT.encode()).fragments
    assert first.text.startswith("When I first saw the house by")
    assert [it.text for it in rest] == ["Open ", "Why a <b and c> d?"]


def test_sentences_and_speakers_are_not_joined():
    texts = ["It is late.", "We go home", "- now!", "[door]", "JOHN: Stay", "\u266a la la"]
    assert [it.text for it in read("a.srt", srt(*texts)).fragments] == [
        "It is late.", "We go home", "now!", "[door]", "JOHN: Stay", "\u266a la la"
    ]  # fmt: skip


def test_a_border_stands_where_its_code_stands():
    data = srt("When she came home", "the dog barked.")
    assert said(data, "Als sie heimkam,|bellte der Hund.") == [
        "Als sie heimkam,",
        "bellte der Hund.",
    ]
    assert said(data, "Der Hund|bellte, als sie heimkam.") == [
        "Der Hund",
        "bellte, als sie heimkam.",
    ]


def test_a_border_moves_to_keep_the_length_of_a_cue():
    text = "wort " * 24 + "|ende."
    cues = said(srt("When she came home", "the dog barked."), text)
    assert all(len(line) <= 42 for cue in cues for line in cue.split("\n"))
    assert all(cue.count("\n") <= 1 for cue in cues)


def test_long_lines_wrap_in_balance():
    data = srt("One two three.")
    text = "Eine Zeile die deutlich laenger ist als zweiundvierzig Zeichen."
    (cue,) = said(data, text)
    first, second = cue.split("\n")
    assert f"{first} {second}" == text
    assert abs(len(first) - len(second)) <= 10
    assert said(data, "kurz und knapp", line_length=10) == ["kurz und\nknapp"]


def test_an_answer_with_fewer_words_than_cues_leaves_no_cue_empty():
    data = srt("I would", "like to", "go.")
    assert said(data, "Gehen|wir|") == ["Gehen", "Gehen", "wir"]


def test_cues_that_keep_no_limit_are_noted():
    """Two seconds at 17 characters are 34, and two lines of 20 are 40."""
    data = srt("One two.", "Three four.")
    fits, slow = "x" * 16 + " " + "y" * 17, "x" * 17 + " " + "y" * 17
    document = read("a.srt", data, Options(line_length=20))
    assert document.notes == []
    document.write([(fits,), (f"{slow} {slow}",)])
    assert document.notes == [
        "line 7: the cue has 4 lines, 2 are wanted",
        "line 7: the cue has 71 characters in 2 s, 17 a second are wanted",
    ]
    document = read("a.srt", data, Options(line_length=20, lines=4, reading_speed=35.5))
    document.write([(fits,), (f"{slow} {slow}",)])
    assert document.notes == []


def test_tags_over_a_border_close_and_open_again():
    data = srt("<i>When she came</i>", "<i>the dog barked.</i>")
    assert said(data, "Als sie|bellte der Hund.") == ["<i>Als sie</i>", "<i>bellte der Hund.</i>"]


def test_vtt_keeps_all_but_the_text():
    out = shouted("a.vtt", VTT.encode()).decode()
    assert out == VTT.replace("<v Mary>Fish", "<v Mary>FISH").replace(
        "chips</v> are\n", "CHIPS</v> ARE "
    ).replace("very <i>good</i></c> for", "VERY <i>GOOD</i></c> FOR").replace(
        "you and me.", "YOU AND ME."
    )
    old, new = (webvtt.from_buffer(io.StringIO(it)) for it in (VTT, out))
    assert [(it.start, it.end, it.identifier) for it in new] == [
        (it.start, it.end, it.identifier) for it in old
    ]


def test_vtt_escapes_and_keeps_the_times_of_words():
    out = shouted("a.vtt", SAMPLES["words.vtt"])
    assert b"ONE <01:00:01.000>TWO &lt;THREE&gt;\n" in out


def test_a_vtt_cue_ends_where_the_times_of_the_next_begin():
    """Section 6.1 of the standard: a blank line between two cues may be missing."""
    text = "WEBVTT\n00:01.000 --> 00:02.000\nHi.\n00:02.000 --> 00:03.000\nIt is\n<b>late</b>.\n"
    assert [it.text for it in read("a.vtt", text.encode()).fragments] == ["Hi.", "It is late."]
    assert shouted("a.vtt", text.encode()).decode() == text.replace("Hi", "HI").replace(
        "It is\n<b>late", "IT IS <b>LATE"
    )


def test_vtt_times_without_leading_zeros_stay():
    text = b"WEBVTT\n\n0:0:1.0 --> 0:0:3.54\nHi.\n"
    assert shouted("a.vtt", text) == text.replace(b"Hi", b"HI")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.srt", "1\n00:00:16.700 \u2013> 00:00:18.000\nHi\n", "line 2: .* are no times of a cue"),
        ("a.srt", "hello\n", "line 1: 'hello' is outside of a cue"),
        ("a.vtt", "1\n00:01.000 --> 00:02.000\nHi", "line 1: a WebVTT file begins with WEBVTT"),
        ("a.vtt", "WEBVTT\n\n00:01,000 --> 00:02,000\nHi", "line 3: .* are no times of a cue"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(name: str, text: str, message: str):
    with pytest.raises(FileError, match=message):
        read(name, text.encode())


def test_codes_that_are_words_stay_whole_when_lines_wrap():
    data = srt("See C:\\a\\very\\long\\path\\to\\the\\file\\that\\is\\meant and come.")
    document = read("a.srt", data, Options(line_length=20))
    (cue,) = document.fragments
    assert [it.raw for it in cue.codes if isinstance(it, Code)] == [
        "C:\\a\\very\\long\\path\\to\\the\\file\\that\\is\\meant"
    ]
    out = document.write(answers_of(document)).decode()
    assert "\\to\\the\\file\\" in out


@pytest.mark.parametrize("name", ["a.vtt", "a.srt"])
def test_a_file_without_cues_stays_as_it_is(name: str):
    data = b"WEBVTT\n\nNOTE nothing is said\n" if name == "a.vtt" else b"\n"
    document = read(name, data)
    assert document.fragments == []
    assert document.write([]) == data
