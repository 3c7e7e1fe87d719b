"""Tests of what the importer of Marian refuses, and of the files that it finds in a folder."""

from __future__ import annotations

import copy
import gzip
import io
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

import marian_models as marian

from linnet_model.importers.marian.import_marian import main


def convert(folder: Path, out: Path, *more: str) -> int:
    languages = ["--source-language", "en", "--target-language", "de"]
    return main(["--model", str(folder), "--out", str(out), *languages, "--no-golden", *more])


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
