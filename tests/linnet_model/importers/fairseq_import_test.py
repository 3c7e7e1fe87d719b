"""Tests of the fairseq importer: it writes a bundle or names the reason for refusal."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

import fairseq_oracle as oracle

from linnet_model.bundle import load_module, read_bundle_weights, read_manifest
from linnet_model.config import ConfigError
from linnet_model.importers.fairseq import import_fairseq
from linnet_model.importers.fairseq.checkpoint import read_checkpoint
from linnet_model.importers.fairseq.dictionary import dictionary_bytes, read_dictionary
from linnet_model.importers.fairseq.import_fairseq import read_model

DYNAMIC, LIGHT = "dyn-glu-postnorm-tied", "light-noglu-prenorm-untied"
MIXED, TRANSFORMER = "light-encoder-dyn-decoder-untied", "transformer-postnorm-tied"


def changed(tmp_path: Path, name: str, options: dict | None = None, weights=None) -> Path:
    """Copies the model of 2019 with other options; `weights` changes its weights."""
    read = read_checkpoint(oracle.checkpoint(name))
    if weights is not None:
        weights(read.weights)
    path = tmp_path / "changed.pt"
    args = argparse.Namespace(**(read.options | (options or {})))
    torch.save({"args": args, "model": read.weights}, path)
    return path


def command(name: str, out: Path, *more: str, checkpoint: Path | None = None) -> list[str]:
    source, target = oracle.dictionaries(name)
    return [
        *("--checkpoint", str(checkpoint or oracle.checkpoint(name))),
        *("--source-dict", str(source), "--target-dict", str(target), "--out", str(out)),
        *("--source-language", "de", "--target-language", "en", *more),
    ]


# Weights.


def test_lists_unknown_weights(tmp_path):
    def add(weights):
        weights["encoder.layers.0.conv.gate.weight"] = torch.ones(3)
        weights["decoder.adaptive_softmax.head.weight"] = torch.ones(3)

    with pytest.raises(
        ConfigError,
        match=r"changed\.pt: weights that are unknown: decoder\.adaptive_softmax\.head\.weight, "
        r"encoder\.layers\.0\.conv\.gate\.weight$",
    ):
        read_model(changed(tmp_path, DYNAMIC, weights=add))


def test_lists_missing_weights(tmp_path):
    def remove(weights):
        del weights["decoder.layers.1.encoder_attn.out_proj.bias"]
        del weights["encoder.layer_norm.weight"]

    with pytest.raises(
        ConfigError,
        match=r"are missing: decoder\.layers\.1\.encoder_attn\.out_proj\.bias, "
        r"encoder\.layer_norm\.weight$",
    ):
        read_model(changed(tmp_path, LIGHT, weights=remove))


@pytest.mark.parametrize("name", [DYNAMIC, TRANSFORMER])
@pytest.mark.parametrize("number", ["99999999999999", "9" * 5000])
def test_refuses_layer_far_beyond_the_others(tmp_path, name, number):
    def add(weights):
        weights[f"decoder.layers.{number}.fc1.weight"] = torch.ones(3)

    with pytest.raises(
        ConfigError, match=r"decoder_layers is (\d), the weights have (?!\1)\d layers"
    ):
        read_model(changed(tmp_path, name, weights=add))


def test_refuses_layer_of_another_size(tmp_path):
    def cut(weights):
        weights["encoder.layers.1.fc1.weight"] = weights["encoder.layers.1.fc1.weight"][:8]

    with pytest.raises(ConfigError, match=r"encoder\.1\.ffn\.fc1\.weight has the shape \[8, 64\]"):
        read_model(changed(tmp_path, DYNAMIC, weights=cut))


def test_refuses_weights_that_are_not_finite(tmp_path):
    def spoil(weights):
        weights["decoder.layers.0.linear2.bias"][3] = torch.nan

    with pytest.raises(ConfigError, match=r"decoder\.0\.mixer\.linear2\.bias has numbers that are"):
        read_model(changed(tmp_path, DYNAMIC, weights=spoil))


def test_ignores_uninitialised_weights():
    """conv_bias is NaN or 1e9 in these files; the importer ignores it."""
    read = read_checkpoint(oracle.checkpoint("dyn-noglu-prenorm-decoder-tied", "omegaconf"))
    garbage = [w for name, w in read.weights.items() if name.endswith("conv.conv_bias")]
    assert garbage
    assert all(bool((~w.isfinite() | (w == 1e9)).any()) for w in garbage)
    for weight in (
        read_model(oracle.checkpoint("dyn-noglu-prenorm-decoder-tied", "omegaconf"))
        .model.state_dict()
        .values()
    ):
        assert float(weight.abs().max()) < 100


def test_refuses_tied_table_that_differs(tmp_path):
    def untie(weights):
        weights["decoder.embed_tokens.weight"] = weights["decoder.embed_tokens.weight"] + 1

    with pytest.raises(ConfigError, match=r"differs from encoder\.embed_tokens\.weight"):
        read_model(changed(tmp_path, DYNAMIC, weights=untie))


def test_maps_layer_norms_of_old_transformers(tmp_path):
    """Before 2019 layer norms were numbered in the order of their use."""
    order = {
        "encoder": ("self_attn", "final"),
        "decoder": ("self_attn", "encoder_attn", "final"),
    }

    def rename(weights):
        for name in list(weights):
            for i, norm in enumerate(order[name.split(".")[0]]):
                old = name.replace(f".{norm}_layer_norm.", f".layer_norms.{i}.")
                weights[old] = weights.pop(name)
                name = old

    renamed = read_model(changed(tmp_path, TRANSFORMER, weights=rename)).model.state_dict()
    for name, weight in read_model(oracle.checkpoint(TRANSFORMER)).model.named_parameters():
        assert torch.equal(weight, renamed[name]), name


# Options.


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (DYNAMIC, {"encoder_conv_dim": 128}, "encoder_conv_dim is 128"),
        (DYNAMIC, {"decoder_embed_dim": 32}, "decoder_embed_dim is 32 and embeddings have 64"),
        (DYNAMIC, {"decoder_output_dim": 32}, "decoder_output_dim is 32"),
        (DYNAMIC, {"decoder_glu": False}, "encoder_glu is True and decoder_glu is False"),
        (DYNAMIC, {"encoder_attention_heads": 8}, "encoder_attention_heads is 8 and decoder_att"),
        (DYNAMIC, {"encoder_normalize_before": True}, "encoder_normalize_before is True and"),
        (DYNAMIC, {"encoder_layers": 5}, "encoder_layers is 5, the weights have 3"),
        (DYNAMIC, {"decoder_kernel_size_list": [3, 7, 31]}, "decoder_kernel_size_list is"),
        (DYNAMIC, {"adaptive_softmax_cutoff": "50,60"}, "adaptive_softmax_cutoff is '50,60'"),
        (DYNAMIC, {"share_all_embeddings": False}, "decoder.output_projection.weight|missing"),
        (DYNAMIC, {"encoder_learned_pos": True}, "encoder_learned_pos is True and decoder_"),
        (TRANSFORMER, {"layernorm_embedding": True}, "missing: decoder.layernorm_embedding.bias"),
        (TRANSFORMER, {"encoder_layers_to_keep": "0,2"}, "encoder_layers_to_keep is '0,2'"),
        (TRANSFORMER, {"activation_fn": "gelu_fast"}, "activation_fn is 'gelu_fast', supported"),
        (TRANSFORMER, {"no_cross_attention": True}, "no_cross_attention is True"),
        (TRANSFORMER, {"adaptive_input": True}, "adaptive_input is True"),
        (TRANSFORMER, {"no_decoder_final_norm": True}, "no_decoder_final_norm is True"),
        (TRANSFORMER, {"encoder_langtok": "src"}, "encoder_langtok is 'src'"),
        (TRANSFORMER, {"prepend_bos": True}, "prepend_bos is True"),
        (
            TRANSFORMER,
            {"arch": "transformer_unidirectional_iwslt_de_en"},
            "arch transformer_unidirectional_iwslt_de_en",
        ),
        (
            TRANSFORMER,
            {"arch": "transformer_monotonic_iwslt_de_en"},
            r"arch transformer_monotonic_iwslt_de_en\) is of simultaneous translation",
        ),
        (TRANSFORMER, {"quant_noise_scalar": 0.5}, "quant_noise_scalar is 0.5, which is not supp"),
        (TRANSFORMER, {"simul_type": "waitk"}, "simul_type is 'waitk', which is not supported"),
        (
            TRANSFORMER,
            {"task": "translation_multi_simple_epoch"},
            "the task is translation_multi_simple_epoch, whose models read tokens of languages",
        ),
    ],
)
def test_refuses_unsupported_option_by_name(tmp_path, name, options, message):
    if options == {"share_all_embeddings": False}:
        options |= {"share_decoder_input_output_embed": False}
    with pytest.raises(ConfigError, match=message):
        read_model(changed(tmp_path, name, options))


def test_refuses_even_kernels(tmp_path):
    def even(weights):
        weights["encoder.layers.0.conv.weight_linear.weight"] = torch.zeros(4 * 4, 64)

    path = changed(tmp_path, DYNAMIC, {"encoder_kernel_size_list": [4, 7, 15]}, even)
    with pytest.raises(ConfigError, match="encoder_kernel_size_list has 4, only odd kernels"):
        read_model(path)


@pytest.mark.parametrize("shape", [(48, 48, 1), (48, 24), ()])
def test_refuses_projections_of_unequal_shapes(tmp_path, shape):
    key = "encoder.layers.0.self_attn.k_proj.weight"

    def reshape(weights):
        weights[key] = torch.zeros(shape)

    path = changed(tmp_path, TRANSFORMER, weights=reshape)
    with pytest.raises(ConfigError) as refused:
        read_model(path)
    assert (
        f"{key} has the shape {list(shape)} and encoder.layers.0.self_attn.q_proj.weight [48, 48]"
        in str(refused.value)
    )


def test_refuses_taps_without_rows(tmp_path):
    def flatten(weights):
        weights["encoder.layers.0.conv.weight"] = torch.tensor(0.5)

    with pytest.raises(ConfigError, match=r"conv.weight has the shape \[\]"):
        read_model(changed(tmp_path, LIGHT, weights=flatten))


def test_refuses_language_model(tmp_path):
    def headless(weights):
        for name in [n for n in weights if n.startswith("encoder.")]:
            del weights[name]

    path = changed(tmp_path, DYNAMIC, {"arch": "lightconv_lm"}, headless)
    with pytest.raises(ConfigError, match=r"arch lightconv_lm\) lacks an encoder"):
        read_model(path)


def test_notes_and_ignores_training_options(tmp_path):
    """Layer drop has no effect on inference if all layers are kept, nor the noise of blocks."""
    options = {"encoder_layerdrop": 0.2, "quant_noise_pq": 0.1}
    assert read_model(changed(tmp_path, TRANSFORMER, options)).facts.notes == [
        f"{name} {value} is left out, it affects only training" for name, value in options.items()
    ]


def test_reads_learned_positions_and_plain_embeddings(tmp_path):
    def learn(weights):
        for side in ("encoder", "decoder"):
            weights[f"{side}.embed_positions.weight"] = torch.randn(50 + 2, 48)

    options = {"encoder_learned_pos": True, "decoder_learned_pos": True, "activation_fn": "gelu"}
    read = read_model(changed(tmp_path, TRANSFORMER, options | {"no_scale_embedding": True}, learn))
    config = read.facts.config
    assert (config.positions, config.max_positions) == ("learned", 50)
    assert (config.activation, config.scale_embedding) == ("gelu", False)
    assert (read.facts.max_source_tokens, read.facts.max_target_tokens) == (50, 49)


# Dictionaries.


def test_dictionary_ids_follow_line_order():
    dictionary = read_dictionary(oracle.dictionaries(LIGHT)[0])
    assert dictionary.symbols[:7] == ["<s>", "<pad>", "</s>", "<unk>", ".", ",", "&apos;s"]
    assert len(dictionary.symbols) == 72
    assert dictionary.pieces() == dictionary.symbols


def test_overwritten_symbol_has_later_id(tmp_path):
    path = tmp_path / "dict.txt"
    path.write_text("a 9\na b 8\na 7 #fairseq:overwrite\n<unk> 1 #fairseq:overwrite\n")
    dictionary = read_dictionary(path)
    assert dictionary.symbols[4:] == ["a", "a b", "a", "<unk>"]
    assert dictionary.indices["a"] == 6
    assert dictionary.pieces() == ["<s>", "<pad>", "</s>", "", "", "a b", "a", "<unk>"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 9\na 8\n", r"dict\.txt:2 has 'a' a second time"),
        ("</s> 3\n", r"dict\.txt:1 has '</s>' a second time"),
        ("a 9\nb\n", r"dict\.txt:2 is 'b', expected a symbol, a space and its count"),
        ("a x\n", "expected a symbol"),
        ("", "expected a symbol"),
        ("\udcff 3\n", "is not UTF-8"),
    ],
)
def test_refuses_bad_dictionary_with_line(tmp_path, text, message):
    path = tmp_path / "dict.txt"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError, match=message):
        read_dictionary(path)


def test_dictionary_survives_round_trip(tmp_path):
    symbols = ["<s>", "<pad>", "</s>", "<unk>", "▁a", "", "b c", "<s>", "madeupword0000", "é"]
    (tmp_path / "dict.txt").write_bytes(dictionary_bytes(symbols))
    read = read_dictionary(tmp_path / "dict.txt")
    assert [s if s != "madeupword0001" else "" for s in read.symbols] == symbols


def test_refuses_dictionary_of_another_model(tmp_path):
    arguments = command(LIGHT, tmp_path / "out")
    arguments[arguments.index("--target-dict") + 1] = str(oracle.dictionaries(MIXED)[1])
    assert import_fairseq.main(arguments) == 1
    assert not (tmp_path / "out").exists()


# Bundles.


def test_command_writes_bundle_of_ids(tmp_path, capsys):
    assert import_fairseq.main(command(LIGHT, tmp_path / "out", "--license", "MIT")) == 0
    assert "0.1M parameters, options in args" in capsys.readouterr().out
    manifest = read_manifest(tmp_path / "out")
    assert (manifest["name"], manifest["license"]) == ("de-en", "MIT")
    assert manifest["vocabulary"] == {
        "size": 64,
        "source_size": 72,
        **{"bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3},
    }
    assert manifest["limits"] == {"max_source_tokens": 1024, "max_target_tokens": 1023}
    defaults = manifest["default_options"]
    assert (defaults["beam_size"], defaults["length_penalty"]) == (5, 1.0)
    assert (defaults["max_target_ratio"], defaults["max_target_tokens"]) == (0.0, 200)
    assert manifest["architecture"]["weight_type"] == "float32"
    assert [entry["name"] for entry in manifest["files"]] == ["model.pt"]
    assert "checkpoint_2019.pt" in (tmp_path / "out" / "MODEL_CARD.md").read_text()
    weights, _ = read_bundle_weights(tmp_path / "out")
    read = read_model(oracle.checkpoint(LIGHT)).model
    for name, weight in read.named_parameters():
        assert torch.equal(weights[name], weight), name


def test_lower_limits_shrink_transformer_state(tmp_path, capsys):
    more = ("--max-source-tokens", "100", "--max-target-tokens", "60")
    assert import_fairseq.main(command(TRANSFORMER, tmp_path / "out", *more)) == 0
    limits = read_manifest(tmp_path / "out")["limits"]
    assert limits == {"max_source_tokens": 100, "max_target_tokens": 60}
    state = load_module(tmp_path / "out" / "model.pt").new_state(3)
    assert [list(ring.shape) for ring in state] == [[61, 3, 2, 48]] * 2
    assert import_fairseq.main(command(DYNAMIC, tmp_path, "--max-target-tokens", "1024")) == 1
    assert "--max-target-tokens is 1024, this model allows 2 to 1023" in capsys.readouterr().err


def test_refuses_positions_that_no_server_serves(tmp_path, capsys):
    out, path = tmp_path / "bundle", changed(tmp_path, DYNAMIC, {"max_source_positions": 1e300})
    assert import_fairseq.main(command(DYNAMIC, out, checkpoint=path)) == 1
    assert "bundle.max_source_tokens is 1000" in (told := capsys.readouterr().err)
    assert "must be between 1 and 1048576" in told
    assert not (out / "manifest.json").exists()
    limit = ("--max-source-tokens", "100")
    assert import_fairseq.main(command(DYNAMIC, out, *limit, checkpoint=path)) == 0
    assert read_manifest(out)["limits"]["max_source_tokens"] == 100


def test_stores_weights_in_bfloat16(tmp_path):
    assert import_fairseq.main(command(LIGHT, tmp_path, "--dtype", "bfloat16")) == 0
    module = load_module(tmp_path / "model.pt", torch.bfloat16)
    read = read_model(oracle.checkpoint(LIGHT)).model
    for name, weight in read.named_parameters():
        assert torch.equal(module.state_dict()[name], weight.to(torch.bfloat16)), name


def test_sentencepiece_ids_are_those_of_dictionaries(tmp_path, tokenizer_file):
    more = ("--sentencepiece", str(tokenizer_file))
    assert import_fairseq.main(command(LIGHT, tmp_path, *more)) == 0
    manifest = read_manifest(tmp_path)
    assert manifest["source_tokenizer_file"] == manifest["target_tokenizer_file"] == "source.spm"
    assert (tmp_path / "source.spm").read_bytes() == tokenizer_file.read_bytes()
    for side, dictionary in zip(("source", "target"), oracle.dictionaries(LIGHT), strict=True):
        assert manifest[f"{side}_vocabulary_file"] == f"{side}.vocab"
        lines = (tmp_path / f"{side}.vocab").read_text(encoding="utf-8").split("\n")
        assert lines == [*read_dictionary(dictionary).symbols, ""]
    assert {entry["name"] for entry in manifest["files"]} == {
        *("model.pt", "source.spm", "source.vocab", "target.vocab")
    }
    assert "subword_kind" not in manifest


def test_bundle_has_bpe_codes_and_word_tokenizer(tmp_path):
    codes = tmp_path / "codes"
    codes.write_text("#version: 0.2\nt h\nth e</w>\n")
    more = ("--bpe-codes", str(codes), "--tokenizer", "moses")
    assert import_fairseq.main(command(DYNAMIC, tmp_path / "out", *more)) == 0
    manifest = read_manifest(tmp_path / "out")
    assert manifest["subword_kind"] == "SUBWORD_KIND_BPE_CODES"
    assert manifest["word_tokenizer"] == "WORD_TOKENIZER_MOSES"
    assert manifest["source_tokenizer_file"] == manifest["target_tokenizer_file"]
    stored = tmp_path / "out" / manifest["source_tokenizer_file"]
    assert stored.read_bytes() == codes.read_bytes()


def test_says_which_abbreviations_of_moses_are_not_known(tmp_path, capsys):
    codes = tmp_path / "codes"
    codes.write_text("#version: 0.2\nt h\nth e</w>\n")
    more = ("--bpe-codes", str(codes), "--tokenizer", "moses", "--source-language", "ru")
    assert import_fairseq.main(command(DYNAMIC, tmp_path / "out", *more)) == 0
    said = capsys.readouterr().out
    assert "note: Moses's abbreviations of 'ru' are not known" in said
    assert "'en'" not in said
    assert "of 'ru' are not known" in (tmp_path / "out" / "MODEL_CARD.md").read_text()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--sentencepiece", "a", "--bpe-codes", "b"), "--sentencepiece and --bpe-codes are both"),
        (("--tokenizer", "moses"), "--tokenizer moses needs --bpe-codes"),
        (("--target-sentencepiece", "a"), "without --sentencepiece"),
        (("--bpe-codes", "nowhere"), "no file at nowhere"),
        (("--sentencepiece", __file__), "is no SentencePiece model"),
        (("--source-language", "de_DE"), "bundle.source_language is 'de_DE', which is no BCP-47"),
    ],
)
def test_refuses_conflicting_flags(tmp_path, capsys, more, message):
    assert import_fairseq.main(command(DYNAMIC, tmp_path / "out", *more)) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_languages_come_from_checkpoint_or_flags(tmp_path, capsys):
    arguments = command(DYNAMIC, tmp_path / "said")
    without = arguments[: arguments.index("--source-language")]
    assert import_fairseq.main(without) == 0
    manifest = json.loads((tmp_path / "said" / "manifest.json").read_text())
    assert (manifest["source_language_code"], manifest["target_language_code"]) == ("src", "tgt")
    silent = changed(tmp_path, DYNAMIC, {"source_lang": None})
    without[without.index("--checkpoint") + 1] = str(silent)
    assert import_fairseq.main(without) == 1
    assert "set --source-language" in capsys.readouterr().err
