"""The workflows and the compose files say what the schemas of GitHub and of compose know."""

from __future__ import annotations

import subprocess

import programs
import pytest
from programs import ROOT

SCHEMAS = {
    "vendor.github-workflows": sorted((ROOT / ".github/workflows").glob("*.yml")),
    "vendor.compose-spec": sorted(ROOT.glob("docker-compose*.yml")),
}


def check(schema: str, *files) -> subprocess.CompletedProcess[str]:
    command = [programs.checker("check-jsonschema"), "--builtin-schema", schema, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_schema_knows_every_key(schema):
    assert len(SCHEMAS[schema]) >= 2
    done = check(schema, *SCHEMAS[schema])
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ("vendor.github-workflows", "runs-on:", "run-on:"),
        ("vendor.compose-spec", "restart:", "restrat:"),
    ],
)
def test_a_key_that_does_not_exist_is_found(schema, right, wrong, tmp_path):
    texts = [file.read_text() for file in SCHEMAS[schema]]
    broken = tmp_path / "broken.yml"
    broken.write_text(next(text for text in texts if right in text).replace(right, wrong))
    done = check(schema, broken)
    assert done.returncode == 1, done.stdout
