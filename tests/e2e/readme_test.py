"""What README.md shows is what happens: its commands are run and their output is compared.

A ```console block holds commands ("$ …") and, below each, what it prints on standard output with
the bundles that ship. `python tests/e2e/readme_test.py HOST:PORT` runs them against a server and
writes the answers into README.md; start that server with --compute float32.
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
README = ROOT / "README.md"
BUNDLES = ROOT / "model/bundles"
# A ```sh block holds commands whose output differs from run to run. They are run as well, but for
# the set-up itself.
RUN_ELSEWHERE = {
    "./start.sh": "tests/setup/start_test.py; ./test.sh runs ./start.sh --check",
    "docker": "tests/deploy/container_test.py; ./test.sh --all",
}


@dataclass
class Shown:
    command: str
    output: str


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


def shown() -> Iterator[Shown]:
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield Shown(command, output)


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
def test_a_command_of_the_readme_prints_what_the_readme_shows(served, example):
    assert run(example.command, served.grpc) == example.output


def test_there_are_commands_to_run():
    assert len(list(shown())) >= 3


def commands() -> list[str]:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    return [line for line in lines if line.partition(" ")[0] not in RUN_ELSEWHERE]


@pytest.mark.parametrize("command", commands())
def test_a_command_whose_output_is_not_shown_works(served, command):
    assert run(command, served.grpc).strip()


def suggested() -> list[str]:
    """What ./start.sh tells to try: lines with $bin in a here-document."""
    lines = (ROOT / "start.sh").read_text().splitlines()
    found = [
        line.removeprefix("$export").strip()
        for line in lines
        if re.match(r"(\$export)?  \$bin/", line)
    ]
    return [line.replace("$bin", "build/release/bin") for line in found]


@pytest.mark.parametrize("command", suggested())
def test_what_start_sh_suggests_works(served, command):
    assert run(command, served.grpc).strip()


def test_start_sh_suggests_something():
    assert len(suggested()) >= 3


def update(server: str) -> None:
    text = README.read_text()
    for example in shown():
        before = f"$ {example.command}\n{example.output}"
        text = text.replace(before, f"$ {example.command}\n{run(example.command, server)}", 1)
    README.write_text(text)


if __name__ == "__main__":
    update(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:50051")
