"""Tests that folders in the form of transformers 5 become the bundles that those of transformers 4
become. transformers5_slow_test.py makes them with both versions."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

import tiny_marian
import tiny_multilingual
import tiny_summarisers
from transformers5 import read, save_as_5, write

from linnet_model.bundle import TokenizerFiles, read_manifest
from linnet_model.importers import golden
from linnet_model.importers.huggingface.tokenizer_json import rebuilt_sentencepiece
from linnet_model.importers.huggingface_marian import import_huggingface_marian
from linnet_model.importers.multilingual import import_multilingual
from linnet_model.importers.multilingual.vocabulary import FAIRSEQ_LAYOUT
from linnet_model.importers.summarisers import import_summariser
from linnet_model.importers.summarisers.vocabulary import PEGASUS_LAYOUT

KINDS = ("marian", *tiny_multilingual.KINDS, *tiny_summarisers.KINDS)
REBUILT = ("mbart50", "nllb", "pegasus")  # the SentencePiece model of tokenizer.json
MODEL_TYPES = {"m2m100": "m2m_100", "nllb": "m2m_100", "mbart50": "mbart"}
NAMES = {"pegasus": "spiece.model"}
LAYOUTS = {"pegasus": PEGASUS_LAYOUT}


def make(kind: str, folder: Path) -> Any:
    if kind == "marian":
        tiny = tiny_marian.make_tiny_marian(folder)
        tiny.tokenizer.save_pretrained(folder)
        return tiny
    if kind in tiny_multilingual.KINDS:
        return tiny_multilingual.make_tiny_multilingual(kind, folder)
    return tiny_summarisers.make_tiny_summariser(kind, folder)


@pytest.fixture(scope="module", params=KINDS)
def tiny(request, tmp_path_factory) -> tuple[str, Any]:
    return request.param, make(request.param, tmp_path_factory.mktemp("saved") / request.param)


@pytest.fixture
def folder(tiny, tmp_path: Path) -> Path:
    """The folder as transformers 5 saves it."""
    kind, model = tiny
    copy = Path(shutil.copytree(model.folder, tmp_path / "five"))
    save_as_5(copy, kind)
    return copy


def convert(kind: str, folder: Path, out: Path, *more: str) -> int:
    flags = ["--model", str(folder), "--out", str(out), "--license", "none", *more]
    if kind == "marian":
        pair = ["--source-language", "en", "--target-language", "de"]
        return import_huggingface_marian.main([*flags, *pair])
    if kind in tiny_multilingual.KINDS:
        for code, tag in tiny_multilingual.NAMES[kind].items():
            flags += ["--language", f"{code}={tag}"]
        return import_multilingual.main(flags)
    return import_summariser.main([*flags, "--language", "en"])


def original(kind: str, folder: Path) -> Path:
    return folder / NAMES.get(kind, "sentencepiece.bpe.model")


def texts() -> list[str]:
    return tiny_marian.SOURCES[:20] + tiny_multilingual.fuzzed_texts(200, seed=12)


def test_bundle_is_that_of_transformers_4(tiny, folder: Path, tmp_path: Path):
    kind, model = tiny
    assert convert(kind, model.folder, tmp_path / "a", "--no-golden") == 0
    assert convert(kind, folder, tmp_path / "b", "--no-golden") == 0
    a, b = (tmp_path / name for name in "ab")
    assert read_manifest(b).keys() == read_manifest(a).keys()
    for key, value in read_manifest(a).items():
        if key != "files":  # the rebuilt tokenizer has the same pieces, but not all fields
            assert read_manifest(b)[key] == value, key
    for name in ("model.pt", "source.vocab", "target.vocab"):
        assert (b / name).read_bytes() == (a / name).read_bytes(), name
    same = {file.name for file in a.iterdir()} - {"manifest.json", "MODEL_CARD.md", "source.spm"}
    assert same <= {file.name for file in b.iterdir()}
    if kind not in REBUILT:
        return
    theirs, ours = (
        sentencepiece.SentencePieceProcessor(model_file=str(path / "source.spm")) for path in (a, b)
    )
    assert ours.get_piece_size() == theirs.get_piece_size()
    for i in range(theirs.get_piece_size()):
        assert ours.id_to_piece(i) == theirs.id_to_piece(i)
        for asked in ("is_unknown", "is_control", "is_unused", "is_byte"):
            assert getattr(ours, asked)(i) == getattr(theirs, asked)(i)
    for text in [*texts(), "First<n>Second", "Vie\u0302\u0323t", "  a  b  "]:
        assert ours.encode(text) == theirs.encode(text), text
    ids = list(range(3, 60))
    assert ours.decode(ids) == theirs.decode(ids)


def test_tokenizer_of_the_oracle_needs_no_settings(tiny, folder: Path, tmp_path: Path):
    """transformers 4 fails on the settings that transformers 5 writes for four families."""
    hf = tiny_marian.transformers_quietly()
    kind, model = tiny
    assert convert(kind, folder, tmp_path / "bundle", "--no-golden") == 0
    rows = (tmp_path / "bundle/source.vocab").read_text(encoding="utf-8").split("\n")[:-1]
    merges = kind == "bart"
    content = (tmp_path / f"bundle/source.{'merges' if merges else 'spm'}").read_bytes()
    files = TokenizerFiles(content, source_vocabulary=rows)
    tokenizer = golden.load_tokenizer(hf, folder, MODEL_TYPES.get(kind, kind), files)
    before = [model.tokenizer.tokenize(text) for text in texts()]
    assert [tokenizer.tokenize(text) for text in texts()] == before
    for pieces in before:
        expected = model.tokenizer.convert_tokens_to_ids(pieces)
        assert tokenizer.convert_tokens_to_ids(pieces) == expected


@pytest.mark.parametrize("kind", ["m2m100", "mbart50"])
def test_golden_examples_are_those_of_transformers_4(kind: str, tmp_path: Path):
    """Where the settings of the tokenizer do not load."""
    model = make(kind, tmp_path / "four")
    shutil.copytree(model.folder, tmp_path / "five")
    save_as_5(tmp_path / "five", kind)
    (tmp_path / "texts").write_text("\n".join(tiny_marian.SOURCES[:8]) + "\n", encoding="utf-8")
    more = ("--golden", str(tmp_path / "texts"))
    for name in ("four", "five"):
        assert convert(kind, tmp_path / name, tmp_path / f"{name}-bundle", *more) == 0
    four, five = (
        read_manifest(tmp_path / f"{name}-bundle")["golden_examples"] for name in ("four", "five")
    )
    assert four == five != []


def refusal(kind: str, folder: Path, capsys) -> str:
    out = folder.parent / "refused"
    assert convert(kind, folder, out, "--no-golden") == 1
    assert not out.exists()
    return capsys.readouterr().err


def change(folder: Path, **values: Any) -> None:
    write(folder / "tokenizer.json", read(folder / "tokenizer.json") | values)


def test_says_where_to_get_a_file(tiny, folder: Path, capsys):
    kind, _ = tiny
    for file in folder.glob("*.spm"):
        file.unlink()
    for name in ("tokenizer.json", "sentencepiece.bpe.model"):
        (folder / name).unlink(missing_ok=True)
    told = refusal(kind, folder, capsys)
    assert "from the model that was fine-tuned" in told
    files = {"marian": "source.spm", "pegasus": "spiece.model", "bart": "vocab.json"}
    assert f"has no {files.get(kind, 'sentencepiece.bpe.model')}" in told


def test_refuses_what_determines_no_tokenizer(tiny, folder: Path, capsys):
    kind, _ = tiny
    if kind not in (*REBUILT, "bart"):
        return
    whole = read(folder / "tokenizer.json")
    for values, message in (
        ({"model": whole["model"] | {"type": "WordPiece"}}, "type 'WordPiece'"),
        ({"model": whole["model"] | {"vocab": 7}}, "has no"),
        ({"model": None}, "type None"),
        ({"pre_tokenizer": None}, "is not the byte-level" if kind == "bart" else "Metaspace"),
        ({"normalizer": {"type": "Lowercase"}}, "tokenizer.json"),
        ({"added_tokens": 5}, "no list added_tokens"),
    ):
        change(folder, **values)
        assert message in refusal(kind, folder, capsys), values
        write(folder / "tokenizer.json", whole)
    if kind in REBUILT:
        steps = [{"type": "Precompiled", "precompiled_charsmap": "no base64!"}]
        change(folder, normalizer={"type": "Sequence", "normalizers": steps})
        told = refusal(kind, folder, capsys)
        assert "damaged precompiled_charsmap: copy" in told


def test_refuses_merges_of_no_sentencepiece_model(tmp_path: Path, capsys):
    """As transformers 5 makes them of a Unigram model in a folder of NLLB-200."""
    model = make("nllb", tmp_path / "five")
    save_as_5(model.folder, "nllb")
    whole = read(model.folder / "tokenizer.json")
    bpe = whole["model"]
    for merges, message in (
        (bpe["merges"][1:], "other merges than its pieces ask for"),
        (bpe["merges"][::-1], "other merges than its pieces ask for"),
        ([["a"]], "is not a pair of pieces"),
        ([], "has no list of merges"),
    ):
        change(model.folder, model=bpe | {"merges": merges})
        assert message in refusal("nllb", model.folder, capsys)
    last = max(bpe["vocab"].values())
    pieces = {("xyz" if i == last else piece): i for piece, i in bpe["vocab"].items()}
    change(model.folder, model=bpe | {"vocab": pieces})
    assert "the piece 'xyz', which no merge makes" in refusal("nllb", model.folder, capsys)


def test_nllb_needs_its_languages(tmp_path: Path, capsys):
    """transformers 5 reads a language that the settings do not list as <unk>, without a word."""
    model = make("nllb", tmp_path / "five")
    save_as_5(model.folder, "nllb")
    settings = read(model.folder / "tokenizer_config.json")
    for values, message in (
        ({"extra_special_tokens": None}, "no extra_special_tokens in tokenizer_config.json"),
        ({"extra_special_tokens": [7]}, "no list extra_special_tokens"),
    ):
        write(model.folder / "tokenizer_config.json", settings | values)
        assert message in refusal("nllb", model.folder, capsys)


def test_symbols_of_the_user_are_no_added_tokens(tmp_path: Path, capsys):
    """The tokenizers in Rust of transformers 4 list <n>, a piece of PEGASUS, among added tokens."""
    model = make("pegasus", tmp_path / "four")
    number = model.tokenizer.convert_tokens_to_ids("<n>")
    settings = read(model.folder / "tokenizer_config.json")
    for id_of, status in ((number, 0), (number + 1, 1)):
        added = settings["added_tokens_decoder"] | {str(id_of): {"content": "<n>"}}
        changed = settings | {"added_tokens_decoder": added}
        write(model.folder / "tokenizer_config.json", changed)
        out = tmp_path / f"bundle-{status}"
        assert convert("pegasus", model.folder, out, "--no-golden") == status
    assert "the added token '<n>'" in capsys.readouterr().err


def test_pegasus_masks_may_have_either_order_only(tmp_path: Path, capsys):
    model = make("pegasus", tmp_path / "five")
    save_as_5(model.folder, "pegasus")
    added = {"3": {"content": "<mask_1>"}, "50": {"content": "<mask_2>"}}
    settings = read(model.folder / "tokenizer_config.json")
    changed = settings | {"added_tokens_decoder": added}
    write(model.folder / "tokenizer_config.json", changed)
    assert "the ids [3, 50], they must be 2 and 3" in refusal("pegasus", model.folder, capsys)


@pytest.mark.parametrize("kind", REBUILT)
@pytest.mark.parametrize("rule", ["identity", "nmt_nfkc_cf"])
@pytest.mark.parametrize("fallback", [False, True])
def test_rebuilt_model_has_normalisation_and_bytes(
    kind: str, rule: str, fallback: bool, tmp_path: Path
):
    """Also where the model was trained otherwise: transformers drops the fallback to bytes."""
    special: dict[str, Any] = {"model_type": "bpe" if kind == "nllb" else "unigram"}
    if kind == "pegasus":
        ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
        special |= ids | {"user_defined_symbols": ["<n>"]}
    file = original(kind, tmp_path)
    with file.open("wb") as writer:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(tiny_marian.SOURCES + tiny_marian.TARGETS),
            model_writer=writer,
            vocab_size=400,
            hard_vocab_limit=False,
            num_threads=1,
            minloglevel=2,
            normalization_rule_name=rule,
            byte_fallback=fallback,
            **special,
        )
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(file))
    settings = {"additional_special_tokens": ["en_XX", "eng_Latn"]}
    for name, table in (
        ("tokenizer_config.json", settings),
        ("config.json", {}),
        ("generation_config.json", {}),
    ):
        (tmp_path / name).write_text(json.dumps(table), encoding="utf-8")
    save_as_5(tmp_path, kind)
    content = rebuilt_sentencepiece(
        tmp_path / "tokenizer.json", file.name, LAYOUTS.get(kind, FAIRSEQ_LAYOUT)
    )
    ours = sentencepiece.SentencePieceProcessor(model_proto=content)
    for text in [*texts(), "Straße ŒUVRE", "日本語 🙂", "a\nb", "x<n>y"]:
        assert ours.encode(text) == theirs.encode(text), text
        assert ours.decode(ours.encode(text)) == theirs.decode(theirs.encode(text))
