"""Loads the operator library and selects the devices of its tests."""

import os
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]


def find_library() -> Path:
    """LINNET_OPS_LIBRARY, or else the library of the first preset that is built.

    The order is that of linnet_model.network.ops, because a process can load only one."""
    if named := os.environ.get("LINNET_OPS_LIBRARY"):
        return Path(named)
    for preset in ("release", "dev", "cuda"):
        library = ROOT / "build" / preset / "lib" / "liblinnet_ops.so"
        if library.exists():
            return library
    raise pytest.UsageError(
        "no build/*/lib/liblinnet_ops.so: run cmake --preset release && "
        "cmake --build --preset release --target linnet_ops, or set LINNET_OPS_LIBRARY"
    )


LIBRARY = find_library()
torch.ops.load_library(LIBRARY)

CUDA_LIBRARY = LIBRARY.with_name("liblinnet_ops_cuda.so")
if torch.cuda.is_available() and CUDA_LIBRARY.exists():
    torch.ops.load_library(CUDA_LIBRARY)


def pytest_collection_modifyitems(config, items) -> None:
    """With LINNET_GPU_TESTS=only, as tests/gpu.sh has it, the tests that need a GPU and no other:
    the rest ran where the operators were built."""
    if os.environ.get("LINNET_GPU_TESTS") != "only":
        return
    chosen = [item for item in items if "cuda" in item.fixturenames]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


@pytest.fixture(scope="session")
def library() -> Path:
    return LIBRARY


@pytest.fixture(scope="session")
def cuda_library() -> Path:
    if not CUDA_LIBRARY.exists():
        pytest.skip(f"{CUDA_LIBRARY.name} is not built beside {LIBRARY}: no nvcc")
    return CUDA_LIBRARY


@pytest.fixture
def cuda() -> torch.device:
    """The GPU; without one the test is skipped, or fails where LINNET_GPU_TESTS promises one."""
    missing = None
    if not torch.cuda.is_available():
        missing = "no GPU here"
    elif not CUDA_LIBRARY.exists():
        missing = f"{CUDA_LIBRARY.name} is not built beside {LIBRARY}"
    if missing and os.environ.get("LINNET_GPU_TESTS"):
        pytest.fail(f"{missing}, but LINNET_GPU_TESTS promises one")
    if missing:
        pytest.skip(missing)
    return torch.device("cuda")
