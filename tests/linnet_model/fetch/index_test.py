"""Tests that both forms of Mozilla's index are read, and which variant of a pair is taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from linnet_model.config import ConfigError
from linnet_model.fetch.index import Variant, choose, language_of, read_index

HASH = "ab" * 32
BASE = "https://models.test/bucket"


def entry(architecture: str, status: str | None = "Release", **more: Any) -> dict[str, Any]:
    pair = {"sourceLanguage": "en", "targetLanguage": "es"}
    return {
        **(pair | {"architecture": architecture, "releaseStatus": status}),
        "files": {
            "lexicalShortlist": {"path": f"models/en-es/{architecture}/lex.50.50.enes.s2t.bin.gz"},
            "model": {
                "path": f"models/en-es/{architecture}/model.enes.intgemm.alphas.bin.gz",
                "uncompressedHash": HASH.upper(),
            },
            "vocab": {"path": f"models/en-es/{architecture}/vocab.enes.spm.gz"},
        },
        "metrics": {"flores200-plus": {"comet22": 0.87}},
        **more,
    }


def registry(**pairs: list[dict[str, Any]]) -> str:
    return json.dumps({"generated": "2026-09-30T00:44:58Z", "baseUrl": BASE, "models": pairs})


def read(text: str, base: str = "", server_base: str = "") -> list[Variant]:
    return read_index(text, "the index", base, lambda: server_base)


def record(kind: str, architecture: str = "base-memory", version: str = "3.0") -> dict[str, Any]:
    name = f"{kind}.enja.bin"
    return {
        "name": name,
        "version": version,
        "fileType": kind,
        "architecture": architecture,
        "sourceLanguage": "en",
        "targetLanguage": "ja",
        "decompressedHash": "cd" * 32,
        "decompressedSize": 5,
        "attachment": {
            "hash": HASH,
            "size": 4,
            "filename": f"{name}.zst",
            "location": f"main-workspace/v2/{architecture}-{version}-{kind}.zst",
            "mimetype": "application/zstd",
        },
    }


def records(*entries: dict[str, Any]) -> str:
    return json.dumps({"data": list(entries)})


SPLIT = [record(kind) for kind in ("model", "srcvocab", "trgvocab", "lex")]


def test_registry_is_read():
    (found,) = read(registry(**{"en-es": [entry("tiny")]}))
    assert (found.pair, found.architecture, found.status) == ("en-es", "tiny", "Release")
    files = {file.name: file for file in found.files}
    model = files["model.enes.intgemm.alphas.bin"]
    assert model.url == f"{BASE}/models/en-es/tiny/model.enes.intgemm.alphas.bin.gz"
    assert model.content_sha256 == HASH
    assert files["vocab.enes.spm"].content_sha256 == ""
    assert set(files) == {model.name, "vocab.enes.spm", "lex.50.50.enes.s2t.bin"}


def test_split_vocabularies_of_the_registry_are_both_taken():
    split = entry("base")
    split["files"] |= {
        "srcVocab": {"path": "a/srcvocab.spm.gz"},
        "trgVocab": {"path": "a/trgvocab.spm.gz"},
    }
    del split["files"]["vocab"], split["files"]["lexicalShortlist"]
    (found,) = read(registry(**{"en-es": [split]}))
    names = [file.name for file in found.files]
    assert names == ["model.enes.intgemm.alphas.bin", "srcvocab.spm", "trgvocab.spm"]


def test_records_of_remote_settings_are_one_variant():
    quality = record("qualityModel")
    (found,) = read(records(*SPLIT, quality), server_base=f"{BASE}/")
    assert (found.pair, found.version, found.released) == ("en-ja", "3.0", True)
    assert [file.name for file in found.files] == [it["name"] for it in SPLIT]
    model = found.files[0]
    location = SPLIT[0]["attachment"]["location"]
    assert (model.url, model.sha256) == (f"{BASE}/{location}", HASH)
    assert model.content_sha256 == "cd" * 32


def test_versions_and_architectures_of_records_stay_apart():
    other = [record(kind, "tiny", "10.1") for kind in ("model", "vocab")]
    newer = [record(kind, version="3.10") for kind in ("model", "vocab")]
    older = [record(kind, version="3.9") for kind in ("model", "vocab")]
    found = read(records(*SPLIT, *other, *older, *newer), server_base=BASE)
    assert len(found) == 4
    assert choose(found, "en-ja", "", "x").version == "3.10"
    assert choose(found, "en-ja", "tiny", "x").version == "10.1"


@pytest.mark.parametrize("missing", ["model", "vocab"])
def test_model_without_a_needed_file_is_left_out(missing: str):
    broken = entry("base")
    del broken["files"][missing]
    found = read(registry(**{"en-es": [broken, entry("tiny")]}))
    assert [it.architecture for it in found] == ["tiny"]
    assert read(records(*(it for it in SPLIT if it["fileType"] != "trgvocab")), BASE) == []


@pytest.mark.parametrize(
    ("entries", "wanted", "taken"),
    [
        ([("tiny", "Release"), ("base-memory", "Release")], "", "base-memory"),
        ([("base-memory", "Release"), ("base", "Release Desktop")], "", "base"),
        ([("base", "Nightly"), ("tiny", "Release Android")], "", "tiny"),
        ([("base", None), ("tiny", "Release")], "", "tiny"),
        ([("tiny", "Release"), ("base", "Release")], "tiny", "tiny"),
        ([("base", None), ("tiny", "Release")], "base", "base"),
        ([("huge", "Release"), ("tiny", "Release")], "", "tiny"),
    ],
)
def test_released_and_large_variant_is_taken(entries, wanted, taken):
    found = read(registry(**{"en-es": [entry(*it) for it in entries]}))
    assert choose(found, "EN-es", wanted, "x").architecture == taken


def test_unreleased_model_is_taken_only_by_name():
    found = read(registry(**{"en-es": [entry("tiny", "Nightly")]}))
    with pytest.raises(ConfigError, match=r"no released model of en-es, it has tiny \(Nightly\)"):
        choose(found, "en-es", "", "x")
    assert choose(found, "en-es", "tiny", "x").status == "Nightly"


def test_unknown_pair_and_variant_list_what_is_there():
    found = read(registry(**{"en-es": [entry("tiny"), entry("base")]}))
    with pytest.raises(
        ConfigError, match=r"no model 'es-en' among the 1 pairs of x: near are en-es"
    ):
        choose(found, "es-en", "", "x")
    with pytest.raises(ConfigError, match=r"no --variant huge of en-es, it has base .*, tiny"):
        choose(found, "en-es", "huge", "x")


@pytest.mark.parametrize(
    ("code", "expected"), [("zh_hant", "zh-Hant"), ("pt_br", "pt-BR"), ("EN", "en"), ("nb", "nb")]
)
def test_languages_are_codes_of_bcp_47(code: str, expected: str):
    assert language_of(code) == expected


def test_pair_is_found_by_either_spelling():
    chinese = entry("base", sourceLanguage="zh_hant", targetLanguage="en")
    found = read(registry(**{"zh_hant-en": [chinese]}))
    assert choose(found, "zh_hant-en", "", "x") is choose(found, "zh-Hant-en", "", "x")


@pytest.mark.parametrize(
    "path", ["../up.bin", "/root.bin", "a/../../b", "https://other/a", "a?b", "a b", "", None, 7]
)
def test_paths_outside_of_the_base_are_refused(path):
    bad = entry("tiny")
    bad["files"]["model"]["path"] = path
    with pytest.raises(ConfigError, match=r"which is (not below its base URL|no plain path)"):
        read(registry(**{"en-es": [bad]}))


def test_name_of_a_record_is_that_of_a_file():
    bad = [record("model") | {"name": "../../.bashrc"}, record("vocab")]
    with pytest.raises(ConfigError, match="which is no name of a file"):
        read(records(*bad), BASE)


def test_hash_that_is_none_is_refused():
    bad = entry("tiny")
    bad["files"]["model"]["uncompressedHash"] = "abc"
    with pytest.raises(ConfigError, match="has the sha256 'abc', expected 64"):
        read(registry(**{"en-es": [bad]}))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"models": []}', '{"data": {}}', "7"])
def test_other_documents_are_refused(text: str):
    with pytest.raises(ConfigError, match=r"the index is no (JSON|index of models)"):
        read(text, BASE)


def test_base_is_asked_for_where_nothing_names_it():
    text = json.dumps({"models": {"en-es": [entry("tiny")]}})
    with pytest.raises(ConfigError, match="name the URL with --files-at"):
        read(text)
    assert read(text, BASE)[0].files[0].url.startswith(f"{BASE}/models/")
    with pytest.raises(ConfigError, match="--files-at"):
        read(records(*SPLIT))


def test_base_of_the_caller_replaces_that_of_the_index():
    """For a mirror that has the index as it is."""
    found = read(registry(**{"en-es": [entry("tiny")]}), "http://mirror.test")
    assert found[0].files[0].url.startswith("http://mirror.test/models/")
