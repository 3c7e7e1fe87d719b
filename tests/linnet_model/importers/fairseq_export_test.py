"""Tests that exported checkpoints equal fairseq's own and are imported again bit for bit."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

import fairseq_oracle as oracle

from linnet_model.bundle import BundleFacts, read_bundle_weights, write_bundle
from linnet_model.config import BundleConfig, ModelConfig, read_recipe
from linnet_model.importers.fairseq import export_fairseq, import_fairseq
from linnet_model.importers.fairseq.checkpoint import read_checkpoint
from linnet_model.importers.fairseq.dictionary import read_dictionary
from linnet_model.importers.fairseq.import_fairseq import read_model
from linnet_model.network.encoder_decoder import EncoderDecoder
from linnet_model.train.checkpoint import Position, save_checkpoint
from linnet_model.train.optim import Average, make_optimizer

LAYOUTS = ("new", "2019")


def imported(name: str, out: Path, dtype: str = "float32") -> Path:
    source, target = oracle.dictionaries(name)
    status = import_fairseq.main(
        [
            *("--checkpoint", str(oracle.checkpoint(name)), "--out", str(out)),
            *("--source-dict", str(source), "--target-dict", str(target), "--dtype", dtype),
        ]
    )
    assert status == 0
    return out


def exported(origin: list[str], out: Path, layout: str) -> Path:
    assert export_fairseq.main([*origin, "--out", str(out), "--layout", layout]) == 0
    return out


def random_bundle(out: Path, **sizes) -> Path:
    """Writes a bundle with random weights and no tokenizer."""
    config = ModelConfig(vocabulary=20, width=8, ffn_width=12, heads=2, weight_dropout=0.0)
    config = dataclasses.replace(config, encoder_kernels=[3, 5], decoder_kernels=[3], **sizes)
    config.check()
    torch.manual_seed(3)
    facts = BundleFacts(version="1")
    bundle = BundleConfig(name="random", max_source_tokens=90, max_target_tokens=80)
    write_bundle(out, EncoderDecoder(config), config, bundle, None, "float32", facts)
    return out


def assert_same_model(one, other) -> None:
    assert one.keys() == other.keys()
    for name, weight in one.items():
        assert torch.equal(weight.float(), other[name].float()), name


def original_kind(name: str, layout: str) -> str | None:
    """The checkpoint of a model in a layout, if there is one."""
    kinds = oracle.MODELS[name]["checkpoints"]
    return next((kind for kind in kinds if (kind == "2019") == (layout == "2019")), None)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", oracle.MODELS)
def test_exported_import_equals_original_checkpoint(tmp_path, name, layout):
    bundle = imported(name, tmp_path / "bundle")
    file = exported(["--bundle", str(bundle)], tmp_path / "out" / "model.pt", layout)
    written = read_checkpoint(file)
    names = oracle.MODELS[name][f"state_dict_{layout}"]
    assert {key: list(weight.shape) for key, weight in written.weights.items()} == names
    if (kind := original_kind(name, layout)) is not None:
        original = read_checkpoint(oracle.checkpoint(name, kind))
        for key, weight in original.weights.items():
            if not key.endswith(("conv_bias", "_float_tensor")):
                assert torch.equal(weight, written.weights[key]), key
        for option, value in written.options.items():
            if option in original.options and option not in ("data", "activation_dropout"):
                assert value == original.options[option], option
    # The dictionaries beside it are copied byte for byte.
    for language, dictionary in zip(("src", "tgt"), oracle.dictionaries(name), strict=True):
        beside = file.parent / f"dict.{language}.txt"
        assert beside.read_bytes() == dictionary.read_bytes()
    first, again = read_model(oracle.checkpoint(name)), read_model(file)
    assert again.facts == first.facts
    assert_same_model(first.model.state_dict(), again.model.state_dict())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "sizes",
    [
        {"sharing": "none", "target_vocabulary": 24, "encoder_mixers": ["light"]},
        {"sharing": "output", "target_vocabulary": 24, "glu": False, "pre_norm": False},
        {"decoder_mixers": ["light"], "positions": "none", "dropout": 0.25, "weight_dropout": 0.2},
        {"encoder_mixers": ["dynamic"], "positions": "learned", "max_positions": 91},
        {"encoder_mixers": ["light"], "weight_softmax": False},
    ],
    ids=lambda sizes: " ".join(map(str, sizes)),
)
def test_native_models_survive_round_trip(tmp_path, sizes, layout):
    bundle = random_bundle(tmp_path / "bundle", **sizes)
    file = exported(["--bundle", str(bundle)], tmp_path / "model.pt", layout)
    weights, config = read_bundle_weights(bundle)
    again = read_model(file)
    if config.positions == "learned":
        options = read_checkpoint(file).options  # fairseq makes tables of so many rows, and two
        assert options["max_source_positions"] == options["max_target_positions"] == 91
    else:  # fairseq does not store it
        config.max_positions = again.facts.config.max_positions
    assert again.facts.config == config
    assert_same_model(weights, dict(again.model.named_parameters()))
    # Without a tokenizer the symbols are fillers.
    for language, rows in (("en", config.vocabulary), ("de", config.target_vocabulary)):
        assert len(read_dictionary(file.parent / f"dict.{language}.txt").symbols) == rows


@pytest.mark.parametrize("layout", LAYOUTS)
def test_native_transformer_survives_round_trip(tmp_path, layout):
    sizes = {"encoder_mixers": ["self_attention"], "decoder_mixers": ["self_attention"]}
    config = ModelConfig(vocabulary=20, width=8, ffn_width=12, heads=2, activation="gelu")
    config = dataclasses.replace(config, encoder_kernels=[0, 0], decoder_kernels=[0], **sizes)
    config = dataclasses.replace(config, scale_embedding=False, max_positions=81)
    config = dataclasses.replace(config, weight_dropout=0.0, relu_dropout=0.1, embedding_norm=True)
    config.check()
    bundle = BundleConfig(name="random", max_source_tokens=90, max_target_tokens=80)
    facts = BundleFacts(version="1")
    model = EncoderDecoder(config)
    write_bundle(tmp_path / "b", model, config, bundle, None, "float32", facts)
    again = read_model(exported(["--bundle", str(tmp_path / "b")], tmp_path / "model.pt", layout))
    assert again.facts.config == config
    assert_same_model(dict(model.named_parameters()), dict(again.model.named_parameters()))


def test_exports_bfloat16_exactly(tmp_path):
    name = "light-noglu-prenorm-untied"
    bundle = imported(name, tmp_path / "bundle", "bfloat16")
    file = exported(["--bundle", str(bundle)], tmp_path / "model.pt", "new")
    weights, _ = read_bundle_weights(bundle)
    assert all(torch.equal(weight, weight.bfloat16().float()) for weight in weights.values())
    again = dict(read_model(file).model.named_parameters())
    assert_same_model(weights, again)


def test_exports_run_with_pieces_of_its_tokenizer(tmp_path, recipe_file, tokenizer_file, tokenizer):
    recipe = read_recipe(recipe_file)
    torch.manual_seed(5)
    model = EncoderDecoder(recipe.model)
    run = tmp_path / "run"
    run.mkdir()
    (run / "source.spm").write_bytes(tokenizer_file.read_bytes())
    optimizer = make_optimizer(model, recipe.train)
    save_checkpoint(run, recipe, model, Average(model, 0.5), optimizer, Position(update=1), 3)
    file = exported(["--run", str(run)], tmp_path / "out" / "model.pt", "new")
    assert_same_model(
        dict(model.named_parameters()), dict(read_model(file).model.named_parameters())
    )
    dictionary = read_dictionary(tmp_path / "out" / "dict.en.txt")
    pieces = [tokenizer.id_to_piece(i) for i in range(tokenizer.get_piece_size())]
    assert dictionary.symbols == pieces
    # Import it again with that tokenizer.
    arguments = ["--checkpoint", str(file), "--out", str(tmp_path / "again")]
    arguments += ["--source-dict", str(tmp_path / "out" / "dict.en.txt")]
    arguments += ["--target-dict", str(tmp_path / "out" / "dict.de.txt")]
    assert import_fairseq.main([*arguments, "--sentencepiece", str(tokenizer_file)]) == 0
    assert (tmp_path / "again" / "source.vocab").read_text().split("\n")[:-1] == pieces


@pytest.mark.parametrize(
    ("name", "notes"),
    [
        ("en-de", ["note: the model reads a text in capitals as <ph7> and the text in lower case"]),
        (
            "en-summary",
            ["note: the model reads tokens of languages or styles around a text, which"],
        ),
    ],
)
def test_says_what_fairseq_does_not_do_with_a_text(tmp_path, capsys, name, notes):
    bundle = Path(__file__).resolve().parents[3] / "model" / "bundles" / name
    exported(["--bundle", str(bundle)], tmp_path / "model.pt", "new")
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]
    assert len(said) == len(notes)
    assert all(line.startswith(note) for line, note in zip(said, notes, strict=True))


def test_a_plain_model_is_exported_without_notes(tmp_path, capsys):
    exported(["--bundle", str(random_bundle(tmp_path / "b"))], tmp_path / "model.pt", "new")
    assert "note: " not in capsys.readouterr().out


@pytest.mark.parametrize("layout", LAYOUTS)
def test_exported_pickle_names_only_namespace(tmp_path, layout):
    bundle = random_bundle(tmp_path / "bundle")
    file = exported(["--bundle", str(bundle)], tmp_path / "model.pt", layout)
    assert (file.read_bytes()[:2] == b"PK") == (layout == "new")
    with torch.serialization.safe_globals([argparse.Namespace]):
        content = torch.load(file, weights_only=True)
    options = content["args"] if layout == "2019" else content["cfg"]["model"]
    assert isinstance(options, argparse.Namespace)
    assert options.encoder_kernel_size_list == [3, 5]
    weights = content["model"]
    embedding = weights["encoder.embed_tokens.weight"]
    assert weights["decoder.embed_tokens.weight"].data_ptr() == embedding.data_ptr()


def test_files_of_another_model_are_not_replaced(tmp_path, capsys):
    origin = ["--bundle", str(random_bundle(tmp_path / "bundle"))]
    out = tmp_path / "out" / "model.pt"
    for _ in range(2):  # of the same model it may
        before = exported(origin, out, "new").read_bytes()
    dictionary = tmp_path / "out" / "dict.de.txt"
    dictionary.write_text("another 1\n")
    assert export_fairseq.main([*origin, "--out", str(out), "--layout", "2019"]) == 1
    said = f"{dictionary} is the dictionary of another model, choose another folder for --out"
    assert said in capsys.readouterr().err
    assert (out.read_bytes(), dictionary.read_text()) == (before, "another 1\n")
    assert export_fairseq.main([*origin, "--out", str(tmp_path / "my.tsv")]) == 1
    assert f"--out is {tmp_path / 'my.tsv'}, must be a FILE.pt" in capsys.readouterr().err
    assert not (tmp_path / "my.tsv").exists()
    model = tmp_path / "bundle" / "model.pt"
    assert export_fairseq.main([*origin, "--out", str(model)]) == 1
    assert f"--out is {model}, in the folder of a bundle: choose" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"encoder_mixers": ["depthwise"]}, "layers of depthwise, dynamic do not make a model"),
        ({"decoder_mixers": ["csan_1d"]}, "layers of csan_1d, dynamic do not make a model"),
        ({"encoder_mixers": ["dynamic", "light"]}, "layers of dynamic, light do not make a model"),
        ({"decoder_mixers": ["self_attention"]}, "layers of dynamic, self_attention do not"),
        ({"output_bias": True}, "model.output_bias is true, fairseq has none"),
        ({"first_position": 0}, "model.positions 'sinusoidal' from 0 on"),
        ({"positions": "sinusoidal_marian"}, "model.positions 'sinusoidal_marian' from 2 on"),
        ({"activation": "swish"}, "model.activation is 'swish'"),
        ({"scale_embedding": False}, "model.scale_embedding False"),
        ({"embedding_norm": True}, "model.embedding_norm is true"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_refuses_model_that_fairseq_lacks(tmp_path, capsys, sizes, message):
    bundle = random_bundle(tmp_path / "bundle", **sizes)
    out = tmp_path / "model.pt"
    assert export_fairseq.main(["--bundle", str(bundle), "--out", str(out)]) == 1
    assert message in capsys.readouterr().err
    assert not out.exists()
