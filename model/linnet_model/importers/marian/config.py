"""Turns the configuration of a Marian model into our sizes.

Every key is read, or restricted to the supported values, or known to have no effect on answers.
Unknown keys and unsupported values are refused by name.

Source: src/common/config_parser.cpp and src/models/transformer.h of marian-nmt/marian-dev 1.12 and
of browsermt/marian-dev 1.9.
"""

from __future__ import annotations

import json
from typing import Any

from linnet_model.importers.huggingface.config import names
from linnet_model.network.model_config import (
    MAX_FFN_WIDTH,
    MAX_LAYERS,
    MAX_VOCABULARY,
    MAX_WIDTH,
    ModelConfig,
    require,
)

READ = names(
    "dec-cell dec-depth dim-emb dim-vocabs enc-depth tied-embeddings tied-embeddings-all "
    "tied-embeddings-src transformer-decoder-autoreg transformer-dim-ffn transformer-heads "
    "transformer-ffn-activation transformer-preprocess transformer-postprocess "
    "transformer-guided-alignment-layer transformer-postprocess-top transformer-postprocess-emb"
)
ONLY: dict[str, tuple[Any, ...]] = {
    "type": ("transformer",),
    "factors-combine": ("sum",),
    "factors-dim-emb": (0,),
    "input-types": ([], None),
    "layer-normalization": (False,),
    "lemma-dependency": ("", None),
    "lemma-dim-emb": (0,),
    "output-omit-bias": (False,),
    "right-left": (False,),
    "skip": (False,),
    "transformer-alibi-shift": (False,),
    "transformer-alibi-trainable": (False,),
    "transformer-attention-mask": ("default",),
    "transformer-decoder-dim-ffn": (0,),
    "transformer-decoder-ffn-depth": (0,),
    "transformer-disable-position-embeddings": (False,),
    "transformer-ffn-depth": (2,),
    "transformer-no-affine": (False,),
    "transformer-no-bias": (False,),
    "transformer-no-projection": (False,),
    "transformer-pool": (False,),
    "transformer-rnn-projection": (False,),
    "transformer-tied-layers": ([], None),
    "transformer-train-position-embeddings": (False,),
    "transformer-train-positions": (False,),
    "ulr": (False,),
}
# Keys of other kinds of models, of training, and of features that ONLY switches off.
NO_EFFECT = names(
    "bert-train-type-embeddings bert-type-vocab-size char-conv-filters-num "
    "char-conv-filters-widths char-highway char-stride dec-cell-base-depth dec-cell-high-depth "
    "dim-rnn enc-cell enc-cell-depth enc-type separator-symbol transformer-aan-activation "
    "transformer-aan-depth transformer-aan-nogate transformer-depth-scaling transformer-dim-aan "
    "ulr-dim-emb ulr-dropout ulr-keys-vectors "
    "ulr-query-vectors ulr-softmax-temperature ulr-trainable-transformation "
    "version"
)
ACTIVATIONS = ("relu", "swish")  # gelu is an approximation there
# The order of operations around a block, without dropout, and whether norms stand at its start.
NORMS = {("", "an", ""): False, ("n", "a", "n"): True}
ALIGNMENT_HEAD = (
    0  # collectOneHead of transformer.h: guided alignment trains it, decoding prints it
)


def shown(value: Any) -> str:
    return json.dumps(value)


def model_sizes(where: str, settings: dict[str, Any]) -> ModelConfig:
    """Returns the sizes with the vocabularies as in the file; `where` names it in messages."""
    known = READ | NO_EFFECT | ONLY.keys()
    unknown = sorted(settings.keys() - known)
    require(not unknown, f"{where} has unknown keys, which would be ignored: {', '.join(unknown)}")
    for key in sorted(ONLY.keys() & settings.keys()):
        value, supported = settings[key], ONLY[key]
        require(
            any(type(value) is type(one) and value == one for one in supported),
            f"{where} has {key} {shown(value)}, supported is only {shown(supported[0])}",
        )

    def size(key: str, minimum: int, maximum: int) -> int:
        return integer(where, key, settings.get(key), minimum, maximum)

    layers = {side: size(f"{side}-depth", 1, MAX_LAYERS) for side in ("enc", "dec")}
    source, target = vocabularies(where, settings.get("dim-vocabs"))
    return ModelConfig(
        vocabulary=source,
        target_vocabulary=target,
        width=size("dim-emb", 4, MAX_WIDTH),
        ffn_width=size("transformer-dim-ffn", 1, MAX_FFN_WIDTH),
        heads=size("transformer-heads", 1, MAX_WIDTH),
        encoder_kernels=[0] * layers["enc"],
        decoder_kernels=[0] * layers["dec"],
        encoder_mixers=["self_attention"],
        decoder_mixers=[decoder_mixer(where, settings)],
        pre_norm=norms_first(where, settings),
        sharing=sharing(where, settings),
        norm_epsilon=1e-6,
        positions="sinusoidal",
        first_position=0,
        activation=choice(where, settings, "transformer-ffn-activation", ACTIVATIONS),
        output_bias=True,
        alignment_layer=alignment_layer(where, settings, layers["dec"]),
        alignment_head=ALIGNMENT_HEAD,
        dropout=0.0,
        weight_dropout=0.0,
    )


def integer(where: str, name: str, value: Any, minimum: int, maximum: int) -> int:
    require(
        type(value) is int and minimum <= value <= maximum,
        f"{where} has {name} {shown(value)}, it must be an integer from {minimum} to {maximum}",
    )
    assert isinstance(value, int)
    return value


def vocabularies(where: str, value: Any) -> tuple[int, int]:
    require(
        isinstance(value, list) and len(value) == 2,
        f"{where} has dim-vocabs {shown(value)}, it must be a list of two, source and target",
    )
    first, second = (integer(where, "dim-vocabs with", one, 4, MAX_VOCABULARY - 1) for one in value)
    return first, second


def choice(where: str, settings: dict[str, Any], key: str, supported: tuple[str, ...]) -> str:
    value = settings.get(key)
    require(
        value in supported,
        f"{where} has {key} {shown(value)}, supported are {', '.join(supported)}",
    )
    return str(value)


def decoder_mixer(where: str, settings: dict[str, Any]) -> str:
    key = "transformer-decoder-autoreg"
    if choice(where, settings, key, ("rnn", "self-attention")) == "self-attention":
        return "self_attention"
    return choice(where, settings, "dec-cell", ("ssru",))


def norms_first(where: str, settings: dict[str, Any]) -> bool:
    keys = [f"transformer-{key}" for key in ("preprocess", "postprocess", "postprocess-top")]
    values = [settings.get(key) for key in keys]
    found = tuple("" if value is None else str(value).replace("d", "") for value in values)
    require(
        found in NORMS,
        f"{where} has {', '.join(f'{k} {shown(v)}' for k, v in zip(keys, values, strict=True))}; "
        'supported are "", "dan" and "" (norms after each block), or "n", "da" and "n" (before)',
    )
    emb = settings.get("transformer-postprocess-emb")
    require(
        emb in (None, "", "d"),
        f'{where} has transformer-postprocess-emb {shown(emb)}, supported is only "d"',
    )
    return NORMS[(found[0], found[1], found[2])]


def alignment_layer(where: str, settings: dict[str, Any], layers: int) -> int:
    """Returns the decoder layer, from 0, whose attention Marian takes for the alignment."""
    key = "transformer-guided-alignment-layer"
    value = settings.get(key, "last")
    if value == "last":
        return layers - 1
    return integer(where, f'{key} (which may be "last")', value, 1, layers) - 1


def sharing(where: str, settings: dict[str, Any]) -> str:
    tied = {}
    for key in ("tied-embeddings-all", "tied-embeddings", "tied-embeddings-src"):
        tied[key] = settings.get(key, False)
        require(
            type(tied[key]) is bool,
            f"{where} has {key} {shown(tied[key])}, it must be true or false",
        )
    if tied["tied-embeddings-all"]:
        return "all"
    require(
        not tied["tied-embeddings-src"],
        f"{where} has tied-embeddings-src true without tied-embeddings-all: one table for both "
        "sides and another one for the output is not supported",
    )
    return "output" if tied["tied-embeddings"] else "none"
