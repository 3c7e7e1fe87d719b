"""Fixtures with linnet-http before a real server, or before a fake one."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path

import pytest
from fake_server import FakeServer
from random_bundles import random_bundle

ROOT = Path(__file__).resolve().parents[3]
START_SECONDS = 120
PACKAGES = f"{os.pathsep}{ROOT / 'client/http'}{os.pathsep}{ROOT / 'client/files'}"


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

    def connect(self) -> socket.socket:
        host, port = self.url.removeprefix("http://").split(":")
        return socket.create_connection((host, int(port)), timeout=60)

    def raw(self, sent: bytes) -> bytes:
        """What comes back for bytes that are no request of urllib, until the connection ends."""
        with self.connect() as client:
            client.sendall(sent)
            found = b""
            with suppress(ConnectionResetError):
                while part := client.recv(1 << 16):
                    found += part
            return found

    def wait_for_metric(self, line: str) -> None:
        """A worker writes its numbers a tenth of a second later, or when it is asked itself."""
        end = time.monotonic() + 60
        while line not in (page := self.get("/metrics").body.decode()):
            assert time.monotonic() < end, page

    def worker(self) -> int:
        """The process that answers."""
        pid = self.process.pid
        (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(child)

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.worker()}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) << 10

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
            "--documents": str(folder / "documents"),
        }.items():
            if flag not in flags:
                command += [flag, value]
        path = f"{site}{PACKAGES}"
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
            env={**os.environ, "PYTHONPATH": f"{site}{PACKAGES}"},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


@pytest.fixture
def fake(linnet):
    """fake(behave) → FakeServer"""
    servers = []

    def start(behave=lambda number: None, **options) -> FakeServer:
        servers.append(FakeServer(linnet, behave, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.server.stop(None)


@pytest.fixture
def reloadable(start, bundles, tmp_path):
    """A server, and a function that gives it other weights for en-de."""
    models = tmp_path / "models"
    shutil.copytree(bundles / "en-de", models / "en-de" / "1")
    server = start(models=models)

    def reload() -> None:
        random_bundle(tmp_path / "en-de", "--seed", "8", "--task", "translate")
        shutil.copytree(tmp_path / "en-de", models / "en-de" / "2")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for('linnet_model_reloads_total{result="ok"}', lambda count: count == 1)

    return server, reload
