"""Converts fairseq's model options to our ModelConfig and back.

Unsupported options are refused by name. Sizes are those of the weights and must agree with the
options.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from linnet_model.importers.fairseq.alignment import read_alignment, written_alignment
from linnet_model.importers.fairseq.names import is_lightconv
from linnet_model.network.model_config import ConfigError, ModelConfig, require

# Unsupported options, which must be off (None, false, 0 or empty).
MUST_BE_OFF = (
    "adaptive_input",
    "adaptive_softmax_cutoff",
    "base_layers",
    "char_inputs",
    "cross_self_attention",
    "decoder_langtok",
    "decoder_layers_to_keep",
    "decoder_xformers_att_config",
    "encoder_langtok",
    "encoder_layers_to_keep",
    "encoder_unidirectional",
    "encoder_xformers_att_config",
    "merge_src_tgt_embed",
    "no_cross_attention",
    "no_decoder_final_norm",
    "prepend_bos",
    "quant_noise_scalar",  # fairseq then computes answers with weights of 8 bits as well
    "simul_type",
)
# Tasks that put tokens of languages around the texts, which no option names.
TASKS_WITH_LANGUAGES = (
    "multilingual_translation",
    "translation_from_pretrained_bart",
    "translation_multi_simple_epoch",
)
# Options that only affect training; a bundle does not have them.
TRAINING_ONLY = ("encoder_layerdrop", "decoder_layerdrop", "quant_noise_pq")
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish"}
DEFAULT_POSITIONS = 1024  # if old options lack it


@dataclass
class ModelFacts:
    """Sizes and limits of a checkpoint's model."""

    config: ModelConfig
    max_source_tokens: int  # with the end token
    max_target_tokens: int  # without the end token
    notes: list[str]  # options that were left out, for the user

    def limit(self, source_tokens: int | None, target_tokens: int | None) -> None:
        """Lowers the limits. The memory per hypothesis of a decoder that attends to the whole
        target is proportional to them."""
        for side, wanted in (("source", source_tokens), ("target", target_tokens)):
            maximum = getattr(self, f"max_{side}_tokens")
            if wanted is not None:
                require(
                    2 <= wanted <= maximum,
                    f"--max-{side}-tokens is {wanted}, this model allows 2 to {maximum}",
                )
                setattr(self, f"max_{side}_tokens", wanted)
        if self.config.positions != "learned":
            self.config.max_positions = self.max_target_tokens + 1


def model_facts(options: Mapping[str, Any], weights: Mapping[str, Tensor]) -> ModelFacts:
    """Returns sizes and limits; `weights` have their newest names."""
    arch = options.get("arch") or options.get("_name")
    require(
        "decoder.embed_tokens.weight" in weights and "encoder.embed_tokens.weight" in weights,
        f"the model (arch {arch}) lacks an encoder or a decoder, only translation models are "
        "supported",
    )
    # fairseq's examples for simultaneous translation: an encoder that sees no later token, and a
    # decoder that reads the source step by step, without a weight that says so.
    require(
        not any(kind in str(arch) for kind in ("unidirectional", "monotonic")),
        f"the model (arch {arch}) is of simultaneous translation, which is not supported",
    )
    for name in MUST_BE_OFF:
        require(off(options.get(name)), f"{name} is {options.get(name)!r}, which is not supported")
    require(
        options.get("task") not in TASKS_WITH_LANGUAGES,
        f"the task is {options.get('task')}, whose models read tokens of languages around a text, "
        "which is not supported",
    )
    convolutions = is_lightconv(weights)
    width = table(weights, "encoder.embed_tokens.weight").size(1)
    heads = both(options, "attention_heads")
    require(
        type(heads) is int and heads > 0,
        f"encoder_attention_heads is {heads!r}, it must be an integer above 0",
    )
    for name in width_names(convolutions):
        require(
            options.get(name) in (None, width),
            f"{name} is {options.get(name)} and embeddings have {width} channels, they must be "
            "equal",
        )
    sides = {
        side: side_layers(side, options, weights, convolutions, heads)
        for side in ("encoder", "decoder")
    }
    source, target = (
        int(number(options, f"max_{side}_positions", "max_positions") or DEFAULT_POSITIONS)
        for side in ("source", "target")  # max_positions: before 2018
    )
    positions = position_kind(options)
    if positions == "learned":
        source, target = learned_positions(weights)
    config = ModelConfig(
        vocabulary=weights["encoder.embed_tokens.weight"].size(0),
        target_vocabulary=table(weights, "decoder.embed_tokens.weight").size(0),
        width=width,
        ffn_width=table(weights, "decoder.layers.0.fc1.weight").size(0),
        heads=heads,
        encoder_kernels=sides["encoder"][1],
        decoder_kernels=sides["decoder"][1],
        encoder_mixers=sides["encoder"][0],
        decoder_mixers=sides["decoder"][0],
        glu=bool(both(options, "glu", True)) if convolutions else True,
        weight_softmax=bool(options.get("weight_softmax", True)) if convolutions else True,
        pre_norm=bool(both(options, "normalize_before", False)),
        sharing=sharing(options),
        positions=positions,
        first_position=2,
        max_positions=max(target, source if positions == "learned" else 0),
        activation=activation(options),
        scale_embedding=off(options.get("no_scale_embedding")),
        embedding_norm=not off(options.get("layernorm_embedding")),
        dropout=number(options, "dropout"),
        input_dropout=number(options, "input_dropout") if convolutions else 0.0,
        relu_dropout=number(options, "activation_dropout", "relu_dropout"),
        attention_dropout=number(options, "attention_dropout"),
        weight_dropout=number(options, "weight_dropout") if convolutions else 0.0,
    )
    notes = read_alignment(options, config)
    config.check()
    notes += [
        f"{name} {options[name]} is left out, it affects only training"
        for name in TRAINING_ONLY
        if not off(options.get(name))
    ]
    return ModelFacts(config, source, target - 1, notes)


def off(value: Any) -> bool:
    return value in (None, False, 0, "", "None") or value == []


def number(options: Mapping[str, Any], *names: str) -> float:
    """Returns the first of these options that is set and not off, else 0."""
    for name in names:
        value: Any = options.get(name)
        if off(value):
            continue
        try:
            found = float(value)
        except (TypeError, ValueError, OverflowError):
            found = math.nan
        require(math.isfinite(found), f"{name} is {value!r}, it must be a number")
        return found
    return 0.0


def table(weights: Mapping[str, Tensor], name: str) -> Tensor:
    """Returns a weight, which must have two dimensions."""
    require(name in weights, f"weights are missing: {name}")
    shape = list(weights[name].shape)
    require(len(shape) == 2, f"{name} has the shape {shape}, it must have two dimensions")
    return weights[name]


def both(options: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """Returns an option of both sides, which must be equal."""
    values = [options.get(f"{side}_{name}", default) for side in ("encoder", "decoder")]
    require(
        values[0] is not None and values[0] == values[1],
        f"encoder_{name} is {values[0]} and decoder_{name} is {values[1]}, they must be equal",
    )
    return values[0]


def width_names(convolutions: bool) -> list[str]:
    names = ["encoder_embed_dim", "decoder_embed_dim", "decoder_input_dim", "decoder_output_dim"]
    return [*names, "encoder_conv_dim", "decoder_conv_dim"] if convolutions else names


def sharing(options: Mapping[str, Any]) -> str:
    if options.get("share_all_embeddings"):
        return "all"
    return "output" if options.get("share_decoder_input_output_embed") else "none"


def activation(options: Mapping[str, Any]) -> str:
    name = options.get("activation_fn") or "relu"
    require(
        isinstance(name, str) and name in ACTIVATIONS,
        f"activation_fn is {name!r}, supported are {', '.join(ACTIVATIONS)}",
    )
    return ACTIVATIONS[name]


def position_kind(options: Mapping[str, Any]) -> str:
    if options.get("no_token_positional_embeddings"):
        return "none"
    return "learned" if both(options, "learned_pos", False) else "sinusoidal"


def learned_positions(weights: Mapping[str, Tensor]) -> tuple[int, int]:
    """Returns the positions of both tables. Rows 0 and 1 are unused: the first token has position
    2."""
    rows = []
    for side in ("encoder", "decoder"):
        name = f"{side}.embed_positions.weight"
        require(name in weights, f"{name} is missing, though the options say learned positions")
        rows.append(table(weights, name).size(0) - 2)
    require(
        rows[0] == rows[1],
        f"max_source_positions is {rows[0]} and max_target_positions {rows[1]}, with learned "
        "positions they must be equal",
    )
    return rows[0], rows[1]


def side_layers(
    side: str,
    options: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    convolutions: bool,
    heads: int,
) -> tuple[list[str], list[int]]:
    """Returns mixers and widths of a side's layers, from its weights."""
    prefix = f"{side}.layers."
    numbers = {name.split(".")[2] for name in weights if name.startswith(prefix)}
    layers = sum(found.isdecimal() for found in numbers)  # a gap shows as missing weights
    require(layers > 0, f"the {side} has no layers")
    named = options.get(f"{side}_layers", layers)
    require(named == layers, f"{side}_layers is {named}, the weights have {layers} layers")
    if not convolutions:
        return ["self_attention"] * layers, [0] * layers
    mixers, kernels = [], []
    for i in range(layers):
        dynamic = weights.get(f"{prefix}{i}.conv.weight_linear.weight")
        light = weights.get(f"{prefix}{i}.conv.weight")
        if dynamic is not None:
            mixers.append("dynamic")
            kernels.append(
                table(weights, f"{prefix}{i}.conv.weight_linear.weight").size(0) // heads
            )
        elif light is not None:
            mixers.append("light")
            require(light.dim() == 3, f"{prefix}{i}.conv.weight has the shape {list(light.shape)}")
            kernels.append(light.size(-1))
        else:
            raise ConfigError(f"{prefix}{i} has no weights of a convolution")
    wanted = options.get(f"{side}_kernel_size_list") or kernels
    require(isinstance(wanted, list), f"{side}_kernel_size_list is {wanted!r}, it must be a list")
    wanted = wanted * layers if len(wanted) == 1 else wanted
    require(
        wanted[:layers] == kernels,
        f"{side}_kernel_size_list is {wanted}, the weights have kernels {kernels}",
    )
    for kernel in kernels:
        require(
            kernel % 2 == 1,
            f"{side}_kernel_size_list has {kernel}, only odd kernels are supported: fairseq itself "
            "cannot run even ones",
        )
    return mixers, kernels


def options_of(
    config: ModelConfig, max_source_tokens: int, max_target_tokens: int
) -> dict[str, Any]:
    """Returns the options from which fairseq builds this model, under old and new names."""
    require(
        bool(config.encoder_kernels),
        "a language model cannot be exported to fairseq, only an encoder-decoder",
    )
    require(
        config.first_position == 2 and config.positions in ("sinusoidal", "learned", "none"),
        f"model.positions {config.positions!r} from {config.first_position} on are not fairseq's",
    )
    require(not config.output_bias, "model.output_bias is true, fairseq has none")
    require(
        config.norm_epsilon == 1e-5,
        f"model.norm_epsilon is {config.norm_epsilon}, fairseq's norms have 1e-05",
    )
    mixers = {*config.encoder_mixers, *config.decoder_mixers}
    convolutions = mixers <= {"dynamic", "light"}
    one_each = all(len(set(side)) == 1 for side in (config.encoder_mixers, config.decoder_mixers))
    plain_attention = mixers == {"self_attention"} and not any(
        config.encoder_kernels + config.decoder_kernels
    )
    require(
        one_each and (convolutions or plain_attention),
        f"layers of {', '.join(sorted(mixers))} do not make a model of fairseq: there are dynamic "
        "or light, one for each side, or self_attention to the whole sequence",
    )
    require(
        not convolutions or (config.activation == "relu" and config.scale_embedding),
        f"model.activation is {config.activation!r} and model.scale_embedding "
        f"{config.scale_embedding}, fairseq's convolutional models have relu and true",
    )
    require(
        not (convolutions and config.embedding_norm),
        "model.embedding_norm is true, fairseq's convolutional models have no such norm",
    )
    if config.positions == "learned":  # the rows of the tables
        max_source_tokens, max_target_tokens = config.max_positions, config.max_positions - 1
    options: dict[str, Any] = {
        "arch": "lightconv" if convolutions else "transformer",
        "_name": "lightconv" if convolutions else "transformer",
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "relu_dropout": config.relu_dropout,
        "activation_dropout": config.relu_dropout,
        "share_all_embeddings": config.sharing == "all",
        "share_decoder_input_output_embed": config.sharing != "none",
        "no_token_positional_embeddings": config.positions == "none",
        "adaptive_softmax_cutoff": None,
        "adaptive_softmax_dropout": 0,
        "max_source_positions": max_source_tokens,
        "max_target_positions": max_target_tokens + 1,
        "decoder_input_dim": config.width,
        "decoder_output_dim": config.width,
    }
    if not convolutions:
        options |= written_alignment(config)
    for side in ("encoder", "decoder"):
        kernels = getattr(config, f"{side}_kernels")
        options |= {
            f"{side}_embed_path": None,
            f"{side}_embed_dim": config.width,
            f"{side}_ffn_embed_dim": config.ffn_width,
            f"{side}_attention_heads": config.heads,
            f"{side}_layers": len(kernels),
            f"{side}_normalize_before": config.pre_norm,
            f"{side}_learned_pos": config.positions == "learned",
        }
        if convolutions:
            dynamic = getattr(config, f"{side}_mixers")[0] == "dynamic"
            options |= {
                f"{side}_conv_dim": config.width,
                f"{side}_kernel_size_list": list(kernels),
                f"{side}_glu": config.glu,
                f"{side}_conv_type": "dynamic" if dynamic else "lightweight",
            }
    if convolutions:
        return options | {
            "weight_softmax": config.weight_softmax,
            "input_dropout": config.input_dropout,
            "weight_dropout": config.weight_dropout,
        }
    return options | {
        "activation_fn": config.activation,
        "no_scale_embedding": not config.scale_embedding,
        "layernorm_embedding": config.embedding_norm,
        "no_cross_attention": False,
        "cross_self_attention": False,
        "adaptive_input": False,
        "tie_adaptive_weights": False,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        "encoder_layers_to_keep": None,
        "decoder_layers_to_keep": None,
        "quant_noise_pq": 0.0,
        "quant_noise_pq_block_size": 8,
        "quant_noise_scalar": 0.0,
    }
