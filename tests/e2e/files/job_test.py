"""Files on disk: whole or not at all, resumed, and reported."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import grpc
import linnet
import pytest
from file_samples import SAMPLES, Shouter, shouted
from linnet_files import Code, FileError, Fragment, Options, Outcome, translate
from linnet_files import job as jobs
from linnet_files.job import translate_file
from linnet_files.terms import read_glossary, tmx_terms, write_tmx

SETTINGS = linnet.TranslateRequest(source_language_code="en", target_language_code="de")
BUSY = linnet.LinnetError.local("busy", grpc.StatusCode.UNAVAILABLE)
WRONG = linnet.LinnetError.local("text is too long")


def run(source: Path, target: Path, client: Shouter) -> jobs.Report:
    return asyncio.run(translate_file(client, SETTINGS, source, target, Options(target="de")))


def cues(count: int) -> bytes:
    return b"".join(
        b"%d\n00:00:%02d,000 --> 00:00:%02d,900\nText %s.\n\n" % (it, it, it, b"abc"[it % 3 :])
        for it in range(count)
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_each_format_is_translated(name: str, tmp_path: Path):
    (tmp_path / name).write_bytes(SAMPLES[name])
    report = run(tmp_path / name, tmp_path / "out", Shouter())
    assert report.words > 0
    out = (tmp_path / "out").read_bytes()
    assert out != SAMPLES[name]
    assert out == shouted(name, SAMPLES[name], Options(target="de"))
    assert not report.counts()[Outcome.FORCED]
    assert sorted(os.listdir(tmp_path)) == sorted([name, "out"])


def test_equal_texts_are_sent_once_and_texts_without_words_never():
    client = Shouter()
    fragments = [Fragment(("one",)), Fragment(("12.5",)), Fragment(("one",)), Fragment(())]
    answers = asyncio.run(translate(client, SETTINGS, fragments))
    assert client.asked == ["one"]
    assert [it.parts for it in answers] == [("ONE",), None, ("ONE",), None]
    assert [it.outcome for it in answers] == [
        *(Outcome.TRANSLATED, Outcome.KEPT, Outcome.TRANSLATED, Outcome.KEPT),
    ]


def test_an_interrupted_file_leaves_no_output_and_goes_on(tmp_path: Path):
    source, target = tmp_path / "a.srt", tmp_path / "b.srt"
    source.write_bytes(cues(3))
    client = Shouter(lambda text: BUSY if text == "Text c." else None)
    with pytest.raises(linnet.LinnetError, match="busy"):
        run(source, target, client)
    assert not target.exists()
    again = Shouter()
    run(source, target, again)
    assert len(client.asked) == 3
    assert again.asked == ["Text c."]
    assert target.read_bytes().count(b"TEXT") == 3
    assert sorted(os.listdir(tmp_path)) == ["a.srt", "b.srt"]


def test_other_settings_begin_anew(tmp_path: Path):
    source, target = tmp_path / "a.srt", tmp_path / "b.srt"
    source.write_bytes(cues(3))
    with pytest.raises(linnet.LinnetError):
        run(source, target, Shouter(lambda text: BUSY if text == "Text c." else None))
    client = Shouter()
    other = linnet.TranslateRequest(source_language_code="en", target_language_code="fr")
    asyncio.run(translate_file(client, other, source, target, Options()))
    assert len(client.asked) == 3


def test_a_refused_text_stays_and_is_reported(tmp_path: Path):
    source, target = tmp_path / "a.srt", tmp_path / "b.srt"
    source.write_bytes(cues(3))
    report = run(source, target, Shouter(lambda text: WRONG if text == "Text bc." else None))
    assert report.counts()[Outcome.FAILED] == 1
    assert report.lines() == ["line 7: INVALID_ARGUMENT: text is too long"]
    assert b"Text bc." in target.read_bytes()
    with pytest.raises(FileError, match="refused every text: INVALID_ARGUMENT: text is too long"):
        run(source, tmp_path / "c.srt", Shouter(lambda _: WRONG))


def test_warnings_of_the_server_are_told_with_their_text(tmp_path: Path):
    """They have ranges of bytes in the text that was sent, which has codes as XML."""

    class Warning(Shouter):
        async def translate_document(self, settings, lines):
            lines = list(lines)
            async for number, reply in super().translate_document(settings, lines):
                one = reply.translations[0]
                begin = lines[number].encode().index(b"5 &" if settings.mime_type else b"5 ")
                differ = one.warnings.add(reason="FACTS_DIFFER")
                differ.metadata["sourceRanges"] = f"0-2 {begin}-{begin + 7}"
                forced = one.warnings.add(reason="SPAN_FORCED")
                forced.metadata["sourceRanges"] = f"{begin}-{begin + 1}"
                one.warnings.add(reason="LANGUAGE_MISMATCH", message="as told")
                yield number, reply

    (tmp_path / "a.vtt").write_text("WEBVTT\n\n00:01.000 --> 00:02.000\nä <b>is</b> 5 &amp; a.\n")
    report = run(tmp_path / "a.vtt", tmp_path / "b.vtt", Warning())
    assert report.lines() == [
        'line 4: only the source has "ä", "5 &"',
        'line 4: "5" may stand in the wrong place',
        "line 4: as told",
    ]


def test_codes_that_an_answer_lost_are_placed_and_reported():
    fragment = Fragment(("Hello ", Code("%s", is_word=True), " there"), "line 5")

    class Forgetful(Shouter):
        async def translate_document(self, settings, lines):
            for number, _ in enumerate(lines):
                reply = linnet.TranslateResponse()
                reply.translations.add().text = "Hallo dort"
                yield number, reply

    (answer,) = asyncio.run(translate(Forgetful(), SETTINGS, [fragment]))
    assert answer.outcome == Outcome.FORCED
    assert answer.parts == ("Hallo", Code("%s", is_word=True), " dort")


def test_control_characters_of_an_answer_are_dropped():
    client = Shouter()
    (answer,) = asyncio.run(translate(client, SETTINGS, [Fragment(("a\x1b\uffffb\tc",))]))
    assert answer.parts == ("AB\tC",)


def test_a_server_without_markup_gets_plain_text():
    class Plain(Shouter):
        async def translate_document(self, settings, lines):
            if settings.mime_type:
                raise linnet.LinnetError.local("not supported", field="settings.mime_type")
            async for result in super().translate_document(settings, lines):
                yield result

    fragment = Fragment(("Hello ", Code("%s", is_word=True)))
    (answer,) = asyncio.run(translate(Plain(), SETTINGS, [fragment]))
    assert answer.parts == ("HELLO ", Code("%s", is_word=True))
    assert answer.outcome == Outcome.FORCED


def test_the_language_is_that_of_the_whole_file():
    class Detecting(Shouter):
        async def translate_document(self, settings, lines):
            assert settings.source_language_code == "en"
            async for result in super().translate_document(settings, lines):
                yield result

    settings = linnet.TranslateRequest(target_language_code="de")
    asyncio.run(translate(Detecting(), settings, [Fragment(("Hi",)), Fragment(("Yes",))]))


def test_damaged_large_and_missing_files_give_no_output(tmp_path: Path, monkeypatch):
    (tmp_path / "a.vtt").write_bytes(b"no")
    monkeypatch.setattr(jobs, "MAX_BYTES", 100)
    (tmp_path / "b.srt").write_bytes(cues(10))
    for name, message in {
        "a.vtt": "line 1: a WebVTT file",
        "b.srt": "at most 100 are read",
        "c.srt": "No such file",
    }.items():
        with pytest.raises(FileError, match=message):
            run(tmp_path / name, tmp_path / "out", Shouter())
    assert sorted(os.listdir(tmp_path)) == ["a.vtt", "b.srt"]
    monkeypatch.setattr(jobs, "MAX_BYTES", 10_000)
    with pytest.raises(FileError, match="cannot write"):
        run(tmp_path / "b.srt", tmp_path / "none" / "out", Shouter())


def test_translations_are_exported_and_terms_imported(tmp_path: Path):
    (tmp_path / "a.po").write_bytes(SAMPLES["messages.po"])
    report = run(tmp_path / "a.po", tmp_path / "b.po", Shouter())
    write_tmx(tmp_path / "out.tmx", [report], "en", "de")
    terms = dict(tmx_terms((tmp_path / "out.tmx").read_bytes(), "en", "de-AT"))
    assert terms["One file"] == "ONE FILE"
    assert "%d files" not in terms  # a code is no term
    assert b'<seg><ph x="0">%d</ph> FILES</seg>' in (tmp_path / "out.tmx").read_bytes()
    assert dict(read_glossary(tmp_path / "out.tmx", "", "de")) == terms


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "one\n", "line 1 is not SOURCE<tab>TARGET"),
        ("a.tsv", "one\teins\tuno\n", "line 1 is not SOURCE<tab>TARGET"),
        ("a.tsv", "one\teins\n\none\tuno\n", "line 3 has the source of line 1 again"),
        ("a.tsv", "\n", "no terms from en to de"),
        ("a.tmx", "<tmx><body/></tmx>", "no terms from en to de"),
        ("a.tsv", "".join(f"t{it}\tx\n" for it in range(257)), "257 terms, .* at most 256"),
        ("a.tsv", "a\t" + "x" * 257, "has more than 256 bytes"),
        ("a.tmx", "<tmx><body>", "line 1, column 11: no element found"),
    ],
)
def test_a_glossary_that_cannot_be_used_is_refused(name, text, message, tmp_path: Path):
    (tmp_path / name).write_text(text)
    with pytest.raises(FileError, match=f"{name}: .*{message}"):
        read_glossary(tmp_path / name, "en", "de")
