"""linnet-http in Kubernetes: its manifests match the schemas and those of the servers."""

from __future__ import annotations

import re

import kubernetes_test
import pytest
from programs import ROOT

NAME = "linnet-http"


@pytest.fixture(scope="module")
def built() -> list[dict]:
    return kubernetes_test.build(kubernetes_test.FOLDER / "overlays/http")


@pytest.fixture(scope="module")
def manifests(built) -> list[dict]:
    return [it for it in built if it["metadata"]["name"] == NAME]


@pytest.fixture(scope="module")
def pod(manifests) -> dict:
    return kubernetes_test.of_kind(manifests, "Deployment")["spec"]["template"]


def test_the_servers_are_those_of_the_cpu_overlay(built):
    others = [it for it in built if it["metadata"]["name"] != NAME]
    assert others == kubernetes_test.build(kubernetes_test.FOLDER / "overlays/cpu")


@pytest.mark.parametrize("version", kubernetes_test.VERSIONS)
def test_schemas_know_every_field(built, version):
    kubernetes_test.test_schemas_know_every_field(built, version)


def test_pod_is_unprivileged_and_limited(manifests):
    kubernetes_test.test_pod_is_unprivileged(manifests)
    kubernetes_test.test_every_container_has_a_memory_limit(manifests)


def test_policies_and_services_lead_from_port_to_port(built, manifests, pod):
    labels = pod["metadata"]["labels"]
    for kind, selector in (
        ("Deployment", lambda spec: spec["selector"]["matchLabels"]),
        ("Service", lambda spec: spec["selector"]),
        ("NetworkPolicy", lambda spec: spec["podSelector"]["matchLabels"]),
    ):
        assert selector(kubernetes_test.of_kind(manifests, kind)["spec"]).items() <= labels.items()
    (port,) = pod["spec"]["containers"][0]["ports"]
    assert kubernetes_test.of_kind(manifests, "Service")["spec"]["ports"][0]["targetPort"] == "http"
    policy = kubernetes_test.of_kind(manifests, "NetworkPolicy")["spec"]
    assert policy["ingress"][0]["ports"] == [{"port": port["name"]}]
    (servers,) = [it for it in built if it["kind"] == "Deployment" and it not in manifests]
    selected = policy["egress"][0]["to"][0]["podSelector"]["matchLabels"]
    assert selected.items() <= servers["spec"]["template"]["metadata"]["labels"].items()
    (theirs,) = [it for it in built if it["kind"] == "NetworkPolicy" and it not in manifests]
    (wanted,) = theirs["spec"]["ingress"][0]["from"][0]["podSelector"]["matchExpressions"]
    assert labels[wanted["key"]] in wanted["values"]


def test_flags_and_mounts_fit_the_image(pod, linnet_http_options):
    (container,) = pod["spec"]["containers"]
    options = linnet_http_options(container["args"])
    service = options.server.removeprefix("dns:///").partition(":")[0]
    assert service == "linnet"
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    (entry,) = re.findall(r'^ENTRYPOINT \["linnet-http", (.*)\]$', dockerfile, re.MULTILINE)
    options = linnet_http_options([it.strip('"') for it in entry.split(", ")])
    assert options.listen.endswith(f":{container['ports'][0]['containerPort']}")
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {str(options.glossaries.parent), "/tmp"} <= mounts
