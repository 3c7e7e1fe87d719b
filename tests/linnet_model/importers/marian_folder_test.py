"""Tests of what the importer of Marian learns from a folder: languages from the names of the files,
the search from config….yml, the type of the weights, and the attention that is the alignment."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

import marian_models as marian

from linnet_model.bundle import read_bundle_weights, read_manifest
from linnet_model.importers.marian.file_names import confirmed, languages_of
from linnet_model.importers.marian.import_marian import main
from linnet_model.network.model_config import ConfigError

LEXICON = "lex.50.50.ende.s2t.bin"
# The configuration of a published student, with the names of our files.
CONFIG = f"""relative-paths: true
models:
  - model.npz
vocabs:
  - vocab.spm
  - vocab.spm
shortlist:
    - {LEXICON}
    - false
beam-size: 1
normalize: 1.0
word-penalty: 0
mini-batch: 64
maxi-batch: 1000
maxi-batch-sort: src
workspace: 2000
max-length-factor: 2.5
gemm-precision: int8shiftAlphaAll
"""
LANGUAGES = ("--source-language", "en", "--target-language", "de")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return marian.folder("shared", tmp_path / "model")


def imported(folder: Path, *flags: str) -> dict:
    out = folder.parent / "bundle"
    assert main(["--model", str(folder), "--out", str(out), "--no-golden", *flags]) == 0
    return read_manifest(out)


def refusal(folder: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    out = folder.parent / "refused"
    assert main(["--model", str(folder), "--out", str(out), *flags]) == 1
    assert not out.exists()
    return capsys.readouterr().err


# --- Languages ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        (["model.enpt.intgemm.alphas.bin", "vocab.enpt.spm"], ("en", "pt")),
        (["model.esen.intgemm8.bin", "lex.esen.s2t", "vocab.esen.spm"], ("es", "en")),
        # Older models share a vocabulary between both directions.
        (
            ["model.enes.intgemm.alphas.bin", "lex.50.50.enes.s2t.bin", "vocab.esen.spm"],
            ("en", "es"),
        ),
        (["model.enzh_hant.intgemm.alphas.bin", "srcvocab.enzh_hant.spm"], ("en", "zh-Hant")),
        (["model.zh_hanten.intgemm.alphas.bin"], ("zh-Hant", "en")),
        (["lex.50.50.enfil.s2t.bin", "model.npz"], ("en", "fil")),
        (["model.filen.intgemm.alphas.bin"], ("fil", "en")),  # not fi to len
        (["model.astpt.intgemm.alphas.bin", "vocab.astpt.spm"], None),  # ast to pt, as to tpt
        (["model.ptes.intgemm.alphas.bin", "vocab.ptes.spm"], ("pt", "es")),
        (["model.ENDE.intgemm.alphas.bin"], ("en", "de")),
        (["model.intgemm.alphas.bin", "vocab.spm"], None),
        (["model.npz", "vocab.enpt.spm"], None),  # which direction?
        (["model.tiny.bin", "vocab.tiny.spm"], None),
        (["model.fine.bin", "vocab.spm"], None),  # fi to ne, or a word
        (["model.enen.bin"], None),
        (["model.alphas.bin"], None),
        (["model.enqq.bin"], None),
    ],
)
def test_languages_come_from_names_of_files(names: list[str], pair: tuple[str, str] | None):
    assert languages_of(names) == pair


@pytest.mark.parametrize(
    "names",
    [
        ["model.enpt.intgemm.alphas.bin", "lex.50.50.pten.s2t.bin"],
        ["model.enpt.intgemm.alphas.bin", "vocab.enes.spm"],
    ],
)
def test_names_of_two_models_are_refused(names: list[str]):
    with pytest.raises(ConfigError, match=r"contradict each other: model.enpt.* says en to pt, "):
        languages_of(names)


def test_flags_may_say_more_than_the_names():
    assert confirmed(("en", "pt"), (None, "pt-BR")) == ("en", "pt-BR")
    assert confirmed(("en", "zh-Hant"), ("en-US", "zh")) == ("en-US", "zh")
    assert confirmed(None, ("en", "de")) == ("en", "de")
    for guess, given, message in (
        (("en", "pt"), ("pt", "en"), "--source-language is 'pt', the names of the files say 'en'"),
        (("en", "zh-Hant"), (None, "zh-Hans"), "--target-language is 'zh-Hans'"),
        (None, ("en", None), "do not tell the languages: give --source-language and --target"),
    ):
        with pytest.raises(ConfigError, match=message):
            confirmed(guess, given)


def test_import_of_firefox_files_needs_no_languages(tmp_path: Path, capsys):
    folder = marian.folder("int8", tmp_path / "model")
    manifest = imported(folder)
    assert (manifest["source_language_code"], manifest["target_language_code"]) == ("en", "de")
    assert manifest["name"] == "en-de"
    assert "languages: en to de, by the names of the files" in capsys.readouterr().out
    assert "--target-language is 'fr', the names of the files say 'de'" in refusal(
        folder, capsys, "--target-language", "fr"
    )
    (folder / marian.INT8).rename(folder / "model.bin")
    assert "do not tell the languages: give --source-language" in refusal(folder, capsys)


# --- The configuration of the search ------------------------------------------------------------


def test_search_is_as_the_configuration_says(folder: Path, capsys):
    (folder / "config.intgemm8bitalpha.yml").write_text(
        CONFIG.replace("beam-size: 1", "beam-size: 4").replace("normalize: 1.0", "normalize: 0.6")
    )
    manifest = imported(folder, *LANGUAGES)
    options = manifest["default_options"]
    assert (options["beam_size"], options["length_penalty"]) == (4, 0.6)
    assert (options["max_target_ratio"], options["max_target_tokens"]) == (2.5, 10)
    assert manifest["shortlist_by_default"] is True
    assert "search: as config.intgemm8bitalpha.yml says" in capsys.readouterr().out


def test_search_without_a_configuration_is_greedy(folder: Path):
    manifest = imported(folder, *LANGUAGES)
    options = manifest["default_options"]
    assert (options["beam_size"], options["max_target_ratio"]) == (1, 3.0)
    assert manifest["shortlist_by_default"] is True


def test_configuration_can_leave_out_the_shortlist(folder: Path):
    text = CONFIG.replace(f"shortlist:\n    - {LEXICON}\n    - false\n", "")
    (folder / "config.yml").write_text(text)
    manifest = imported(folder, *LANGUAGES)
    assert manifest["shortlist_by_default"] is False
    assert manifest["shortlist_file"]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("word-penalty: 0", "word-penalty: 0.2", "word-penalty 0.2, supported are 0"),
        ("mini-batch: 64", "mystery: 64", "unknown keys, which would be ignored: mystery"),
        ("mini-batch: 64", "allow-unk: true", "allow-unk true, supported are false"),
        ("beam-size: 1", "beam-size: 99", "beam-size 99, it must be an integer from 1 to 32"),
        ("normalize: 1.0", "normalize: true", "normalize true, it must be a number from 0 to 10"),
        ("length-factor: 2.5", "length-factor: -1", "max-length-factor -1, it must be a number"),
        ("int8shiftAlphaAll", "fp8", 'gemm-precision "fp8", supported are "float32"'),
        ("- model.npz", "- other.npz", 'models ["other.npz"], 1 are read, and the folder\'s are'),
        ("- model.npz", "- model.npz\n  - b.npz", 'models ["model.npz", "b.npz"], 1 are read'),
        (
            "  - vocab.spm\n  - vocab.spm",
            "  - vocab.spm\n  - b.spm",
            'vocabs ["vocab.spm", "b.spm"]',
        ),
        (LEXICON, "lex.bin", f"has the shortlist lex.bin, and the folder has {LEXICON}"),
        ("relative-paths: true", "relative-paths: &a true", "this form of YAML is not read"),
    ],
)
def test_refuses_configuration_by_name(folder: Path, capsys, before, after, message):
    assert before in CONFIG
    (folder / "decoder.yml").write_text(CONFIG.replace(before, after))
    told = refusal(folder, capsys, *LANGUAGES)
    assert message in told
    assert "decoder.yml" in told


def test_refuses_two_configurations_and_a_missing_shortlist(folder: Path, capsys):
    (folder / "config.yml").write_text(CONFIG)
    (folder / LEXICON).unlink()
    assert f"has the shortlist {LEXICON}, and the folder has none" in refusal(
        folder, capsys, *LANGUAGES
    )
    (folder / "config.other.yml").write_text(CONFIG)
    assert "has config.other.yml, config.yml: keep the one" in refusal(folder, capsys, *LANGUAGES)


# --- The type of the weights --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kept"), [("int8", "int8"), ("shared", "float32"), ("mainline", "float32")]
)
def test_weights_are_stored_in_the_type_of_the_file(tmp_path: Path, name: str, kept: str):
    """Marian's own int8 has its embedding in float32, which int8 would round."""
    folder = marian.folder(name, tmp_path / "model")
    if name == "mainline":
        (folder / "model.npz").unlink()
        (folder / "vocab.spm").write_bytes((marian.HERE / "shared/vocab.spm").read_bytes())
    manifest = imported(folder, *LANGUAGES)
    assert manifest["architecture"]["weight_type"] == kept
    other = tmp_path / "float32"
    flags = [
        "--model",
        str(folder),
        *LANGUAGES,
        "--dtype",
        "float32",
        "--no-golden",
        "--out",
        str(other),
    ]
    assert main(flags) == 0
    weights, exact = (read_bundle_weights(b)[0] for b in (tmp_path / "bundle", other))
    assert weights.keys() == exact.keys()
    for key, weight in weights.items():
        # An ulp: the file has the reciprocal of the scale.
        np.testing.assert_allclose(weight, exact[key], rtol=2.4e-7, atol=0, err_msg=key)


# --- The alignment ------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "layer"), [("last", 1), ("1", 0), ("2", 1), (None, 1)])
def test_alignment_is_head_0_of_the_guided_layer(folder: Path, value: str | None, layer: int):
    change_guided_layer(folder, value)
    assert imported(folder, *LANGUAGES)["architecture"]["alignment_layer"] == layer
    sizes = read_bundle_weights(folder.parent / "bundle")[1]
    assert (sizes.alignment_layer, sizes.alignment_head) == (layer, 0)


def test_refuses_a_guided_layer_that_is_none(folder: Path, capsys):
    change_guided_layer(folder, "3")
    assert 'guided-alignment-layer (which may be "last") 3, it must be an integer from 1 to 2' in (
        refusal(folder, capsys, *LANGUAGES)
    )


def change_guided_layer(folder: Path, value: str | None) -> None:
    arrays, line = dict(np.load(folder / "model.npz")), "transformer-guided-alignment-layer: last\n"
    text = bytes(arrays[marian.SETTINGS]).rstrip(b"\0").decode()
    assert line in text
    changed = text.replace(line, line.replace("last", value) if value else "")
    arrays[marian.SETTINGS] = np.frombuffer(changed.encode() + b"\0", np.int8)
    np.savez(folder / "model.npz", **arrays)
