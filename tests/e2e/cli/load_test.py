"""linnet-load with the real server: its reports, and abandoned calls as the server sees them."""

from __future__ import annotations

import csv
import json
import re
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


def test_report_names_model_and_cores_and_is_compared_with_another(load, server, tmp_path):
    flags = ["--from", "en", "--to", "de", "--model", "en-de", "--concurrency", "2", "--words"]
    flags += ["1", "4", "--calls", "20"]
    first = json.loads(load(*flags, "--json").stdout)
    (model,) = first["models"]
    listed = server.method("ListModels")(server.api.ListModelsRequest(), timeout=30).models
    (served,) = [it for it in listed if it.name == "en-de"]
    assert model == {
        "name": "en-de",
        "version": served.version,
        "device": "cpu",
        "compute_type": served.compute_type,
    }
    assert first["client_cores"] >= 1
    earlier, page = tmp_path / "earlier.json", tmp_path / "load.html"
    half = first["answered_per_second"] / 2
    earlier.write_text(json.dumps(first | {"answered_per_second": half, "in_flight": 7}))
    compare = ["--compare", str(earlier)]
    second = json.loads(load(*flags, *compare, "--json", "--html", str(page)).stdout)
    compared = second["compared"]
    assert compared["file"] == str(earlier)
    assert compared["started"] == first["started"]
    assert compared["differences"] == ["in_flight: 2, there 7"]
    ratios = compared["ratios"]["answered_per_second"]
    assert ratios["here"] == second["answered_per_second"]
    assert ratios["there"] == half
    assert ratios["ratio"] == pytest.approx(second["answered_per_second"] / half)
    assert {"p50_ms", "p99_ms", "max_ms"} <= set(compared["ratios"])
    text = page.read_text()
    assert f"en-de {served.version} on cpu {served.compute_type}" in text
    assert f"compared with {earlier} of {first['started']}" in text
    printed = load(*flags, *compare).stdout
    assert "in_flight: 2, there 7" in printed
    assert re.search(r"^answered_per_second +[\d.]+ +[\d.]+ +[\d.]+$", printed, re.MULTILINE)


def test_report_is_compared_only_with_a_report(load, tmp_path):
    other = tmp_path / "other.json"
    for text in ("", "[1]", '{"answered_per_second": 3}', '{"by_status": {}} x'):
        other.write_text(text)
        done = load(
            *("--from", "en", "--to", "de", "--rate", "5", "--compare", str(other)), status=2
        )
        assert f"{other} is not a report of linnet-load" in done.stderr
        assert not done.stdout
