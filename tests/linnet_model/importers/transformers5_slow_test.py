"""Folders of all six families that 4.57.6 and 5.24.0 of transformers have saved are imported with
the ids and logits of both. ./test.sh --all runs it: 5.24.0 is downloaded into an environment of its
own beside this one's torch."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import sentencepiece
import torch
from transformers5_test import KINDS, convert, make, read, save_as_5

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

import tiny_marian
from save_again import tokens

from linnet_model.bundle import read_bundle_weights, read_manifest
from linnet_model.network.encoder_decoder import EncoderDecoder, forced_logits

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
AGAIN = HERE.parents[1] / "data/save_again.py"
VERSIONS = ("four", "five")
TOLERANCE = 1e-4  # float32 through five layers, summed in another order
# No text with two marks on a letter, or with white space at its end: there the tokenizers of 5.24.0
# differ from SentencePiece (docs/DIFFERENCES.md).
TEXTS = [*tiny_marian.SOURCES[:60], "ka  lo mi", "Übergröße", "e\u0301t\u00e9", "日本 (x) 9,5"]


@pytest.fixture(scope="session")
def python5(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("transformers5") / "venv"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip = [place / "bin/python", "-m", "pip", "install", "--quiet", "--no-deps"]
    pip += ["--require-hashes", "--disable-pip-version-check", "--no-input"]
    subprocess.run([*pip, "-r", HERE / "transformers5.txt"], check=True)
    [packages] = place.glob("lib/python*/site-packages")
    # Behind its own packages: torch, numpy, sentencepiece and what else both versions share.
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "bin/python"


@pytest.fixture(scope="session")
def saved(python5: Path, tmp_path_factory) -> Path:
    """A folder with first/KIND, and four/KIND and five/KIND, which the two versions saved of it."""
    place = tmp_path_factory.mktemp("both")
    for kind in KINDS:
        make(kind, place / "first" / kind)
    (place / "texts").write_text("\n".join(TEXTS), encoding="utf-8")
    for python, name in ((sys.executable, "four"), (python5, "five")):
        command = [python, AGAIN, place / "first", place / name, place / "texts"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr[-2000:]
    return place


@pytest.mark.parametrize("kind", KINDS)
def test_both_versions_make_one_bundle(saved: Path, kind: str, tmp_path: Path):
    (tmp_path / "texts").write_text("\n".join(TEXTS[:8]) + "\n", encoding="utf-8")
    for name in VERSIONS:
        more = ("--golden", str(tmp_path / "texts"))
        assert convert(kind, saved / name / kind, tmp_path / name, *more) == 0
    four, five = (read_manifest(tmp_path / name) for name in VERSIONS)
    for key in four.keys() - {"files", "version"}:
        assert five[key] == four[key], key
    assert four["golden_examples"], "no example"
    one, other = (read_bundle_weights(tmp_path / name)[0] for name in VERSIONS)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_bundle_has_the_ids_and_logits_of_the_version(
    saved: Path, kind: str, version: str, tmp_path: Path
):
    folder = saved / version / kind
    assert convert(kind, folder, tmp_path / "bundle", "--no-golden") == 0
    weights, sizes = read_bundle_weights(tmp_path / "bundle")
    model = EncoderDecoder(sizes).eval()
    model.load_state_dict(weights)
    theirs = torch.load(folder / "logits.pt", weights_only=True)
    start = read(folder / "config.json")["decoder_start_token_id"]
    lengths = torch.tensor([17], dtype=torch.int32)
    with torch.no_grad():
        ours = forced_logits(model, tokens(1, 17), lengths, tokens(2, 13), start)
    torch.testing.assert_close(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE)
    if kind == "bart":  # tests/decode/summarisers_test.py compares byte-level BPE
        return
    rows = (tmp_path / "bundle/source.vocab").read_text(encoding="utf-8").split("\n")[:-1]
    numbers = {piece: i for i, piece in enumerate(rows) if piece}
    manifest = read_manifest(tmp_path / "bundle")
    unknown = manifest["vocabulary"]["unk_id"]
    around = manifest.get("languages", [{}])[0]
    spm = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "bundle/source.spm"))
    for text, expected in zip(TEXTS, json.loads((folder / "ids.json").read_text()), strict=True):
        ids = [numbers.get(piece, unknown) for piece in spm.encode(text, out_type=str)]
        eos = manifest["vocabulary"]["eos_id"]
        assert [*around.get("before_source_ids", []), *ids, eos] == expected, text


@pytest.mark.parametrize("kind", KINDS)
def test_copy_of_its_form_is_exact(saved: Path, kind: str, tmp_path: Path):
    """The default run of the tests relies on save_as_5."""
    copy = Path(shutil.copytree(saved / "four" / kind, tmp_path / kind))
    save_as_5(copy, kind)
    five = saved / "five" / kind
    assert {file.name for file in copy.iterdir()} == {file.name for file in five.iterdir()}
    for file in five.glob("*.json"):
        if file.name != "ids.json":
            assert read(copy / file.name) == read(file), file.name
