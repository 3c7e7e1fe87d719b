"""Verdicts and trainings are those of the bundles that ship."""

from pathlib import Path

import pytest

from linnet_model.bundle import read_manifest
from linnet_model.export.card import JUDGEMENTS
from linnet_model.json_files import read_json
from linnet_research.evaluation import everyday
from linnet_research.texts import everyday_sentences

MODEL = Path(__file__).resolve().parents[3] / "model"
BUNDLES = sorted((MODEL / "bundles").iterdir())


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_last_step_on_the_page_is_that_of_the_bundle(bundle: Path):
    page = (MODEL.parent / "research/RESEARCH.md").read_text(encoding="utf-8")
    *_, row = [line for line in page.splitlines() if line.startswith(f"| `{bundle.name}` |")]
    training = read_json(bundle / "training.json")
    assert training is not None
    assert f"`{Path(training['recipe_file']).stem}`" in row
    assert read_manifest(bundle)["version"] in row


@pytest.mark.parametrize("language", ["en", "de"])
def test_verdicts_are_on_answers_of_the_translator_that_ships(language: str):
    bundle = MODEL / "bundles" / {"en": "en-de", "de": "de-en"}[language]
    scores, judgements = read_json(bundle / "scores.json"), read_json(bundle / JUDGEMENTS)
    assert scores is not None
    assert judgements is not None
    # The answers are not decoded again: another processor may round a tie the other way.
    for key in ("model_sha256", "engine", "options"):
        assert judgements[key] == scores[key]
    rows = judgements["judged"]
    everyday.check(rows)
    assert [row["text"] for row in rows] == everyday_sentences(language)
    assert len({row["text"] for row in rows}) == 100
    assert all(row["verdict"] for row in rows)
