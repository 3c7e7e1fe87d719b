"""Tests of the shipped bundles: complete, small, and with the scores of their cards."""

import io
import re
import shutil
from pathlib import Path

import pytest
import torch

from linnet_model.bundle import read_bundle_weights, read_manifest
from linnet_model.config import Recipe, from_tables
from linnet_model.export.attribution import ATTRIBUTION, data_of_stages
from linnet_model.export.card import MAX_WORDS, write_card
from linnet_model.json_files import read_json
from linnet_model.network.encoder_decoder import EncoderDecoder
from linnet_model.sources import sources_of
from linnet_model.texts import card_examples
from linnet_model.train.stages import read_stages

MODEL = Path(__file__).resolve().parents[2] / "model"
BUNDLES = sorted((MODEL / "bundles").iterdir())
MAX_BYTES = 16 << 20  # limit for all files of a bundle


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_shipped_bundle_is_complete_and_small(bundle: Path):
    manifest = read_manifest(bundle)  # checks sizes and sums of all files
    assert manifest["name"] == bundle.name
    shipped = [path for path in bundle.iterdir() if path.suffix != ".packed"]  # made at a load
    assert sum(path.stat().st_size for path in shipped) <= MAX_BYTES


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_shipped_bundle_has_the_code_of_this_tree(bundle: Path):
    """If not, convert it to the type that it has (linnet-model convert)."""
    _, sizes = read_bundle_weights(bundle)
    exported = torch.jit.script(EncoderDecoder(sizes).eval()).save_to_buffer()
    modules = [
        torch.jit.load(file, map_location="cpu")
        for file in (io.BytesIO(exported), str(bundle / "model.pt"))
    ]

    def operators(module: torch.jit.ScriptModule, method: str) -> list[str]:
        return re.findall(r"\w+::\w+", str(getattr(module, method).inlined_graph))

    for method in modules[0]._c._method_names():
        assert hasattr(modules[1], method)
        assert operators(modules[0], method) == operators(modules[1], method)


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_card_has_scores_of_these_weights(bundle: Path):
    manifest, scores = read_manifest(bundle), read_json(bundle / "scores.json")
    assert scores is not None
    weights = {entry["name"]: entry["sha256"] for entry in manifest["files"]}
    assert scores["model_sha256"] == weights[manifest["model_file"]]
    card = (bundle / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert manifest["version"] in card
    for test in scores["tests"]:
        for measure, value in test["model"].items():
            assert f"{value:.1f}" in card, f"{measure} of {test['domain']}"


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_card_is_made_of_the_files_beside_it(bundle: Path, tmp_path: Path):
    for file in bundle.glob("*.json"):
        shutil.copyfile(file, tmp_path / file.name)
    write_card(tmp_path)
    for page in ("MODEL_CARD.md", ATTRIBUTION):
        made = (tmp_path / page).read_text(encoding="utf-8")
        assert made == (bundle / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_card_is_short(bundle: Path):
    assert len((bundle / "MODEL_CARD.md").read_text(encoding="utf-8").split()) <= MAX_WORDS


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_attribution_names_every_source_with_its_notice(bundle: Path):
    training = read_json(bundle / "training.json")
    assert training is not None
    page = " ".join((bundle / ATTRIBUTION).read_text(encoding="utf-8").split())
    data = data_of_stages(training)
    for domain, source in sources_of(data["domains"], data["terms"]).items():
        assert f"| {domain} |" in page
        for key in ("author", "licence", "attribution"):
            assert " ".join(source[key].split()) in page
        assert " ".join(source.get("notice", "").split()) in page
    for licence in training.get("init_licences", []):
        assert licence in page


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_named_recipe_with_its_changes_is_what_was_trained(bundle: Path):
    training = read_json(bundle / "training.json")
    assert training is not None
    trained = from_tables(Recipe, training["recipe"], "")
    trained.check()
    stages = read_stages(MODEL / "recipes" / training["recipe_file"], training["set"])
    assert stages[-1].recipe == trained


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_card_shows_examples_that_nobody_chose(bundle: Path):
    manifest, scores = read_manifest(bundle), read_json(bundle / "scores.json")
    assert scores is not None
    task = manifest["task"].removeprefix("TASK_").lower()
    texts = card_examples(task, manifest["source_language_code"])
    assert len(texts) == len(set(texts)) >= (50 if task == "translate" else 12)
    assert set(texts) <= {example["text"] for example in scores["examples"]}
    assert not set(texts) & {example["source_text"] for example in manifest["golden_examples"]}
