"""The manifests of deploy/kubernetes: kustomize builds them, and they match the schemas.

`python tests/deploy/kubernetes_test.py` writes the rules of deploy/prometheus into the
PrometheusRule, which must hold the same.
"""

from __future__ import annotations

import copy
import re
import shutil
import subprocess
from pathlib import Path

import programs
import pytest
import yaml
from programs import ROOT

FOLDER = ROOT / "deploy/kubernetes"
RULES = FOLDER / "components/monitoring/rules.yaml"
OVERLAYS = ("cpu", "gpu", "tls", "edge")
VERSIONS = ("1.27", "1.30", "1.37")  # the oldest with gRPC probes for all, one between, the newest
OPERATOR_CHECK = (
    "model = getattr(cloudcoil.models.prometheus_operator.v1, manifest['kind']);"
    "read = model.model_validate(manifest);"
    "known = read.model_dump(mode='json', by_alias=True, exclude_unset=True);"
    "assert known == manifest, known"
)
OPERATOR = {"ServiceMonitor", "PrometheusRule"}  # prometheus-operator's own kinds


def build(folder: Path) -> list[dict]:
    command = [programs.checker("kubectl"), "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def check(statement: str, module: str, manifests: list[dict]):
    """Runs a statement for each manifest, in the Python with the schemas."""
    program = f"import sys, yaml, {module}\nfor manifest in yaml.safe_load_all(sys.stdin):\n    "
    subprocess.run(
        [programs.checker("python"), "-c", program + statement],
        input=yaml.safe_dump_all(manifests),
        text=True,
        check=True,
    )


@pytest.fixture(scope="module", params=OVERLAYS)
def manifests(request) -> list[dict]:
    return build(FOLDER / "overlays" / request.param)


def of_kind(manifests: list[dict], kind: str) -> dict:
    (found,) = [manifest for manifest in manifests if manifest["kind"] == kind]
    return found


def containers(manifests: list[dict]) -> list[dict]:
    return of_kind(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]


def container(manifests: list[dict], name: str = "server") -> dict:
    (found,) = [it for it in containers(manifests) if it["name"] == name]
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_schemas_know_every_field(manifests, version):
    known = [manifest for manifest in manifests if manifest["kind"] not in OPERATOR]
    assert len(known) >= 5
    check(
        f"kubernetes_validate.validate(manifest, '{version}', strict=True)",
        "kubernetes_validate",
        known,
    )


def test_operator_models_know_every_field(manifests):
    """The models of its CRDs drop unknown fields, so output and input must be equal."""
    known = [manifest for manifest in manifests if manifest["kind"] in OPERATOR]
    assert {manifest["kind"] for manifest in known} == OPERATOR
    check(OPERATOR_CHECK, "cloudcoil.models.prometheus_operator.v1", known)


def test_field_unknown_to_the_operator_is_found(manifests):
    monitor = copy.deepcopy(of_kind(manifests, "ServiceMonitor"))
    monitor["spec"]["endpoints"][0]["intervall"] = "15s"
    with pytest.raises(subprocess.CalledProcessError):
        check(OPERATOR_CHECK, "cloudcoil.models.prometheus_operator.v1", [monitor])


def test_unknown_field_is_found(manifests):
    deployment = of_kind(manifests, "Deployment")
    deployment["spec"]["template"]["spec"]["readinesProbe"] = {}
    with pytest.raises(subprocess.CalledProcessError):
        test_schemas_know_every_field([*manifests, deployment], VERSIONS[-1])
    del deployment["spec"]["template"]["spec"]["readinesProbe"]


def test_pod_is_unprivileged(manifests):
    pod = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsUser"] == 10001  # the user of the Dockerfile
    assert pod["securityContext"]["runAsNonRoot"] is True
    for security in (it["securityContext"] for it in containers(manifests)):
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}


def test_every_container_has_a_memory_limit(manifests):
    assert all(it["resources"]["limits"]["memory"] for it in containers(manifests))


def test_grace_period_covers_lame_duck_and_drain(manifests):
    arguments = container(manifests)["args"]
    taken = [
        int(arguments[arguments.index(flag) + 1]) for flag in ("--lame-duck", "--drain-timeout")
    ]
    pod = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > sum(taken)


def test_kubelet_restarts_the_server_with_back_off(manifests):
    pod = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Always"


def test_failed_server_drains_before_its_liveness_probe_ends_it(manifests):
    """The probe fails at once, and SIGTERM in a drain ends it. The drain takes this long, and
    five seconds more for what a client does not read (Server::Drain)."""
    probe = container(manifests)["livenessProbe"]
    assert service_of(probe) == "liveness"
    arguments = container(manifests)["args"]
    drain = int(arguments[arguments.index("--drain-timeout") + 1])
    assert (probe["failureThreshold"] - 1) * probe["periodSeconds"] > drain + 5


def service_of(probe: dict) -> str:
    """The service whose health a probe checks, by the kubelet or by `linnet health`."""
    if "grpc" in probe:
        return probe["grpc"].get("service", "")
    linnet, health, *words = probe["exec"]["command"]
    assert (linnet, health) == ("linnet", "health")
    return "" if not words or words[0].startswith("--") else words[0]


def test_readiness_checks_the_whole_server(manifests):
    for name in ("startupProbe", "readinessProbe"):
        assert service_of(container(manifests)[name]) == ""


def test_probe_timeout_exceeds_that_of_its_command(manifests):
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = container(manifests)[name]
        if "exec" in probe:
            words = probe["exec"]["command"]
            timeout = int(words[words.index("--timeout") + 1].removesuffix("s"))
            assert timeout < probe["timeoutSeconds"]


def test_plain_text_probes_only_without_tls(manifests):
    encrypted = any(argument.startswith("--tls-cert=") for argument in container(manifests)["args"])
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert ("exec" in container(manifests)[name]) == encrypted


def test_mounted_files_are_in_the_secrets_of_the_page(manifests):
    pod = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]
    volumes = {it["name"]: it["secret"] for it in pod["volumes"] if "secret" in it}
    mounts = {it["mountPath"]: it["name"] for it in container(manifests)["volumeMounts"]}
    told = [argument.partition("=")[2] for argument in container(manifests)["args"]]
    told += [variable["value"] for variable in container(manifests).get("env", [])]
    files = [Path(value) for value in told if value.startswith("/etc/linnet/")]
    page = (ROOT / "docs/TLS.md").read_text()
    for file in files:
        secret = volumes[mounts[str(file.parent)]]
        assert secret["defaultMode"] == 0o440  # for the group that fsGroup gives the server
        (make,) = re.findall(rf"kubectl create secret generic {secret['secretName']} .*", page)
        assert f"--from-file=secrets/server/{file.name}" in make
    assert bool(files) == bool(volumes)


def test_failure_record_survives_restarts(manifests):
    """The record is in a volume of the pod, which outlives its containers."""
    arguments = container(manifests)["args"]
    file = Path(arguments[arguments.index("--failure-record") + 1])
    mounts = {Path(mount["mountPath"]) for mount in container(manifests)["volumeMounts"]}
    assert mounts & set(file.parents)


def test_flags_and_ports_exist(manifests, program):
    help_text = subprocess.run(
        [program("linnet-server"), "--help-all"], capture_output=True, text=True, check=True
    ).stdout
    for argument in container(manifests)["args"]:
        if argument.startswith("--"):
            assert f"{argument.partition('=')[0]} " in help_text
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    for port in container(manifests)["ports"]:
        assert re.search(rf"^EXPOSE .*\b{port['containerPort']}\b", dockerfile, re.MULTILINE)


def test_service_and_network_policy_lead_to_the_same_ports(manifests):
    """The metrics, and either the server's calls or HAProxy's."""
    names = {port["name"] for it in containers(manifests) for port in it["ports"]}
    calls = "edge" if "edge" in names else "grpc"
    led = {port["targetPort"] for port in of_kind(manifests, "Service")["spec"]["ports"]}
    rules = of_kind(manifests, "NetworkPolicy")["spec"]["ingress"]
    allowed = {port["port"] for rule in rules for port in rule["ports"]}
    assert led == allowed == {calls, "metrics"} <= names


def test_network_policy_lets_pods_in_by_the_label_of_clients_alone(manifests):
    calls, metrics = of_kind(manifests, "NetworkPolicy")["spec"]["ingress"]
    assert calls["from"] == [
        {
            "podSelector": {
                "matchExpressions": [{"key": "linnet-client", "operator": "In", "values": ["true"]}]
            }
        }
    ]
    (prometheus,) = metrics["from"]
    assert list(prometheus) == ["namespaceSelector"]


def test_every_selector_matches_the_pods(manifests):
    labels = of_kind(manifests, "Deployment")["spec"]["template"]["metadata"]["labels"]
    service = of_kind(manifests, "Service")
    selectors = [
        of_kind(manifests, "Deployment")["spec"]["selector"]["matchLabels"],
        service["spec"]["selector"],
        of_kind(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        of_kind(manifests, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ]
    for selector in selectors:
        assert selector
        assert selector.items() <= labels.items()
    monitor = of_kind(manifests, "ServiceMonitor")["spec"]["selector"]["matchLabels"]
    assert monitor.items() <= service["metadata"]["labels"].items()


def test_label_of_the_page_is_on_all_that_prometheus_selects(tmp_path):
    """And on no selector: those of a deployment that runs cannot be changed."""
    (line,) = re.findall(r"`(labels: \[.*\])`", (ROOT / "docs/KUBERNETES.md").read_text())
    shutil.copytree(FOLDER, tmp_path / "kubernetes")
    overlay = tmp_path / "kubernetes/overlays/cpu"
    with (overlay / "kustomization.yaml").open("a") as file:
        file.write(f"{line}\n")
    with_label, without = build(overlay), build(FOLDER / "overlays/cpu")
    for kind in OPERATOR:
        assert of_kind(with_label, kind)["metadata"]["labels"]["release"] == "NAME"
    for one, other in zip(with_label, without, strict=True):
        assert one["spec"] == other["spec"]


def test_autoscaler_metric_comes_from_an_exported_one(manifests, page):
    adapter = yaml.safe_load((FOLDER / "components/autoscaling/adapter-rules.yaml").read_text())
    (rule,) = adapter["rules"]["custom"]
    (metric,) = of_kind(manifests, "HorizontalPodAutoscaler")["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] == rule["name"]["as"]
    assert rule["seriesQuery"].partition("{")[0] in page
    assert re.fullmatch(rule["name"]["matches"], rule["seriesQuery"].partition("{")[0])


# --- The rules ----------------------------------------------------------------------------------


def rule_groups() -> list[dict]:
    files = ("rules.yml", "alerts.yml")
    folder = ROOT / "deploy/prometheus"
    return [
        group for name in files for group in yaml.safe_load((folder / name).read_text())["groups"]
    ]


def test_operator_rules_equal_those_of_prometheus():
    assert yaml.safe_load(RULES.read_text())["spec"]["groups"] == rule_groups(), (
        "run python tests/deploy/kubernetes_test.py"
    )


def write_rules() -> None:
    rule = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "linnet", "labels": {"app.kubernetes.io/name": "linnet"}},
        "spec": {"groups": rule_groups()},
    }
    head = "# Written by tests/deploy/kubernetes_test.py from deploy/prometheus: change it there.\n"
    RULES.write_text(head + yaml.safe_dump(rule, sort_keys=False, width=120, allow_unicode=True))


if __name__ == "__main__":
    write_rules()
