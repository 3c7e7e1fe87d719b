"""The metrics page of a server, checked by Prometheus' own linter and against docs/METRICS.md."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import programs
import pytest
from programs import ROOT
from replicas import Server


def test_promtool_accepts_the_metrics_page(server: Server):
    promtool = programs.find("promtool")
    page = server.scrape()
    assert "linnet_gpu_memory_used_bytes" in page, "the fake NVML was not found"
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=page,
        capture_output=True,
        text=True,
        env=programs.environment(),
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_promtool_rejects_a_bad_metric(server: Server):
    """The check above can fail: here a counter without _total and without help."""
    promtool = programs.find("promtool")
    bad = "# TYPE linnet_calls counter\nlinnet_calls 1\n"
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=server.scrape() + bad,
        capture_output=True,
        text=True,
        env=programs.environment(),
    )
    assert done.returncode != 0
    assert "linnet_calls" in done.stdout + done.stderr


def test_every_exported_metric_is_documented(server: Server):
    """Includes those of the library that serves the page, which the C++ tests do not see."""
    page = server.scrape()
    families = dict(re.findall(r"^# TYPE (\S+) (\w+)$", page, re.MULTILINE))
    assert "exposer_scrapes_total" in families
    explained = (ROOT / "docs/METRICS.md").read_text()
    for family, kind in families.items():
        assert re.search(rf"`{family}` (\| {kind} \||\({kind})", explained), family


def test_page_is_served_beside_peers_that_send_nothing(server: Server):
    host, _, port = server.metrics.rpartition(":")
    with contextlib.ExitStack() as idle:
        for _ in range(8):
            idle.enter_context(socket.create_connection((host, int(port))))
        assert "linnet_" in server.scrape()


def test_root_of_the_port_links_to_the_metrics(server: Server):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    start = f"http://{server.metrics}/"
    with opener.open(start, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/html")
        links = re.findall(r'href="([^"]+)"', answer.read().decode())
    assert links
    for link in links:
        with opener.open(urllib.parse.urljoin(start, link), timeout=10) as answer:
            assert "linnet_requests_total" in answer.read().decode()
    with opener.open(urllib.request.Request(start, method="HEAD"), timeout=10) as answer:
        assert answer.read() == b""
    with pytest.raises(urllib.error.HTTPError, match="404"):
        opener.open(f"{start}other", timeout=10)


def test_process_metrics_match_the_process(server: Server):
    samples = dict(
        line.rsplit(" ", 1) for line in server.scrape().splitlines() if line.startswith("process_")
    )
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    resident = int(fields["VmRSS"].split()[0]) * 1024
    assert abs(float(samples["process_resident_memory_bytes"]) - resident) < 0.2 * resident
    assert float(samples["process_cpu_seconds_total"]) > 0
    assert float(samples["process_open_fds"]) < float(samples["process_max_fds"])
