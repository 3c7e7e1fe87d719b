"""Finds and loads the library of the operators torch.ops.linnet.* that the bundle's module
calls."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from linnet_model.network.model_config import ConfigError

NAME = "liblinnet_ops.so"
CHECKOUT = Path(__file__).resolve().parents[3]


def candidates() -> list[Path]:
    """The path in LINNET_OPS_LIBRARY if it is set, else those of this checkout's builds."""
    named = os.environ.get("LINNET_OPS_LIBRARY")
    if named:
        return [Path(named)]
    return [CHECKOUT / "build" / preset / "lib" / NAME for preset in ("release", "dev", "cuda")]


def loaded() -> bool:
    return hasattr(torch.ops.linnet, "dynamic_conv") and hasattr(
        torch.ops.linnet, "source_attention"
    )


def load() -> None:
    """Registers the operators, once. Raises ConfigError with the paths that were tried."""
    if loaded():
        return
    for path in candidates():
        if path.is_file():
            try:
                torch.ops.load_library(str(path))
            except OSError as error:
                raise ConfigError(
                    f"{path} does not load into torch {torch.__version__}: {error}"
                ) from None
            return
    places = ", ".join(str(path) for path in candidates())
    raise ConfigError(
        f"no operator library at {places}, build it with ./start.sh --build "
        "or set LINNET_OPS_LIBRARY"
    )
