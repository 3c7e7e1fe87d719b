"""The workflows and the compose files match the schemas of GitHub and of compose."""

from __future__ import annotations

import re
import subprocess

import programs
import pytest
import yaml
from programs import ROOT

SCHEMAS = {
    "vendor.github-workflows": sorted((ROOT / ".github/workflows").glob("*.yml")),
    "vendor.compose-spec": sorted(ROOT.glob("docker-compose*.yml")),
}


WORKFLOWS = [yaml.safe_load(file.read_text()) for file in SCHEMAS["vendor.github-workflows"]]
STEPS = [step for it in WORKFLOWS for job in it["jobs"].values() for step in job["steps"]]


def check(schema: str, *files) -> subprocess.CompletedProcess[str]:
    command = [programs.checker("check-jsonschema"), "--builtin-schema", schema, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schema_knows_every_key(schema):
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
def test_unknown_key_is_found(schema, right, wrong, tmp_path):
    texts = [file.read_text() for file in SCHEMAS[schema]]
    broken = tmp_path / "broken.yml"
    broken.write_text(next(text for text in texts if right in text).replace(right, wrong))
    done = check(schema, broken)
    assert done.returncode == 1, done.stdout


def test_actions_are_pinned_by_commit_and_version():
    """The owners of an action can move a tag to other code."""
    text = "".join(file.read_text() for file in SCHEMAS["vendor.github-workflows"])
    lines = re.findall(r"^.*\buses:.*$", text, re.MULTILINE)
    assert len(lines) == len([step for step in STEPS if "uses" in step]) > 5
    versions = {}
    for line in lines:
        name, commit, version = re.search(r"uses: (\S+)@([0-9a-f]{40})  # (v\S+)$", line).groups()
        assert versions.setdefault(name, (commit, version)) == (commit, version)


def test_a_step_fails_with_any_part_of_its_pipes():
    """GitHub's own `bash -e` has no pipefail: half an image would be an artifact of a release."""
    assert [line for step in STEPS for line in step.get("run", "").splitlines() if " | " in line]
    assert {it["defaults"]["run"]["shell"] for it in WORKFLOWS} == {"bash"}
    assert not [step for step in STEPS if "shell" in step]


def test_workflows_call_functions_that_exist():
    runs = " ".join(step.get("run", "") for step in STEPS)
    called = set(re.findall(r"\. deps/setup\.sh && (\w+)", runs))
    assert len(called) >= 2
    command = ["bash", "-c", '. deps/setup.sh && declare -F "$@"', "bash", *sorted(called)]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True).returncode == 0, called


def test_workflows_run_every_slow_test():
    """They need minutes or containers, so ./test.sh without --all skips them."""
    runs = " ".join(step.get("run", "") for step in STEPS)
    slow = [
        file.relative_to(ROOT).as_posix()
        for file in sorted((ROOT / "tests/deploy").rglob("*_test.py"))
        if re.search(r"^pytestmark = pytest\.mark\.slow$", file.read_text(), re.MULTILINE)
    ]
    assert len(slow) >= 5
    assert [name for name in slow if f" {name} " not in runs] == []
