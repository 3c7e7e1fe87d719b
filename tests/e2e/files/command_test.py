"""The program linnet-file."""

from __future__ import annotations

from pathlib import Path

import grpc
import linnet
import pytest
from file_samples import SAMPLES, shouted
from linnet_files import FORMATS, Options


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "in"
    (source / "sub").mkdir(parents=True)
    (source / "page.html").write_bytes(SAMPLES["page.html"])
    (source / "sub/cues.srt").write_bytes(SAMPLES["cues.srt"])
    (source / "notes.xyz").write_text("x")
    return source


def test_formats_are_listed(run):
    status, out, _ = run("formats")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == [it.name for it in FORMATS]


def test_a_file_is_written_and_reported(run, folder, tmp_path: Path):
    out = tmp_path / "out.html"
    status, _, said = run("translate", folder / "page.html", "--to", "de", "-o", out)
    assert status == 0
    assert out.read_bytes() == shouted("page.html", SAMPLES["page.html"], Options(target="de"))
    # The lines of the page have 3 and 3 (title, description); 6 and 2 (its attribute); 4, of which
    # one is the full stop behind the image, and 2 (its alt); 2 (list); 8.
    assert "page.html: 30 words, 11 translated\n" in said
    status, _, said = run("translate", folder / "page.html", "--to", "de", "-o", out)
    assert (status, said) == (
        1,
        f"error: {folder}/page.html: {out} is there: use --overwrite, or another name\n",
    )
    assert run("translate", folder / "page.html", "--to", "de", "-o", out, "--overwrite")[0] == 0


def test_a_folder_is_written_beside_and_goes_on(run, folder, tmp_path: Path):
    out, tmx = tmp_path / "out", tmp_path / "all.tmx"
    status, _, said = run("translate", folder, "--to", "de", "-o", out, "--tmx", tmx)
    assert status == 0
    assert sorted(it.name for it in out.rglob("*")) == ["cues.srt", "page.html", "sub"]
    assert "notes.xyz: left out: .xyz is no known format" in said
    assert b"<seg>BROKEN</seg>" in tmx.read_bytes()
    assert "page.html is there" in run("translate", folder, "--to", "de", "-o", out)[2]
    before = tmx.read_bytes()
    other = tmp_path / "other"
    status, _, said = run("translate", folder, "--to", "fr", "-o", other, "--tmx", tmx)
    assert (status, said) == (1, f"error: {tmx} is there: use --overwrite, or another name\n")
    assert tmx.read_bytes() == before
    assert not other.exists()


def test_a_bar_shows_the_progress_and_is_gone_before_an_error(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    command = ["translate", folder / "page.html", "--to", "de", "-o"]
    _, _, said = run(*command, tmp_path / "out.html")
    assert said.startswith("\r[##")
    assert f"\r[{'#' * 30}] 11/11 page.html\r\x1b[K{folder}/page.html: 30 words" in said
    gone = linnet.LinnetError.local("gone", grpc.StatusCode.UNAVAILABLE)
    connect = linnet.AsyncClient

    def connect_for_a_while(options: linnet.Options):
        client = connect(options)
        client._refuse = lambda text: gone if "link" in text else None
        return client

    monkeypatch.setattr(linnet, "AsyncClient", connect_for_a_while)
    _, _, said = run(*command, tmp_path / "other.html")
    assert said.endswith(f"\r\x1b[Kerror: {folder}/page.html: UNAVAILABLE: gone\n")


def test_words_are_counted_without_a_server(run, folder):
    status, out, _ = run(
        "translate", folder / "page.html", folder / "sub/cues.srt", "--to", "de", "--dry-run"
    )
    assert status == 0
    counts = [int(line.split()[0]) for line in out.splitlines()]
    assert counts[-1] == sum(counts[:-1])
    assert counts[0] == 30
    status, out, said = run("translate", folder, "--to", "de", "--dry-run")
    assert status == 0
    assert out.splitlines()[-1].split()[0] == str(counts[-1])
    assert "notes.xyz: left out" in said


def test_a_language_without_a_model_names_the_file_and_leaves_nothing(
    run, folder, tmp_path: Path, monkeypatch
):
    async def detect(self, text: str):
        if "TITLE" not in text.upper():
            raise linnet.LinnetError.local("no model", grpc.StatusCode.NOT_FOUND)
        return linnet.LanguageDetection()

    monkeypatch.setattr("file_samples.Shouter.detect_language", detect)
    status, _, said = run("translate", folder, "--to", "de", "-o", tmp_path / "out")
    assert status == 1
    assert f"error: {folder}/page.html: NOT_FOUND: no model\n" in said
    assert not [it for it in (tmp_path / "out").rglob("*") if it.is_file() and "page" in it.name]


def test_a_server_that_is_gone_ends_the_command(run, folder, tmp_path: Path, monkeypatch):
    async def detect(self, text: str):
        raise linnet.LinnetError.local("gone", grpc.StatusCode.UNAVAILABLE)

    monkeypatch.setattr("file_samples.Shouter.detect_language", detect)
    status, _, said = run("translate", folder, "--to", "de", "-o", tmp_path / "out")
    assert (status, said.count("UNAVAILABLE: gone")) == (1, 1)


def test_a_refused_text_ends_with_3(run, tmp_path: Path, monkeypatch):
    async def refuse(self, settings, lines):
        for number, line in enumerate(lines):
            reply = linnet.TranslateResponse()
            reply.translations.add().text = line.upper()
            yield number, linnet.LinnetError.local("too long") if "b" in line else reply

    monkeypatch.setattr("file_samples.Shouter.translate_document", refuse)
    (tmp_path / "a.txt").write_text("a\n\nb\n")
    status, _, said = run("translate", tmp_path / "a.txt", "--to", "de", "-o", tmp_path / "b.txt")
    assert status == 3
    assert "line 3: INVALID_ARGUMENT: too long\n" in said
    assert (tmp_path / "b.txt").read_text() == "A\n\nb\n"


def test_a_damaged_file_fails_and_the_others_are_translated(run, folder, tmp_path: Path):
    (folder / "bad.vtt").write_text("no")
    status, _, said = run("translate", folder, "--to", "de", "-o", tmp_path / "out")
    assert status == 1
    assert f"error: {folder}/bad.vtt: line 1: a WebVTT file begins with WEBVTT\n" in said
    assert not (tmp_path / "out/bad.vtt").exists()
    assert (tmp_path / "out/page.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "de"], "-o is missing"),
        (
            ["--to", "de", "-o", "x", "--line-length", "3"],
            "--line-length is 3, it must be 10 to 1000",
        ),
        (["-o", "x"], "the following arguments are required: --to"),
    ],
)
def test_wrong_arguments_end_with_2(run, arguments, message: str):
    status, _, said = run("translate", "a.srt", *arguments)
    assert status == 2
    assert message in said


def test_an_output_within_the_input_is_refused(run, folder):
    status, _, said = run("translate", folder, "--to", "de", "-o", folder / "out")
    assert status == 1
    assert "name another folder with -o" in said


def test_the_command_tells_how_to_name_an_encoding(run, tmp_path: Path):
    (tmp_path / "a.srt").write_bytes(b"1\n00:00:01,000 --> 00:00:02,000\nNa\xefve\n")
    for more in (("-o", tmp_path / "b.srt"), ("--dry-run",)):
        status, _, error = run("translate", tmp_path / "a.srt", "--to", "de", *more)
        assert status == 1
        assert error.endswith("convert the file to UTF-8, or name its encoding with --encoding\n")
