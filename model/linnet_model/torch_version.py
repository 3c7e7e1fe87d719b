"""The torch that linnet-model needs: the one whose headers the operator library was built with."""

from __future__ import annotations

import importlib

SUPPORTED = "2.11"  # deps/versions.txt; a build for CPUs has the same interface as one for CUDA


def check_torch() -> str | None:
    """Returns what is wrong with the installed torch, or None. Imports nothing else of the
    package."""
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError, ValueError) as error:
        first = (str(error).splitlines() or ["no reason given"])[0]
        return (
            f"torch cannot be imported ({first}); install torch {SUPPORTED}, of which a build for "
            "CPUs is enough: PyTorch's installation page names its index of CPU wheels"
        )
    found = str(torch.__version__)
    if found.split("+")[0].split(".")[:2] == SUPPORTED.split("."):
        return None
    return (
        f"torch {found} is installed, the operator library was built for torch {SUPPORTED}; "
        f"install torch {SUPPORTED}, of which a build for CPUs is enough"
    )
