"""The commands of README.md, COMMAND_LINE.md, LOAD.md and MARKUP.md are run, and their output is
compared.

A ```console block holds commands ("$ …") and, below each, the standard output with the bundles that
ship; fetched_model_test.py runs those of ```console en-pt.
`python tests/e2e/readme_test.py HOST:PORT` runs them against a server and writes the answers into
the pages; start that server with --compute float32.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *(ROOT / f"docs/{name}.md" for name in ("COMMAND_LINE", "LOAD", "MARKUP")),
]
BUNDLES = ROOT / "model/bundles"
# A ```sh block holds commands whose output differs from run to run. They are run as well, except
# the set-up itself.
RUN_ELSEWHERE = {
    "./start.sh": "tests/setup/start_test.py; ./test.sh runs ./start.sh --check",
    "./test.sh": "it runs this test",
    "docker": "tests/deploy/image/container_test.py; ./test.sh --all",
}


@dataclass
class Shown:
    command: str
    output: str


def blocks(kind: str) -> list[str]:
    text = "".join(page.read_text() for page in PAGES)
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def examples(kind: str) -> Iterator[Shown]:
    for block in blocks(kind):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield Shown(command, output)


def shown() -> Iterator[Shown]:
    return examples("console")


def run(command: str, server: str) -> str:
    environment = {**os.environ, "LINNET_SERVER": server}
    done = subprocess.run(
        command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def served(start):
    """In float32: `auto` takes another type on another processor, and with it other last digits."""
    return start("--compute", "float32", models=BUNDLES)


@pytest.mark.parametrize("example", list(shown()), ids=lambda example: example.command)
def test_command_prints_the_output_shown(served, example):
    assert run(example.command, served.grpc) == example.output


def test_there_are_commands_to_run():
    assert len(list(shown())) >= 3


def commands() -> list[str]:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    return [line for line in lines if line.partition(" ")[0] not in RUN_ELSEWHERE]


@pytest.mark.parametrize("command", commands())
def test_command_without_output_works(served, command):
    assert run(command, served.grpc).strip()


def suggested() -> list[str]:
    """Commands that ./start.sh suggests: lines with $bin in a here-document."""
    lines = (ROOT / "start.sh").read_text().splitlines()
    found = [
        line.removeprefix("$export").strip()
        for line in lines
        if re.match(r"(\$export)?  \$bin/", line)
    ]
    return [line.replace("$bin", "build/release/bin") for line in found]


@pytest.mark.parametrize("command", suggested())
def test_suggestion_of_start_sh_works(served, command):
    assert run(command, served.grpc).strip()


def test_start_sh_suggests_something():
    assert len(suggested()) >= 3


def update(server: str) -> None:
    answers = [(example, run(example.command, server)) for example in shown()]
    for page in PAGES:
        text = page.read_text()
        for example, output in answers:
            before = f"$ {example.command}\n{example.output}"
            text = text.replace(before, f"$ {example.command}\n{output}", 1)
        page.write_text(text)


if __name__ == "__main__":
    update(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:50051")
