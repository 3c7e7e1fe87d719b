"""Rules and alerts of Prometheus: syntax, test cases, runbooks, metrics.

deploy/prometheus/alerts_test.yml holds the cases.
"""

from __future__ import annotations

import re
import subprocess

import programs
import pytest
import yaml
from programs import ROOT
from prometheus_process import Prometheus
from replicas import free_port

FOLDER = ROOT / "deploy/prometheus"
RUNBOOKS = ROOT / "docs/RUNBOOKS.md"
RUNBOOK_URL = '{{ or $externalLabels.runbooks "docs/RUNBOOKS.md" }}#%s'


@pytest.fixture(scope="module")
def promtool() -> str:
    return programs.find("promtool")


def rules() -> list[dict]:
    files = [yaml.safe_load((FOLDER / name).read_text()) for name in ("rules.yml", "alerts.yml")]
    return [rule for file in files for group in file["groups"] for rule in group["rules"]]


def alerts() -> set[str]:
    return {rule["alert"] for rule in rules() if "alert" in rule}


def test_configuration_and_rules_are_well_formed(promtool):
    subprocess.run([promtool, "check", "config", "prometheus.yml"], cwd=FOLDER, check=True)


def test_alerts_fire_and_end_as_in_the_cases(promtool):
    subprocess.run([promtool, "test", "rules", "alerts_test.yml"], cwd=FOLDER, check=True)


def test_every_alert_has_a_firing_and_a_quiet_case():
    scenarios = yaml.safe_load((FOLDER / "alerts_test.yml").read_text())["tests"]
    cases = [case for scenario in scenarios for case in scenario.get("alert_rule_test", [])]
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == alerts()
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == alerts()


def test_alerts_and_runbook_sections_match():
    assert set(re.findall(r"^## (\w+)$", RUNBOOKS.read_text(), re.MULTILINE)) == alerts()
    for rule in rules():
        if name := rule.get("alert"):
            assert rule["annotations"]["runbook_url"] == RUNBOOK_URL % name.lower()
            assert rule["labels"]["severity"] in ("page", "ticket")


@pytest.mark.parametrize(
    ("setting", "link"),
    [
        ("https://wiki.example/linnet.md", "https://wiki.example/linnet.md#linnetdown"),
        ("", "docs/RUNBOOKS.md#linnetdown"),
    ],
)
def test_runbook_link_follows_the_setting(setting, link):
    """RUNBOOKS_URL, with the configuration and the flags that compose gives to Prometheus."""
    nobody = f"127.0.0.1:{free_port()}"
    running = Prometheus(programs.find("prometheus"), [nobody], runbooks=setting)
    try:
        running.wait_for('ALERTS{alertname="LinnetDown"}')
        alerts = running.ask("alerts")["alerts"]
        links = [
            alert["annotations"]["runbook_url"]
            for alert in alerts
            if alert["labels"]["alertname"] == "LinnetDown"
        ]
        assert links == [link]
    finally:
        running.stop()


def test_rules_use_exported_metrics(page):
    """`page` has the metrics of a running server by name."""
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    for rule in rules():
        expression = rule["expr"]
        for name in set(re.findall(r"\bjob[\w]*:[\w:]+|\binstance:[\w:]+", expression)):
            assert name in recorded, f"{name} in {expression}"
            expression = expression.replace(name, "")
        for name in re.findall(r"\b(?:linnet|process)_\w+", expression):
            assert name in page, f"{name} in {rule['expr']}"


def test_bucket_bounds_in_rules_exist(page):
    wanted = {
        (name, bound)
        for rule in rules()
        for name, bound in re.findall(r'(\w+_bucket)\{[^}]*\ble="([^"]+)"', rule["expr"])
    }
    assert wanted
    for name, bound in wanted:
        assert any(f'le="{bound}"' in sample for sample in page[name]), f"{name} le={bound}"
