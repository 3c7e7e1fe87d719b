"""What docs/FILES.md shows: its commands, its report and its line of each format."""

from __future__ import annotations

import io
import json
import re
import shlex
import zipfile
from pathlib import Path

import pytest
from file_samples import SAMPLES, shouted
from linnet_files import FORMATS, Options

PAGE = (Path(__file__).resolve().parents[3] / "docs/FILES.md").read_text()
FILES = json.loads(Path(__file__).with_name("real_files.json").read_text())
LINES = re.findall(r"^\| (\w+) \| `(.*)` \| `(.*)` \|$", PAGE, re.MULTILINE)


def content(data: bytes) -> str:
    """The characters of a file, or of the texts in an archive; runs of blanks as one."""
    if not data.startswith(b"PK"):
        return re.sub(" +", " ", data.decode(errors="replace"))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return "".join(archive.read(name).decode(errors="replace") for name in archive.namelist())


def test_each_format_has_a_line():
    assert [name for name, _, _ in LINES] == [it.name for it in FORMATS]


def test_each_extension_that_the_page_names_is_read():
    named = set(re.findall(r"`(\.\w+)`", PAGE))
    assert named <= {it for format_ in FORMATS for it in format_.extensions}
    assert all(named & set(it.extensions) for it in FORMATS)


@pytest.mark.parametrize(("kind", "before", "after"), LINES, ids=lambda it: it[:12])
def test_line_is_translated_as_shown(kind: str, before: str, after: str):
    (format_,) = [it for it in FORMATS if it.name == kind]
    name = next(name for name in SAMPLES if name.endswith(format_.extensions))
    data, out = SAMPLES[name], shouted(name, SAMPLES[name], Options(target="de"))
    assert before in content(data)
    assert after not in content(data)
    assert after in content(out)


def test_commands_work(run, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/page.html").write_bytes(SAMPLES["page.html"])
    (tmp_path / "film.srt").write_bytes(SAMPLES["cues.srt"])
    commands = re.findall(r"(?:^|`)linnet-file (translate [^`\n]+)", PAGE, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        assert run(*shlex.split(command))[0] == 0, command
    assert (tmp_path / "film.de.srt").exists()
    assert (tmp_path / "docs-de/page.html").exists()


def test_the_report_is_as_shown(run, tmp_path: Path, monkeypatch):
    """Of a translator that puts the text before its codes, which crosses none but loses one."""
    monkeypatch.chdir(tmp_path)
    text = SAMPLES["messages.po"].decode()
    lines = text.partition("#: a file.c")[0].count("\n")
    (tmp_path / "messages.po").write_text(
        text.partition("#: a file.c")[0] + 'msgid "%d open files"\nmsgstr ""\n'
    )
    monkeypatch.setattr("file_samples.shout", lambda text: re.sub("<[^>]*>", "", text))
    status, _, said = run("translate", "messages.po", "--to", "de", "-o", "out.po")
    assert status == 0
    shown = re.search(r"^(messages\.po: .*\n  line )\d+(: .*\n)", PAGE, re.MULTILINE)
    assert said == f"{shown[1]}{lines + 1}{shown[2]}"


def test_files_of_packages_are_counted():
    shown = re.findall(r"^\| (\w+) \| (\d+) \| (.*) \|$", PAGE, re.MULTILINE)
    found: dict[str, dict[str, int]] = {}
    for name, package in FILES.items():
        for kind, count in package["files"].items():
            found.setdefault(kind, {})[name] = count
    assert {(kind, int(count), names) for kind, count, names in shown} == {
        (kind, sum(counts.values()), ", ".join(counts)) for kind, counts in found.items()
    }
