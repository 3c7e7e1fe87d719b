"""long_runs.py on made-up logs."""

import json
from pathlib import Path

import long_runs
import pytest

SIMULATION = """<testsuites><testsuite>
<testcase name="EveryCallEndsOnceAndNoClientStarves"><properties>
<property name="calls" value="1000000"/><property name="restarts" value="31"/>
<property name="reloads" value="12"/></properties></testcase></testsuite></testsuites>
"""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for target in long_runs.TARGETS:
        (tmp_path / f"fuzz-{target}.log").write_text("#1 INITED\nDone 70 runs in 6 second(s)\n")
    (tmp_path / "simulation.xml").write_text(SIMULATION)
    return tmp_path


def test_keeps_inputs_of_every_target_and_calls(logs):
    assert long_runs.main(["--logs", str(logs), "--out", str(logs)]) == 0
    (path,) = logs.glob("*/robustness.json")
    result = json.loads(path.read_text())
    assert len(result["fuzz"]) == 5
    assert result["fuzz"]["request"] == {"inputs": 70, "seconds": 6}
    assert result["simulation"] == {"calls": 1000000, "restarts": 31, "reloads": 12}


@pytest.mark.parametrize("log", ["fuzz-request.log", "simulation.xml"])
def test_run_that_failed_is_not_kept(logs, log):
    text = (logs / log).read_text().replace("Done", "ERROR").replace("<prop", "<failure/><prop", 1)
    (logs / log).write_text(text)
    with pytest.raises(SystemExit, match=f"{log}: .* did not end well"):
        long_runs.main(["--logs", str(logs), "--out", str(logs)])
    assert not list(logs.glob("*/robustness.json"))


def test_run_that_is_missing_is_named(logs):
    (logs / "fuzz-request.log").unlink()
    with pytest.raises(SystemExit, match=r"fuzz-request\.log"):
        long_runs.main(["--logs", str(logs), "--out", str(logs)])
