"""Tests that imported M2M-100, NLLB-200 and mBART-50 models compute the same as in transformers."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

import tiny_multilingual as tiny_models
from transformers_logits import compare_logits

from linnet_model.bundle import read_manifest
from linnet_model.importers.multilingual.codes import MBART50
from linnet_model.importers.multilingual.import_multilingual import NLLB_LICENSE, main
from linnet_model.languages import LanguageTokens, check_pairs, named_tags
from linnet_model.network.model_config import ConfigError


@pytest.fixture(scope="module", params=tiny_models.KINDS)
def tiny(request, tmp_path_factory) -> tiny_models.TinyMultilingual:
    folder = tmp_path_factory.mktemp("multilingual") / request.param
    return tiny_models.make_tiny_multilingual(request.param, folder)


@pytest.fixture
def folder(tiny, tmp_path: Path) -> Path:
    """Copies the folder, so that a test can damage it."""
    return Path(shutil.copytree(tiny.folder, tmp_path / "model"))


def convert(tiny, folder: Path, out: Path, *more: str, license_text: str = NLLB_LICENSE) -> int:
    languages = [word for language in tiny.languages for word in ("--language", language)]
    words = ["--model", str(folder), "--out", str(out), *languages, *more]
    return main(words + (["--license", license_text] if license_text else []))


def test_logits_equal_transformers(tiny, tmp_path: Path):
    assert convert(tiny, tiny.folder, tmp_path) == 0
    compare_logits(tiny.model, tmp_path)


def test_manifest_has_the_ids_of_every_pair(tiny, tmp_path: Path):
    assert convert(tiny, tiny.folder, tmp_path) == 0
    manifest = read_manifest(tmp_path)
    pairs = manifest["languages"]
    assert len(pairs) == 6
    for pair in pairs:
        source = tiny.language_id(pair["source_language_code"])
        assert pair["before_source_ids"] == [source]
        assert "after_source_ids" not in pair
        assert pair["forced_target_ids"] == [tiny.language_id(pair["target_language_code"])]
        assert source in manifest["control_ids"]
    assert (manifest["source_language_code"], manifest["target_language_code"]) == ("en", "de")
    # max_length includes the start token, the language and the end token.
    assert manifest["limits"] == {
        "max_source_tokens": 48,
        "max_target_tokens": tiny_models.MAX_LENGTH - 3,
    }
    assert (
        manifest["name"] == {"m2m100": "m2m100", "nllb": "nllb200", "mbart50": "mbart50"}[tiny.kind]
    )
    vocabulary = manifest["vocabulary"]
    assert [vocabulary[f"{name}_id"] for name in ("bos", "pad", "eos", "unk")] == [0, 1, 2, 3]
    rows = (tmp_path / "source.vocab").read_text(encoding="utf-8").split("\n")[:-1]
    for i, piece in enumerate(rows):
        assert not piece or tiny.tokenizer.convert_tokens_to_ids(piece) == i, piece
    card = (tmp_path / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert ("forbids commercial use" in card) == (tiny.kind == "nllb")


def test_reads_folders_without_ids_of_added_tokens(tiny, folder: Path, tmp_path: Path):
    """As on the hub: the languages follow the pieces in their order."""
    table = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    added = table.pop("added_tokens_decoder")
    (folder / "tokenizer_config.json").write_text(json.dumps(table), encoding="utf-8")
    (folder / "added_tokens.json").unlink(missing_ok=True)
    assert convert(tiny, folder, tmp_path / "one") == 0
    assert convert(tiny, tiny.folder, tmp_path / "two") == 0
    one, two = (read_manifest(tmp_path / name)["languages"] for name in ("one", "two"))
    # The tokenizer that a test makes of NLLB-200 has <mask> before its languages.
    shift = 1 if tiny.kind == "nllb" else 0
    assert [pair["before_source_ids"][0] + shift for pair in one] == [
        pair["before_source_ids"][0] for pair in two
    ]
    fast = [{"id": int(number), "content": token["content"]} for number, token in added.items()]
    (folder / "tokenizer.json").write_text(json.dumps({"added_tokens": fast}), encoding="utf-8")
    assert convert(tiny, folder, tmp_path / "three") == 0
    assert read_manifest(tmp_path / "three")["languages"] == two


def test_languages_can_be_restricted(tiny, tmp_path: Path):
    flags = ["--source-language", "en", "--target-language", "fr", "--target-language", "de"]
    assert convert(tiny, tiny.folder, tmp_path, *flags) == 0
    pairs = [
        (pair["source_language_code"], pair["target_language_code"])
        for pair in read_manifest(tmp_path)["languages"]
    ]
    assert pairs == [("en", "fr"), ("en", "de")]


def change(folder: Path, file: str, **values) -> None:
    table = json.loads((folder / file).read_text(encoding="utf-8"))
    (folder / file).write_text(json.dumps(table | values), encoding="utf-8")


def refusal(tiny, folder: Path, capsys, *more: str, license_text: str = NLLB_LICENSE) -> str:
    out = folder.parent / "refused"
    assert convert(tiny, folder, out, *more, license_text=license_text) == 1
    assert not (out / "manifest.json").exists()
    return capsys.readouterr().err


def test_nllb_needs_a_licence_that_the_user_names(tiny, folder: Path, tmp_path: Path, capsys):
    if tiny.kind == "nllb":
        told = refusal(tiny, folder, capsys, license_text="")
        assert "CC-BY-NC-4.0: that forbids commercial use" in told
    else:
        assert convert(tiny, folder, tmp_path / "free", license_text="") == 0


def test_forced_first_token_leaves_one_target(tiny, folder: Path, tmp_path: Path):
    change(folder, "generation_config.json", forced_bos_token_id=tiny.language_id("en"))
    assert convert(tiny, folder, tmp_path / "bundle") == 0
    targets = {p["target_language_code"] for p in read_manifest(tmp_path / "bundle")["languages"]}
    assert targets == {"en"}


def test_refuses_what_it_cannot_read_by_name(tiny, folder: Path, capsys):
    assert "no language 'xx' for 'xx'" in refusal(tiny, folder, capsys, "--language", "xx")
    assert "'de' twice" in refusal(tiny, folder, capsys, "--language", "de")
    assert "is no CODE=TAG" in refusal(tiny, folder, capsys, "--language", "it=")
    told = refusal(tiny, folder, capsys, "--target-language", "it")
    assert "--target-language it is not among the languages: en, de, fr" in told
    change(folder, "config.json", mystery=1)
    assert "would be ignored: mystery" in refusal(tiny, folder, capsys)
    shutil.copy(tiny.folder / "config.json", folder)
    change(folder, "config.json", tie_word_embeddings=False)
    assert "tie_word_embeddings false" in refusal(tiny, folder, capsys)
    change(folder, "config.json", model_type="bart")
    assert 'model_type "bart", this reads m2m_100' in refusal(tiny, folder, capsys)
    shutil.copy(tiny.folder / "config.json", folder)
    change(folder, "config.json", eos_token_id=3)
    change(folder, "generation_config.json", eos_token_id=3, forced_eos_token_id=None)
    assert "gives </s> the id 2, the configuration has 3" in refusal(tiny, folder, capsys)


def test_refuses_added_tokens(tiny, folder: Path, capsys):
    table = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    added = table["added_tokens_decoder"] | {"99999": {"content": "<hl>"}}
    change(folder, "tokenizer_config.json", added_tokens_decoder=added)
    assert "has the added token '<hl>' with the id 99999" in refusal(tiny, folder, capsys)


def test_names_missing_files(tiny, folder: Path, capsys):
    names = ["sentencepiece.bpe.model", "config.json"]
    for name in names + ["special_tokens_map.json"] * (tiny.kind == "nllb"):
        whole = (folder / name).read_bytes()
        (folder / name).unlink()
        assert f"has no {name}" in refusal(tiny, folder, capsys)
        (folder / name).write_bytes(whole)


def test_refuses_damaged_tokenizers(tiny, folder: Path, capsys):
    whole = (folder / "sentencepiece.bpe.model").read_bytes()
    (folder / "sentencepiece.bpe.model").write_bytes(whole[: len(whole) // 2])
    assert "sentencepiece.bpe.model" in refusal(tiny, folder, capsys)
    (folder / "sentencepiece.bpe.model").write_bytes(whole)
    if tiny.kind == "m2m100":
        change(folder, "tokenizer_config.json", language_codes="klingon")
        assert "language_codes 'klingon', known are m2m100, wmt21" in refusal(tiny, folder, capsys)
    if tiny.kind == "mbart50":
        added = {"0": {"content": "de_DE"}}
        change(folder, "tokenizer_config.json", added_tokens_decoder=added)
        assert "gives 1 of 52 language tokens an id" in refusal(tiny, folder, capsys)
        added = {str(i): {"content": name} for i, name in enumerate(MBART50.split())}
        change(folder, "tokenizer_config.json", added_tokens_decoder=added)
        assert "'ar_AR' the id 0, languages are behind" in refusal(tiny, folder, capsys)
    if tiny.kind != "nllb":
        return
    change(folder, "special_tokens_map.json", additional_special_tokens=7)
    assert "no list additional_special_tokens" in refusal(tiny, folder, capsys)


def test_refuses_a_tokenizer_of_another_family(tiny, folder: Path, capsys):
    """SMALL-100 has the weights of M2M-100 and puts the target's language before the source."""
    change(folder, "tokenizer_config.json", tokenizer_class="SMALL100Tokenizer")
    told = refusal(tiny, folder, capsys)
    assert 'tokenizer_config.json has tokenizer_class "SMALL100Tokenizer"' in told
    change(folder, "tokenizer_config.json", tokenizer_class=None)
    (folder / "tokenization_small100.py").touch()
    assert "has tokenization_small100.py: a tokenizer of its own" in refusal(tiny, folder, capsys)


def test_refuses_unexpected_weights(tiny, folder: Path, capsys):
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    norm = "model.decoder.layer_norm.weight"
    for changed, message in (
        (lambda w: w.pop(norm), f"lacks weights: {norm}"),
        (lambda w: w.update(odd=torch.ones(2)), "unknown weights: odd"),
        (lambda w: w.update({norm: torch.ones(3)}), f"{norm} has shape [3]"),
    ):
        weights = safetensors.torch.load_file(file)
        changed(weights)
        safetensors.torch.save_file(weights, file)
        assert message in refusal(tiny, folder, capsys)
        file.write_bytes(whole)


def test_accepts_stored_position_tables(tmp_path: Path, capsys):
    tiny = tiny_models.make_tiny_multilingual("m2m100", tmp_path / "m2m", safe=False)
    file = tmp_path / "m2m" / "pytorch_model.bin"
    weights = torch.load(file, weights_only=True)
    table = tiny.model.model.encoder.embed_positions.weights
    name = "model.encoder.embed_positions.weights"
    torch.save(weights | {name: table.half()}, file)
    assert convert(tiny, tiny.folder, tmp_path / "bundle") == 0
    torch.save(weights | {name: table + 0.1}, file)
    assert "from the sinusoids of M2M-100" in refusal(tiny, tiny.folder, capsys)


def test_legacy_nllb_has_its_language_behind_the_source(tmp_path: Path):
    tiny = tiny_models.make_tiny_multilingual("nllb", tmp_path / "nllb")
    change(tiny.folder, "tokenizer_config.json", legacy_behaviour=True)
    assert convert(tiny, tiny.folder, tmp_path / "bundle") == 0
    pair = read_manifest(tmp_path / "bundle")["languages"][0]
    assert "before_source_ids" not in pair
    assert pair["after_source_ids"] == [tiny.language_id("en")]


def test_reads_codes_with_and_without_tags():
    assert named_tags(["de=deu", "en"], "--language") == {"de": "deu", "en": "en"}
    for wrong in ("=deu", "de=", ""):
        with pytest.raises(ConfigError, match="is no CODE=TAG"):
            named_tags([wrong], "--language")
    with pytest.raises(ConfigError, match=r"begins with no BCP-47 code .*, as in pt-BR=en_XX"):
        named_tags(["en_XX"], "--language")


def test_pairs_contain_the_own_one_and_none_twice():
    pair = LanguageTokens("en", "de")
    check_pairs([pair], "en", "de")
    check_pairs([], "en", "de")
    with pytest.raises(ConfigError, match="twice"):
        check_pairs([pair, LanguageTokens("en", "de", before=(1,))], "en", "de")
    with pytest.raises(ConfigError, match="target of a language pair is 'de_DE', which is no BCP"):
        check_pairs([LanguageTokens("en", "de_DE")], "en", "de_DE")
    with pytest.raises(ConfigError, match="own, en to fr"):
        check_pairs([pair], "en", "fr")
