"""Pages stay short: README, a page, a record, and all together; and the tree stays small."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pages_test import ROOT, name_of, pages

# Experiments, measurements, forms to fill in; cards, licences and options, which programs write.
APART = ("research/", "tests/bench/results/", "findings/", ".github/", "model/bundles/", "models/")
WRITTEN_BY_PROGRAMS = {"docs/RECIPE_OPTIONS.md"}
MAX_WORDS = 44_850
MAX_README = 1_000
MAX_PAGE = 1_500
MAX_RECORD = 400
MAX_TREE_BYTES = 42 << 20
# Lists in which readers look something up, with their own limits.
REFERENCES = {
    "docs/METRICS.md": 1_800,
    "docs/RUNBOOKS.md": 2_200,
    "docs/SETTINGS.md": 2_200,
    "docs/THREATS.md": 1_900,
}


def words(page: Path) -> int:
    return len(page.read_text(encoding="utf-8").split())


def max_words(name: str) -> int:
    if name == "README.md":
        return MAX_README
    if name.startswith("docs/decisions/"):
        return MAX_RECORD
    return REFERENCES.get(name, MAX_PAGE)


COUNTED = [
    page
    for page in pages()
    if not name_of(page).startswith(APART) and name_of(page) not in WRITTEN_BY_PROGRAMS
]


@pytest.mark.parametrize("page", COUNTED, ids=name_of)
def test_page_is_short(page: Path):
    assert words(page) <= max_words(name_of(page)), "shorten it, or split it by question"


def test_all_pages_together_are_short():
    total = sum(words(page) for page in COUNTED)
    assert total <= MAX_WORDS, f"{total} words: shorten other pages before you add to one"


def test_changelog_is_short():
    assert len((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()) <= 100


def test_decisions_are_few():
    assert len(list((ROOT / "docs/decisions").glob("*.md"))) <= 15


def test_tree_is_small():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("only git tells which files are tracked")
    total = sum((ROOT / name).lstat().st_size for name in listed.stdout.split("\0")[:-1])
    assert total <= MAX_TREE_BYTES, f"{total} bytes: delete a result or a file that nobody needs"


def test_words_are_counted(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("# One\n\n| two | three |\n\n`four five`\n")
    assert words(page) == 9  # bars and the mark of the heading count as well
