"""Tests that imported BART and PEGASUS models compute the same as in transformers."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

import tiny_summarisers as tiny_models
from transformers_logits import compare_logits

from linnet_model.bundle import read_bundle_weights, read_manifest
from linnet_model.importers.summarisers.import_summariser import main


@pytest.fixture(scope="module", params=tiny_models.KINDS)
def tiny(request, tmp_path_factory) -> tiny_models.TinySummariser:
    folder = tmp_path_factory.mktemp("summarisers") / request.param
    return tiny_models.make_tiny_summariser(request.param, folder)


@pytest.fixture
def folder(tiny, tmp_path: Path) -> Path:
    """Copies the folder, so that a test can damage it."""
    return Path(shutil.copytree(tiny.folder, tmp_path / "model"))


def convert(folder: Path, out: Path, *more: str) -> int:
    return main(["--model", str(folder), "--out", str(out), "--language", "en", *more])


def test_logits_equal_transformers(tiny, tmp_path: Path):
    assert convert(tiny.folder, tmp_path) == 0
    compare_logits(tiny.model, tmp_path)


def test_manifest_has_the_options_of_the_files(tiny, tmp_path: Path):
    assert convert(tiny.folder, tmp_path) == 0
    manifest = read_manifest(tmp_path)
    assert manifest["name"] == f"en-{tiny.kind}"
    assert manifest["task"] == "TASK_SUMMARIZE"
    assert manifest["source_language_code"] == manifest["target_language_code"] == "en"
    # max_length and min_length include start, forced and end token.
    longest, shortest = tiny_models.MAX_LENGTH - 1, tiny_models.MIN_LENGTH
    # Every input of the decoder has a position, the start token and a forced one too.
    assert manifest["limits"] == {"max_source_tokens": 64, "max_target_tokens": 64 - tiny.silent}
    assert manifest["default_options"] == {
        "beam_size": 4,
        "length_penalty": 2.0,
        "min_target_tokens": shortest - tiny.silent,
        "max_target_ratio": 0.0,
        "max_target_tokens": longest - tiny.silent,
        "no_repeat_ngram_size": 3,
        "max_ngram_repeats": 0,
        "unknown_penalty": 0.0,
    }
    vocabulary = manifest["vocabulary"]
    ids = [vocabulary[f"{name}_id"] for name in ("bos", "pad", "eos", "unk", "start")]
    assert ids == ([0, 1, 2, 3, 2] if tiny.kind == "bart" else [1, 0, 1, 105, 0])
    rows = (tmp_path / "source.vocab").read_text(encoding="utf-8").split("\n")[:-1]
    for i, piece in enumerate(rows):
        if tiny.kind == "bart" or not 103 <= i < 105:  # two ids of PEGASUS have two names
            assert tiny.tokenizer.convert_tokens_to_ids(piece) == i, piece
    assert "same rule" in (tmp_path / "MODEL_CARD.md").read_text(encoding="utf-8")


def test_bart_has_its_start_token_on_both_sides(tiny, tmp_path: Path):
    assert convert(tiny.folder, tmp_path) == 0
    manifest = read_manifest(tmp_path)
    if tiny.kind == "pegasus":
        assert "languages" not in manifest
        assert manifest["control_ids"][:2] == [2, 3]
        return
    [pair] = manifest["languages"]
    assert (pair["before_source_ids"], pair["forced_target_ids"]) == ([0], [0])
    assert manifest["control_ids"] == [tiny.tokenizer.mask_token_id]
    assert manifest["subword_kind"] == "SUBWORD_KIND_BYTE_LEVEL_BPE"


def change(folder: Path, file: str, **values) -> None:
    table = json.loads((folder / file).read_text(encoding="utf-8"))
    (folder / file).write_text(json.dumps(table | values), encoding="utf-8")


def test_old_files_have_the_search_in_their_configuration(tiny, folder: Path, tmp_path: Path):
    search = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    (folder / "generation_config.json").unlink()
    search |= {"early_stopping": False, "forced_bos_token_id": None}
    change(folder, "config.json", **search, force_bos_token_to_be_generated=tiny.kind == "bart")
    assert convert(folder, tmp_path / "bundle") == 0
    manifest = read_manifest(tmp_path / "bundle")
    assert manifest["default_options"]["length_penalty"] == 2.0
    if tiny.kind == "bart":
        assert manifest["languages"][0]["forced_target_ids"] == [0]
    card = (tmp_path / "bundle" / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "early_stopping false" in card


def test_table_may_lack_the_row_of_the_mask(tmp_path: Path):
    """As in bart-large-cnn, whose tokenizer has one piece more."""
    rows = len((tiny_models.BYTE_LEVEL / "pieces.vocab").read_text("utf-8").split("\n")) - 1
    tiny = tiny_models.make_tiny_summariser("bart", tmp_path / "bart", vocab_size=rows)
    assert convert(tiny.folder, tmp_path / "bundle") == 0
    manifest = read_manifest(tmp_path / "bundle")
    assert manifest["vocabulary"]["size"] == rows
    assert "control_ids" not in manifest


def refusal(folder: Path, capsys, *more: str) -> str:
    out = folder.parent / "refused"
    assert convert(folder, out, *more) == 1
    assert not out.exists()
    assert {path.name for path in folder.parent.iterdir()} == {folder.name}, "half-written"
    return capsys.readouterr().err


def test_refuses_what_it_cannot_read_by_name(tiny, folder: Path, capsys):
    for values, message in (
        ({"mystery": 1}, "would be ignored: mystery"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings false"),
        ({"model_type": "t5"}, 'model_type "t5", this reads bart and pegasus'),
        ({"normalize_before": tiny.kind == "bart"}, "normalize_before"),
        ({"eos_token_id": 3}, "eos_token_id"),
        ({"decoder_ffn_dim": 5}, "they must be equal"),
    ):
        change(folder, "config.json", **values)
        assert message in refusal(folder, capsys)
        shutil.copy(tiny.folder / "config.json", folder)
    for values, message in (
        ({"forced_bos_token_id": 9999}, "forced_bos_token_id 9999"),
        ({"forced_bos_token_id": tiny.model.config.eos_token_id}, "neither the end token"),
        ({"num_beams": 99}, "num_beams 99"),
        ({"encoder_repetition_penalty": 1.5}, "encoder_repetition_penalty 1.5"),
    ):
        change(folder, "generation_config.json", **values)
        assert message in refusal(folder, capsys)
        shutil.copy(tiny.folder / "generation_config.json", folder)


def test_refuses_tokens_that_were_added(tiny, folder: Path, capsys):
    added = {str(len(tiny.tokenizer)): {"content": "<hl>"}}
    change(folder, "tokenizer_config.json", added_tokens_decoder=added)
    assert "added token '<hl>'" in refusal(folder, capsys)
    other = "<s>" if tiny.kind == "bart" else "<unk_5>"
    change(folder, "tokenizer_config.json", added_tokens_decoder={"9": {"content": other}})
    assert f"added token '{other}' with the id 9" in refusal(folder, capsys)
    if tiny.kind == "bart":
        change(folder, "tokenizer_config.json", added_tokens_decoder={}, add_prefix_space=True)
        assert "add_prefix_space true" in refusal(folder, capsys)
    else:
        change(folder, "tokenizer_config.json", added_tokens_decoder={}, offset=7)
        assert "offset 7" in refusal(folder, capsys)


def test_names_missing_files(tiny, folder: Path, capsys):
    own = ["vocab.json", "merges.txt"] if tiny.kind == "bart" else ["spiece.model"]
    for name in ["config.json", "model.safetensors", *own]:
        whole = (folder / name).read_bytes()
        (folder / name).unlink()
        assert f"has no {name}" in refusal(folder, capsys)
        (folder / name).write_bytes(whole)


def test_refuses_damaged_tokenizers(tiny, folder: Path, capsys):
    if tiny.kind == "pegasus":
        whole = (folder / "spiece.model").read_bytes()
        (folder / "spiece.model").write_bytes(whole[: len(whole) // 2])
        assert "spiece.model" in refusal(folder, capsys)
        return
    merges = (folder / "merges.txt").read_text(encoding="utf-8")
    for text, message in (
        (merges + "q\n", "is no merge operation"),
        (merges + "qq zz\n", "merges qq, zz, qqzz, which vocab.json lacks"),
        ("#version: 0.2\n", "has no merge operations"),
    ):
        (folder / "merges.txt").write_text(text, encoding="utf-8")
        assert message in refusal(folder, capsys)
    (folder / "merges.txt").write_bytes(b"\xff\xfe")
    assert "is not UTF-8" in refusal(folder, capsys)
    (folder / "merges.txt").write_text(merges, encoding="utf-8")
    numbers = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    swapped = numbers | {"<s>": 1, "<pad>": 0}
    (folder / "vocab.json").write_text(json.dumps(swapped), encoding="utf-8")
    assert "gives <s> the id 1, the configuration has 0" in refusal(folder, capsys)
    numbers["byte"] = numbers.pop("q")
    (folder / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    assert "lacks 1 of the 256 bytes" in refusal(folder, capsys)


def test_refuses_unexpected_weights(tiny, folder: Path, capsys):
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    norm = "layernorm_embedding" if tiny.kind == "bart" else "layer_norm"
    norm = f"model.decoder.{norm}.weight"
    for changed, message in (
        (lambda w: w.pop(norm), f"lacks weights: {norm}"),
        (lambda w: w.update(odd=torch.ones(2)), "unknown weights: odd"),
        (lambda w: w.update({norm: torch.ones(3)}), f"{norm} has shape [3]"),
        (lambda w: w[norm].fill_(float("nan")), "values that are not finite"),
    ):
        weights = safetensors.torch.load_file(file)
        changed(weights)
        safetensors.torch.save_file(weights, file)
        assert message in refusal(folder, capsys)
        file.write_bytes(whole)


TABLES = [
    f"{name}.weight"
    for name in (
        "model.shared",
        "model.encoder.embed_tokens",
        "model.decoder.embed_tokens",
        "lm_head",
    )
]


@pytest.mark.parametrize("name", TABLES)
def test_the_shared_table_may_have_any_of_its_names(tiny, folder: Path, tmp_path: Path, name: str):
    """safetensors stores tensors that share memory once: bart-large-cnn has only the decoder's."""
    file = folder / "model.safetensors"
    weights = safetensors.torch.load_file(file)
    table = next(weights[one] for one in TABLES if one in weights)
    rest = {key: tensor for key, tensor in weights.items() if key not in TABLES}
    safetensors.torch.save_file(rest | {name: table}, file)
    assert convert(folder, tmp_path / "bundle") == 0
    found, _ = read_bundle_weights(tmp_path / "bundle")
    assert torch.equal(found["embed_source.weight"], table)


def test_old_files_have_no_bias_and_a_version(tiny, folder: Path, tmp_path: Path):
    file = folder / "model.safetensors"
    weights = safetensors.torch.load_file(file)
    del weights["final_logits_bias"]
    version = {f"model.{side}.version": torch.tensor([3.0]) for side in ("encoder", "decoder")}
    safetensors.torch.save_file(weights | version, file)
    assert convert(folder, tmp_path / "bundle") == 0
    found, _ = read_bundle_weights(tmp_path / "bundle")
    assert not found["output_bias"].any()


def test_weights_may_be_in_several_files(tiny, folder: Path, tmp_path: Path):
    assert convert(folder, tmp_path / "one") == 0
    (folder / "model.safetensors").unlink()
    tiny.model.save_pretrained(folder, max_shard_size="60KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    assert convert(folder, tmp_path / "several") == 0
    one, _ = read_bundle_weights(tmp_path / "one")
    several, _ = read_bundle_weights(tmp_path / "several")
    assert one.keys() == several.keys()
    assert all(torch.equal(one[name], several[name]) for name in one)
    versions = [read_manifest(tmp_path / name)["version"] for name in ("one", "several")]
    assert versions[0] != versions[1]


def test_refuses_an_index_that_does_not_fit(tiny, folder: Path, capsys):
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    index = folder / "model.safetensors.index.json"
    for table, message in (
        ({}, "has no weight_map"),
        ({"weight_map": {"a": 1}}, "has no weight_map"),
        ({"weight_map": {"a": "../model/model-1.safetensors"}}, "which is outside of its folder"),
        ({"weight_map": {"a": "model-2.safetensors"}}, "has no model-2.safetensors, which"),
    ):
        index.write_text(json.dumps(table), encoding="utf-8")
        assert message in refusal(folder, capsys)
    shutil.copy(folder / "model-1.safetensors", folder / "model-2.safetensors")
    names = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    index.write_text(json.dumps({"weight_map": names}), encoding="utf-8")
    assert "once more" in refusal(folder, capsys)


def test_names_a_file_that_git_lfs_has_left_out(tiny, folder: Path, capsys):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1625222120\n"
    (folder / "model.safetensors").write_text(pointer, encoding="utf-8")
    assert "model.safetensors is a pointer of git-lfs" in refusal(folder, capsys)


def test_pickled_weights_are_read_without_running_code(tiny, tmp_path: Path, capsys):
    pickled = tiny_models.make_tiny_summariser(tiny.kind, tmp_path / "model", safe=False)
    assert (pickled.folder / "pytorch_model.bin").is_file()
    assert convert(pickled.folder, tmp_path / "bundle") == 0
    weights = torch.load(pickled.folder / "pytorch_model.bin", weights_only=True)
    torch.save(weights | {"odd": shutil.rmtree}, pickled.folder / "pytorch_model.bin")
    capsys.readouterr()
    assert convert(pickled.folder, tmp_path / "other") == 1
    assert "pytorch_model.bin cannot be read" in capsys.readouterr().err
