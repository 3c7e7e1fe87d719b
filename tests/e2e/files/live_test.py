"""linnet-file before a server that translates markup, with the models that ship."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from file_samples import SAMPLES
from linnet_files import File, Options, find, read

BUNDLES = Path(__file__).resolve().parents[3] / "model/bundles"
# One file of each format.
NAMES = list({find(name).name: name for name in SAMPLES}.values())


@pytest.fixture(scope="module")
def served(start):
    return start(models=BUNDLES)


def translate(server, source: Path, target: Path) -> str:
    """The report."""
    command = [sys.executable, "-m", "linnet_files.command", "translate", str(source)]
    command += ["--from", "en", "--to", "de", "-o", str(target), "--server", server.grpc]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "names",
    [
        ["messages.po", "version1.xlf", "version2.xliff", "cues.vtt"],
        pytest.param(NAMES, marks=pytest.mark.slow),
    ],
    ids=["markup", "all"],
)
def test_files_are_translated_as_markup(served, names: list[str], tmp_path: Path):
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for name in names:
        (source / name).write_bytes(SAMPLES[name])
    said = translate(served, source, target)
    assert said.count(" translated") == len(names), said
    # Codes that the server did not place by its alignments are "forced".
    assert "forced" not in said, said
    assert "failed" not in said, said
    for name in names:
        out = (target / name).read_bytes()
        assert out != SAMPLES[name], name
        before = read(name, SAMPLES[name], Options(all_entries=True))
        after = read(name, out, Options(all_entries=True))
        assert codes_of(after) == codes_of(before), name


def codes_of(document: File) -> list[list[str]]:
    """The codes of each text; those that are a text themselves, such as an attribute, as one."""
    return [sorted(code.raw.partition(" ")[0] for code in it.codes) for it in document.fragments]


def test_a_tag_begins_where_its_word_begins(served, tmp_path: Path):
    """By its share of the text the tag would begin before the verb at the end."""
    page, out = tmp_path / "a.html", tmp_path / "out.html"
    page.write_text("<p>I have seen the <b>house</b>.</p>\n")
    assert "1 translated" in translate(served, page, out)
    assert out.read_text().startswith("<p>Ich habe das <b>Haus")
