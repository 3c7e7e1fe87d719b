"""The unit of systemd: well formed, hardened, and about a command and flags that are."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from programs import ROOT, skip

UNIT = ROOT / "deploy/systemd/linnet-server.service"
MAX_EXPOSED = 15  # tenths: systemd calls 1.5 "OK" and most services of a Debian are beyond 9


@pytest.fixture
def unit(tmp_path, program):
    """The unit with the program of this build, since that of the package is not installed."""
    if not shutil.which("systemd-analyze"):
        skip("there is no systemd-analyze")
    text = UNIT.read_text().replace("/usr/bin/linnet-server", str(program("linnet-server")))
    text = re.sub(r"^Documentation=.*\n", "", text, flags=re.MULTILINE)
    path = tmp_path / UNIT.name
    path.write_text(text)
    return path


def test_systemd_accepts_every_line(unit):
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Unknown" not in done.stderr, done.stderr


def test_the_unit_is_hardened(unit):
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={MAX_EXPOSED}"]
    done = subprocess.run([*command, unit], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-400:]


def test_it_is_given_longer_to_end_than_it_takes():
    unit = UNIT.read_text()
    (maximum,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    flags = dict(re.findall(r"--(lame-duck|drain-timeout) (\d+)", unit))
    assert int(maximum) > int(flags["lame-duck"]) + int(flags["drain-timeout"])


def test_flags_are_those_of_the_server(program):
    text = UNIT.read_text() + (UNIT.parent / "linnet-server.default").read_text()
    help_text = subprocess.run(
        [program("linnet-server"), "--help"], capture_output=True, text=True, check=True
    ).stdout
    for flag in set(re.findall(r"(?<= )--[a-z-]+", text)):
        assert f"{flag} " in help_text, flag


def setting(name: str) -> str:
    (value,) = re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE)
    return value


def test_a_failed_engine_is_a_reason_to_start_again_and_wrong_flags_are_none(program):
    done = subprocess.run([program("linnet-server"), "--help"], capture_output=True, text=True)
    statuses = re.search(r"Exit status: (.*?)\.\s", " ".join(done.stdout.split()))[1]
    assert re.search(r"2 bad flags, 3 an engine stalled", statuses)
    assert setting("Restart") == "on-failure"
    assert setting("RestartForceExitStatus").split() == ["3"]
    assert setting("RestartPreventExitStatus").split() == ["2"]


def test_it_is_not_started_in_a_tight_loop():
    """A server that ends as soon as it has started is given up before long: all starts that are
    allowed fall into the interval in which they are counted."""
    pause = int(setting("RestartSec"))
    burst, interval = int(setting("StartLimitBurst")), int(setting("StartLimitIntervalSec"))
    assert pause >= 10
    assert burst * pause < interval
    assert interval / burst >= 60, "on average no more than one start a minute"


def test_what_failed_is_remembered_from_one_start_to_the_next():
    assert "--failure-record ${STATE_DIRECTORY}/" in setting("ExecStart")
    assert setting("StateDirectory")
