"""linnet-server as a process that can be killed, stopped, slowed down and started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUNDLES = ROOT / "model/bundles"
START_SECONDS = 120  # loading on a busy machine


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server that keeps its ports after a restart, so that clients find it again."""

    def __init__(
        self,
        binary: Path,
        *flags: str,
        models: Path = BUNDLES,
        environment: dict[str, str] | None = None,
    ):
        self.grpc = f"127.0.0.1:{free_port()}"
        self.metrics = f"127.0.0.1:{free_port()}"
        self.command = [str(binary), "--models", str(models), "--threads", "1"]
        self.command += ["--listen", self.grpc, "--metrics-listen", self.metrics, *flags]
        descriptor, name = tempfile.mkstemp(prefix="linnet-server-", suffix=".log")
        self.log = Path(name)
        os.close(descriptor)
        self.environment = {**os.environ, **(environment or {})}
        self.start()

    def start(self) -> None:
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                self.command,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self.environment,
            )

    def wait_for_ready(self) -> None:
        end = time.monotonic() + START_SECONDS
        line = self.process.stdout.readline()  # returns at the latest when the process ends
        assert time.monotonic() < end, f"ready after more than {START_SECONDS} s"
        assert line.startswith("ready grpc="), self.log.read_text()

    def scrape(self) -> str:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{self.metrics}/metrics", timeout=10) as answer:
            return answer.read().decode()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = 60) -> int:
        """Sends SIGTERM and returns the exit status after the drain."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        return self.process.wait(seconds)

    def remove(self) -> None:
        if self.process.poll() is None:
            self.kill()
        self.log.unlink()
