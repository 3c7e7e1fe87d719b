"""Fixtures with linnet-http before a real server, or before a fake one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
START_SECONDS = 120


@dataclass
class Reply:
    status: int
    headers: Message
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@dataclass
class Door:
    """A running linnet-http."""

    process: subprocess.Popen
    url: str
    log: Path = field(default=Path())

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, body, named, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as reply:
                return Reply(reply.status, reply.headers, reply.read())
        except urllib.error.HTTPError as error:
            return Reply(error.code, error.headers, error.read())

    def get(self, path: str, **headers: str) -> Reply:
        return self.send("GET", path, **headers)

    def post(self, path: str, body, **headers: str) -> Reply:
        """JSON, or a form if the body is a str."""
        if isinstance(body, str):
            kind, data = "application/x-www-form-urlencoded", body.encode()
        else:
            kind, data = "application/json", json.dumps(body).encode()
        return self.send("POST", path, data, **{"Content_Type": kind, **headers})

    def stop(self, seconds: float = 60) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(seconds)


@pytest.fixture(scope="session")
def open_door(site, tmp_path_factory):
    """open_door(server, "--url-tokens") → Door before the server at HOST:PORT."""
    opened: list[Door] = []

    def start(server: str, *flags: str) -> Door:
        folder = tmp_path_factory.mktemp("door")
        command = [sys.executable, "-m", "linnet_http", "--server", server, *flags]
        for flag, value in {
            "--listen": "127.0.0.1:0",
            "--server-metrics": "",
            "--glossaries": str(folder / "glossaries.sqlite"),
        }.items():
            if flag not in flags:
                command += [flag, value]
        path = f"{site}{os.pathsep}{ROOT / 'client/http'}"
        log = folder / "log"
        with log.open("w") as stderr:
            process = subprocess.Popen(
                command,
                env={**os.environ, "PYTHONPATH": path},
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        ready = process.stdout.readline()
        assert ready.startswith("ready "), log.read_text()
        scheme, address = ready.removeprefix("ready ").strip().split("=", 1)
        door = Door(process, f"{scheme}://{address}", log)
        opened.append(door)
        return door

    yield start
    for door in opened:
        door.stop()


@pytest.fixture(scope="session")
def door(open_door, server) -> Door:
    """One before the server that all tests share."""
    return open_door(server.grpc, "--server-metrics", server.metrics)


@pytest.fixture(scope="session")
def run_door(site):
    """Runs a linnet-http that must end by itself."""

    def run(*flags: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-m", "linnet_http", *flags],
            env={**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT / 'client/http'}"},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run
