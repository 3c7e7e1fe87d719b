"""The Deployment of deploy/kubernetes, run as a pod by podman: no cluster is needed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import programs
import pytest
import yaml
from containers import Container, skip, wait_until
from kubernetes_test import FOLDER, build, container, of_kind

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pod(engine, image, tmp_path_factory, monkeypatch_module) -> Iterator[Container]:
    if engine.command != "podman":
        skip(f"{engine.command} does not run manifests")
    # podman's pause image is made of this program.
    monkeypatch_module.setenv(
        "PATH", f"{os.environ['PATH']}:{Path(programs.find('catatonit')).parent}"
    )
    monkeypatch_module.setenv("BUILDAH_ISOLATION", "chroot")
    deployment = of_kind(build(FOLDER / "overlays/cpu"), "Deployment")
    name = deployment["metadata"]["name"] = f"linnettest{os.getpid()}"
    deployment["spec"]["replicas"] = 1
    (server,) = deployment["spec"]["template"]["spec"]["containers"]
    server["image"] = image
    # podman publishes them all: the pod is asked from inside, without a network
    del server["ports"]
    file = tmp_path_factory.mktemp("pod") / "deployment.yaml"
    file.write_text(yaml.safe_dump(deployment))
    try:
        engine("play", "kube", "--network", "none", str(file))
        yield Container(engine, f"{name}-pod-0-{server['name']}")
    finally:
        engine("play", "kube", "--down", str(file), check=False)


def test_the_pod_serves(pod):
    wait_until(lambda: pod.exec("linnet", "health", check=False).returncode == 0, "it serves")
    german = pod.exec("linnet", "translate", "--to", "de", "A dog runs across the street.").stdout
    assert german == "Ein Hund läuft über die Straße.\n"


def test_it_has_the_flags_of_the_manifest(pod):
    """The server logs what it was started with: --lame-duck 5, which is not its default, too."""
    flags = container(build(FOLDER / "overlays/cpu"))["args"]
    pod.wait_for_ready()
    (options,) = re.findall(r" info options (.*)", pod.logs())
    given = dict(zip(flags[::2], flags[1::2], strict=True))
    assert "--lame-duck" in given
    for flag, value in given.items():
        assert f"{flag.removeprefix('--')}={value}" in options.split()


def test_it_is_nobody_and_may_do_nothing(pod):
    assert pod.exec("id", "-u").stdout == "10001\n"
    status = pod.exec("cat", "/proc/1/status").stdout
    assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
    assert pod.exec("touch", "/opt/linnet/models/new", check=False).returncode != 0
    assert pod.exec("touch", "/tmp/new").returncode == 0
