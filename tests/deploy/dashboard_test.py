"""The dashboard: each query of each panel returns data from a server under load.

Prometheus and the server are real. Of Grafana only its variables are played: what
deploy/grafana/dashboards/linnet.json asks is what Grafana would send.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import programs
import pytest
import yaml
from programs import ROOT
from prometheus_process import Prometheus
from replicas import Server

DASHBOARD = json.loads((ROOT / "deploy/grafana/dashboards/linnet.json").read_text())
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}


def panels() -> list[dict]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def queries() -> list[tuple[str, str]]:
    """(panel, expression), as it goes to Prometheus: with the variables at what Grafana chooses."""
    values = {"job": "linnet", "__rate_interval": "20s"}
    values |= {name: variable["allValue"] for name, variable in VARIABLES.items() if is_multi(name)}
    found = []
    for panel in panels():
        for target in panel["targets"]:
            expression = re.sub(r"\$(\w+)", lambda match: values[match[1]], target["expr"])
            found.append((panel["title"], expression))
    return found


def is_multi(name: str) -> bool:
    return VARIABLES[name].get("multi", False)


@pytest.fixture(scope="module")
def prometheus(server: Server, load) -> Iterator[Prometheus]:
    """One that has watched a server under load, which still goes on."""
    running = Prometheus(programs.find("prometheus"), [server.metrics])
    try:
        running.wait_for('up{job="linnet"} == 1')
        flags = ("--concurrency", "4", "--duration", "2m", "--words", "3", "8", "--from", "en")
        loads = [
            load(server.grpc, *flags, "--to", "de"),
            load(server.grpc, *flags, "--task", "summarize"),
        ]
        try:
            running.wait_for('linnet_sequences_total{outcome="finished", model="en-summary"} > 8')
            # The rates of the recording rules need two scrapes that the rules have seen.
            running.wait_for("job:linnet_slow:burnrate1h and job:linnet_errors:burnrate1h")
            running.wait_for('job_model:linnet_rows_used:ratio5m{model="en-summary"}')
            yield running
        finally:
            for process in loads:
                process.kill()
                process.communicate()
    finally:
        running.stop()


@pytest.mark.parametrize(("panel", "expression"), queries(), ids=lambda text: text[:60])
def test_a_query_of_a_panel_returns_data(prometheus, panel, expression):
    result = prometheus.query(expression)
    assert result, f"nothing for {panel}: {expression}"
    values = [float(series["value"][1]) for series in result]
    assert any(value == value for value in values), f"only NaN for {panel}: {expression}"


@pytest.mark.parametrize("name", [name for name in VARIABLES if name != "datasource"])
def test_a_variable_has_values(prometheus, name):
    query = VARIABLES[name]["query"]["query"].replace("$job", "linnet")
    metric, label = re.fullmatch(r"label_values\((.+), (\w+)\)", query).groups()
    assert prometheus.ask(f"label/{label}/values", **{"match[]": metric})


def test_all_rules_are_evaluated_without_a_fault(prometheus):
    groups = prometheus.ask("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) > 20
    assert [rule for rule in rules if rule["health"] != "ok" or rule.get("lastError")] == []


# --- The file -----------------------------------------------------------------------------------


def test_panels_fill_the_grid_without_overlap():
    taken: dict[tuple[int, int], str] = {}
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                taken[x, y] = panel["title"]
    identities = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(identities)) == len(identities)


def test_panels_ask_the_data_source_that_was_chosen_and_say_their_unit():
    for panel in panels():
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        for asked in (panel, *panel["targets"]):
            assert asked["datasource"]["uid"] == "${datasource}", panel["title"]


def test_what_is_provisioned_is_where_it_is_looked_for():
    folder = ROOT / "deploy/grafana/provisioning"
    (source,) = yaml.safe_load((folder / "datasources/prometheus.yml").read_text())["datasources"]
    (provider,) = yaml.safe_load((folder / "dashboards/linnet.yml").read_text())["providers"]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    mounts = dict(volume.split(":")[:2] for volume in compose["grafana"]["volumes"])
    assert mounts["./deploy/grafana/provisioning"] == "/etc/grafana/provisioning"
    assert mounts["./deploy/grafana/dashboards"] == provider["options"]["path"]
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in compose
