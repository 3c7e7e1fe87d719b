"""Reads the weights of a folder of transformers, and converts those of its layers to our names.

Every tensor of the file is compared with the configuration; a missing or unknown tensor, another
shape or a value that is not finite is an error. Stored position tables must be the sinusoids that
the model computes.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import safetensors
import torch
from safetensors.torch import load_file
from torch import Tensor

from linnet_model.importers.tensors import Source
from linnet_model.network.encoder_decoder import sinusoids
from linnet_model.network.model_config import ConfigError, ModelConfig, require

SAFETENSORS, PICKLED = "model.safetensors", "pytorch_model.bin"
# Some tables are stored in float16, which keeps 11 bits of a number up to 1.
POSITION_TOLERANCE = 1e-3


def read_weights(folder: Path) -> tuple[Path, dict[str, Tensor]]:
    """Returns the file and its tensors in float32. No pickled code is executed."""
    file = folder / SAFETENSORS
    try:
        if file.is_file():
            weights = load_file(file)
        else:
            file = folder / PICKLED
            require(
                file.is_file(),
                f"{folder} has no {SAFETENSORS} and no {PICKLED} (weights in several files are not "
                "supported, save the model in one)",
            )
            weights = torch.load(file, map_location="cpu", weights_only=True)
    except (safetensors.SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"{file} cannot be read: {first}") from None
    for name, tensor in weights.items():
        require(
            isinstance(tensor, Tensor) and tensor.is_floating_point(),
            f"{file}: {name} is not a tensor of floating-point numbers",
        )
        bad = int((~torch.isfinite(tensor)).sum())
        require(
            bad == 0, f"{file}: {name} has {bad} of {tensor.numel()} values that are not finite"
        )
    return file, {name: tensor.float() for name, tensor in weights.items()}


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
