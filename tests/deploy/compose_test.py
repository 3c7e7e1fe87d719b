"""The compose files: what each service may do and use, what it waits for, what .env can change.

Read here; container_test.py runs them.
"""

from __future__ import annotations

import re
import subprocess

import pytest
import yaml
from programs import ROOT

FILE = ROOT / "docker-compose.yml"
OVERRIDE = ROOT / "docker-compose.gpu.yml"
LAID_OVER = sorted(ROOT.glob("docker-compose.*.yml"))
SERVICES = yaml.safe_load(FILE.read_text())["services"]
SERVERS = [name for name, service in SERVICES.items() if "build" in service]


def seconds(duration: str) -> int:
    return int(re.fullmatch(r"(\d+)s", duration)[1])


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_may_write_nowhere_and_gains_no_right(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"privileged", "cap_add"}.isdisjoint(service)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_a_limit_on_memory_and_on_processes(name):
    assert SERVICES[name]["mem_limit"]
    assert SERVICES[name]["pids_limit"] > 0


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_takes_as_many_cores_as_it_is_granted(name):
    assert SERVICES[name]["cpus"] == "${LINNET_CPUS:-0}"


def test_every_port_is_of_this_machine_alone():
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) >= 4
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_folders_of_this_machine_are_read_only_and_what_lasts_is_in_named_volumes():
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


def test_whoever_waits_for_another_waits_until_that_one_is_healthy():
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
def test_a_server_that_ends_by_itself_is_started_again_with_dockers_back_off(name):
    """Which `deploy.restart_policy` or a number of tries would take the place of."""
    assert SERVICES[name]["restart"] == "unless-stopped"
    assert "restart_policy" not in SERVICES[name].get("deploy", {})


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_has_longer_to_end_than_it_takes(name, program):
    help_text = subprocess.run(
        [program("linnet-server"), "--help"], capture_output=True, text=True, check=True
    ).stdout
    (drain,) = re.findall(r"--drain-timeout .*=(\d+)$", help_text, re.MULTILINE)
    command = SERVICES[name]["command"]
    lame_duck = command[command.index("--lame-duck") + 1]
    assert seconds(SERVICES[name]["stop_grace_period"]) > int(lame_duck) + int(drain)


def test_the_override_for_a_gpu_keeps_the_flags():
    (name,) = yaml.safe_load(OVERRIDE.read_text())["services"]
    changed = yaml.safe_load(OVERRIDE.read_text())["services"][name]
    assert [flag for flag in SERVICES[name]["command"] if flag not in changed["command"]] == []
    assert changed["build"]["target"] == "cuda"


def test_env_example_names_every_variable_at_its_default():
    files = "".join(file.read_text() for file in (FILE, *LAID_OVER))
    variables = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", files))
    assert len(re.findall(r"\$\{", files)) == len(re.findall(r"\$\{\w+:-[^}]*\}", files))
    example = (ROOT / ".env.example").read_text()
    assert dict(re.findall(r"^(\w+)=(.*)$", example, re.MULTILINE)) == variables
    for argument in SERVICES["server"]["build"]["args"]:
        assert re.search(rf"^# {argument}=", example, re.MULTILINE)
