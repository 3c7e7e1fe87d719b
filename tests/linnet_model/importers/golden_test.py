"""Tests that imported bundles have golden examples of the reference implementation, and a card with
source and licence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

import marian_models
import tiny_marian as marian
import tiny_multilingual as multilingual
import tiny_summarisers as summarisers

from linnet_model.bundle import TokenizerFiles, read_manifest
from linnet_model.commands import check
from linnet_model.decode_command import decode_texts
from linnet_model.importers import golden
from linnet_model.importers.huggingface_marian import import_huggingface_marian
from linnet_model.importers.marian import import_marian
from linnet_model.importers.multilingual import import_multilingual
from linnet_model.importers.summarisers import import_summariser

COUNT = 16
KINDS = ("marian", *multilingual.KINDS, *summarisers.KINDS)
PAIR = ["--source-language", "en", "--target-language", "de"]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    file = tmp_path / "texts"
    file.write_text("\n".join(marian.SOURCES[:COUNT]) + "\n", encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def opus(tmp_path_factory) -> marian.TinyMarian:
    return marian.make_tiny_marian(tmp_path_factory.mktemp("golden") / "opus-mt-en-de")


def family(kind: str, opus: marian.TinyMarian, folder: Path):
    """(main of the importer, its flags) for a tiny model of the family."""
    if kind == "marian":
        return import_huggingface_marian.main, ["--model", str(opus.folder), *PAIR]
    if kind in multilingual.KINDS:
        tiny = multilingual.make_tiny_multilingual(kind, folder)
        languages = [word for name in tiny.languages for word in ("--language", name)]
        return import_multilingual.main, ["--model", str(folder), *languages]
    summarisers.make_tiny_summariser(kind, folder)
    return import_summariser.main, ["--model", str(folder), "--language", "en"]


@pytest.mark.parametrize("kind", KINDS)
def test_linnet_decode_gives_the_answers_of_transformers(
    kind: str, opus, texts: Path, tmp_path: Path, program, capsys
):
    main, flags = family(kind, opus, tmp_path / "model")
    out = tmp_path / "bundle"
    assert main([*flags, "--out", str(out), "--license", "none", "--golden", str(texts)]) == 0
    examples = read_manifest(out)["golden_examples"]
    assert len(examples) >= 2, (out / "MODEL_CARD.md").read_text("utf-8")[:1000]
    assert len({example["target_text"] for example in examples}) > 1
    card = (out / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert f"golden examples: {len(examples)}, made by transformers " in card
    capsys.readouterr()
    decode = str(program("linnet-decode"))
    assert check.main([str(out), "--decode", decode, "--threads", "1"]) == 0
    assert f"{len(examples)} of {len(examples)} golden examples" in capsys.readouterr().out


def test_texts_are_those_of_the_language_by_default(opus, tmp_path: Path, monkeypatch):
    asked = []

    def answers(self, pairs):
        asked.extend(pairs)
        return [f"answer {number}" if number else None for number in range(len(pairs))]

    monkeypatch.setattr(golden.Reference, "answers", answers)
    flags = ["--model", str(opus.folder), "--out", str(tmp_path / "a"), *PAIR]
    assert import_huggingface_marian.main(flags) == 0
    assert [text for text, _ in asked] == golden.TEXTS["en"]
    found = read_manifest(tmp_path / "a")["golden_examples"]
    assert found[0] == {"source_text": golden.TEXTS["en"][1], "target_text": "answer 1"}
    assert len(found) == len(golden.TEXTS["en"]) - 1


def test_card_has_source_and_licence(opus, tmp_path: Path, capsys):
    flags = ["--model", str(opus.folder), *PAIR, "--no-golden"]
    assert import_huggingface_marian.main([*flags, "--out", str(tmp_path / "a")]) == 0
    card = (tmp_path / "a/MODEL_CARD.md").read_text(encoding="utf-8")
    assert "- source: folder `opus-mt-en-de`" in card
    assert "- licence: not stated" in card
    assert "- golden examples: none: none were asked for" in card
    told = capsys.readouterr().err
    assert told.startswith("linnet-model import huggingface: no --license is given")
    assert "golden" not in told
    flags += ["--license", "CC-BY-4.0", "--source", "OPUS-MT of 2020"]
    assert import_huggingface_marian.main([*flags, "--out", str(tmp_path / "b")]) == 0
    card = (tmp_path / "b/MODEL_CARD.md").read_text(encoding="utf-8")
    assert "- source: OPUS-MT of 2020\n- licence: CC-BY-4.0\n" in card
    assert read_manifest(tmp_path / "b")["license"] == "CC-BY-4.0"
    assert capsys.readouterr().err == ""


def test_bundle_without_transformers_says_so(
    opus, texts: Path, tmp_path: Path, monkeypatch, capsys
):
    monkeypatch.setattr(golden, "transformers_version", lambda: None)
    flags = ["--model", str(opus.folder), *PAIR, "--golden", str(texts), "--license", "none"]
    assert import_huggingface_marian.main([*flags, "--out", str(tmp_path / "a")]) == 0
    card = (tmp_path / "a/MODEL_CARD.md").read_text(encoding="utf-8")
    assert "golden examples: none: transformers, which makes them, is not installed" in card
    assert "has no golden examples, its MODEL_CARD.md says why" in capsys.readouterr().err


def test_answers_that_bfloat16_changes_are_left_out(opus, monkeypatch):
    files = TokenizerFiles(opus.folder / "source.spm")
    reference = golden.Reference(opus.folder, "marian", files, 40, frozenset())
    pair = golden.LanguageTokens("en", "de")
    exact = [reference.answer(text, pair) for text in marian.SOURCES[:COUNT]]
    kept = reference.answers([(text, pair) for text in marian.SOURCES[:COUNT]])
    assert 0 < sum(answer is not None for answer in kept) < COUNT
    assert all(answer in (None, one) for answer, one in zip(kept, exact, strict=True))
    assert reference.answer(" ".join(marian.SOURCES[:COUNT]), pair) is None  # too long


def test_failure_of_transformers_leaves_a_bundle(opus, texts: Path, tmp_path: Path, monkeypatch):
    def fail(*_):
        raise ValueError("no such thing\nsecond line")

    monkeypatch.setattr(golden, "load_tokenizer", fail)
    flags = ["--model", str(opus.folder), *PAIR, "--golden", str(texts)]
    assert import_huggingface_marian.main([*flags, "--out", str(tmp_path / "a")]) == 0
    assert read_manifest(tmp_path / "a")["golden_examples"] == []
    card = (tmp_path / "a/MODEL_CARD.md").read_text(encoding="utf-8")
    assert "failed: no such thing\n" in card


def test_answers_of_marian_come_from_a_file(tmp_path: Path, capsys):
    folder = marian_models.folder("shared", tmp_path / "model")
    answered = tmp_path / "answers"
    answered.write_text("a b\tc d\ne\tf\n", encoding="utf-8")
    flags = ["--model", str(folder), *PAIR, "--golden", str(answered)]
    assert import_marian.main([*flags, "--out", str(tmp_path / "a")]) == 0
    assert read_manifest(tmp_path / "a")["golden_examples"] == [
        {"source_text": "a b", "target_text": "c d"},
        {"source_text": "e", "target_text": "f"},
    ]
    card = (tmp_path / "a/MODEL_CARD.md").read_text(encoding="utf-8")
    assert "2, with the answers of answers, given as those of marian-decoder" in card
    assert "Linnet" not in read_manifest(tmp_path / "a")["description"]
    answered.write_text("a b\tc\nd\n", encoding="utf-8")
    assert import_marian.main([*flags, "--out", str(tmp_path / "b")]) == 1
    assert "has texts without answers, give those of marian-decoder" in capsys.readouterr().err


def test_linnet_answers_where_marian_is_not_at_hand(tmp_path: Path, program, capsys):
    """Texts of the model's own syllables, whose answers are the same in float32 and int8."""
    folder = marian_models.folder("shared", tmp_path / "model")
    texts = tmp_path / "texts"
    texts.write_text("kalo.\nmiter runba.\nkalo est.\n", encoding="utf-8")
    flags = ["--model", str(folder), *PAIR, "--golden", str(texts)]
    bundle = tmp_path / "a"
    assert import_marian.main([*flags, "--out", str(bundle)]) == 0
    manifest = read_manifest(bundle)
    examples = manifest["golden_examples"]
    assert examples
    assert manifest["description"].endswith("; golden examples are Linnet's own answers")
    card = (bundle / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert f"golden examples: {len(examples)}, made by Linnet itself in float32" in card
    sources = [example["source_text"] for example in examples]
    decode = program("linnet-decode")
    for flags in ([], ["--compute", "int8"], ["--shortlist=true"]):
        answers = decode_texts(decode, bundle, sources, flags)
        assert answers == [example["target_text"] for example in examples]


def test_without_linnet_decode_there_are_no_own_answers(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr("linnet_model.importers.own_answers.find_decode", lambda named: None)
    folder = marian_models.folder("shared", tmp_path / "model")
    flags = ["--model", str(folder), *PAIR, "--out", str(tmp_path / "a")]
    assert import_marian.main(flags) == 0
    assert read_manifest(tmp_path / "a")["golden_examples"] == []
    card = (tmp_path / "a/MODEL_CARD.md").read_text(encoding="utf-8")
    assert "golden examples: none: linnet-decode, which makes them, is not built" in card


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has 0 lines, 1 to 64 are read"),
        ("a\tb\tc\n", "has 2 tabs or an empty part"),
        ("a\t\n", "has 1 tabs or an empty part"),
        ("a\tb\nc\n", "has texts with and without answers"),
        ("a\n" * 65, "has 65 lines"),
    ],
)
def test_refuses_other_lines_of_golden_texts(opus, tmp_path: Path, capsys, text, message):
    file = tmp_path / "texts"
    file.write_text(text, encoding="utf-8")
    flags = ["--model", str(opus.folder), *PAIR, "--golden", str(file)]
    assert import_huggingface_marian.main([*flags, "--out", str(tmp_path / "a")]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
