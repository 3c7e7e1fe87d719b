"""The fixtures of tests/ and of tests/linnet_model: programs, a tokenizer, a recipe, its data."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

TESTS = Path(__file__).resolve().parents[2] / "tests"


def conftest_of(folder: Path) -> ModuleType:
    path = folder / "conftest.py"
    spec = importlib.util.spec_from_file_location(f"fixtures_of_{folder.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


programs, models = conftest_of(TESTS), conftest_of(TESTS / "linnet_model")
binaries, program = programs.binaries, programs.program
pytest_configure = models.pytest_configure
data_folder, recipe_file = models.data_folder, models.recipe_file
fake_decoder = models.fake_decoder
tokenizer, tokenizer_file = models.tokenizer, models.tokenizer_file
