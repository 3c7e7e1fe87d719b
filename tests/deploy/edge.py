"""HAProxy with deploy/balancers/haproxy-edge.cfg before a server on this machine."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from pathlib import Path

import programs
from programs import ROOT
from replicas import free_port

CONFIG = ROOT / "deploy/balancers/haproxy-edge.cfg"


def start(
    folder: Path, server: str, bind: str = "proto h2", changes: dict[str, str] | None = None
) -> tuple[subprocess.Popen, str]:
    """Changes only the end of the bind line and the lines of `changes` in the file."""
    port = free_port()
    config = CONFIG.read_text()
    (line,) = re.findall(r"bind .* proto h2", config)
    for old, new in {line: line.replace("proto h2", bind), **(changes or {})}.items():
        assert config.count(f"    {old}") == 1, old
        config = config.replace(old, new)
    path = folder / "haproxy.cfg"
    path.write_text(config)
    command = [programs.find("haproxy"), "-db", "-f", str(path)]
    addresses = {"LINNET_EDGE_LISTEN": f"127.0.0.1:{port}", "LINNET_SERVER": server}
    process = subprocess.Popen(command, env={**programs.environment(), **addresses})
    end = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return process, f"127.0.0.1:{port}"
        except ConnectionRefusedError:
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
