"""Tests of bundles: a saved bundle loads unchanged, and damage is detected."""

import json
from pathlib import Path

import pytest
import torch

from linnet_model.bundle import (
    BundleFacts,
    SpecialIds,
    TokenizerFiles,
    add_shortlist,
    load_module,
    read_bundle_weights,
    read_manifest,
    write_bundle,
)
from linnet_model.config import BundleConfig, ConfigError, ModelConfig
from linnet_model.export.random_bundle import main, random_bundle
from linnet_model.languages import LanguageTokens
from linnet_model.network.encoder_decoder import EOS, EncoderDecoder
from linnet_model.network.presets import preset
from linnet_model.stored_weights import restore, store

PROTO = Path(__file__).resolve().parents[2] / "proto" / "linnet" / "v1" / "bundle.proto"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bundle") / "tiny"
    random_bundle(out, "tiny", 400, seed=3, tokenizer=True)
    return out


def fields(message: str) -> set[str]:
    """Returns the names of the fields of a message of bundle.proto."""
    body = PROTO.read_text().split(f"message {message} {{")[1].split("\n}")[0]
    lines = [line.strip() for line in body.splitlines() if not line.strip().startswith("//")]
    return {line.split("=")[0].split()[-1] for line in lines if "=" in line}


def test_manifest_has_every_proto_field(tmp_path: Path):
    """Uses every optional field: vocabularies, codes, word tokenizer, capitals mark, start token,
    two vocabulary sizes, a style, and a shortlist."""
    codes = tmp_path / "codes"
    codes.write_text("#version: 0.2\n")
    files = TokenizerFiles(
        codes,
        source_vocabulary=["a"],
        target_vocabulary=["b"],
        bpe_codes=True,
        moses=True,
        capitals_mark="<ph0>",
        text_grammar=True,
        placeholders=["<ph1>"],
    )
    sizes = preset("tiny", 60)
    sizes.sharing, sizes.target_vocabulary = "none", 50
    write_bundle(
        tmp_path,
        EncoderDecoder(sizes),
        sizes,
        BundleConfig(name="x"),
        files,
        "bfloat16",
        BundleFacts(version="1"),
        SpecialIds(start=1),
        languages=[LanguageTokens("en", "de", (4,), (5,), (6,), style="title")],
        control_ids=[7],
    )
    add_shortlist(tmp_path, [1], {}, by_default=True)
    manifest = read_manifest(tmp_path)
    assert set(manifest) == fields("BundleManifest")
    by_hand = {"alignment_layer"}  # set by hand if the default layer is not the best
    assert set(manifest["architecture"]) == fields("Architecture") - by_hand
    assert set(manifest["vocabulary"]) == fields("Vocabulary")
    assert set(manifest["limits"]) == fields("BundleLimits")
    imported = {"repetition_penalty"}  # set by folders that are imported, and by no recipe
    assert set(manifest["default_options"]) == fields("DecodingDefaults") - imported
    assert set(manifest["files"][0]) == fields("BundleFile")
    assert set(manifest["languages"][0]) == fields("LanguageTokens")


@pytest.mark.parametrize("name", ["", "En", "a b", ".a", "a/b", "a" * 65])
def test_refuses_invalid_bundle_names(name: str):
    with pytest.raises(ConfigError, match="must be 1 to 64 lower-case letters"):
        BundleConfig(name=name).check()
    BundleConfig(name="opus-mt_en.de2").check()


def test_manifest_lists_sizes_and_sums(bundle: Path):
    listed = {entry["name"]: entry["bytes"] for entry in read_manifest(bundle)["files"]}
    assert listed == {
        "model.pt": (bundle / "model.pt").stat().st_size,
        "source.spm": (bundle / "source.spm").stat().st_size,
    }


def test_weights_survive_round_trip(bundle: Path):
    weights, sizes = read_bundle_weights(bundle)
    assert sizes == preset("tiny", 400)
    torch.manual_seed(3)
    original = EncoderDecoder(sizes)
    assert set(weights) == set(original.state_dict())
    for name, value in original.state_dict().items():
        assert torch.equal(weights[name], value.to(torch.bfloat16).float())


def rounded_to_int8(value: torch.Tensor) -> torch.Tensor:
    scale = value.abs().amax(1, keepdim=True) / 127
    return (value / scale).round() * scale


def test_int8_rounds_matrices_and_keeps_vectors(tmp_path: Path):
    random_bundle(tmp_path / "int8", "tiny", 4000, seed=3, weight_type="int8")
    random_bundle(tmp_path / "float32", "tiny", 4000, seed=3, weight_type="float32")
    stored, exact = (read_bundle_weights(tmp_path / name)[0] for name in ("int8", "float32"))
    assert read_manifest(tmp_path / "int8")["architecture"]["weight_type"] == "int8"
    assert set(stored) == set(exact)
    for name, value in exact.items():
        assert stored[name].dtype == torch.float32
        if value.dim() == 1 or name.endswith("conv.weight"):
            assert torch.equal(stored[name], value), name
        elif name.endswith(("embed_source.weight", "fc1.weight")):
            torch.testing.assert_close(stored[name], rounded_to_int8(value))
    sizes = [(tmp_path / name / "model.pt").stat().st_size for name in ("int8", "float32")]
    assert sizes[0] < 0.5 * sizes[1]  # a quarter, and the code


@pytest.mark.parametrize("weight_type", ["float32", "bfloat16", "int8"])
def test_saved_module_equals_model(tmp_path: Path, weight_type: str):
    sizes = preset("tiny", 60)
    torch.manual_seed(1)
    model = EncoderDecoder(sizes).eval()
    config = BundleConfig(name="x")
    write_bundle(tmp_path, model, sizes, config, None, weight_type, BundleFacts(version="1"))
    store(model, weight_type)
    restore(model)
    module = load_module(tmp_path / "model.pt")
    source, lengths = torch.randint(4, 60, (2, 5)), torch.tensor([5, 3], dtype=torch.int32)
    rows = torch.arange(2, dtype=torch.int32).unsqueeze(1)
    with torch.no_grad():
        memory = model.encode(source, lengths)
        for a, b in zip(module.encode(source, lengths), memory, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
        steps = [
            m.step(
                torch.tensor([EOS, EOS]),
                torch.zeros(2, dtype=torch.int32),
                rows.repeat(1, 5),
                rows,
                lengths,
                memory,
                m.new_state(2),
            )
            for m in (module, model)
        ]
    torch.testing.assert_close(steps[0], steps[1], rtol=1e-5, atol=1e-5)


def test_stores_shared_weights_once(tmp_path: Path):
    sizes = preset("tiny", 20_000)
    write_bundle(
        tmp_path,
        EncoderDecoder(sizes),
        sizes,
        BundleConfig(name="x"),
        None,
        "bfloat16",
        BundleFacts(version="1"),
    )
    # The embedding has 1.28 MB; two copies of it exceed the limit.
    assert (tmp_path / "model.pt").stat().st_size < 2_000_000


def test_same_seed_gives_same_weights(tmp_path: Path, bundle: Path):
    random_bundle(tmp_path / "again", "tiny", 400, seed=3)
    random_bundle(tmp_path / "other", "tiny", 400, seed=4)
    first, again, other = (
        read_bundle_weights(path)[0] for path in (bundle, tmp_path / "again", tmp_path / "other")
    )
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["embed_source.weight"], other["embed_source.weight"])


def test_names_damaged_files(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"no bundle at .* it has no manifest.json"):
        read_manifest(tmp_path)
    random_bundle(tmp_path, "tiny", 60, seed=1)
    whole = (tmp_path / "model.pt").read_bytes()
    (tmp_path / "model.pt").write_bytes(whole[:-1])
    with pytest.raises(ConfigError, match=rf"has {len(whole) - 1} bytes, its manifest says"):
        read_manifest(tmp_path)
    (tmp_path / "model.pt").write_bytes(whole[:-1] + b"?")
    with pytest.raises(ConfigError, match="does not have the sha256"):
        read_manifest(tmp_path)
    (tmp_path / "model.pt").unlink()
    with pytest.raises(ConfigError, match=r"lists model.pt, which is missing"):
        read_manifest(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "schema_version": 2}))
    with pytest.raises(ConfigError, match="has schema version 2, this reads 1"):
        read_manifest(tmp_path)


def test_command_prints_parameter_count(tmp_path: Path, capsys):
    assert main(["--preset", "tiny", "--vocab", "60", "--seed", "1", "--out", str(tmp_path)]) == 0
    sizes = ModelConfig(**vars(preset("tiny", 60)))
    count = sum(p.numel() for p in EncoderDecoder(sizes).parameters())
    assert f"{count:,} parameters" in capsys.readouterr().out


def test_random_bundle_has_requested_limits(tmp_path: Path):
    asked = ["--preset", "tiny", "--vocab", "60", "--out", str(tmp_path)]
    for mixer in ("dynamic", "self_attention"):
        limits = ["--max-source-tokens", "4096", "--max-target-tokens", "16"]
        assert main([*asked, "--mixer", mixer, *limits]) == 0
        manifest = read_manifest(tmp_path)
        assert manifest["limits"] == {"max_source_tokens": 4096, "max_target_tokens": 16}
        assert manifest["default_options"]["max_target_tokens"] <= 16


def test_random_bundle_is_named_by_preset_or_flag(tmp_path: Path):
    asked = ["--preset", "tiny", "--vocab", "60", "--out", str(tmp_path)]
    assert main(asked) == 0
    assert read_manifest(tmp_path)["name"] == "random-tiny"
    assert main([*asked, "--name", "en-de"]) == 0
    assert read_manifest(tmp_path)["name"] == "en-de"
