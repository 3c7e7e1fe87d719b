"""The unit of systemd: syntax, hardening, command and flags."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from programs import ROOT, skip

UNIT = ROOT / "deploy/systemd/linnet-server.service"
HTTP_UNIT = UNIT.with_name("linnet-http.service")
MAX_EXPOSED = 15  # tenths: systemd calls 1.5 "OK" and most services of a Debian are beyond 9


@pytest.fixture
def unit(tmp_path, program):
    return usable(UNIT, program("linnet-server"), tmp_path)


@pytest.fixture
def http_unit(tmp_path):
    return usable(HTTP_UNIT, Path(sys.executable).with_name("linnet-http"), tmp_path)


def usable(unit: Path, program: Path, folder: Path) -> Path:
    """The unit with the program of this build, because the package is not installed."""
    if not shutil.which("systemd-analyze"):
        skip("there is no systemd-analyze")
    text = unit.read_text().replace(f"/usr/bin/{unit.stem}", str(program))
    text = re.sub(r"^Documentation=.*\n", "", text, flags=re.MULTILINE)
    path = folder / unit.name
    path.write_text(text)
    return path


def test_systemd_accepts_every_line(unit, http_unit):
    done = subprocess.run(
        ["systemd-analyze", "verify", unit, http_unit], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Unknown" not in done.stderr, done.stderr


def test_systemd_accepts_the_drop_in_of_the_page(unit, program):
    """docs/TLS.md: certificate, key and tokens from files that only root can read."""
    (lines,) = re.findall(r"^```ini\n(.*?)^```$", (ROOT / "docs/TLS.md").read_text(), re.M | re.S)
    folder = unit.with_name(f"{unit.name}.d")
    folder.mkdir()
    (folder / "tls.conf").write_text(lines)
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not re.search("Unknown|Failed|Invalid|ignoring", done.stderr), done.stderr
    command = [program("linnet-server"), "--help-all"]
    flags = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in re.findall(r"LINNET_SERVER_(\w+)=", lines):
        assert f"--{name.lower().replace('_', '-')} " in flags, name
    copied = set(re.findall(r"^LoadCredential=(\S+):", lines, re.M))
    assert set(re.findall(r"%d/(\S+)", lines)) == copied


def test_the_units_are_hardened(unit, http_unit):
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={MAX_EXPOSED}"]
    for one in (unit, http_unit):
        done = subprocess.run([*command, one], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-400:]


def test_the_unit_of_linnet_http_has_its_flags_and_time(linnet_http_options):
    text = HTTP_UNIT.read_text()
    (command,) = re.findall(
        r"^ExecStart=/usr/bin/linnet-http (.*) \$LINNET_HTTP_FLAGS$", text, re.M
    )
    options = linnet_http_options(command.split())
    (state,) = re.findall(r"^StateDirectory=(.*)$", text, re.M)
    assert str(options.glossaries.parent) == f"%S/{state}"
    (example,) = re.findall(
        r"^#LINNET_HTTP_FLAGS=(.*)$", HTTP_UNIT.with_suffix(".default").read_text(), re.M
    )
    linnet_http_options(example.split())
    from linnet_http.command import _DRAIN_SECONDS

    assert int(re.search(r"^TimeoutStopSec=(\d+)$", text, re.M)[1]) > _DRAIN_SECONDS


def test_stop_timeout_covers_lame_duck_and_drain():
    unit = UNIT.read_text()
    (maximum,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    settings = dict(re.findall(r"LINNET_SERVER_(LAME_DUCK|DRAIN_TIMEOUT)=(\d+)", unit))
    assert int(maximum) > int(settings["LAME_DUCK"]) + int(settings["DRAIN_TIMEOUT"])


def test_default_file_may_replace_all_settings():
    """A flag would win over LINNET_SERVER_… of the file, and systemd reads it after Environment."""
    assert setting("ExecStart") == "/usr/bin/linnet-server --models ${LINNET_MODELS} $LINNET_FLAGS"
    assert setting("EnvironmentFile") == "-/etc/default/linnet-server"


def test_page_names_the_folders_that_the_service_does_not_see():
    """Bundles there would be missing for the service alone."""
    page = (ROOT / "docs/DEPLOYMENT.md").read_text()
    (named,) = re.findall(r"does not see the machine's (.*), and has a user of its own", page)
    hidden = {"ProtectHome": {"/home", "/root"}, "PrivateTmp": {"/tmp"}}
    assert [setting(name) for name in hidden] == ["yes", "yes"]
    assert set(re.findall(r"`(/\w+)`", named)) == set().union(*hidden.values())
    assert setting("DynamicUser") == "yes"


def test_page_names_the_settings_that_are_flags():
    """LINNET_SERVER_… changes no flag of the unit and of the image."""
    page = (ROOT / "docs/DEPLOYMENT.md").read_text()
    for flag in re.findall(r"--([a-z-]+)", setting("ExecStart")):
        assert f"except for `LINNET_SERVER_{flag.upper().replace('-', '_')}`" in page
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    (entry,) = re.findall(r'^ENTRYPOINT (\["linnet-server".*\])$', dockerfile, re.MULTILINE)
    (told,) = re.findall(r"The image sets the flags (.*):$", page, re.MULTILINE)
    assert re.findall(r"--[a-z-]+", told) == re.findall(r"--[a-z-]+", entry)


def test_flags_exist(program):
    text = UNIT.read_text() + (UNIT.parent / "linnet-server.default").read_text()
    help_text = subprocess.run(
        [program("linnet-server"), "--help-all"], capture_output=True, text=True, check=True
    ).stdout
    variables = re.findall(r"LINNET_SERVER_([A-Z_]+)", text)
    named = [f"--{name.lower().replace('_', '-')}" for name in variables]
    for flag in {*re.findall(r"(?<= )--[a-z-]+", text), *named}:
        assert f"{flag} " in help_text, flag


def setting(name: str) -> str:
    (value,) = re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE)
    return value


def test_restarts_after_an_engine_failure_but_not_wrong_flags(program):
    done = subprocess.run([program("linnet-server"), "--help"], capture_output=True, text=True)
    statuses = re.search(r"Exit status: (.*?)\.\s", " ".join(done.stdout.split()))[1]
    assert re.search(r"2 bad flags, 3 an engine stalled", statuses)
    assert setting("Restart") == "on-failure"
    assert setting("RestartForceExitStatus").split() == ["3"]
    assert setting("RestartPreventExitStatus").split() == ["2"]


def test_restarts_are_limited():
    """A server that ends right after each start is not started again: all allowed starts fall into
    the interval in which systemd counts them."""
    pause = int(setting("RestartSec"))
    burst, interval = int(setting("StartLimitBurst")), int(setting("StartLimitIntervalSec"))
    assert pause >= 10
    assert burst * pause < interval
    assert interval / burst >= 60, "on average no more than one start a minute"


def test_failure_record_survives_restarts():
    folder = setting("StateDirectory")
    assert f"LINNET_SERVER_FAILURE_RECORD=%S/{folder}/" in UNIT.read_text()
