"""The types in which a bundle stores the weights of its module.

"int8" rounds the weights of linear layers and embedding tables: integers with a scale per output or
token, as the compute type int8 rounds them (quantize_linear of linear.h), which so gives the same
answers with either. All other weights are float32. A module keeps the scales beside the integers
(Linear and Embedding of network/linear.py); engines restore float32 weights when they load it.
"""

from __future__ import annotations

import torch
from torch import nn

from linnet_model.config import ConfigError
from linnet_model.network import ops

WEIGHT_TYPES = ("bfloat16", "float32", "int8")


def store(module: nn.Module, weight_type: str) -> None:
    """Converts the weights of a module on the CPU, scripted or not, in place."""
    if weight_type not in WEIGHT_TYPES:
        raise ConfigError(
            f"weights cannot be stored as {weight_type!r}, known are {', '.join(WEIGHT_TYPES)}"
        )
    ops.load()
    for weight in module.parameters():
        weight.requires_grad_(False)
    restore(module)
    if weight_type != "int8":
        module.to(getattr(torch, weight_type))
        return
    tables = [part for part in module.modules() if hasattr(part, "scales")]
    if not tables:
        raise ConfigError("the module cannot store int8: import or export the bundle again")
    for part in tables:
        part.weight.data, part.scales = torch.ops.linnet.quantize_linear(part.weight)


def restore(module: nn.Module) -> None:
    """Converts all weights to float32, in place."""
    for part in module.modules():
        scales = getattr(part, "scales", None)
        if scales is not None:
            part.weight.data = part.weight.to(torch.float32) * scales.unsqueeze(1)
            part.scales = None  # type: ignore[assignment]
    module.to(torch.float32)
