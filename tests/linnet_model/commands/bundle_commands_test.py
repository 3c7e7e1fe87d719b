"""Tests of linnet-model info, check and convert."""

from __future__ import annotations

import errno
import json
import shutil
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

import fairseq_oracle as oracle
import marian_models
import tiny_marian as marian
import tiny_multilingual as multilingual
import tiny_summarisers as summarisers

import linnet_model.__main__ as program_main
from linnet_model.__main__ import main
from linnet_model.bundle import (
    add_shortlist,
    load_module,
    read_bundle_weights,
    read_manifest,
    sha256,
    write_manifest,
)
from linnet_model.network.ops import CHECKOUT
from linnet_model.shortlist_file import read_shortlist
from linnet_model.torch_version import check_torch

SHIPPED = CHECKOUT / "model/bundles/en-de"


def told(capsys) -> dict[str, str]:
    lines = capsys.readouterr().out.splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> marian.TinyMarian:
    return marian.make_tiny_marian(tmp_path_factory.mktemp("commands") / "opus")


@pytest.fixture
def folder(tiny: marian.TinyMarian, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny.folder, tmp_path / "model"))


@pytest.fixture(scope="session")
def bundle(tiny: marian.TinyMarian, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("commands") / "bundle"
    flags = ["--model", str(tiny.folder), "--source-language", "en", "--target-language", "de"]
    assert main(["import", "huggingface", *flags, "--out", str(out), "--no-golden"]) == 0
    return out


# --- info ---------------------------------------------------------------------------------------


def test_info_describes_a_bundle(capsys):
    assert main(["info", str(SHIPPED)]) == 0
    facts, manifest = told(capsys), read_manifest(SHIPPED)
    assert facts["bundle"] == f"en-de, version {manifest['version']}"
    assert facts["task"] == "translate"
    assert facts["languages"] == "en to de"
    assert facts["parameters"].endswith("stored as int8")
    assert facts["golden examples"] == str(len(manifest["golden_examples"]))
    assert facts["licence"] == manifest["license"]


def test_info_describes_models_of_hugging_face(folder: Path, capsys):
    (folder / "README.md").write_text("---\nlanguage: en\nlicense: cc-by-4.0\n---\n# a\n")
    assert main(["info", str(folder)]) == 0
    facts = told(capsys)
    assert facts["model"].startswith("MarianMT (OPUS-MT)")
    assert facts["layers"].startswith("2 of self_attention and 3 of self_attention, width 32")
    assert facts["weights"].endswith("tensors of F32")
    assert facts["licence"] == "cc-by-4.0, by its README.md"
    assert facts["import"].startswith(f"linnet-model import huggingface --model {folder} ")


@pytest.mark.parametrize(
    ("make", "kind", "family", "toolkit"),
    [
        (multilingual.make_tiny_multilingual, "nllb", "M2M-100 or NLLB-200", "multilingual"),
        (multilingual.make_tiny_multilingual, "mbart50", "mBART-50", "multilingual"),
        (summarisers.make_tiny_summariser, "bart", "BART or distilBART", "summariser"),
        (summarisers.make_tiny_summariser, "pegasus", "PEGASUS", "summariser"),
    ],
)
def test_info_names_the_importer(make, kind, family, toolkit, tmp_path: Path, capsys):
    make(kind, tmp_path / "model")
    assert main(["info", str(tmp_path / "model")]) == 0
    facts = told(capsys)
    assert facts["model"].startswith(family)
    assert facts["import"].startswith(f"linnet-model import {toolkit} ")


def test_info_describes_models_of_marian_and_fairseq(tmp_path: Path, capsys):
    folder = marian_models.folder("shared", tmp_path / "marian")
    assert main(["info", str(folder)]) == 0
    assert told(capsys)["import"].startswith("linnet-model import marian ")
    checkpoint = oracle.checkpoint("dyn-glu-postnorm-tied")
    assert main(["info", str(checkpoint)]) == 0
    facts = told(capsys)
    assert facts["model"].startswith("fairseq, ")
    assert "dynamic" in facts["layers"]
    assert facts["import"].startswith(f"linnet-model import fairseq --checkpoint {checkpoint} ")


def test_info_says_what_was_found_and_what_is_read(folder: Path, tmp_path: Path, capsys):
    (tmp_path / "a.onnx").touch()
    assert main(["info", str(tmp_path / "a.onnx")]) == 1
    assert "is a file, but no FILE.pt; supported are bundles" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    (tmp_path / "other/model.ckpt").touch()
    assert main(["info", str(tmp_path / "other")]) == 1
    error = capsys.readouterr().err
    assert "has model.ckpt: no model that is known" in error
    assert "model_type marian, m2m_100, mbart, bart, pegasus" in error
    assert main(["info", str(tmp_path / "nothing")]) == 1
    assert "nothing at" in capsys.readouterr().err
    config = json.loads((folder / "config.json").read_text())
    for changed, message in (
        ({"model_type": "t5"}, 'has model_type "t5", this reads marian and m2m_100 and'),
        ({"normalize_before": True}, "normalize_before true, supported is only false"),
    ):
        (folder / "config.json").write_text(json.dumps(config | changed))
        assert main(["info", str(folder)]) == 1
        assert message in capsys.readouterr().err


def test_importer_of_another_family_is_named(folder: Path, tmp_path: Path, capsys):
    flags = ["--model", str(folder), "--language", "en", "--out", str(tmp_path / "out")]
    assert main(["import", "summariser", *flags]) == 1
    error = capsys.readouterr().err
    assert 'has model_type "marian", this reads bart and pegasus; use linnet-model import' in error
    assert "import huggingface" in error


# --- check --------------------------------------------------------------------------------------


def test_check_answers_the_golden_examples(program, capsys, tmp_path: Path):
    decode = ["--decode", str(program("linnet-decode")), "--threads", "1"]
    assert main(["check", str(SHIPPED), *decode]) == 0
    count = len(read_manifest(SHIPPED)["golden_examples"])
    assert f"{count} of {count} golden examples in float32" in capsys.readouterr().out
    changed = Path(shutil.copytree(SHIPPED, tmp_path / "changed"))
    manifest = read_manifest(changed)
    manifest["golden_examples"][0]["target_text"] = "Something else."
    (changed / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert main(["check", str(changed), *decode]) == 1
    error = capsys.readouterr().err
    assert f"1 of {count} golden examples have another answer in float32" in error
    assert "expected 'Something else.'" in error


def test_check_runs_a_bundle_without_examples(bundle: Path, program, capsys):
    decode = ["--decode", str(program("linnet-decode")), "--threads", "1"]
    assert main(["check", str(bundle), *decode]) == 0
    assert "the model runs; there are no golden examples" in capsys.readouterr().out


def test_check_finds_damage(bundle: Path, program, tmp_path: Path, capsys):
    damaged = Path(shutil.copytree(bundle, tmp_path / "damaged"))
    with (damaged / "model.pt").open("r+b") as file:
        file.seek(1000)
        file.write(b"12345678")
    decode = ["--decode", str(program("linnet-decode"))]
    assert main(["check", str(damaged), *decode]) == 1
    assert "does not have the sha256 of its manifest" in capsys.readouterr().err
    assert main(["check", str(bundle), "--decode", str(tmp_path / "none")]) == 1
    assert "no linnet-decode at" in capsys.readouterr().err


# --- convert ------------------------------------------------------------------------------------


def test_convert_rounds_the_weights(bundle: Path, tmp_path: Path, program, capsys):
    half, back = tmp_path / "half", tmp_path / "back"
    assert main(["convert", str(bundle), "--out", str(half), "--dtype", "bfloat16"]) == 0
    manifest, before = read_manifest(half), read_manifest(bundle)
    assert manifest["architecture"]["weight_type"] == "bfloat16"
    assert manifest["version"] == f"{before['version']}-bfloat16"
    assert {**manifest, "version": "", "architecture": "", "files": ""} == {
        **before,
        "version": "",
        "architecture": "",
        "files": "",
    }
    weights, sizes = read_bundle_weights(half)
    exact, exact_sizes = read_bundle_weights(bundle)
    assert sizes == exact_sizes
    assert all(torch.equal(weights[name], exact[name].bfloat16().float()) for name in exact)
    assert (half / "model.pt").stat().st_size < (bundle / "model.pt").stat().st_size
    assert "stored as float32, are bfloat16 here" in (half / "MODEL_CARD.md").read_text("utf-8")
    assert (
        main(["convert", str(half), "--out", str(back), "--dtype", "float32", "--name", "b"]) == 0
    )
    assert read_manifest(back)["name"] == "b"
    widened = load_module(back / "model.pt").state_dict()
    assert all(torch.equal(widened[name], weights[name]) for name in weights)
    assert main(["check", str(back), "--decode", str(program("linnet-decode"))]) == 0


def test_convert_stores_int8_and_reads_it(bundle: Path, tmp_path: Path, program):
    small, back, again = tmp_path / "small", tmp_path / "back", tmp_path / "again"
    assert main(["convert", str(bundle), "--out", str(small), "--dtype", "int8"]) == 0
    assert read_manifest(small)["architecture"]["weight_type"] == "int8"
    assert main(["convert", str(small), "--out", str(back), "--dtype", "float32"]) == 0
    assert main(["convert", str(back), "--out", str(again), "--dtype", "int8"]) == 0
    weights = [read_bundle_weights(folder)[0] for folder in (small, back, again)]
    for name, value in weights[0].items():
        assert torch.equal(value, weights[1][name])
        torch.testing.assert_close(value, weights[2][name], rtol=2e-7, atol=0)
    assert main(["check", str(small), "--decode", str(program("linnet-decode"))]) == 0


def test_convert_to_the_same_type_renews_the_code_alone(bundle: Path, tmp_path: Path):
    for kind in ("int8", "bfloat16"):
        first, again = tmp_path / kind, tmp_path / f"{kind}-again"
        assert main(["convert", str(bundle), "--out", str(first), "--dtype", kind]) == 0
        assert main(["convert", str(first), "--out", str(again), "--dtype", kind]) == 0
        old, new = (torch.jit.load(str(folder / "model.pt")) for folder in (first, again))
        weights = new.state_dict()
        for name, value in old.state_dict().items():
            assert value.dtype == weights[name].dtype
            assert torch.equal(value, weights[name])
        parts = dict(new.named_modules())
        for name, part in old.named_modules():
            if getattr(part, "scales", None) is not None:
                assert torch.equal(part.scales, parts[name].scales)
        kept = [read_manifest(folder) | {"files": []} for folder in (first, again)]
        assert kept[0] == kept[1]


def test_convert_leaves_out_the_signature(bundle: Path, tmp_path: Path):
    signed = Path(shutil.copytree(bundle, tmp_path / "signed"))
    (signed / "manifest.json.sig").write_bytes(b"x")
    assert main(["convert", str(signed), "--out", str(tmp_path / "a"), "--dtype", "bfloat16"]) == 0
    names = {file.name for file in (tmp_path / "a").iterdir()}
    assert names == {file.name for file in bundle.iterdir()}


def test_convert_writes_a_shortlist_in_the_binary_form(bundle: Path, tmp_path: Path):
    old = Path(shutil.copytree(bundle, tmp_path / "old"))
    manifest = add_shortlist(old, [5], {6: [7, 8]}, by_default=True)
    (old / "shortlist.bin").unlink()
    counts = [2 if token == 6 else 0 for token in range(manifest["vocabulary"]["size"])]
    table = {"always": [5], "counts": counts, "candidates": [7, 8]}
    (old / "shortlist.json").write_text(json.dumps(table))
    manifest["shortlist_file"] = "shortlist.json"
    manifest["files"][-1] = {
        "name": "shortlist.json",
        "bytes": (old / "shortlist.json").stat().st_size,
        "sha256": sha256(old / "shortlist.json"),
    }
    write_manifest(old, manifest)
    assert main(["convert", str(old), "--out", str(tmp_path / "a"), "--dtype", "bfloat16"]) == 0
    new = read_manifest(tmp_path / "a")
    assert new["shortlist_file"] == "shortlist.bin"
    assert new["shortlist_by_default"] is True
    assert not (tmp_path / "a" / "shortlist.json").exists()
    assert "shortlist.json" not in {entry["name"] for entry in new["files"]}
    read = read_shortlist(tmp_path / "a" / "shortlist.bin")
    assert (read.always.tolist(), read.row(6), len(read.candidates)) == ([5], [7, 8], 2)


def test_convert_writes_into_no_other_folder(bundle: Path, tmp_path: Path, capsys):
    copied = Path(shutil.copytree(bundle, tmp_path / "copied"))
    manifest = json.loads((copied / "manifest.json").read_text(encoding="utf-8"))
    manifest |= {"model_file": "../other/model.pt", "files": []}
    (copied / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    flags = ["convert", str(copied), "--out", str(tmp_path / "a"), "--dtype", "bfloat16"]
    assert main(flags) == 1
    assert "names '../other/model.pt', which is outside" in capsys.readouterr().err


def test_convert_without_room_names_its_bundle(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    def no_room(*_) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    out = tmp_path / "small"
    monkeypatch.setattr(Path, "write_bytes", no_room)
    assert main(["convert", str(bundle), "--out", str(out), "--dtype", "bfloat16"]) == 1
    assert f"{out} cannot be written: No space left on device" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_convert_refuses_by_name(bundle: Path, tmp_path: Path, capsys):
    flags = ["convert", str(bundle), "--out", str(tmp_path / "a")]
    assert main([*flags, "--dtype", "bfloat16", "--name", "A B"]) == 1
    assert "must be 1 to 64 lower-case letters" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


# --- torch --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "fits"), [("2.11.0+cpu", True), ("2.11.1", True), ("2.1.0", False)]
)
def test_other_torch_is_named_with_the_supported_one(version, fits, monkeypatch, capsys):
    monkeypatch.setattr(torch, "__version__", version)
    reason = check_torch()
    assert (reason is None) == fits
    if not fits:
        assert main(["info", "anything"]) == 1
        error = capsys.readouterr().err
        assert "torch 2.1.0 is installed, the operator library was built for torch 2.11" in error


def test_missing_torch_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert program_main.main(["info", "anything"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("linnet-model: torch cannot be imported (")
    assert "a build for CPUs is enough" in error


def test_supported_torch_is_the_pinned_one():
    from linnet_model.torch_version import SUPPORTED

    pins = (CHECKOUT / "deps/versions.txt").read_text()
    assert f"\ntorch=={SUPPORTED}." in pins
