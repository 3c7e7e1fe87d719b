"""The dashboard: each query of each panel returns data from a server under load.

Prometheus and the server are real. The tests replace the variables as Grafana does, so that
the queries of deploy/grafana/dashboards/linnet.json are those that Grafana would send.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
from collections.abc import Iterator

import programs
import pytest
import yaml
from programs import ROOT
from prometheus_process import Prometheus
from replicas import Server

# Parses a dashboard into the types that Grafana generates from its schema, and prints them.
READ_BY_GRAFANA = """
import json, sys
from grafana_foundation_sdk.cog import encoder, plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
plugins.register_default_plugins()
print(encoder.JSONEncoder().encode(Dashboard.from_json(json.load(sys.stdin))))
"""
NOT_IN_THE_SCHEMA = {"definition", "titleFormat"}  # Grafana writes them, its schema lacks them
DASHBOARD = json.loads((ROOT / "deploy/grafana/dashboards/linnet.json").read_text())
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}


def panels() -> list[dict]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def queries() -> list[tuple[str, str]]:
    """(panel, expression) as sent to Prometheus, with the variables replaced as by Grafana."""
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
    """A Prometheus that scrapes a server under load; the load continues."""
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
            # The rates of the recording rules need two scrapes.
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
def test_panel_query_returns_data(prometheus, panel, expression):
    result = prometheus.query(expression)
    assert result, f"nothing for {panel}: {expression}"
    values = [float(series["value"][1]) for series in result]
    assert any(value == value for value in values), f"only NaN for {panel}: {expression}"


@pytest.mark.parametrize("name", [name for name in VARIABLES if name != "datasource"])
def test_variable_has_values(prometheus, name):
    query = VARIABLES[name]["query"]["query"].replace("$job", "linnet")
    metric, label = re.fullmatch(r"label_values\((.+), (\w+)\)", query).groups()
    assert prometheus.ask(f"label/{label}/values", **{"match[]": metric})


def test_all_rules_are_evaluated_without_error(prometheus):
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


def unknown(written, read, path: str = "") -> list[str]:
    """The fields that were not read, or whose value changed."""
    if isinstance(written, dict) and isinstance(read, dict):
        found = []
        for key in written.keys() - NOT_IN_THE_SCHEMA:
            found += unknown(written[key], read.get(key, "nothing"), f"{path}.{key}")
        return sorted(found)
    if isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        pairs = enumerate(zip(written, read, strict=True))
        return [it for i, (one, other) in pairs for it in unknown(one, other, f"{path}[{i}]")]
    return [] if written == read else [path]


def read_by_grafana(dashboard: dict) -> dict:
    done = subprocess.run(
        [programs.checker("python"), "-c", READ_BY_GRAFANA],
        input=json.dumps(dashboard),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_grafana_schema_knows_every_field():
    """Panels, their options, targets and variables, in the version that compose starts."""
    pins = (ROOT / "tests/deploy/checkers.txt").read_text()
    (known,) = re.findall(r"^grafana-foundation-sdk==.*!(\S+)", pins, re.MULTILINE)
    assert f"grafana/grafana:{known}" in (ROOT / "docker-compose.yml").read_text()
    assert unknown(DASHBOARD, read_by_grafana(DASHBOARD)) == []


@pytest.mark.parametrize(
    "path",
    [
        ("gridpos",),
        ("options", "legend", "showLegends"),
        ("fieldConfig", "defaults", "custom", "filOpacity"),
        ("targets", 0, "exprr"),
    ],
)
def test_field_unknown_to_grafana_is_found(path):
    dashboard = copy.deepcopy(DASHBOARD)
    place = next(panel for panel in dashboard["panels"] if panel["type"] == "timeseries")
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = "wrong"
    (found,) = unknown(dashboard, read_by_grafana(dashboard))
    assert found.endswith(f".{path[-1]}")


def test_panels_have_data_source_and_unit():
    for panel in panels():
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        for asked in (panel, *panel["targets"]):
            assert asked["datasource"]["uid"] == "${datasource}", panel["title"]


def test_counts_of_encoded_sequences_leave_out_those_that_joined():
    """A sequence that joins an identical one has a wait in the queue but no encoding."""
    (panel,) = [it for it in panels() if it["title"] == "Sequences encoded together"]
    (target,) = panel["targets"]
    waited, joined, encoded = re.findall(r"rate\((\w+)", target["expr"])
    assert waited == "linnet_queue_duration_seconds_count"
    assert joined == "linnet_coalesced_sequences_total"
    assert encoded == "linnet_encode_duration_seconds_count"
    assert re.fullmatch(r"\(.+\]\)\) - .+\]\)\)\) / .+", target["expr"])


def test_panel_of_the_autoscaler_shows_its_metric():
    """The query is that of prometheus-adapter, with its templates for one server."""
    folder = ROOT / "deploy/kubernetes/components/autoscaling"
    (rule,) = yaml.safe_load((folder / "adapter-rules.yaml").read_text())["rules"]["custom"]
    series = re.match(r"\w+", rule["seriesQuery"])[0]
    asked = rule["metricsQuery"].replace("<<.Series>>", series).replace("<<.GroupBy>>", "instance")
    asked = asked.replace("<<.LabelMatchers>>", 'job="$job", instance=~"$instance"')
    (panel,) = [it for it in panels() if "autoscaler" in it.get("description", "")]
    assert [target["expr"] for target in panel["targets"]] == [asked]
    (metric,) = yaml.safe_load((folder / "autoscaler.yaml").read_text())["spec"]["metrics"]
    assert panel["description"].endswith(f"at {metric['pods']['target']['averageValue']}.")


def read(expression: str, rules: dict[str, str]) -> set[str]:
    """The metrics that an expression reads, also by way of recording rules."""
    names = set(re.findall(r"[\w:]+", expression))
    found = {re.sub("_(bucket|sum|count)$", "", name) for name in names}
    for rule in names & rules.keys():
        found |= read(rules[rule], rules)
    return found


def test_metrics_page_names_who_reads_each_metric():
    folder = ROOT / "deploy/prometheus"
    groups = [
        group
        for file in ("rules.yml", "alerts.yml")
        for group in yaml.safe_load((folder / file).read_text())["groups"]
    ]
    each = [rule for group in groups for rule in group["rules"]]
    rules = {rule["record"]: rule["expr"] for rule in each if "record" in rule}
    readers = {rule["alert"]: read(rule["expr"], rules) for rule in each if "alert" in rule}
    for panel in panels():
        readers[panel["title"]] = {
            name for target in panel["targets"] for name in read(target["expr"], rules)
        }
    page = (ROOT / "docs/METRICS.md").read_text()
    rows = re.findall(r"^\| `((?:linnet|process)_\w+)` \|.*\| ([^|]+) \|$", page, re.MULTILINE)
    assert 40 < len(rows) <= 55, "remove one that no alert and no panel reads"
    for metric, sentence in rows:
        named = re.findall(r"alert (\w+)|panel \*([^*]+)\*", sentence)
        assert named, f"{metric}: say which alert or panel reads it"
        for alert, panel in named:
            assert metric in readers[alert or panel], f"{metric}: {sentence}"


def test_recording_rules_are_used():
    """By an alert or a panel: Prometheus computes and keeps each of them."""
    rules = yaml.safe_load((ROOT / "deploy/prometheus/rules.yml").read_text())["groups"]
    recorded = {rule["record"] for group in rules for rule in group["rules"]}
    asked = (ROOT / "deploy/prometheus/alerts.yml").read_text() + json.dumps(DASHBOARD)
    assert {name for name in recorded if name not in asked} == set()


def test_provisioned_files_are_mounted_where_expected():
    folder = ROOT / "deploy/grafana/provisioning"
    (source,) = yaml.safe_load((folder / "datasources/prometheus.yml").read_text())["datasources"]
    (provider,) = yaml.safe_load((folder / "dashboards/linnet.yml").read_text())["providers"]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    mounts = dict(volume.split(":")[:2] for volume in compose["grafana"]["volumes"])
    assert mounts["./deploy/grafana/provisioning"] == "/etc/grafana/provisioning"
    assert mounts["./deploy/grafana/dashboards"] == provider["options"]["path"]
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in compose
