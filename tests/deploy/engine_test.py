"""The choice of the container engine, and the failure of a run that requires one."""

from __future__ import annotations

import re

import pytest
import yaml
from containers import BASE, ROOT, Engine


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """machine("docker", "podman", broken=("podman",)): a machine with only these commands."""
    monkeypatch.delenv("LINNET_CONTAINER_ENGINE", raising=False)

    def install(*commands: str, broken: tuple[str, ...] = ()) -> None:
        for command in commands:
            path = tmp_path / command
            path.write_text(f"#!/bin/sh\necho no daemon >&2\nexit {int(command in broken)}\n")
            path.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))

    return install


def test_working_container_engine_is_chosen(machine):
    machine("docker", "podman", broken=("podman",))
    found, _ = Engine.find()
    assert found.command == "docker"


def test_configured_engine_is_chosen_or_none(machine, monkeypatch):
    machine("docker", "podman", broken=("docker",))
    monkeypatch.setenv("LINNET_CONTAINER_ENGINE", "podman")
    assert Engine.find()[0].command == "podman"
    monkeypatch.setenv("LINNET_CONTAINER_ENGINE", "docker")
    assert Engine.find() == (None, "docker does not work: no daemon")


def test_missing_engine_gives_the_reason(machine):
    machine()
    assert Engine.find() == (None, "no podman; no docker")


def test_base_image_is_pinned():
    assert re.fullmatch(r"debian:bookworm-\d{8}-slim@sha256:[0-9a-f]{64}", BASE)


def test_container_job_uses_the_engine_that_built_its_image():
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
    job = workflow["jobs"]["containers"]
    commands = "\n".join(step.get("run", "") for step in job["steps"])
    assert job["env"]["LINNET_CONTAINERS"] == "required"
    engine = job["env"]["LINNET_CONTAINER_ENGINE"]
    assert f"{engine} build -f deploy/Dockerfile --target cpu -t $LINNET_TEST_IMAGE ." in commands
    assert "tests/deploy/image/container_test.py" in commands
