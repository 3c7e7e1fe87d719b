"""deploy/stage_model.py: the files that it takes, and the libraries in place of CUDA's."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from programs import ROOT


@pytest.fixture(scope="module")
def stage():
    spec = importlib.util.spec_from_file_location("stage_model", ROOT / "deploy/stage_model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("torch/nn/functional.py", True),
        ("torch/testing/_internal/common.py", True),  # imported by torch
        ("torch/library.py", True),
        ("torch/bin/torch_shm_manager", True),
        ("torch-2.11.0.dist-info/licenses/NOTICE", True),
        ("numpy/testing/__init__.py", True),
        ("torch/lib/libtorch_cuda.so", False),
        ("torch/bin/ptxas", False),
        ("torch/include/ATen/ATen.h", False),
        ("numpy/linalg/tests/test_linalg.py", False),
        ("sympy/core/__pycache__/add.cpython-311.pyc", False),
        ("../../../bin/tqdm", False),
    ],
)
def test_unused_parts_of_wheels_are_left_out(stage, name, taken):
    assert (stage.UNUSED.match(name) is None) == taken


def test_missing_package_is_named_with_the_way_out(stage, tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "SITE", tmp_path)
    with pytest.raises(SystemExit) as ended:
        stage.copy_packages(tmp_path / "python", stage.torch_and_importers(), "import")
    assert "has no certifi, not " in str(ended.value)
    assert "run ./start.sh --deps --import" in str(ended.value)


def test_links_make_a_command_of_the_checkout(stage, tmp_path):
    """For start.sh: nothing is copied, and libtorch_cuda is a substitute of a few kilobytes."""
    stage.link_checkout(tmp_path)
    package = tmp_path / "python/numpy/__init__.py"
    assert package.samefile(stage.SITE / "numpy/__init__.py")
    assert (tmp_path / "python/linnet_model/__main__.py").is_file()
    assert (tmp_path / "python/torch/lib/libtorch_cuda.so").stat().st_size < 100_000
    done = subprocess.run(
        [str(tmp_path / "bin/linnet-model"), "fetch", "--list"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "en-pt  en to pt " in done.stdout


def test_substitute_is_defined_and_ends_the_process(stage, tmp_path):
    """A function, the type and the functions of a class, as libtorch_python names them."""
    names = ["cudnnGetProperty", "_ZTIN1a1bE", "_ZTVN1a1bE", stage.AT_START]
    lines = [line for number, name in enumerate(names) for line in stage.substitute(name, number)]
    source, library = tmp_path / "a.s", tmp_path / "libtorch_cuda.so"
    source.write_text("\n".join(lines) + "\n" + stage.END)
    link = ["g++", "-shared", "-nostartfiles", "-o", str(library), str(source)]
    subprocess.run(link, check=True)
    assert set(names) <= set(stage.symbols(library, "--defined-only"))
    load = "import ctypes, sys; library = ctypes.CDLL(sys.argv[1]);"
    load += f"library.{stage.AT_START}.restype = ctypes.c_void_p;"
    load += f"assert ctypes.c_long.from_address(library.{stage.AT_START}()).value == 0;"
    command = [sys.executable, "-c", load + "library.cudnnGetProperty()", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == -6  # SIGABRT
    assert done.stderr == "linnet-model has no CUDA, but torch called cudnnGetProperty\n"


def test_image_and_package_take_what_the_importers_need(stage):
    pins = stage.pinned("import")
    assert {"numpy", "safetensors", "sentencepiece", "transformers"} <= set(pins)
    assert stage.normal("typing_extensions") == "typing-extensions"
    assert Path(stage.SITE).name == "python"
