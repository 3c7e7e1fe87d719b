"""The commands that pages and recipes show for linnet_research have the flags that they name."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from linnet_model.config import read_recipe

ROOT = Path(__file__).resolve().parents[2]
RESEARCH = ROOT / "research"
SCRIPTS = tomllib.loads((RESEARCH / "pyproject.toml").read_text())["project"]["scripts"]
RECIPES = sorted((RESEARCH / "recipes").glob("*.toml"))
SHARED = RESEARCH / "linnet_research/data/noisy_channel.py"  # its flags are those of diversify, too
SHOWN = [*RESEARCH.glob("*.md"), *RECIPES, *(ROOT / "model/recipes").glob("*.toml")]


def commands(text: str) -> list[tuple[str, set[str]]]:
    """Returns the module and the flags of each command of linnet_research."""
    text = re.sub(r"\\\n#?\s*", " ", text)
    found = []
    for line in re.findall(r"(?:linnet-\w+|-m linnet_research\.[\w.]+)[^`\n]*", text):
        name = line.removeprefix("-m ").split()[0].rstrip(".,")
        module = SCRIPTS.get(name, name).partition(":")[0]
        if module.startswith("linnet_research."):
            found.append((module, set(re.findall(r"(?<=\s)--[a-z][\w-]*", line))))
    return found


@pytest.mark.parametrize("page", SHOWN, ids=lambda path: path.name)
def test_commands_exist_with_their_flags(page: Path):
    for module, flags in commands(page.read_text(encoding="utf-8")):
        source = RESEARCH / f"{module.replace('.', '/')}.py"
        text = source.read_text(encoding="utf-8") + SHARED.read_text(encoding="utf-8")
        known = set(re.findall(r"--[a-z][\w-]*", text)) | {"--no-reverse"}
        assert flags <= known, module


def test_commands_are_found():
    shown = "linnet-diversify --beam 1 --out X, python -m linnet_research.data.tatoeba --mirror M"
    assert commands(shown)[0] == ("linnet_research.data.diversify", {"--beam", "--out", "--mirror"})
    page = (RESEARCH / "RESULTS.md").read_text(encoding="utf-8")
    assert len(commands(page)) > 8


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipes_are_valid(path: Path):
    read_recipe(path)
