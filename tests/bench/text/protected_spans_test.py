"""Random codes of twelve classes come back from translators, alone and in sentences."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
import protected_spans


def check(program, models: Path, pair: str, codes: int) -> None:
    with protected_spans.served(program("linnet-server"), models) as (client, _):
        found = protected_spans.codes(client, pair, codes)
    for name, counts in found.items():
        assert counts["lost or changed"] == counts["of these with a warning"], name
        assert counts["lost or changed"] <= counts["codes"] / 200, name
        assert counts["codes"] == codes * protected_spans.CLASSES


@pytest.mark.parametrize(
    ("pair", "codes"),
    [("en-de", 2)] + [pytest.param(it, 200, marks=pytest.mark.slow) for it in ("en-de", "de-en")],
)
def test_codes_come_back_or_the_answer_says_so(program, pair, codes):
    check(program, protected_spans.ROOT / "model/bundles", pair, codes)


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["en-pt", "pt-en"])
def test_codes_come_back_from_fetched_models(program, fetched_models, pair):
    check(program, fetched_models, pair, 200)
