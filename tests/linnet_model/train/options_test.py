"""Tests that every recipe key has a comment and that the page of options is current."""

import dataclasses
import re
import typing
from pathlib import Path

import pytest

from linnet_model.config import Recipe
from linnet_model.train.command import main as train_main
from linnet_model.train.options import field_comments, options_page
from linnet_model.train.stages import read_stages

RECIPES = Path(__file__).resolve().parents[3] / "model" / "recipes"
PARTS = typing.get_type_hints(Recipe)
# Ways to train a bundle.
HOWS = ("gpu", "continue", "diversified", "reranked", "sentences", "mirror", "debates", "everyday")


@pytest.mark.parametrize("name", PARTS)
def test_every_key_has_a_comment(name: str):
    comments = field_comments(PARTS[name])
    assert list(comments) == [field.name for field in dataclasses.fields(PARTS[name])]
    silent = [key for key, comment in comments.items() if not comment]
    assert not silent, f"say in [{name}] what these are: {', '.join(silent)}"


def test_page_equals_printed_options(capsys):
    assert train_main(["--options"]) == 0
    printed = capsys.readouterr().out
    assert printed == options_page()
    rows = [line for line in printed.splitlines() if line.startswith("| `")]
    assert len(rows) > 100
    assert all(len(re.split(r"(?<!\\)\|", row)) == 4 + 2 for row in rows), "four cells each"
    for name, part in PARTS.items():
        assert f"## [{name}]" in printed
        for field in dataclasses.fields(part):
            assert f"| `{field.name}` |" in printed
    assert "## [[stages]]" in printed
    committed = (RECIPES.parents[1] / "docs/RECIPE_OPTIONS.md").read_text(encoding="utf-8")
    assert committed == printed, "run: linnet-train --options > docs/RECIPE_OPTIONS.md"


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda path: path.stem)
def test_recipes_name_themselves_and_are_valid(path: Path):
    """A recipe has the name of its bundle; recipes of one bundle differ in the machine, or one goes
    on with the weights of the other."""
    name = read_stages(path)[-1].recipe.bundle.name
    assert path.stem in [name, *(f"{name}-{how}" for how in HOWS)]
