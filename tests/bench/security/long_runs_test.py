"""long_runs.py on made-up logs."""

import json
from pathlib import Path

import long_runs
import machine
import pytest

SIMULATION = """<testsuites><testsuite>
<testcase name="EveryCallEndsOnceAndNoClientStarves"><properties>
<property name="calls" value="1000000"/><property name="restarts" value="31"/>
<property name="reloads" value="12"/></properties></testcase></testsuite></testsuites>
"""


REPORTS = {
    "transport": """<testsuites><testsuite>
<testcase name="test_serves_others_despite_any_input_of_a_peer" time="600.4"><properties>
<property name="inputs" value="8000"/></properties></testcase>
<testcase name="test_memory_does_not_grow_with_peer_input" time="0.2"/></testsuite></testsuites>
""",
    "unicode": """<testsuites><testsuite>
<testcase name="test_any_unicode_is_answered_with_text" time="90"><properties>
<property name="texts" value="100000"/></properties></testcase></testsuite></testsuites>
""",
    "imports": """<testsuites><testsuite>
<testcase name="test_damaged_fairseq_checkpoint[0]" time="1.5"><properties/></testcase>
<testcase name="test_damaged_fairseq_checkpoint[1]" time="2.5"/></testsuite></testsuites>
""",
}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for target in long_runs.TARGETS:
        (tmp_path / f"fuzz-{target}.log").write_text("#1 INITED\nDone 70 runs in 6 second(s)\n")
    (tmp_path / "simulation.xml").write_text(SIMULATION)
    for name, report in REPORTS.items():
        (tmp_path / f"pytest-{name}.xml").write_text(report)
    return tmp_path


@pytest.fixture(autouse=True)
def commit(monkeypatch) -> str:
    monkeypatch.setattr(machine, "version_of", lambda tree: "abc")
    return "abc"


def test_keeps_the_counts_and_the_commit_of_every_run(logs):
    assert long_runs.main(["--logs", str(logs), "--out", str(logs)]) == 0
    (path,) = logs.glob("*/robustness.json")
    result = json.loads(path.read_text())
    assert len(result["fuzz"]) == 7
    assert result["fuzz"]["request"] == {"inputs": 70, "seconds": 6, "version": "abc"}
    counts = {"calls": 1000000, "restarts": 31, "reloads": 12}
    assert result["simulation"] == {**counts, "version": "abc"}
    assert result["transport"] == {"inputs": 8000, "seconds": 601, "version": "abc"}
    assert result["unicode"] == {"texts": 100_000, "seconds": 90, "version": "abc"}
    assert result["imports"] == {"models": 2, "seconds": 4, "version": "abc"}


def test_other_runs_stay_as_they_are(logs, monkeypatch):
    arguments = ["--logs", str(logs), "--out", str(logs)]
    assert long_runs.main(arguments) == 0
    (path,) = logs.glob("*/robustness.json")
    before = json.loads(path.read_text())
    monkeypatch.setattr(machine, "version_of", lambda tree: "later")
    (logs / "simulation.xml").unlink()
    assert long_runs.main([*arguments, "--only", "imports"]) == 0
    after = json.loads(path.read_text())
    assert after["imports"] == {**before.pop("imports"), "version": "later"}
    assert {**after, **before} == after


def test_logs_of_a_changed_tree_are_refused(logs, monkeypatch):
    monkeypatch.setattr(machine, "version_of", lambda tree: "abc-dirty")
    results = machine.ROOT / "tests/bench/results"
    with pytest.raises(SystemExit, match="the tree is abc-dirty"):
        long_runs.main(["--logs", str(logs), "--out", str(results)])


LOGS = ["fuzz-request.log", "simulation.xml", *(f"pytest-{name}.xml" for name in REPORTS)]


@pytest.mark.parametrize("log", LOGS)
def test_run_that_failed_is_not_kept(logs, log):
    text = (logs / log).read_text().replace("Done", "ERROR").replace("<prop", "<failure/><prop", 1)
    (logs / log).write_text(text)
    with pytest.raises(SystemExit, match=f"{log}: .* did not end well"):
        long_runs.main(["--logs", str(logs), "--out", str(logs)])
    assert not list(logs.glob("*/robustness.json"))


@pytest.mark.parametrize("log", LOGS)
def test_run_that_is_missing_is_named(logs, log):
    (logs / log).unlink()
    with pytest.raises(SystemExit, match=log):
        long_runs.main(["--logs", str(logs), "--out", str(logs)])


def test_skipped_run_is_not_kept(logs):
    report = logs / "pytest-unicode.xml"
    report.write_text(report.read_text().replace("<prop", "<skipped/><prop", 1))
    with pytest.raises(SystemExit, match=r"pytest-unicode\.xml"):
        long_runs.main(["--logs", str(logs), "--out", str(logs)])
