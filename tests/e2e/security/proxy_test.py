"""Shares of callers behind HAProxy, which multiplexes them on one connection."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest
from http2 import RawClient

sys.path.append(str(Path(__file__).resolve().parents[2] / "deploy"))
import edge

ADMITTED = "linnet_admitted_tokens"
FORGED = {"x-forwarded-for": "203.0.113.5", "x-client-certificate-subject": "carol"}


@pytest.fixture(scope="module")
def server(start):
    """One sequence runs at a time. A call costs 80,400 tokens, and gives those of each of its 16
    sequences back when it has ended; a client's share is five calls and a half."""
    limits = ("--max-batch-rows", "5", "--max-admitted-tokens", "590000")
    server = start(*limits, "--trusted-proxies", "127.0.0.1", "--log-level", "debug")
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def proxy(server, tmp_path_factory):
    process, address = edge.start(tmp_path_factory.mktemp("edge"), server.grpc)
    yield address
    process.terminate()
    process.wait(10)


def translate(server, client: RawClient, request_id: str, **headers: str) -> None:
    """Starts a call of 16,000 steps at beam 5."""
    request = server.api.TranslateRequest(
        contents=["one two three"] * 16,
        source_language_code="en",
        target_language_code="de",
        options={"beam_size": 5, "min_target_tokens": 1000, "max_target_tokens": 1000},
    )
    client.call("Translate", request.SerializeToString(), **{"x-request-id": request_id, **headers})


def outcome(server, request_id: str) -> tuple[str, str]:
    """The logged client and reason of a call that has ended."""
    end = time.monotonic() + 30
    while True:
        found = re.search(
            rf" call .*reason=(\S+) .*client=(\S+) request_id={request_id} ",
            server.log.read_text(),
        )
        if found:
            return found[2], found[1]
        assert time.monotonic() < end, f"no call {request_id} in the log"
        time.sleep(0.05)


def test_proxied_callers_have_separate_shares(server, proxy):
    greedy = RawClient(proxy, source="127.0.0.2")
    for call in range(5):
        translate(server, greedy, f"held-{call}")
    server.wait_for(ADMITTED, lambda admitted: admitted > 330_000)  # more than four calls
    translate(server, greedy, "beyond")
    assert outcome(server, "beyond") == ("ipv4:127.0.0.2", "SHARE_USED")
    translate(server, greedy, "forged", **FORGED)
    assert outcome(server, "forged") == ("ipv4:127.0.0.2", "SHARE_USED"), (
        "a forged header gives no other share"
    )
    modest = RawClient(proxy, source="127.0.0.3")
    translate(server, modest, "modest")
    server.wait_for(ADMITTED, lambda admitted: admitted > 410_000)  # more than five
    greedy.close()
    modest.close()
    server.wait_for(ADMITTED, lambda admitted: admitted == 0)
    assert outcome(server, "modest")[0] == "ipv4:127.0.0.3"
