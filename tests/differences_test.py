"""The tests that docs/DIFFERENCES.md names exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/DIFFERENCES.md"


def test_every_rule_names_tests_that_exist():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "::" in line]
    assert len(rows) >= 10
    for row in rows:
        named = re.findall(r"`(tests/[^`:]+)::(\w+)`", row.split("|")[-2])
        assert named, row
        for file, test in named:
            text = (ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"^(def {test}\(|TEST(_F|_P)?\(\w+, {test}\))", text, re.M), test
