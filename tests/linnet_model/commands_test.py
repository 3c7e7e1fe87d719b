"""Tests of the package's commands: each exists, and its help describes every flag."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from linnet_model import __version__
from linnet_model.__main__ import COMMANDS as MODEL_COMMANDS
from linnet_model.__main__ import IMPORTERS

MODEL = Path(__file__).resolve().parents[2] / "model"
PROJECT = tomllib.loads((MODEL / "pyproject.toml").read_text(encoding="utf-8"))["project"]
COMMANDS = PROJECT["scripts"]
MODULES = {f"linnet-model {name}": module for name, module in MODEL_COMMANDS.items()}
MODULES |= {f"linnet-model import {name}": module for name, module in IMPORTERS.items()}
MAINS = COMMANDS | {name: f"{module}:main" for name, module in MODULES.items()}


def test_pages_name_existing_commands():
    pages = [MODEL.parent / f"docs/{name}.md" for name in ("IMPORT", "MODELS", "TRAINING")]
    text = "".join(page.read_text("utf-8") for page in pages)
    named = set(re.findall(r"\blinnet-[a-z-]+\b", text))
    programs = {"linnet-decode", "linnet-server", "linnet-load"}  # the C++ ones
    assert named - programs <= set(COMMANDS), "pyproject.toml lacks a command of the pages"


def main_of(name: str):
    module, function = MAINS[name].split(":")
    return getattr(importlib.import_module(module), function)


@pytest.mark.parametrize("name", MAINS)
def test_prints_version(name: str, capsys):
    with pytest.raises(SystemExit) as ended:
        main_of(name)(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"{name} {__version__}\n"


@pytest.mark.parametrize("name", MAINS)
def test_help_describes_command_and_every_flag(name: str, capsys):
    with pytest.raises(SystemExit) as ended:
        main_of(name)(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: {name} ")
    description = text.split("\n\n")[1]
    assert len(description.split()) >= 6
    # Every flag has a help text: argparse puts it after two blanks or on the next line.
    for flag in re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.MULTILINE):
        told = re.search(rf"^  (?:-\w, )?{flag}\b[^\n]*?(?:  |\n {{8,}})(\S.*)", text, re.MULTILINE)
        assert told, f"{name} {flag} has no help"
    assert max(len(line) for line in text.splitlines()) <= 110


def test_names_unknown_and_missing_flags(capsys):
    train = importlib.import_module("linnet_model.train.command").main
    for arguments, message in (
        (["--recipes", "x"], "unrecognized arguments: --recipes x"),
        (["--recipe", "x"], "give --data, --out"),
    ):
        with pytest.raises(SystemExit):
            train(arguments)
        assert message in capsys.readouterr().err
