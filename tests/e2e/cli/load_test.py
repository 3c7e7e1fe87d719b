"""linnet-load with the real server: its reports, and abandoned calls as the server sees them."""

from __future__ import annotations

import csv
import json
import subprocess
import xml.etree.ElementTree as xml

import pytest

PAIR = {"sourceLanguageCode": "en", "targetLanguageCode": "de"}


@pytest.fixture
def load(program, server):
    def run(*flags: str, status: int = 0) -> subprocess.CompletedProcess:
        command = [program("linnet-load"), "--server", server.grpc, *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == status, done.stderr
        return done

    return run


def growth(report: dict, name: str, **labels: str) -> float:
    """The growth of a counter in the report, summed over all samples with these labels."""
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    return sum(
        grew
        for sample, grew in report["server_metrics"]["counters"].items()
        if sample.startswith(name + "{") and all(each in sample for each in wanted)
    )


def test_mix_is_reported_as_json_html_and_csv(load, server, tmp_path):
    mix = tmp_path / "mix"
    kinds = [
        {
            "name": "greedy",
            "weight": 3,
            "translate": {**PAIR, "options": {"beamSize": 1}},
        },
        {"name": "n-best", "translate": {**PAIR, "options": {"beamSize": 4, "nBest": 4}}},
        {"name": "<sum>", "summarize": {"model": "en-summary"}, "words": [10, 20], "texts": 2},
    ]
    mix.write_text("".join(json.dumps(kind) + "\n" for kind in kinds))
    page, table = tmp_path / "load.html", tmp_path / "calls.csv"
    report = json.loads(
        load(
            *("--mix", str(mix), "--schedule", "40:1s,40..120:2s", "--words", "1", "4"),
            *("--html", str(page), "--csv", str(table), "--json", "--objective", "5s"),
            *("--metrics", f"http://{server.metrics}/metrics"),
        ).stdout
    )
    calls = report["calls"]["measured"]
    assert set(report["kinds"]) == {"greedy", "n-best", "<sum>"}
    assert sum(kind["calls"] for kind in report["kinds"].values()) == calls
    assert len(report["parts"]) == 1 + 8
    assert sum(part["calls"] for part in report["parts"]) == calls
    # The server's own metrics for the same time.
    answered = report["by_status"]["OK"]["calls"]
    assert growth(report, "linnet_requests_total", code="OK") == answered
    latency = report["server_metrics"]["histograms"]
    assert any(name.startswith("linnet_request_duration_seconds") for name in latency)

    with table.open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == calls
    assert {row["kind"] for row in rows} == {"greedy", "n-best", "<sum>"}
    for row in rows:
        assert float(row["due_s"]) <= float(row["sent_s"]) <= float(row["ended_s"])
        assert row["texts"] == ("2" if row["kind"] == "<sum>" else "1")

    root = xml.parse(page).getroot()  # so every tag is closed and the text is escaped
    text = " ".join(root.itertext())
    for said in ("Latency over time", "Percentiles", "Throughput against offered load", "<sum>"):
        assert said in text
    assert len(root.findall(".//svg")) == 5
    places = [
        float(circle.get(at)) for circle in root.iter("circle") for at in ("cx", "cy")
    ]  # float() takes nan, the next line does not
    assert len(places) > 100
    assert all(0 <= place <= 640 for place in places)


@pytest.mark.parametrize("how", ["--give-up", "--cancel", "--disconnect"])
def test_server_notices_abandoned_calls(load, server, tmp_path, how):
    mix = tmp_path / "mix"
    options = {"beamSize": 5, "minTargetTokens": 1000, "maxTargetTokens": 1024}
    kind = {"translate": {**PAIR, "options": options}, "texts": 4, "words": [3, 3]}
    mix.write_text(json.dumps(kind) + "\n")
    report = json.loads(
        load(
            *("--mix", str(mix), "--rate", "50", "--calls", "8", how, "1", "--leave-after", "50ms"),
            *("--json", "--metrics", f"http://{server.metrics}/metrics"),
            status=1,  # no call was answered
        ).stdout
    )
    assert sum(report["left"].values()) == 8
    # The rows are free again, long before a thousand tokens were decoded.
    server.wait_for("linnet_admitted_tokens", lambda tokens: tokens == 0, seconds=10)
    assert server.translate("one two").translations


def test_finds_a_rate_that_holds(load):
    flags = ("--from", "en", "--to", "de", "--words", "1", "3", "--beam", "1")
    search = ("--find-rate", "--rates", "5", "20", "--objective", "p90=20s", "--duration", "1s")
    report = json.loads(load(*flags, *search, "--json").stdout)
    assert report["found_per_second"] == 20
    assert [probe["rate"] for probe in report["probes"]] == [5, 10, 20, 20]
    assert all(probe["held"] and probe["good_share"] >= 0.9 for probe in report["probes"])
