"""The log of calls, and calls while the log cannot be written."""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path

import http2
import pytest

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"


def translate(server, *headers: tuple[str, str]) -> dict[str, str]:
    """The headers of an answer."""
    request = server.api.TranslateRequest(
        contents=["A bird sings."], source_language_code="en", target_language_code="de"
    )
    _, call = server.method("Translate").with_call(request, timeout=60, metadata=headers)
    return dict(call.initial_metadata())


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_trace_context_is_logged_and_returned(start, log_format):
    server = start("--log-level", "debug", "--log-format", log_format)
    answer = translate(server, ("traceparent", TRACEPARENT), ("x-request-id", "mine"))
    assert answer["traceparent"] == TRACEPARENT
    lines = server.log.read_text().splitlines()
    if log_format == "json":
        events = [json.loads(line) for line in lines]
        (call,) = [event for event in events if event.get("request_id") == "mine"]
        assert (call["trace_id"], call["span_id"]) == (TRACE, SPAN)
        assert call["event"] == "call"
        assert call["time"].endswith("Z")
    else:
        (line,) = [line for line in lines if "request_id=mine" in line]
        assert f" trace_id={TRACE} span_id={SPAN}" in line
    assert server.stop() == 0


def test_trace_context_that_cannot_be_returned_ends_no_server(start):
    """gRPC takes any byte in a header, and aborts on sending it."""
    server = start()
    client = http2.RawClient(server.grpc)
    stream = client.call("ListModels", b"", traceparent="01" + TRACEPARENT[2:] + "-\x80\xff")
    assert client.wait_for(http2.DATA, stream)
    client.close()
    assert server.stop() == 0
    assert TRACE not in server.log.read_text()


def test_invalid_trace_context_is_ignored(server):
    for wrong in ["", "00", TRACEPARENT.upper(), TRACEPARENT + "-01", "ff" + TRACEPARENT[2:]]:
        assert "traceparent" not in translate(server, ("traceparent", wrong))
    assert TRACE not in server.log.read_text()


def test_serves_while_the_log_disk_is_full(start):
    server = start("--log-level", "debug", log=Path("/dev/full"))
    for _ in range(20):
        assert server.translate("A bird sings.").model == "en-de"
    server.wait_for("linnet_log_lines_lost_total", lambda lost: lost >= 20)
    assert server.stop() == 0


def test_blocked_log_drops_lines_and_counts_them(start):
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 8192)
    server = start("--log-level", "debug", log=Path(f"/proc/self/fd/{writer}"))
    os.close(writer)
    for _ in range(60):  # a line each: more than the pipe takes
        assert server.translate("A bird sings.").model == "en-de"
    server.wait_for("linnet_log_lines_lost_total", lambda lost: lost > 10)
    assert os.read(reader, 1 << 16).endswith(b"\n"), "whole lines"
    assert server.translate("A bird sings.").model == "en-de"
    told = re.search(r"log_lines_lost lines=(\d+)\n.* call ", os.read(reader, 1 << 16).decode())
    assert told
    server.wait_for("linnet_log_lines_lost_total", lambda lost: lost == int(told[1]))
    assert server.stop() == 0
    os.close(reader)


def test_serves_after_the_log_pipe_is_closed(start):
    reader, writer = os.pipe()
    server = start("--log-level", "debug", log=Path(f"/proc/self/fd/{writer}"))
    os.close(reader)
    os.close(writer)
    for _ in range(20):
        assert server.translate("A bird sings.").model == "en-de"
    assert server.stop() == 0
