"""The Deployment of deploy/kubernetes, run as a pod by podman: no cluster is needed.

In plain text, with TLS and tokens as docs/TLS.md has them, and behind HAProxy in the pod.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import certificates
import programs
import pytest
import yaml
from containers import Container, skip, wait_until
from kubernetes_test import FOLDER, build, container, containers, of_kind

pytestmark = pytest.mark.slow


def put_secrets(manifests: list[dict], folder: Path) -> bool:
    """Folders instead of the Secrets, with the files of the page.

    podman 4.3 mounts the text of a Secret as it stands in the manifest, in base64.
    """
    made = certificates.make(folder)
    volumes = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]["volumes"]
    mounted = [volume for volume in volumes if "secret" in volume]
    for volume in mounted:
        name = volume.pop("secret")["secretName"]
        (command,) = re.findall(rf"create secret generic {name} (.*)", certificates.blocks()[2])
        (here := folder / name).mkdir()
        for path in re.findall(r"--from-file=(\S+)", command):
            file = folder / path
            assert made in file.parents
            (here / file.name).write_bytes(file.read_bytes())
            (here / file.name).chmod(0o644)
        volume["hostPath"] = {"path": str(here), "type": "Directory"}
    return bool(mounted)


def put_config(manifests: list[dict], folder: Path) -> None:
    """Folders instead of the ConfigMaps: podman gets the Deployment alone."""
    configs = {it["metadata"]["name"]: it["data"] for it in manifests if it["kind"] == "ConfigMap"}
    volumes = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]["volumes"]
    for volume in [it for it in volumes if "configMap" in it]:
        name = volume.pop("configMap")["name"]
        (here := folder / name).mkdir()
        for file, text in configs[name].items():
            (here / file).write_text(text)
        volume["hostPath"] = {"path": str(here), "type": "Directory"}


def address_of_calls(manifests: list[dict]) -> str:
    """Where the Service leads calls, seen from inside the pod: to HAProxy or to the server."""
    ports = {
        port["name"]: port["containerPort"] for it in containers(manifests) for port in it["ports"]
    }
    calls, _ = of_kind(manifests, "Service")["spec"]["ports"]
    return f"localhost:{ports[calls['targetPort']]}"


class Pod:
    def __init__(self, server: Container, spec: dict, address: str, token: Path | None):
        self.server = server
        self.spec = spec
        self.address = address
        self.token = token

    def probe(self, name: str) -> int:
        """The exit status of a probe; `linnet health` replaces the kubelet's gRPC probe."""
        command = self.spec[name].get("exec", {}).get("command")
        command = command or ["linnet", "health", self.spec[name]["grpc"].get("service", "")]
        return self.server.exec(*filter(None, command), check=False).returncode

    def translate(self, *flags: str):
        to = ("--server", self.address, "--to", "de")
        ask = ["linnet", "translate", *flags, *to, "Where is the train station?"]
        return self.server.exec(*ask, check=False)


@pytest.fixture(scope="module", params=["cpu", "tls", "edge"])
def pod(request, engine, image, tmp_path_factory, monkeypatch_module) -> Iterator[Pod]:
    if engine.command != "podman":
        skip(f"{engine.command} does not run manifests")
    # podman's pause image is made of this program.
    monkeypatch_module.setenv(
        "PATH", f"{os.environ['PATH']}:{Path(programs.find('catatonit')).parent}"
    )
    monkeypatch_module.setenv("BUILDAH_ISOLATION", "chroot")
    manifests = build(FOLDER / "overlays" / request.param)
    folder = tmp_path_factory.mktemp("pod")
    deployment = of_kind(manifests, "Deployment")
    name = deployment["metadata"]["name"] = f"linnettest{os.getpid()}"
    deployment["spec"]["replicas"] = 1
    address = address_of_calls(manifests)
    server = container(manifests)
    server["image"] = image
    for other in (it for it in containers(manifests) if it is not server):
        other["image"] = f"docker.io/library/{other['image']}"
        if not engine.has_image(other["image"]):
            skip(f"there is no image {other['image']}")
    for it in containers(manifests):
        # podman would publish all ports; the test calls from inside, without a network
        del it["ports"]
    put_config(manifests, folder)
    token = folder / "secrets/client/token" if put_secrets(manifests, folder) else None
    file = folder / "deployment.yaml"
    file.write_text(yaml.safe_dump(deployment))
    try:
        engine("play", "kube", "--network", "none", str(file))
        made = Container(engine, f"{name}-pod-0-{server['name']}")
        yield Pod(made, server, address, token)
    finally:
        engine("play", "kube", "--down", str(file), check=False)


def test_probes_succeed(pod):
    wait_until(lambda: pod.probe("startupProbe") == 0, "it has started")
    assert pod.probe("readinessProbe") == 0
    assert pod.probe("livenessProbe") == 0


def test_pod_serves(pod):
    wait_until(lambda: pod.probe("readinessProbe") == 0, "it is ready")
    flags = []
    if pod.token:
        assert pod.translate().returncode == 64 + 16, "UNAUTHENTICATED without a token"
        pod.server.engine("cp", str(pod.token), f"{pod.server.name}:/tmp/token")
        flags = ["--token-file", "/tmp/token"]
    done = pod.translate(*flags)
    assert done.stdout == "Wo ist der Bahnhof?\n", done.stderr


def test_pod_has_the_flags_of_the_manifest(pod):
    """The server logs its settings, among them --lame-duck 5, which is not the default."""
    flags = " ".join(pod.spec["args"]).replace("=", " ").split()
    pod.server.wait_for_ready()
    (options,) = re.findall(r" info options (.*)", pod.server.logs())
    given = dict(zip(flags[::2], flags[1::2], strict=True))
    assert "--lame-duck" in given
    for flag, value in given.items():
        assert f"{flag.removeprefix('--')}={value}" in options.split()


def test_process_is_unprivileged(pod):
    server = pod.server
    assert server.exec("id", "-u").stdout == "10001\n"
    status = server.exec("cat", "/proc/1/status").stdout
    assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
    assert server.exec("touch", "/opt/linnet/models/new", check=False).returncode != 0
    assert server.exec("touch", "/tmp/new").returncode == 0
