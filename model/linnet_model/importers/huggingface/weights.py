"""Reads the weights of a folder of transformers, and converts those of its layers to our names.

Every tensor of the file is compared with the configuration; a missing or unknown tensor, another
shape or a value that is not finite is an error. Stored position tables must be the sinusoids that
the model computes.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from linnet_model.importers.files import check_downloaded, refuse_compressed
from linnet_model.importers.huggingface.config import required_json
from linnet_model.importers.tensors import Source, refuse_expanded
from linnet_model.network.input_embedding import sinusoids
from linnet_model.network.model_config import ConfigError, ModelConfig, require

SAFETENSORS, PICKLED = "model.safetensors", "pytorch_model.bin"
INDEX = ".index.json"  # behind either name: the shards of a model in several files
TABLES = (
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
# Some tables are stored in float16, which keeps 11 bits of a number up to 1.
POSITION_TOLERANCE = 1e-3


def weight_files(folder: Path) -> list[Path]:
    """Returns the files with the weights: one, or the shards that an index lists. safetensors is
    preferred, as in transformers."""
    for name in (SAFETENSORS, PICKLED):
        if (folder / name).is_file():
            return [folder / name]
        if (folder / f"{name}{INDEX}").is_file():
            return shards(folder / f"{name}{INDEX}")
    raise ConfigError(f"{folder} has no {SAFETENSORS} and no {PICKLED}, and no index of either")


def shards(index: Path) -> list[Path]:
    """Returns the files that an index lists, each once."""
    table = required_json(index).get("weight_map")
    require(
        isinstance(table, dict) and bool(table) and all(isinstance(n, str) for n in table.values()),
        f"{index} has no weight_map, which names the file of each tensor",
    )
    assert isinstance(table, dict)
    files = [index.parent / name for name in sorted(set(table.values()))]
    for file in files:
        require(
            file.parent == index.parent and file.name not in ("", ".", ".."),
            f"{index} names {str(file)!r}, which is outside of its folder",
        )
        require(file.is_file(), f"{index.parent} has no {file.name}, which {index.name} names")
    return files


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Returns the tensors of a folder in float32. No pickled code is executed."""
    weights: dict[str, Tensor] = {}
    for file in weight_files(folder):
        tensors = read_file(file)
        twice = sorted(tensors.keys() & weights.keys())
        require(not twice, f"{file} has {', '.join(twice[:3])} once more")
        weights |= tensors
    return weights


def read_file(file: Path) -> dict[str, Tensor]:
    check_downloaded(file)
    try:
        if file.suffix == ".safetensors":
            weights = load_file(file)
        else:
            if zipfile.is_zipfile(file):
                refuse_compressed(file)
            weights = torch.load(file, map_location="cpu", weights_only=True)
    except ConfigError:
        raise
    except Exception as error:  # torch's reader raises many types
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"{file} cannot be read: {first}") from None
    require(
        isinstance(weights, dict), f"{file} holds a {type(weights).__name__}, not tensors by name"
    )
    for name, tensor in weights.items():
        require(
            isinstance(tensor, Tensor) and tensor.is_floating_point(),
            f"{file}: {name} is not a tensor of floating-point numbers",
        )
        refuse_expanded(file, name, tensor)
        bad = int((~torch.isfinite(tensor)).sum())
        require(
            bad == 0, f"{file}: {name} has {bad} of {tensor.numel()} values that are not finite"
        )
    return {name: tensor.float() for name, tensor in weights.items()}


def shared_table(source: Source, rows: int, width: int) -> Tensor:
    """Returns the table of source, target and output. A file has it under one of its names or
    several: safetensors stores tensors that share memory once, under any of them."""
    present = [name for name in TABLES if name in source.weights] or [TABLES[0]]
    table = source.take(present[0], rows, width)
    for copy in present[1:]:
        source.drop_copy(copy, present[0], table)
    return table


def output_bias(source: Source, rows: int) -> Tensor:
    """Returns the bias of the logits. Files from before transformers stored it lack it: zeros."""
    if "final_logits_bias" not in source.weights:
        return torch.zeros(rows)
    return source.take("final_logits_bias", 1, rows).flatten()


def layer_weights(source: Source, theirs: str, side: str, sizes: ModelConfig) -> dict[str, Tensor]:
    """Returns the weights of one encoder or decoder layer."""
    width, hidden = sizes.width, sizes.ffn_width

    def linear(names: list[str], outputs: int, inputs: int) -> dict[str, Tensor]:
        """Stacks the rows of several linear layers with the same input."""
        return {
            kind: torch.cat([source.take(f"{theirs}.{name}.{kind}", *shape) for name in names])
            for kind, shape in (("weight", (outputs, inputs)), ("bias", (outputs,)))
        }

    def norm(name: str) -> dict[str, Tensor]:
        return {k: source.take(f"{theirs}.{name}.{k}", width) for k in ("weight", "bias")}

    def projections(block: str, letters: str) -> dict[str, Tensor]:
        return linear([f"{block}.{letter}_proj" for letter in letters], width, width)

    parts = {
        "mixer.query_key_value": projections("self_attn", "qkv"),
        "mixer.output": linear(["self_attn.out_proj"], width, width),
        "mixer_norm": norm("self_attn_layer_norm"),
        "ffn.fc1": linear(["fc1"], hidden, width),
        "ffn.fc2": linear(["fc2"], width, hidden),
        "ffn_norm": norm("final_layer_norm"),
    }
    if side == "decoder":
        parts |= {
            "attention.query": projections("encoder_attn", "q"),
            "attention.key_value": projections("encoder_attn", "kv"),
            "attention.output": linear(["encoder_attn.out_proj"], width, width),
            "attention_norm": norm("encoder_attn_layer_norm"),
        }
    return {
        f"{part}.{kind}": tensor for part, pair in parts.items() for kind, tensor in pair.items()
    }


def check_positions(source: Source, name: str, sizes: ModelConfig) -> None:
    """Refuses a stored position table that is not that of `sizes.positions`; newer files have none.
    Row 1 of M2M-100's, that of padding, is zero."""
    table = source.weights.pop(name, None)
    if table is None:
        return
    width = sizes.width
    require(
        table.dim() == 2 and table.size(1) == width,
        f"{source.file}: {name} has shape {list(table.shape)}, rows have {width} values",
    )
    marian = sizes.positions == "sinusoidal_marian"
    expected = sinusoids(torch.arange(table.size(0)), width, width // 2 - (not marian))
    distances = (table - expected)[0 if marian else 2 :].abs()
    distance = float(distances.max()) if distances.numel() else 0.0
    require(
        distance <= POSITION_TOLERANCE,
        f"{source.file}: {name} is up to {distance:.3g} from the sinusoids of "
        f"{'Marian' if marian else 'M2M-100'}, learned positions are not imported",
    )
