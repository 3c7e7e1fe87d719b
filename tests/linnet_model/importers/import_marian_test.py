"""Tests that imported models of Marian, and of Firefox in its layout, compute what Marian does.

tests/data/marian has the models and what Marian says of them (make.py there).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

import marian_models as marian
from stepwise import stepwise

from linnet_model.__main__ import main as linnet_model
from linnet_model.bundle import load_module, read_bundle_weights, read_manifest
from linnet_model.importers.marian.archive import read_archive
from linnet_model.importers.marian.binary import read_binary
from linnet_model.importers.marian.import_marian import main
from linnet_model.importers.marian.weights import PAD_BIAS
from linnet_model.network.encoder_decoder import EncoderDecoder, forced_logits
from linnet_model.shortlist_file import read_shortlist

MODELS = ("shared", "split", "attention", "int8")


def convert(folder: Path, out: Path, *more: str) -> int:
    languages = ["--source-language", "en", "--target-language", "de"]
    return main(["--model", str(folder), "--out", str(out), *languages, "--no-golden", *more])


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A bundle of each model, by name."""
    place = tmp_path_factory.mktemp("native")
    for name in MODELS:
        assert convert(marian.folder(name, place / f"{name}-model"), place / name) == 0
    return {name: place / name for name in MODELS}


def model_of(bundle: Path) -> tuple[EncoderDecoder, int]:
    """Returns the model and its start token."""
    weights, sizes = read_bundle_weights(bundle)
    model = EncoderDecoder(sizes).eval()
    model.load_state_dict(weights)
    return model, read_manifest(bundle)["vocabulary"]["start_id"]


def log_probabilities(model, start: int, source: list[int], target: list[int]) -> torch.Tensor:
    length = torch.tensor([len(source)], dtype=torch.int32)
    with torch.no_grad():
        logits = forced_logits(model, torch.tensor([source]), length, torch.tensor([target]), start)
    return logits[0].log_softmax(-1)


# --- Exactness ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_float64_and_near_marian(bundles: dict[str, Path], name: str):
    model, start = model_of(bundles[name])
    exact = model_of(bundles[name])[0].double()
    pairs = marian.scored(name)
    assert len(pairs) == 62
    for source, target, score in pairs:
        rows = torch.arange(len(target)), torch.tensor(target)
        total, wanted = (
            float(log_probabilities(network, start, source, target)[rows].double().sum())
            for network in (model, exact)
        )
        # 5e-7 a token: float32 near 10, where logits are
        assert total == pytest.approx(wanted, rel=1e-5, abs=5e-7 * len(target))
        # Marian rounds more than we do, and prints 6 digits. This is small models: on a production
        # student its scores are up to 3e-3 from those of float64 (students_test.py).
        assert wanted == pytest.approx(score, rel=1e-5, abs=5e-7 * len(target))


@pytest.mark.parametrize("name", MODELS)
def test_alignments_equal_marian(bundles: dict[str, Path], name: str):
    manifest = read_manifest(bundles[name])
    start, layer = manifest["vocabulary"]["start_id"], manifest["architecture"]["alignment_layer"]
    module, cases, sharp = load_module(bundles[name] / "model.pt"), marian.ORACLE[name], 0
    given = zip(cases["sources"], cases["greedy"], cases["alignments"], strict=True)
    for source, answer, expected in given:
        length = torch.tensor([len(source)], dtype=torch.int32)
        inputs = torch.tensor([source]), length, torch.tensor([answer["ids"]])
        weights = stepwise(module, "align", *inputs, layer, start=start)[0]
        assert len(weights) == len(expected)
        for row, (token, weight) in zip(weights, expected, strict=True):
            assert float(row[token]) == pytest.approx(weight, abs=2e-5)  # Marian prints 6 digits
            sharp += weight > 0.5
    assert sharp > 20
    other = stepwise(module, "align", *inputs, 1 - layer, start=start)[0]
    assert float((other - weights).abs().max()) > 0.05, "layers are alike"


@pytest.mark.parametrize("name", MODELS)
def test_greedy_answers_equal_marian(bundles: dict[str, Path], name: str):
    model, start = model_of(bundles[name])
    cases = marian.ORACLE[name]
    unknown = read_manifest(bundles[name])["vocabulary"]["unk_id"]
    for source, answer in zip(cases["sources"], cases["greedy"], strict=True):
        found = log_probabilities(model, start, source, answer["ids"])
        found[:, unknown] = -torch.inf  # as Marian without --allow-unk
        best, second = found.topk(2).values.T
        assert float((best - second).min()) > 1e-4, "a tie, which either may break"
        assert found.argmax(-1).tolist() == answer["ids"]


def test_start_row_takes_no_probability(bundles: dict[str, Path]):
    model, start = model_of(bundles["split"])
    manifest = read_manifest(bundles["split"])
    assert start == manifest["vocabulary"]["pad_id"] == manifest["vocabulary"]["size"] - 1
    assert not model.embed_target.weight[start].any()
    assert float(model.output_bias[start]) == PAD_BIAS
    found = log_probabilities(model, start, [2, 0], [3, 0])
    assert float(found[:, start].max()) < -1000


# --- int8 ---------------------------------------------------------------------------------------

# Rows of our weights, and the matrices of the file that they are the transposes of.
INTEGERS = {
    "embed_source": ["Wemb"],
    "encoder.0.mixer.query_key_value": [f"encoder_l1_self_W{x}" for x in "qkv"],
    "encoder.0.mixer.output": ["encoder_l1_self_Wo"],
    "encoder.0.ffn.fc1": ["encoder_l1_ffn_W1"],
    "encoder.0.ffn.fc2": ["encoder_l1_ffn_W2"],
    "decoder.0.mixer.candidate_gate": ["decoder_l1_rnn_W", "decoder_l1_rnn_Wf"],
    "decoder.0.attention.query": ["decoder_l1_context_Wq"],
    "decoder.1.attention.key_value": [f"decoder_l2_context_W{x}" for x in "kv"],
    "decoder.1.attention.output": ["decoder_l2_context_Wo"],
    "decoder.1.ffn.fc2": ["decoder_l2_ffn_W2"],
}


@pytest.mark.parametrize("ours", INTEGERS)
def test_int8_products_have_the_integers_of_the_file(bundles: dict[str, Path], ours: str):
    """The engine quantises weights when it packs them, and finds the file's integers again."""
    weight = read_bundle_weights(bundles["int8"])[0][f"{ours}.weight"]
    stored = marian.integers(marian.HERE / "int8" / marian.INT8)
    inputs = weight.size(1)
    packed = torch.ops.linnet.pack_linear(weight.contiguous(), "int8")
    # Rows of one 1 pick the inputs one by one, which int8 keeps exactly.
    columns = torch.ops.linnet.linear(torch.eye(inputs), packed, None).T.double()
    begin = 0
    for name in INTEGERS[ours]:
        integers, multiplier = stored[name]
        assert int(np.abs(integers).max()) == 127
        found = columns[begin : begin + len(integers)].numpy() * multiplier
        # 2e-4: float32's rounding of the scale, of 127 steps; a second rounding is up to 0.5
        np.testing.assert_allclose(found, integers, rtol=0, atol=2e-4)
        begin += len(integers)
    assert not columns[begin:].any(), "the rows of padding"


def test_int8_logits_stay_near_dequantised_model(bundles: dict[str, Path]):
    """Weights are exact, so only activations are rounded: to seven bits for each row."""
    cases, differences = marian.ORACLE["int8"], []
    modules = [load_module(bundles["int8"] / "model.pt").eval() for _ in range(2)]
    for module, kind in zip(modules, ("float32", "int8"), strict=True):
        module.pack(kind)
    start = read_manifest(bundles["int8"])["vocabulary"]["start_id"]
    for source, target in zip(cases["sources"], cases["targets"], strict=True):
        length = torch.tensor([len(source)], dtype=torch.int32)
        inputs = torch.tensor([source]), length, torch.tensor([target])
        exact, rounded = (
            stepwise(module, "step", *inputs, start=start)[0, :, :start] for module in modules
        )
        differences.append((rounded - exact).abs())
        assert float(exact.std()) > 1
    whole = torch.cat(differences)
    assert 0 < float(whole.mean()) < 0.05
    assert float(whole.max()) < 0.5


def test_reads_int8_of_mainline_marian():
    """Marian's own conversion leaves the embedding in float32 and rounds the matrices."""
    converted = read_binary(marian.HERE / "mainline" / "model.bin")
    original = read_archive(marian.HERE / "mainline" / "model.npz")
    assert converted.keys() == original.keys()
    for name, weight in original.items():
        if name.startswith("special:"):
            continue
        if name != "Wemb" and weight.shape[0] > 1:
            multiplier = np.float32(127 / np.abs(weight).max())
            weight = np.rint(weight * multiplier) / multiplier
        np.testing.assert_allclose(converted[name], weight, rtol=1e-6, atol=0, err_msg=name)


# --- The bundle ---------------------------------------------------------------------------------


def test_manifest_has_facts_of_model(bundles: dict[str, Path]):
    manifest = read_manifest(bundles["split"])
    assert manifest["name"] == "en-de"
    assert manifest["version"].startswith("marian-")
    assert manifest["architecture"]["decoder_mixers"] == ["ssru", "ssru"]
    assert manifest["architecture"]["weight_type"] == "float32"
    assert manifest["vocabulary"] == {
        "size": 78,
        "bos_id": 0,
        "pad_id": 77,
        "eos_id": 0,
        "unk_id": 1,
        "start_id": 77,
    }
    assert manifest["limits"] == {"max_source_tokens": 512, "max_target_tokens": 512}
    options = manifest["default_options"]
    assert options["beam_size"] == 1
    assert options["unknown_penalty"] == 1e4
    assert options["max_target_ratio"] == 3.0
    lines = (bundles["split"] / manifest["source_vocabulary_file"]).read_text("utf-8").split("\n")
    assert lines[:2] == ["</s>", "<unk>"]
    assert lines[60:] == [*[""] * 17, "<pad>", ""]  # ids without a piece: the target has more
    assert "Imported from a model of Marian" in (bundles["split"] / "MODEL_CARD.md").read_text()


def test_flags_set_limits_name_and_license(tmp_path: Path):
    folder = marian.folder("attention", tmp_path / "model")
    flags = ["--name", "mine", "--license", "MPL-2.0", "--max-source-tokens", "40"]
    assert convert(folder, tmp_path / "out", *flags, "--max-target-tokens", "7") == 0
    manifest = read_manifest(tmp_path / "out")
    assert (manifest["name"], manifest["license"]) == ("mine", "MPL-2.0")
    assert manifest["limits"] == {"max_source_tokens": 40, "max_target_tokens": 7}
    assert read_bundle_weights(tmp_path / "out")[1].max_positions == 8


def test_shortlist_has_candidates_of_file(bundles: dict[str, Path]):
    manifest = read_manifest(bundles["shared"])
    table = read_shortlist(bundles["shared"] / manifest["shortlist_file"])
    wanted = marian.ORACLE["shortlist"]
    assert table.always.tolist() == list(range(wanted["first"]))
    sources = len(table.offsets) - 1
    assert sources == manifest["vocabulary"]["size"]
    for source in range(sources - 1):  # the last one is <pad>, which no text has
        assert set(table.row(source)) == {source, *wanted["candidates"].get(str(source), [])}
    assert "shortlist_file" not in read_manifest(bundles["split"])


def test_one_command_imports_each_toolkit(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = marian.folder("shared", tmp_path / "model")
    flags = ["--source-language", "en", "--target-language", "de", "--out", str(tmp_path / "out")]
    assert linnet_model(["import", "marian", "--model", str(folder), *flags]) == 0
    assert "imported from Marian" in capsys.readouterr().out
    assert linnet_model(["import", "huggingface", "--model", str(folder), *flags]) == 1
    assert "has no config.json" in capsys.readouterr().err
    for toolkit in ("fairseq", "marian", "huggingface"):
        with pytest.raises(SystemExit) as ended:
            linnet_model(["import", toolkit, "--help"])
        assert ended.value.code == 0
        assert "--out" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        linnet_model(["import", "opennmt"])
    assert "import opennmt: choose from fairseq, marian, huggingface" in capsys.readouterr().err
