"""Overload: which calls are served, which are refused, and when.

The servers here have rows for one sequence at a time, so that a few calls make a long queue.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import grpc
import pytest

RUNNING = 'linnet_sequences{model="en-de",state="running"}'
WAITING = 'linnet_sequences{model="en-de",state="waiting"}'
ADMITTED = "linnet_admitted_tokens"


@pytest.fixture(scope="module")
def narrow(start):
    """A server with 5 rows for beams of 5, which sheds nothing however slow the machine is."""
    server = start("--max-batch-rows", "5", "--overload-max-queue-delay", "1000")
    yield server
    assert server.stop() == 0


def call(server, client: str = "", priority: str = "", texts: int = 1, tokens: int = 200, **kwargs):
    """Starts a call of `texts` texts of `tokens` steps each; returns its future."""
    request = server.api.TranslateRequest(
        contents=["one two three"] * texts,
        source_language_code="en",
        target_language_code="de",
        options={"beam_size": 5, "min_target_tokens": tokens, "max_target_tokens": tokens},
    )
    headers = {"x-client-id": client, "x-priority": priority}
    return server.method("Translate").future(
        request,
        timeout=kwargs.pop("timeout", 60),
        metadata=[(name, value) for name, value in headers.items() if value],
    )


def quiet(server) -> None:
    server.wait_for(ADMITTED, lambda tokens: tokens == 0)


def reason(server, error: grpc.RpcError) -> str:
    return server.api.details(error)["ErrorInfo"].reason


def test_greedy_client_leaves_capacity_for_another(start):
    fixture = start(
        "--max-batch-rows",
        "5",
        "--max-admitted-tokens",
        "60000",
        "--overload-max-queue-delay",
        "1000",
    )
    greedy = [call(fixture, "greedy", texts=2, tokens=1000) for _ in range(6)]  # 10000 each
    refused = [c for c in greedy if c.exception(timeout=60) is not None]
    assert {reason(fixture, c.exception()) for c in refused} == {"SHARE_USED"}
    assert 3 <= len(greedy) - len(refused) <= 4, (
        "three quarters of the three quarters of its address"
    )
    assert fixture.metric('linnet_rejected_total{reason="share"}') == len(refused)
    greedy = [call(fixture, "greedy", texts=2, tokens=1000) for _ in range(4)]
    fixture.wait_for(ADMITTED, lambda tokens: tokens > 30000)
    modest = call(fixture, "modest", tokens=10)
    assert modest.exception(timeout=60) is None
    assert not all(c.done() for c in greedy), "it did not wait for all of them"
    for c in greedy:
        c.cancel()
    quiet(fixture)
    assert fixture.stop() == 0


def test_interactive_calls_overtake_without_starving_batch(narrow):
    line = [call(narrow, "a", "batch") for _ in range(8)]
    narrow.wait_for(WAITING, lambda waiting: waiting >= 6)
    urgent = call(narrow, "a", "interactive")
    assert urgent.exception(timeout=60) is None
    assert sum(c.done() for c in line) < 6
    served = [c for c in line if c.exception(timeout=60) is None]
    assert len(served) > 1
    quiet(narrow)


def test_call_that_would_miss_its_deadline_is_refused(narrow):
    line = [call(narrow, "b", texts=400, tokens=200, timeout=600)]  # of a slow build, too
    narrow.wait_for("linnet_drain_seconds", lambda seconds: seconds > 0)
    time.sleep(0.1)
    begin = time.monotonic()
    late = call(narrow, "b", timeout=2)
    with pytest.raises(grpc.RpcError) as error:
        late.result()
    assert time.monotonic() - begin < 1.5
    assert error.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    info = narrow.api.details(error.value)["ErrorInfo"]
    assert info.reason == "DEADLINE_TOO_CLOSE"
    assert info.metadata["estimate"]
    assert info.metadata["remaining"]
    other = call(narrow, "c", timeout=30)
    assert other.exception(timeout=60) is None, "another client does not wait for all of that"
    line[0].cancel()
    quiet(narrow)


def test_overload_sheds_calls_that_wait_too_long(start):
    shedding = start("--max-batch-rows", "5", "--overload-max-queue-delay", "0.5")
    before = time.monotonic()
    line, ends = [], {}
    for i in range(120):  # calls go on to come: a burst alone is worked off
        if i >= 40:
            time.sleep(0.05)
        line.append(call(shedding, f"client-{i % 3}", tokens=1000, timeout=600))
        line[-1].add_done_callback(lambda c: ends.setdefault(c, time.monotonic() - before))
    refused = [c for c in line if c.exception(timeout=600) is not None]
    assert refused
    for c in refused:
        assert c.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        details = shedding.api.details(c.exception())
        assert details["ErrorInfo"].reason == "WAITED_TOO_LONG"
        assert details["RetryInfo"].retry_delay.ToTimedelta().total_seconds() >= 0.375
        assert ends[c] < 14
    assert len(refused) < len(line)
    assert shedding.metric('linnet_sequences_total{model="en-de",outcome="shed"}') >= len(refused)
    quiet(shedding)
    assert shedding.translate("A bird sings.").model == "en-de"
    assert shedding.stop() == 0


def test_engines_come_before_all_that_is_done_for_calls(narrow):
    """A storm of calls that are refused must not take the processor from those that are decoded."""
    assert narrow.translate("A bird sings.").model == "en-de"
    priorities: dict[str, set[int]] = {}
    for task in Path(f"/proc/{narrow.process.pid}/task").iterdir():
        name = (task / "comm").read_text().strip()
        priorities.setdefault(name, set()).add(os.getpriority(os.PRIO_PROCESS, int(task.name)))
    engine = os.getpriority(os.PRIO_PROCESS, narrow.process.pid)
    assert priorities.pop("linnet-engine") == {engine}
    lower = min(engine + 5, 19)
    assert priorities.pop("linnet-server") == {engine, lower}, "the text pool, and the main thread"
    assert any(lower in found for found in priorities.values()), "gRPC's threads"
