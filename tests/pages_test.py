"""Links between the pages of the project: each leads to a file or a heading that is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def pages() -> list[Path]:
    """Those that are kept; where there is no git, those that are not built."""
    done = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    named = [ROOT / line for line in done.stdout.splitlines()]
    built = {ROOT / name for name in ("build", ".venv", ".deps")}
    found = named or [it for it in ROOT.rglob("*.md") if built.isdisjoint(it.parents)]
    return [page for page in found if page.exists()]


def without_code(page: Path) -> str:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`(?!\])", "", text)


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in found}


def broken_links(page: Path) -> list[str]:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        target, _, anchor = link.partition("#")
        if re.match(r"\w+:", target):  # elsewhere
            continue
        other = (page.parent / target).resolve() if target else page
        if not other.exists() or (anchor and anchor not in anchors(other)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page):
    assert broken_links(page) == []


def test_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n[a](#one) [b](#two) [c](page.md#one) [d](gone.md) [e](https://x.example)\n"
    )
    assert broken_links(page) == ["#two", "gone.md"]


def test_pages_are_found():
    assert {ROOT / "README.md", ROOT / "docs/RUNBOOKS.md"} <= set(pages())
