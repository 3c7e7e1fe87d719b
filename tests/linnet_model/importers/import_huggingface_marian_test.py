"""Tests that imported Marian models compute the same as in Hugging Face's transformers."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
import safetensors.torch
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

import tiny_marian as marian
from tiny_multilingual import add_targets
from transformers_logits import compare_logits

from linnet_model.bundle import load_module, read_bundle_weights, read_manifest
from linnet_model.importers.huggingface_marian.import_huggingface_marian import main


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> marian.TinyMarian:
    return marian.make_tiny_marian(tmp_path_factory.mktemp("marian") / "shared")


@pytest.fixture
def folder(tiny: marian.TinyMarian, tmp_path: Path) -> Path:
    """Copies the folder, so that a test can damage it."""
    return Path(shutil.copytree(tiny.folder, tmp_path / "model"))


def convert(folder: Path, out: Path, *more: str) -> int:
    languages = ["--source-language", "en", "--target-language", "de"]
    return main(["--model", str(folder), "--out", str(out), *languages, *more])


def compare_with_transformers(tiny: marian.TinyMarian, bundle: Path) -> None:
    rows = tiny.model.final_logits_bias.size(1)
    compare_logits(tiny.model, bundle, (2, tiny.config.vocab_size - 1), (2, rows - 1), spread=1)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation_function": "relu", "scale_embedding": False},
        {"activation_function": "gelu", "tie_word_embeddings": False},
        {"separate": True, "seed": 5},
        {"separate": True, "tie_word_embeddings": False},
    ],
    ids=lambda changes: ", ".join(changes) or "as OPUS-MT",
)
def test_logits_equal_transformers(changes: dict, tmp_path: Path):
    tiny = marian.make_tiny_marian(tmp_path / "model", **changes)
    assert convert(tiny.folder, tmp_path / "bundle") == 0
    compare_with_transformers(tiny, tmp_path / "bundle")


def test_manifest_has_values_of_configuration(tiny: marian.TinyMarian, tmp_path: Path):
    assert convert(tiny.folder, tmp_path, "--license", "none") == 0
    manifest, rows = read_manifest(tmp_path), tiny.config.vocab_size
    assert manifest["name"] == "en-de"
    assert manifest["license"] == "none"
    assert manifest["vocabulary"] == {
        "size": rows,
        "bos_id": 0,
        "pad_id": rows - 1,
        "eos_id": 0,
        "unk_id": 1,
        "start_id": rows - 1,
    }
    # max_length includes the start token and the end token.
    maximum = marian.MAX_LENGTH - 2
    assert manifest["limits"] == {"max_source_tokens": 40, "max_target_tokens": maximum}
    options = manifest["default_options"]
    assert options["beam_size"] == 3
    assert options["no_repeat_ngram_size"] == 2
    assert options["min_target_tokens"] == 0
    assert options["max_target_tokens"] == maximum
    assert manifest["architecture"]["weight_type"] == "float32"
    assert manifest["architecture"]["decoder_mixers"] == ["self_attention"] * 3
    parameters = sum(p.numel() for p in tiny.model.parameters())
    positions = 2 * tiny.config.max_position_embeddings * tiny.config.d_model
    assert manifest["architecture"]["parameters"] == parameters - positions + rows  # the bias


def test_vocabulary_files_have_ids_of_model(tiny: marian.TinyMarian, tmp_path: Path):
    assert convert(tiny.folder, tmp_path) == 0
    manifest = read_manifest(tmp_path)
    numbers = json.loads((tiny.folder / "vocab.json").read_text(encoding="utf-8"))
    for side in ("source", "target"):
        text = (tmp_path / manifest[f"{side}_vocabulary_file"]).read_text(encoding="utf-8")
        assert {piece: i for i, piece in enumerate(text.split("\n")[:-1])} == numbers
        assert (tmp_path / manifest[f"{side}_tokenizer_file"]).read_bytes() == (
            tiny.folder / f"{side}.spm"
        ).read_bytes()


def test_both_weight_formats_give_same_bundle(tiny: marian.TinyMarian, tmp_path: Path):
    pickled = marian.make_tiny_marian(tmp_path / "model", safe=False)
    assert (pickled.folder / "pytorch_model.bin").is_file()
    assert not (pickled.folder / "model.safetensors").exists()
    assert convert(tiny.folder, tmp_path / "one") == 0
    assert convert(pickled.folder, tmp_path / "two") == 0
    one, two = (read_bundle_weights(tmp_path / name)[0] for name in ("one", "two"))
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_accepts_copies_and_position_tables(tiny: marian.TinyMarian, folder: Path, tmp_path: Path):
    (folder / "model.safetensors").unlink()
    weights = {name: tensor.half() for name, tensor in tiny.model.state_dict().items()}
    assert "model.encoder.embed_positions.weight" in weights
    assert "lm_head.weight" in weights
    torch.save(weights, folder / "pytorch_model.bin")
    assert convert(folder, tmp_path / "bundle", "--dtype", "bfloat16") == 0
    assert read_manifest(tmp_path / "bundle")["architecture"]["weight_type"] == "bfloat16"
    module = load_module(tmp_path / "bundle" / "model.pt")
    expected = tiny.model.model.shared.weight.half().to(torch.bfloat16).float()
    assert torch.equal(module.embed_source.weight, expected)


def test_reads_search_settings_from_configuration(folder: Path, tmp_path: Path):
    (folder / "generation_config.json").unlink()
    change(folder, "config.json", max_length=12, num_beams=6, bad_words_ids=None)
    assert convert(folder, tmp_path / "bundle", "--name", "old") == 0
    manifest = read_manifest(tmp_path / "bundle")
    assert manifest["name"] == "old"
    assert manifest["limits"]["max_target_tokens"] == 10
    assert manifest["default_options"]["beam_size"] == 6


@pytest.fixture
def several(tiny: marian.TinyMarian, tmp_path: Path) -> Path:
    """A folder with several target languages."""
    folder = Path(shutil.copytree(tiny.folder, tmp_path / "several"))
    add_targets(marian.TinyMarian(folder, tiny.model, tiny.tokenizer))
    return folder


def convert_to(folder: Path, out: Path, sources: list[str], targets: list[str]) -> int:
    words = ["--model", str(folder), "--out", str(out)]
    words += [word for source in sources for word in ("--source-language", source)]
    return main(words + [word for target in targets for word in ("--target-language", target)])


def test_names_every_target_language_by_its_tag(several: Path, tmp_path: Path):
    targets = ["nl=nld", "zh-Hant=cmn_Hant"]
    assert convert_to(several, tmp_path / "bundle", ["en", "nl"], targets) == 0
    manifest = read_manifest(tmp_path / "bundle")
    assert manifest["name"] == "mul-mul"
    numbers = json.loads((several / "vocab.json").read_text(encoding="utf-8"))
    pair = {"source_language_code": "en", "target_language_code": "nl"}
    assert manifest["languages"] == [
        pair | {"before_source_ids": [numbers[">>nld<<"]]},
        pair | {"target_language_code": "zh-Hant", "before_source_ids": [numbers[">>cmn_Hant<<"]]},
        {
            "source_language_code": "nl",
            "target_language_code": "zh-Hant",
            "before_source_ids": [numbers[">>cmn_Hant<<"]],
        },
    ]
    assert manifest["control_ids"] == sorted(
        number for piece, number in numbers.items() if piece.startswith(">>")
    )
    assert manifest["source_language_code"] == "en"
    assert manifest["target_language_code"] == "nl"
    card = (tmp_path / "bundle" / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "Translates from en, nl to nl, zh-Hant." in card


def test_several_sources_without_tags_are_pairs(tiny: marian.TinyMarian, tmp_path: Path):
    assert convert_to(tiny.folder, tmp_path / "bundle", ["fr", "it"], ["de"]) == 0
    manifest = read_manifest(tmp_path / "bundle")
    assert manifest["name"] == "mul-de"
    assert manifest["languages"] == [
        {"source_language_code": source, "target_language_code": "de"} for source in ("fr", "it")
    ]


@pytest.mark.parametrize(
    ("sources", "targets", "message"),
    [
        (
            ["en"],
            ["de"],
            "names target languages, but not 'de' for 'de': it has cmn_Hant, deu, nld",
        ),
        (["en"], ["de=ger"], "not 'ger' for 'de'"),
        (["en", "en"], ["de=deu"], "--source-language names a language twice"),
        (["en"], ["de=deu", "de=nld"], "--target-language names 'de' twice"),
        (["de"], ["de=deu"], "no language pair is left of de to de"),
    ],
)
def test_never_guesses_the_tag_of_a_language(
    several: Path, tmp_path: Path, capsys, sources, targets, message
):
    assert convert_to(several, tmp_path / "refused", sources, targets) == 1
    assert message in capsys.readouterr().err


def test_refuses_tags_of_a_model_that_has_none(tiny: marian.TinyMarian, tmp_path: Path, capsys):
    assert convert_to(tiny.folder, tmp_path / "refused", ["en"], ["de=deu"]) == 1
    assert "names no target languages, but de=deu is given" in capsys.readouterr().err
    assert convert_to(tiny.folder, tmp_path / "refused", ["en"], ["de", "fr"]) == 1
    assert "so the model has one, but de, fr are given" in capsys.readouterr().err


def change(folder: Path, file: str, **values) -> None:
    table = json.loads((folder / file).read_text(encoding="utf-8"))
    (folder / file).write_text(json.dumps(table | values), encoding="utf-8")


def change_weights(folder: Path, changed) -> None:
    file = folder / "model.safetensors"
    weights = safetensors.torch.load_file(file)
    changed(weights)
    safetensors.torch.save_file(weights, file)


def refusal(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    out = folder.parent / "refused"
    assert convert(folder, out, *more) == 1
    assert not (out / "manifest.json").exists()
    return capsys.readouterr().err


@pytest.mark.parametrize("name", ["config.json", "source.spm", "target.spm", "vocab.json"])
def test_names_missing_files(folder: Path, capsys, name: str):
    (folder / name).unlink()
    assert f"has no {name}" in refusal(folder, capsys)


def test_names_missing_weights(folder: Path, capsys):
    (folder / "model.safetensors").unlink()
    assert "has no model.safetensors and no pytorch_model.bin" in refusal(folder, capsys)
    assert "no folder at" in refusal(folder / "nowhere", capsys)


@pytest.mark.parametrize(
    ("file", "key", "value", "message"),
    [
        ("config.json", "normalize_embedding", True, "normalize_embedding true, supported is only"),
        ("config.json", "normalize_before", True, "normalize_before true, supported is only"),
        ("config.json", "add_final_layer_norm", True, "add_final_layer_norm true"),
        ("config.json", "static_position_embeddings", False, "static_position_embeddings false"),
        ("config.json", "model_type", "bart", 'model_type "bart", this reads marian'),
        ("config.json", "activation_function", "tanh", 'activation_function "tanh", known are'),
        ("config.json", "activation_function", ["relu"], 'activation_function ["relu"], known are'),
        ("config.json", "decoder_ffn_dim", 64, "encoder_ffn_dim 48 and decoder_ffn_dim 64"),
        ("config.json", "decoder_attention_heads", 8, "decoder_attention_heads 8"),
        ("config.json", "decoder_vocab_size", 99, "decoder_vocab_size 99, though"),
        ("config.json", "pad_token_id", 4000, "pad_token_id 4000, the smaller vocabulary has"),
        ("config.json", "d_model", "32", 'd_model "32", it must be an integer'),
        ("config.json", "d_model", 2**31, "d_model 2147483648, it must be an integer from 4 to"),
        ("config.json", "encoder_layers", 10**30, "it must be an integer from 1 to 256"),
        ("config.json", "decoder_layers", 257, "decoder_layers 257, it must be an integer from 1"),
        ("config.json", "vocab_size", 2**24 + 1, "vocab_size 16777217, it must be an integer from"),
        ("config.json", "decoder_vocab_size", 2**63, "from 5 to 16777216"),
        ("config.json", "encoder_ffn_dim", 2**16 + 1, "from 1 to 65536"),
        ("config.json", "encoder_attention_heads", 2**63, "from 1 to 16384"),
        ("config.json", "max_position_embeddings", 2**20 + 1, "from 2 to 1048576"),
        ("config.json", "eos_token_id", 2**63, "eos_token_id 9223372036854775808, it must be"),
        ("generation_config.json", "max_length", 2**63, "from 3 to 1048576"),
        ("generation_config.json", "min_length", 2**63, "from 0 to 1048576"),
        ("generation_config.json", "no_repeat_ngram_size", 2**31, "from 0 to 1048576"),
        ("config.json", "mystery", 1, "unknown keys, which would be ignored: mystery"),
        ("generation_config.json", "enigma", 1, "would be ignored: enigma"),
        ("generation_config.json", "guidance_scale", 1.3, "guidance_scale 1.3, supported"),
        ("generation_config.json", "do_sample", True, "do_sample true, supported"),
        (
            "generation_config.json",
            "bad_words_ids",
            [[5]],
            "bad_words_ids [[5]], supported is only the padding",
        ),
        ("generation_config.json", "eos_token_id", 3, "eos_token_id 3 and config.json 0"),
        (
            "generation_config.json",
            "num_beams",
            64,
            "num_beams 64, it must be an integer from 1 to 32",
        ),
        ("generation_config.json", "min_length", 50, "min_length 50"),
    ],
)
def test_refuses_unsupported_value_by_name(
    folder: Path, capsys, file: str, key: str, value, message: str
):
    change(folder, file, **{key: value})
    told = refusal(folder, capsys)
    assert message in told
    assert file in told


def test_sizes_without_weights_allocate_no_memory(folder: Path, capsys):
    """The largest sizes together ask for 1 TB."""
    change(folder, "config.json", d_model=2**14, vocab_size=2**24, decoder_vocab_size=2**24)
    assert "final_logits_bias has shape" in refusal(folder, capsys)
    safetensors.torch.save_file({"more": torch.ones(1)}, folder / "model.safetensors")
    assert "lacks weights: final_logits_bias, model.shared.weight" in refusal(folder, capsys)


def test_refuses_unexpected_weights(folder: Path, capsys):
    name = "model.encoder.layers.1.fc1.weight"
    whole = (folder / "model.safetensors").read_bytes()
    for changed, message in (
        (lambda w: w.pop(name), f"lacks weights: {name}"),
        (lambda w: w.update(odd=torch.ones(2), more=torch.ones(1)), "unknown weights: more, odd"),
        (lambda w: w.update({name: torch.ones(3, 2)}), f"{name} has shape [3, 2]"),
        (lambda w: w[name].view(-1)[:2].fill_(float("nan")), f"{name} has 2 of 1536 values"),
        (
            lambda w: w.update({name: torch.ones(48, 32).int()}),
            f"{name} is not a tensor of floating",
        ),
        (
            lambda w: w.update({"lm_head.weight": w["model.shared.weight"] + 1}),
            "lm_head.weight differs from",
        ),
        (
            lambda w: w.update({"model.decoder.embed_positions.weight": torch.rand(40, 32)}),
            "learned positions are not imported",
        ),
    ):
        change_weights(folder, changed)
        assert message in refusal(folder, capsys)
        (folder / "model.safetensors").write_bytes(whole)
    (folder / "model.safetensors").write_bytes(whole[:100])
    assert "model.safetensors cannot be read" in refusal(folder, capsys)


def test_refuses_damaged_sentencepiece_models(folder: Path, capsys):
    whole = (folder / "target.spm").read_bytes()
    for damaged, message in (
        (whole[: len(whole) // 2], "target.spm is no SentencePiece model"),
        (b"", "target.spm is no SentencePiece model: it is empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", "target.spm is a pointer of git-lfs"),
    ):
        (folder / "target.spm").write_bytes(damaged)
        assert message in refusal(folder, capsys)


def test_a_null_length_penalty_is_the_default(folder: Path, tmp_path: Path):
    change(folder, "generation_config.json", length_penalty=None)
    assert convert(folder, tmp_path / "bundle") == 0
    manifest = read_manifest(tmp_path / "bundle")
    assert manifest["default_options"]["length_penalty"] == 1.0


def test_does_not_execute_pickled_code(folder: Path, capsys, tmp_path: Path):
    class Trap:
        def __reduce__(self):
            return Path.touch, (tmp_path / "sprung",)

    (folder / "model.safetensors").unlink()
    torch.save({"final_logits_bias": Trap()}, folder / "pytorch_model.bin")
    assert "pytorch_model.bin cannot be read" in refusal(folder, capsys)
    assert not (tmp_path / "sprung").exists()


def test_refuses_pickles_that_ask_for_more_than_they_hold(folder: Path, capsys):
    (folder / "model.safetensors").unlink()
    file = folder / "pytorch_model.bin"
    torch.save({"final_logits_bias": torch.zeros(1, 1).expand(2**22, 2**10)}, file)
    assert "has the shape [4194304, 1024] and 4 bytes" in refusal(folder, capsys)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(1000))
    assert "has the compressed entry 'archive/data.pkl'" in refusal(folder, capsys)
    torch.save([torch.ones(1)], file)
    assert "holds a list, not tensors by name" in refusal(folder, capsys)


def test_refuses_added_tokens(folder: Path, tmp_path: Path, capsys):
    special = {"0": {"content": "</s>"}}
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    assert vocabulary["</s>"] == 0
    (folder / "tokenizer_config.json").write_text("{}", encoding="utf-8")
    change(folder, "tokenizer_config.json", added_tokens_decoder=special)
    assert convert(folder, tmp_path / "whole") == 0
    added = special | {str(len(vocabulary)): {"content": "<hl>"}}
    change(folder, "tokenizer_config.json", added_tokens_decoder=added)
    assert "has the added token '<hl>' with the id" in refusal(folder, capsys)


def test_refuses_numbers_that_json_cannot_hold(folder: Path, capsys):
    file = folder / "config.json"
    file.write_text(file.read_text().replace("{", '{"extra": ' + "1" * 5000 + ",", 1))
    assert "config.json is not JSON" in refusal(folder, capsys)


def test_refuses_vocabulary_that_does_not_fit(folder: Path, capsys):
    file = folder / "vocab.json"
    whole = json.loads(file.read_text(encoding="utf-8"))
    rows = len(whole)

    def told(table: dict) -> str:
        file.write_text(json.dumps(table), encoding="utf-8")
        return refusal(folder, capsys)

    assert f"has {rows + 1} pieces, the model's table {rows} rows" in told(whole | {"x": rows})
    assert "ids must be dense" in told(whole | {"x": rows + 7})
    assert "the same id 5" in told(whole | {"x": 5})
    assert "the id 'five'" in told(whole | {"x": "five"})
    assert "must not contain line breaks" in told(whole | {"a\nb": rows})
    assert "gives '</s>' the id 1, the model has 0" in told(whole | {"</s>": 1, "<unk>": 0})
    without = {"x" if piece == "<unk>" else piece: i for piece, i in whole.items()}
    assert "has no '<unk>'" in told(without)
    languages = {">>deu<<" if i == 7 else piece: i for piece, i in whole.items()}
    assert "names target languages, but not 'de' for 'de': it has deu;" in told(languages)
    file.write_text('{"a": 0, "a": 1}', encoding="utf-8")
    assert "has 'a' twice" in refusal(folder, capsys)
    file.write_text("[1", encoding="utf-8")
    assert "is not JSON" in refusal(folder, capsys)


def test_refuses_invalid_bundle_name(folder: Path, capsys):
    told = refusal(folder, capsys, "--name", "En De")
    assert 'bundle.name "En De" must be 1 to 64 lower-case letters, digits' in told
