"""A file is a document without a deadline: it finishes on a server that hardly gets to run."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EVERYDAY = (ROOT / "tests/data/everyday-en.txt").read_text(encoding="utf-8").splitlines()
CYCLE_SECONDS = 0.2


@pytest.fixture
def held_back():
    """held_back(process, share): from now on the process runs for that share of the time."""
    ended = threading.Event()
    threads = []

    def hold(process: subprocess.Popen, share: float) -> None:
        def cycle() -> None:
            while not ended.is_set() and process.poll() is None:
                os.kill(process.pid, signal.SIGSTOP)
                ended.wait(CYCLE_SECONDS * (1 - share))
                os.kill(process.pid, signal.SIGCONT)
                ended.wait(CYCLE_SECONDS * share)

        threads.append(threading.Thread(target=cycle))
        threads[0].start()

    yield hold
    ended.set()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    ("lines", "share"), [(30, 0.2), pytest.param(1983, 0.1, marks=pytest.mark.slow)]
)
def test_file_finishes_with_the_answers_of_a_fast_server(
    start, held_back, linnet_binary, tmp_path, lines, share
):
    file = tmp_path / "lines.txt"
    texts = [f"{EVERYDAY[i % len(EVERYDAY)]} ({i})" for i in range(lines)]
    file.write_text("\n".join(texts) + "\n", encoding="utf-8")
    server = start("--compute", "float32", models=ROOT / "model/bundles/en-de")

    def translate() -> bytes:
        command = [linnet_binary, "translate", "--to", "de", "--file", file]
        environment = {**os.environ, "LINNET_SERVER": server.grpc}
        done = subprocess.run(command, env=environment, capture_output=True, timeout=1800)
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        return done.stdout

    expected = translate()
    held_back(server.process, share)
    assert translate() == expected
    assert expected.count(b"\n") == lines
