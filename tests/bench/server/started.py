"""A server that a script starts and watches."""

from __future__ import annotations

import argparse
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import machine


def add_server(parser: argparse.ArgumentParser) -> None:
    """Adds the server, and the pair of languages that its bundle translates."""
    machine.add_server(parser)
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")


@contextmanager
def server(programs: Path, models: Path, *flags: str) -> Iterator[tuple[int, str, str]]:
    """The process, the port and the metrics page of a server that is ready."""
    command = [str(programs / "linnet-server"), "--models", str(models), *flags]
    command += ["--listen", "[::]:0", "--metrics-listen", "127.0.0.1:0", "--log-level", "warning"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        ready = re.match(r"ready grpc=\S+:(\d+) metrics=(\S+)", process.stdout.readline())
        if ready is None:
            raise SystemExit(f"error: the server ended with {process.wait()}")
        yield process.pid, ready[1], f"http://{ready[2]}/metrics"
    finally:
        process.terminate()
        process.wait(60)


def metric(page: str, name: str, labels: str = "") -> float:
    """The sum of a metric's values on a page, of those that have the labels."""
    with urllib.request.urlopen(page, timeout=60) as reply:
        text = reply.read().decode()
    lines = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", text, re.MULTILINE)
    return sum(float(value) for said, value in lines if labels in said)
