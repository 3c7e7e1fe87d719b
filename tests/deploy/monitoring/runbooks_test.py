"""Panels, commands, settings and log events that docs/RUNBOOKS.md names exist.

rules_test.py checks that each alert has a section; tests/pages_test.py checks the links.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess

import pytest
import yaml
from programs import ROOT

PAGE = ROOT / "docs/RUNBOOKS.md"
TEXT = PAGE.read_text()


def titles() -> set[str]:
    panels = json.loads((ROOT / "deploy/grafana/dashboards/linnet.json").read_text())["panels"]
    return {panel["title"] for panel in panels}


def test_named_panels_are_on_the_dashboard():
    """Only panels are in italics."""
    named = re.findall(r"(?<![*\w])\*([^*\n]+)\*(?![*\w])", TEXT)
    assert len(named) > 8
    assert set(named) <= titles()


def test_panels_named_for_the_version_of_a_bundle_show_it():
    """linnet_build_info has the version of the server, linnet_model_info that of a bundle."""
    named = re.findall(r"bundle \(panel \*(\w+)\*\)|is served, and the panel \*(\w+)\*", TEXT)
    wanted = {title for pair in named for title in pair if title}
    assert len(named) == 2
    panels = json.loads((ROOT / "deploy/grafana/dashboards/linnet.json").read_text())["panels"]
    for panel in panels:
        if panel["title"] in wanted:
            assert "linnet_model_info" in panel["targets"][0]["expr"], panel["title"]


@pytest.mark.parametrize("alert", ["LinnetErrors", "LinnetSlow"])
def test_shares_of_calls_are_those_at_which_the_alert_fires(alert):
    """A burn rate times the share of calls that the objective tolerates."""
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"]
    found = [rule for group in rules for rule in group["rules"] if rule.get("alert") == alert]
    recorded = (ROOT / "deploy/prometheus/rules.yml").read_text()
    (section,) = re.findall(rf"^## {alert}$(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert len(found) == 2
    for rule in found:
        name, rate = re.match(
            r"(job:\w+:burnrate1h|job:\w+:burnrate6h) > ([\d.]+)", rule["expr"]
        ).groups()
        (tolerated,) = re.findall(rf"record: {name}\n.*?/ (0\.\d+)\n", recorded, re.DOTALL)[:1]
        share = f"more than {100 * float(rate) * float(tolerated):g} %"
        assert share in re.sub(r"\s+", " ", section.replace("More", "more")), share


def test_rolling_back_a_release_starts_the_older_one():
    """Packages restart nothing, and docker-compose.yml has no tag that one could change."""
    (section,) = re.findall(r"^## Rolling back$(.*?)(?=^## )", TEXT, re.MULTILINE | re.DOTALL)
    assert "`systemctl daemon-reload && systemctl restart linnet-server`" in section
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    (variable, name) = re.fullmatch(r"\$\{(\w+):-([\w-]+)\}", services["server"]["image"]).groups()
    assert f"`{variable}={name}:VERSION` in `.env`" in section
    (component,) = {part for part in re.findall(r"\./([\w-]+)_VERSION_amd64\.deb", section)}
    assert f"`{component}`" in (ROOT / "docs/DEPLOYMENT.md").read_text()


# Commands of a machine that runs containers or systemd; the image has none of them.
OF_THE_MACHINE = {"cut", "dmesg", "grep", "journalctl", "nvidia-smi", "sort", "systemctl", "tr"}
OF_THE_MACHINE |= {"uniq", "docker", "kubectl", "openssl", "apt-get", "ss"}


def commands() -> list[str]:
    (block,) = re.findall(r"^```\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    lines = [re.split(r"   ", line)[0].strip() for line in block.splitlines()]
    return [*lines, *re.findall(r"`([a-z][\w-]* [^`]+)`", TEXT)]


def test_commands_are_found():
    assert len(commands()) > 15
    assert {command.split()[0] for command in commands()} >= {"linnet", "docker", "grep"}


def test_panels_of_the_capacity_page_are_on_the_dashboard():
    named = re.findall(r"panel \*([^*]+)\*", (ROOT / "docs/CAPACITY.md").read_text())
    assert named
    assert set(named) <= titles()


@pytest.mark.parametrize("command", commands())
def test_command_exists(command, program):
    """Its service, deployment or unit exists as well."""
    words = command.split()
    if words[0] == "linnet":
        done = subprocess.run(
            [program("linnet"), words[1], "--help"], capture_output=True, text=True, check=True
        )
        for flag in re.findall(r"--[\w-]+", command):
            assert flag in done.stdout
        return
    for part in command.split(" | "):
        assert part.split()[0] in OF_THE_MACHINE, f"{part}: in the image there is only linnet"
    if words[:3] == ["docker", "compose", "exec"]:
        services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
        assert words[3] in services
        for host, port in re.findall(r"http://(\w+):(\d+)/metrics", command):
            assert host in services
            assert port == "9464"
        # Prometheus' image has wget, from busybox; ours has not.
        assert "wget" not in words or words[3] == "prometheus"
    elif words[0] == "kubectl":
        base = ROOT / "deploy/kubernetes/base/deployment.yaml"
        names = {part["metadata"]["name"] for part in yaml.safe_load_all(base.read_text())}
        assert words[1] in ("describe", "exec", "logs", "port-forward", "rollout")
        assert set(re.findall(r"deploy/(\w+)", command)) <= names
    elif words[0] in ("journalctl", "systemctl"):
        units = {path.stem for path in (ROOT / "deploy/systemd").glob("*.service")}
        assert set(re.findall(r"\b(linnet[\w-]*)", command)) <= units


def test_statuses_of_the_health_check_are_those_of_the_page(program):
    with socket.socket() as silent:  # as a server that hangs
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        command = [program("linnet"), "health", "--timeout", "1s", "--server", address]
        unanswered = subprocess.run(command, capture_output=True).returncode
    unreached = subprocess.run(command, capture_output=True).returncode
    assert f"exit status {unreached}: it cannot be reached" in TEXT
    assert f"{unanswered}: it does not answer in time" in TEXT


def test_search_finds_calls_that_failed_twice(tmp_path):
    """The pipeline of LinnetRestarts, over the logs of two replicas."""
    (search,) = [it for it in commands() if it.startswith("grep -h engine_failed_for_good")]
    event = "T error engine_failed_for_good model=en-de why=stalled requests=2 request_ids=%s"
    for name, ids in (("a", "one,two"), ("b", "three,two")):
        (tmp_path / name).write_text(f"T info call request_id=one code=OK\n{event % ids}\n")
    done = subprocess.run(
        ["sh", "-c", search.replace("LOGS", "a b")], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == "two\n", done.stderr


def test_named_settings_exist(program):
    named = set(re.findall(r"`(--[a-z][\w-]+)", TEXT))
    assert len(named) > 3
    settings = (ROOT / "docs/SETTINGS.md").read_text()
    said = subprocess.run(
        [program("linnet"), "translate", "--help"], capture_output=True, text=True, check=True
    ).stdout
    for flag in named:
        assert f"| `{flag.removeprefix('--')}` |" in settings or f"{flag} " in said, flag


def test_named_log_events_exist():
    sources = [*(ROOT / "server").rglob("*.cc"), *(ROOT / "server").rglob("*.h")]
    code = "".join(path.read_text() for path in sources)
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+|draining)`", TEXT)) - {"max_target_tokens"}
    assert {"engine_failed", "engine_failed_for_good", "suspect_request", "draining"} <= named
    for event in named:
        assert f'"{event}"' in code, event
