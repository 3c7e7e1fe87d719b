"""Tests that imported models of Marian, and of Firefox in its layout, compute what Marian does.

tests/data/marian has the models and what Marian says of them (make.py there).
"""

from __future__ import annotations

import copy
import gzip
import io
import json
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
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

MODELS = ("shared", "split", "attention", "int8")


def convert(folder: Path, out: Path, *more: str) -> int:
    languages = ["--source-language", "en", "--target-language", "de"]
    return main(["--model", str(folder), "--out", str(out), *languages, *more])


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
def test_scores_equal_marian(bundles: dict[str, Path], name: str):
    model, start = model_of(bundles[name])
    pairs = marian.scored(name)
    assert len(pairs) == 62
    for source, target, score in pairs:
        found = log_probabilities(model, start, source, target)
        total = float(found[torch.arange(len(target)), torch.tensor(target)].double().sum())
        # 5e-7 a token: float32 near 10, where logits are, and the 6 digits that Marian prints
        assert total == pytest.approx(score, rel=1e-5, abs=5e-7 * len(target))


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
    table = json.loads((bundles["shared"] / manifest["shortlist_file"]).read_text())
    wanted = marian.ORACLE["shortlist"]
    assert table["always"] == list(range(wanted["first"]))
    assert len(table["counts"]) == manifest["vocabulary"]["size"]
    rest = iter(table["candidates"])
    for source, count in enumerate(table["counts"]):
        found = {next(rest) for _ in range(count)}
        if source < len(table["counts"]) - 1:  # the last one is <pad>, which no text has
            assert found == {source, *wanted["candidates"].get(str(source), [])}
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


# --- Refusals -----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return marian.folder("shared", tmp_path / "model")


def refusal(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    out = folder.parent / "refused"
    assert convert(folder, out, *more) == 1
    left = [path.name for path in folder.parent.iterdir() if path not in (folder, out)]
    assert not out.exists()
    assert not left, "nothing half-written"
    return capsys.readouterr().err


def change_arrays(file: Path, changed: Callable[[dict], object]) -> None:
    arrays = dict(np.load(file))
    changed(arrays)
    np.savez(file, **arrays)


def change_settings(folder: Path, changed: Callable[[str], str]) -> None:
    def change(arrays: dict) -> None:
        text = bytes(arrays[marian.SETTINGS]).rstrip(b"\0").decode()
        assert changed(text) != text
        arrays[marian.SETTINGS] = np.frombuffer(changed(text).encode() + b"\0", np.int8)

    change_arrays(folder / "model.npz", change)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("type: transformer\n", "type: s2s\n", 'type "s2s", supported is only "transformer"'),
        ("right-left: false", "right-left: true", "right-left true, supported is only false"),
        ("input-types:\n  []", "input-types:\n  - class", 'input-types ["class"], supported'),
        ("transformer-tied-layers:\n  []", "transformer-tied-layers:\n  - 1", "tied-layers [1]"),
        ("transformer-ffn-depth: 2", "transformer-ffn-depth: 3", "ffn-depth 3, supported"),
        ("train-position-embeddings: false", "train-position-embeddings: true", "supported is"),
        ("dec-cell: ssru", "dec-cell: gru", 'dec-cell "gru", supported are ssru'),
        ("autoreg: rnn", "autoreg: average-attention", "supported are rnn, self-attention"),
        ("ffn-activation: relu", "ffn-activation: gelu", '"gelu", supported are relu, swish'),
        ("postprocess: dan", "postprocess: dhn", 'postprocess "dhn"'),
        ("postprocess-emb: d", "postprocess-emb: n", 'postprocess-emb "n"'),
        ("tied-embeddings-all: true", "tied-embeddings-all: 7", "7, it must be true or false"),
        ("dim-emb: 24", "dim-emb: 25", "model.width 25 is no multiple of heads 4"),
        ("dim-emb: 24", "dim-emb: 32", "has shape [120, 24], the configuration asks for [120, 32]"),
        ("dim-emb: 24", "dim-emb: 1e3", "dim-emb 1000.0, it must be an integer from 4 to 16384"),
        ("enc-depth: 1", "enc-depth: 999999999999", "it must be an integer from 1 to 256"),
        ("enc-depth: 1", "enc-depth: 2", "lacks weights: encoder_l2_ffn_W1"),
        ("dec-depth: 2", "dec-depth: 1", "unknown weights: decoder_l2_context_Wk"),
        ("  - 120\n  - 120\n", "  - 120\n", "dim-vocabs [120], it must be a list of two"),
        (
            "  - 120\n  - 120\n",
            "  - 120\n  - 99\n",
            "with vocabularies of 120 and 99",
        ),
        ("  - 120\n  - 120\n", "  - 1\n  - 120\n", "dim-vocabs with 1, it must be an integer"),
        ("skip: false", "skip: false\nmystery: 1", "would be ignored: mystery"),
        ("skip: false", "skip: false\nskip: false", "has skip a second time"),
        ("skip: false", "skip: !!python/object:os.system x", "this form of YAML is not read"),
        ("skip: false", "skip: {a: 1}", "this form of YAML is not read"),
        ("skip: false", "skip", "it must be a key, a colon and a value"),
        ("skip: false", 'skip: "', "which is no quoted text"),
        ("skip: false", "skip: false" + "\n#" * 40000, "at most 65536"),
    ],
)
def test_refuses_unsupported_setting_by_name(
    folder: Path, capsys, before: str, after: str, message: str
):
    change_settings(folder, lambda text: text.replace(before, after))
    told = refusal(folder, capsys)
    assert message in told
    assert "model.npz" in told


def test_refuses_unexpected_weights(folder: Path, capsys):
    name, file = "decoder_l1_rnn_W", folder / "model.npz"
    whole = file.read_bytes()
    for changed, message in (
        (lambda a: a.pop(name), f"lacks weights: {name}"),
        (lambda a: a.update(odd=np.ones(2, np.float32)), "unknown weights: odd"),
        (lambda a: a.update({name: a[name][:5]}), f"{name} has shape [5, 24]"),
        (lambda a: a[name].fill(np.nan), f"{name} has 576 of 576 values that are not finite"),
        (lambda a: a.update({name: a[name].astype(np.float64)}), "has the type float64"),
        (lambda a: a.update({name: a[name].astype(np.int8)}), f"{name} has bytes"),
        (lambda a: a.pop(marian.SETTINGS), f"has no {marian.SETTINGS}"),
    ):
        change_arrays(file, changed)
        assert message in refusal(folder, capsys)
        file.write_bytes(whole)


def test_refuses_archives_that_marian_does_not_write(folder: Path, capsys, tmp_path: Path):
    file = folder / "model.npz"
    arrays = dict(np.load(file))
    np.savez_compressed(file, **arrays)
    assert "is compressed" in refusal(folder, capsys)

    class Trap:
        def __reduce__(self):
            return Path.touch, (tmp_path / "sprung",)

    np.savez(file, trap=np.array([Trap()], dtype=object), **arrays)
    assert "trap has the type object" in refusal(folder, capsys)
    assert not (tmp_path / "sprung").exists()
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }"
    for shape, message in (
        (b"9, 100000000000", "needs 3600000000000 bytes"),
        (b"-3, 2", "of shape [-3, 2]"),
        (b"x", "huge is no array"),
    ):
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("huge.npy", (header % shape).ljust(127) + b"\n")
        assert message in refusal(folder, capsys)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("Wemb.npy", bytes(500))
        for i in range(9):  # nine entries for the same bytes
            archive.filelist.append(copy.copy(archive.filelist[0]))
            archive.filelist[-1].filename = f"w{i}.npy"
    assert "has arrays of 5000 bytes, more than the file: they overlap" in refusal(folder, capsys)
    file.write_bytes(b"PK\x03\x04 nothing")
    assert "is no .npz file" in refusal(folder, capsys)


# --- .bin ---------------------------------------------------------------------------------------


@pytest.fixture
def quantised(tmp_path: Path) -> tuple[Path, bytearray]:
    """A folder with a .bin, and the content of that file."""
    folder = marian.folder("int8", tmp_path / "model")
    return folder, bytearray((folder / marian.INT8).read_bytes())


def test_refuses_bin_that_ends_early(quantised, capsys):
    folder, content = quantised
    for length in (0, 7, 8, 15, 16, 40, 2000, 4000, len(content) // 2, len(content) - 1):
        (folder / marian.INT8).write_bytes(content[:length])
        told = refusal(folder, capsys)
        assert marian.INT8 in told
        assert "bytes are needed" in told
    (folder / marian.INT8).write_bytes(bytes(content) + b"x")
    assert "1 bytes behind its last item" in refusal(folder, capsys)


@pytest.mark.parametrize(
    ("at", "number", "message"),
    [
        (0, 2, "has version 2, this reads 1"),
        (8, 2**63, "has 9223372036854775808 items, at most 16384 are read"),
        (8, 10**4, "bytes are needed"),
        (16, 0, "has a name of 0 bytes"),
        (16, 2**40, "has a name of 1099511627776 bytes"),
        (24, 0x4102, "has the type 0x4102 (intgemm16)"),
        (24, 0x10801, "has the type 0x10801 (packed for FBGEMM)"),
        (24, 0x15001, "has the type 0x15001 (prepared for one processor)"),
        (24, 0x77, "has the type 0x77 (unknown), read are float32, int8 and intgemm8"),
        (32, 9, "has 9 dimensions"),
        (40, 0, "needs 2884 bytes and has 0"),
        (40, 2**62, "bytes are needed"),
    ],
)
def test_refuses_bin_with_changed_header(quantised, capsys, at: int, number: int, message: str):
    """The first item is Wemb, [120, 24] in int8."""
    folder, content = quantised
    assert struct.unpack_from("<4Q", content, 16) == (5, 0x4101, 2, 3072)
    content[at : at + 8] = struct.pack("<Q", number)
    (folder / marian.INT8).write_bytes(content)
    assert message in refusal(folder, capsys)


def test_refuses_bin_with_changed_items(quantised, capsys):
    folder, content = quantised
    names = content.index(b"Wemb\0")
    shapes = content.index(struct.pack("<2i", 120, 24))
    for at, bytes_, message in (
        (names, b"\xffemb", "names are printable ASCII"),
        (names, b"\0\0\0\0", "names are printable ASCII"),
        (shapes, struct.pack("<i", -1), "has the shape [-1, 24]"),
        (shapes, struct.pack("<i", 2**30), "needs 25769803780 bytes"),
    ):
        changed = content.copy()
        changed[at : at + len(bytes_)] = bytes_
        (folder / marian.INT8).write_bytes(changed)
        assert message in refusal(folder, capsys)
    _, multiplier = marian.integers(marian.HERE / "int8" / marian.INT8)["Wemb"]
    place = content.index(struct.pack("<f", multiplier))
    for number in (0.0, -1.0, float("nan"), float("inf")):
        content[place : place + 4] = struct.pack("<f", number)
        (folder / marian.INT8).write_bytes(content)
        assert "it must be positive" in refusal(folder, capsys)


# --- The folder ---------------------------------------------------------------------------------


def test_refuses_folder_without_one_model(folder: Path, capsys):
    assert convert(folder / "nowhere", folder.parent / "out") == 1
    assert "no folder at" in capsys.readouterr().err
    shutil.copy(folder / "model.npz", folder / "other.npz")
    assert "has model.npz, other.npz among .npz and .bin" in refusal(folder, capsys)
    (folder / "other.npz").unlink()
    (folder / "model.npz.gz").write_bytes(gzip.compress(b"x"))
    (folder / "model.npz").unlink()
    told = refusal(folder, capsys)
    assert "has nothing among .npz and .bin" in told
    assert "unpack model.npz.gz first" in told


def test_the_rating_model_beside_a_model_is_passed_over(folder: Path, tmp_path: Path):
    (folder / "qualityModel.ende.bin").write_bytes(b"x" * 68)
    assert convert(folder, tmp_path / "bundle") == 0


def test_refuses_folder_without_vocabularies(folder: Path, capsys):
    whole = (folder / "vocab.spm").read_bytes()
    (folder / "vocab.spm").write_bytes(b"no model")
    assert "vocab.spm is no SentencePiece model" in refusal(folder, capsys)
    for name in ("src.spm", "other.spm"):
        (folder / name).write_bytes(whole)
    (folder / "vocab.spm").unlink()
    assert "has other.spm, src.spm among .spm: it must have one vocabulary" in refusal(
        folder, capsys
    )
    (folder / "other.spm").unlink()
    assert "has src.spm among .spm: it must have one vocabulary" in refusal(folder, capsys)
    for file in folder.glob("*.spm"):
        file.unlink()
    (folder / "vocab.yml").write_text("a: 0\n")
    assert "vocabularies as vocab.yml are not read" in refusal(folder, capsys)


def test_refuses_vocabulary_that_does_not_fit(tmp_path: Path, capsys):
    folder = marian.folder("split", tmp_path / "model")
    shutil.copy(marian.HERE / "shared" / "vocab.spm", folder / "trg.spm")
    assert "trg.spm has 120 pieces, the model's tables have 77 rows" in refusal(folder, capsys)
    shutil.copy(marian.HERE.parent / "tiny.spm", folder / "trg.spm")
    assert "has the piece '<pad>' with the id 1, which a bundle cannot have" in refusal(
        folder, capsys
    )
    other = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c d e f g h"] * 20),
        model_writer=other,
        vocab_size=12,
        hard_vocab_limit=False,
        minloglevel=2,
        **{"bos_id": -1, "unk_id": 0, "eos_id": 1, "pad_id": -1},
    )
    (folder / "trg.spm").write_bytes(other.getvalue())
    assert "src.spm has eos at 0 and trg.spm at 1, they must be equal" in refusal(folder, capsys)


def test_refuses_damaged_shortlist(folder: Path, capsys):
    file = folder / "lex.50.50.ende.s2t.bin"
    whole = file.read_bytes()
    for at, message in (
        (8, "the checksum"),
        (16, "gives every source"),
        (32, "source tokens, the vocabulary has 120"),
        (40, "bytes, 121 offsets"),
        (60, "the checksum"),
        (len(whole) - 5, "the checksum"),
    ):
        changed = bytearray(whole)
        changed[at] ^= 0xFF
        file.write_bytes(changed)
        assert message in refusal(folder, capsys)
    file.write_bytes(whole[:30])
    assert "ends in its header" in refusal(folder, capsys)
    file.write_bytes(marian.shortlist(20, [[3, 120], *[[]] * 119]))
    assert "has the target token 120, the vocabulary has 120" in refusal(folder, capsys)
    file.write_bytes(marian.shortlist(20, [[]] * 120, offset=-1))
    assert "offsets that do not ascend" in refusal(folder, capsys)
    file.write_bytes(marian.shortlist(20, [[3, 119], *[[]] * 119]))
    assert convert(folder, folder.parent / "good") == 0


def test_writes_nothing_over_something(folder: Path, capsys):
    out = folder.parent / "out"
    out.mkdir()
    assert convert(folder, out) == 0, "an empty folder"
    before = (out / "manifest.json").read_bytes()
    assert convert(folder, out, "--name", "again") == 1
    assert "exists, remove it or choose another folder" in capsys.readouterr().err
    assert (out / "manifest.json").read_bytes() == before
