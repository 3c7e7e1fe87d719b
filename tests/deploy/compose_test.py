"""The compose files: rights and limits of each service, its dependencies, the variables of .env.

Read here; container_test.py runs them.
"""

from __future__ import annotations

import ipaddress
import re
import subprocess
import tomllib

import pytest
import yaml
from programs import ROOT

FILE = ROOT / "docker-compose.yml"
OVERRIDE = ROOT / "docker-compose.gpu.yml"
LAID_OVER = sorted(ROOT.glob("docker-compose.*.yml"))
SERVICES = yaml.safe_load(FILE.read_text())["services"]
BUILT = {name: service for name, service in SERVICES.items() if "build" in service}
SERVERS = [name for name, service in BUILT.items() if service["build"]["target"] == "cpu"]


def with_defaults(text: str) -> str:
    """The text with the default of each variable in its place."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


def seconds(duration: str) -> int:
    return int(re.fullmatch(r"(\d+)s", duration)[1])


@pytest.mark.parametrize("name", SERVICES)
def test_service_is_read_only_and_unprivileged(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"privileged", "cap_add"}.isdisjoint(service)


@pytest.mark.parametrize("name", SERVICES)
def test_service_limits_memory_and_processes(name):
    assert SERVICES[name]["mem_limit"]
    assert SERVICES[name]["pids_limit"] > 0


@pytest.mark.parametrize("name", SERVERS)
def test_server_uses_the_granted_cores(name):
    assert SERVICES[name]["cpus"] == "${LINNET_CPUS:-0}"


def test_ports_are_published_on_loopback_only():
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) >= 4
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_host_folders_are_read_only_and_data_is_in_volumes():
    named = yaml.safe_load(FILE.read_text())["volumes"]
    used = set()
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            source, _, target = volume.partition(":")
            if source.startswith("."):
                assert (ROOT / source).exists(), source
                assert target.endswith(":ro"), volume
            else:
                used.add(source)
    assert used == set(named)
    assert {"prometheus", "grafana"} <= used


def test_dependencies_wait_for_health():
    waits = {
        (name, other): condition["condition"]
        for name, service in SERVICES.items()
        for other, condition in service.get("depends_on", {}).items()
    }
    assert set(waits) >= {("prometheus", "server"), ("grafana", "prometheus")}
    assert set(waits.values()) == {"service_healthy"}
    for _, other in waits:
        assert SERVICES[other]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("name", SERVERS)
def test_server_is_restarted_with_dockers_back_off(name):
    """`deploy.restart_policy` or a number of attempts would replace the back-off."""
    assert SERVICES[name]["restart"] == "unless-stopped"
    assert "restart_policy" not in SERVICES[name].get("deploy", {})


@pytest.mark.parametrize("name", SERVERS)
def test_failure_record_survives_restarts(name):
    """It is in a named volume, which gets the owner of the folder that the image has there."""
    folder, _, _ = SERVICES[name]["environment"]["LINNET_SERVER_FAILURE_RECORD"].rpartition("/")
    mounted = [volume.split(":") for volume in SERVICES[name]["volumes"]]
    assert ["failures", folder] in mounted
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    assert f"install --directory --owner linnet --group linnet {folder}" in dockerfile


@pytest.mark.parametrize("name", SERVERS)
def test_stop_grace_period_covers_lame_duck_and_drain(name, program):
    help_text = subprocess.run(
        [program("linnet-server"), "--help"], capture_output=True, text=True, check=True
    ).stdout
    (drain,) = re.findall(r"--drain-timeout .*=(\d+)$", help_text, re.MULTILINE)
    command = SERVICES[name]["command"]
    lame_duck = command[command.index("--lame-duck") + 1]
    assert seconds(SERVICES[name]["stop_grace_period"]) > int(lame_duck) + int(drain)


def test_gpu_overlay_changes_no_flags():
    """The list of another overlay, such as that of HAProxy, would replace them."""
    services = yaml.safe_load(OVERRIDE.read_text())["services"]
    changed = services["server"]
    assert "command" not in changed
    assert changed["environment"] == {"LINNET_SERVER_DEVICE": "cuda"}
    assert changed["build"]["target"] == "cuda"
    # Services that run the image of the server without building it run that of the overlay: compose
    # would pull the other one.
    image = SERVICES["server"]["image"]
    users = {name for name, it in SERVICES.items() if it["image"] == image and "build" not in it}
    assert {name for name, it in services.items() if it["image"] == changed["image"]} == {
        "server",
        *users,
    }


def test_all_servers_have_the_bundles_of_the_models_overlay():
    changed = yaml.safe_load((ROOT / "docker-compose.models.yml").read_text())["services"]
    assert set(changed) == set(SERVERS)
    folders = {volume.split(":", 2)[-1] for it in changed.values() for volume in it["volumes"]}
    assert len(folders) == 1


FETCH = yaml.safe_load((ROOT / "docker-compose.fetch.yml").read_text())


def test_fetched_models_are_served_when_they_are_whole():
    services = FETCH["services"]
    assert set(services) == {"model", *SERVERS}
    for name in SERVERS:
        condition = services[name]["depends_on"]["model"]["condition"]
        assert condition == "service_completed_successfully"
        assert services[name]["volumes"] == ["fetched:/opt/linnet/models:ro"]
    assert set(FETCH["volumes"]) == {"fetched"}


def test_fetching_service_is_unprivileged_and_ends():
    model = FETCH["services"]["model"]
    assert model["read_only"] is True
    assert model["cap_drop"] == ["ALL"]
    assert model["security_opt"] == ["no-new-privileges:true"]
    assert model["restart"] == "no"
    assert model["mem_limit"]
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    assert f"FROM base AS {model['build']['target']}\n" in dockerfile
    (volume,) = model["volumes"]
    folder = volume.removeprefix("fetched:")
    assert f"install --directory --owner linnet --group linnet {folder}" in dockerfile


def test_fetching_service_runs_a_command_of_linnet_model():
    """With a name of the catalogue, and so that it may run again and again."""
    command, name, *flags = with_defaults(FETCH["services"]["model"]["command"]).split()
    assert command == "fetch"
    catalog = (ROOT / "model/linnet_model/fetch/catalog.toml").read_text()
    assert name in tomllib.loads(catalog)["model"]
    assert flags == ["--keep", "--out", "/var/lib/linnet"]


def overlay(name: str) -> dict:
    return yaml.safe_load((ROOT / f"docker-compose.{name}.yml").read_text())["services"]


@pytest.mark.parametrize("file", ["", "tls", "edge"])
def test_linnet_http_finds_the_server_and_its_metrics(file, linnet_http_options):
    services = overlay(file) if file else SERVICES
    options = linnet_http_options(services["http"]["command"])
    host, _, port = options.server.partition(":")
    assert host in {*SERVICES, *services}
    assert host == ("edge" if file == "edge" else "server")
    assert port == ("50050" if file == "edge" else "50051")
    assert options.server_metrics == "server:9464"


def test_linnet_http_of_the_tls_overlay_trusts_the_authority_of_the_page(linnet_http_options):
    http = overlay("tls")["http"]
    options = linnet_http_options(http["command"])
    assert options.key_required
    assert f"DNS:{options.tls_server_name}," in (ROOT / "docs/TLS.md").read_text()
    (volume,) = http["volumes"]
    assert volume.removesuffix(":ro").rpartition(":")[2] == str(options.ca_file.parent)
    page = (ROOT / "docs/TLS.md").read_text()
    assert "secrets/client" in page
    assert f"/{options.ca_file.name}" in page


def test_glossaries_of_linnet_http_survive_restarts(linnet_http_options):
    (volume,) = SERVICES["http"]["volumes"]
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    (entry,) = re.findall(r'^ENTRYPOINT \["linnet-http", (.*)\]$', dockerfile, re.MULTILINE)
    options = linnet_http_options([it.strip('"') for it in entry.split(", ")])
    folder = volume.partition(":")[2]
    assert str(options.glossaries.parent) == folder
    assert f"install --directory --owner linnet --group linnet {folder}" in dockerfile


def test_every_published_port_leads_to_one_service():
    """Compose adds the ports of an overlay to those of the file below it."""
    files = [yaml.safe_load(file.read_text()) for file in (FILE, *LAID_OVER)]
    services = [service for it in files for service in it["services"].values()]
    ports = [port for service in services for port in service.get("ports", [])]
    defaults = [with_defaults(port).split(":")[1] for port in ports]
    assert len(set(defaults)) == len(defaults) >= 4


def test_server_of_the_edge_overlay_trusts_and_answers_only_its_network():
    """On a port that the file below does not publish, at addresses that no other container gets."""
    overlay = yaml.safe_load((ROOT / "docker-compose.edge.yml").read_text())
    server, edge = overlay["services"]["server"], overlay["services"]["edge"]
    addresses = [it["networks"]["edge"]["ipv4_address"] for it in (server, edge)]
    flags = dict(zip(server["command"][::2], server["command"][1::2], strict=True))
    host, _, port = flags["--listen"].rpartition(":")
    assert [host, flags["--trusted-proxies"]] == addresses
    assert port != SERVICES["server"]["ports"][0].rpartition(":")[2]
    assert server["environment"]["LINNET_SERVER"] == flags["--listen"]
    assert edge["environment"]["LINNET_SERVER"] == flags["--listen"]
    (network,) = overlay["networks"]["edge"]["ipam"]["config"]
    subnet, others = (
        ipaddress.ip_network(with_defaults(network[key])) for key in ("subnet", "ip_range")
    )
    assert others.subnet_of(subnet)
    for address in addresses:
        fixed = ipaddress.ip_address(with_defaults(address))
        assert fixed in subnet
        assert fixed not in others


def test_edge_overlay_publishes_the_port_of_haproxy():
    overlay = yaml.safe_load((ROOT / "docker-compose.edge.yml").read_text())["services"]
    environment = overlay["edge"]["environment"]
    (port,) = overlay["edge"]["ports"]
    assert environment["LINNET_EDGE_LISTEN"] == f":{port.rpartition(':')[2]}"
    entry = overlay["load"]["entrypoint"]
    assert entry[entry.index("--server") + 1] == f"edge{environment['LINNET_EDGE_LISTEN']}"
    config = (ROOT / "deploy/balancers/haproxy-edge.cfg").read_text()
    assert set(re.findall(r"\$\{(\w+)", config)) == set(environment)


def test_haproxy_of_the_edge_overlays_has_memory_for_a_buffer_of_every_call():
    config = (ROOT / "deploy/balancers/haproxy-edge.cfg").read_text()
    connections, buffer, calls = (
        int(re.search(rf"^ +{name} (\d+)", config, re.MULTILINE)[1])
        for name in ("maxconn", r"tune\.bufsize", r"tune\.h2\.max-concurrent-streams")
    )
    compose = (ROOT / "docker-compose.edge.yml").read_text()
    kubernetes = (ROOT / "deploy/kubernetes/components/edge/kustomization.yaml").read_text()
    (compose_gib,) = re.findall(r"mem_limit: (\d+)g", compose)
    (kubernetes_gib,) = re.findall(r"limits: {memory: (\d+)Gi}", kubernetes)
    # Half as much again for the connections themselves and their TLS.
    assert int(compose_gib) * 2**30 >= 1.5 * connections * calls * buffer
    assert compose_gib == kubernetes_gib


@pytest.mark.parametrize("engine", ["ray", "spark"])
def test_nodes_of_a_cluster_are_unprivileged_and_reached_by_nobody_else(engine):
    nodes = overlay(engine)
    assert [it.get("deploy", {}).get("replicas", 1) for it in nodes.values()] == [1, 2]
    for node in nodes.values():
        assert node["read_only"] is True
        assert node["cap_drop"] == ["ALL"]
        assert node["security_opt"] == ["no-new-privileges:true"]
        assert node["mem_limit"]
        assert node["pids_limit"] > 0
        assert {"ports", "privileged", "cap_add"}.isdisjoint(node)
        assert f"ENGINE={engine}" in node["build"]["args"]
        assert [with_defaults(it) for it in node["volumes"]] == ["./corpus:/corpus"]
    assert "\nWORKDIR /corpus\n" in (ROOT / "deploy/corpus.Dockerfile").read_text()


def test_env_example_lists_every_variable_with_its_default():
    files = "".join(file.read_text() for file in (FILE, *LAID_OVER))
    variables = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", files))
    assert len(re.findall(r"\$\{", files)) == len(re.findall(r"\$\{\w+:-[^}]*\}", files))
    example = (ROOT / ".env.example").read_text()
    assert dict(re.findall(r"^(\w+)=(.*)$", example, re.MULTILINE)) == variables
    for argument in SERVICES["server"]["build"]["args"]:
        assert re.search(rf"^# {argument}=", example, re.MULTILINE)
