"""Files of the operator that are not what they should be: none stops or fills the server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from resources import has_open

TOKEN = "token-0123456789abcdef"


def wait_until(condition) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def make_slow(bundle: Path) -> Path:
    """Makes a file of a bundle so large that reading it takes minutes; returns the file."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    listed = next(file for file in manifest["files"] if file["name"] == manifest["model_file"])
    os.truncate(bundle / listed["name"], 1 << 40)  # without blocks on the disk
    listed["bytes"] = 1 << 40
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    return bundle / listed["name"]


@pytest.mark.parametrize("flag", ["config", "tokens", "bundle-key", "failure-record"])
@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_file_that_is_not_regular_is_refused_at_start(run_server, bundles, tmp_path, flag, kind):
    path = Path("/dev/zero")
    if kind == "fifo":
        path = tmp_path / "fifo"
        os.mkfifo(path)
    addresses = ("--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0")
    status, _, stderr = run_server("--models", str(bundles), *addresses, f"--{flag}", str(path))
    assert status in (1, 2)
    assert f"{path}: it is a {kind.replace('fifo', 'FIFO')}, not a regular file" in stderr


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_ends_a_server_that_is_loading(server_binary, copied_bundle, tmp_path, how):
    slow = make_slow(copied_bundle)
    log = tmp_path / "log"
    command = [str(server_binary), "--models", str(copied_bundle), "--listen", "127.0.0.1:0"]
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [*command, "--metrics-listen", "127.0.0.1:0"], stderr=stderr, stdout=subprocess.PIPE
        )
    try:
        wait_until(lambda: has_open(process.pid, slow))
        process.send_signal(how)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
    assert "stopped" in log.read_text()


def test_sigterm_does_not_wait_for_a_reload(start, copied_bundle):
    server = start(models=copied_bundle.parent)
    slow = make_slow(copied_bundle)
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: has_open(server.process.pid, slow))
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(20) == 0
    assert " stopped " in server.log.read_text()


def test_token_file_that_becomes_a_fifo_stops_nothing(start, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN} search inference\n")
    server = start("--tokens", str(tokens))
    tokens.unlink()
    os.mkfifo(tokens)
    wait_until(lambda: "tokens_not_read" in server.log.read_text())
    tokens.unlink()
    tokens.write_text(f"another-{TOKEN} ops admin\n")
    wait_until(lambda: server.metric('linnet_token_reloads_total{result="ok"}') == 1)
    assert server.stop() == 0


def test_closed_standard_files_do_not_become_sockets(server_binary, bundles, tmp_path):
    command = f"exec {server_binary} --models {bundles} --threads 1"
    command += " --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0 <&- >&- 2>&-"
    process = subprocess.Popen(["sh", "-c", command])
    try:
        descriptors = Path(f"/proc/{process.pid}/fd")
        # It listens when it has more than the files of a process that starts.
        wait_until(lambda: sum(is_socket(each) for each in descriptors.iterdir()) >= 2)
        for number in ("0", "1", "2"):
            assert (descriptors / number).readlink() == Path("/dev/null")
    finally:
        process.terminate()
        assert process.wait(30) == 0


def is_socket(descriptor: Path) -> bool:
    try:
        return str(descriptor.readlink()).startswith("socket:")
    except FileNotFoundError:
        return False
