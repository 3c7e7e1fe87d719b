"""A server whose engine fails for good: its calls get errors, then it exits with a status of its
own, so that a supervisor restarts it. The engine here fails as a call requests."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import grpc
import pytest

STALLS, LOSES_THE_DEVICE, THROWS = 41, 42, 43
ENGINE_FAILED = 3  # docs/ADMINISTRATION.md


@pytest.fixture
def start_faulty(start, program):
    def start_server(*flags: str, **named):
        binary = program("linnet_faulty_server")
        return start("--engine-stall-timeout", "1", *flags, binary=binary, **named)

    return start_server


def ask(server, fault: int, request_id: str):
    """Starts a call that makes the translator's engine fail; returns its future."""
    request = server.api.TranslateRequest(
        contents=["one two three"],
        source_language_code="en",
        target_language_code="de",
        options={"max_target_tokens": fault},
    )
    metadata = [("x-request-id", request_id)]
    return server.method("Translate").future(request, timeout=60, metadata=metadata)


def events(server, name: str) -> list[str]:
    return [line for line in server.log.read_text().splitlines() if f" {name} " in line]


@pytest.mark.parametrize("fault", [STALLS, LOSES_THE_DEVICE])
def test_engine_failure_ends_the_process_after_the_calls(start_faulty, fault):
    server = start_faulty()
    assert server.translate("A bird sings.").model == "en-de"
    call = ask(server, fault, "the-culprit")
    assert call.exception(timeout=30).code() == grpc.StatusCode.INTERNAL
    trailers = dict(call.trailing_metadata())
    assert "grpc-retry-pushback-ms" not in trailers, "the call must not be retried elsewhere"
    assert server.process.wait(30) == ENGINE_FAILED
    (event,) = events(server, "engine_failed_for_good")
    assert "model=en-de" in event
    assert "request_ids=the-culprit" in event
    server.channel.close()


def test_calls_of_other_models_complete(start_faulty):
    server = start_faulty()
    call = ask(server, STALLS, "the-culprit")
    codes = set()
    while server.process.poll() is None:
        try:
            codes.add(server.summarize("A bird sings.").model)
        except grpc.RpcError as error:  # once the port is closed
            codes.add(error.code())
        time.sleep(0.05)
    assert "en-summary" in codes
    assert codes <= {"en-summary", grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    assert call.exception(timeout=30).code() == grpc.StatusCode.INTERNAL
    assert server.process.returncode == ENGINE_FAILED
    server.channel.close()


def test_engine_that_throws_is_recreated(start_faulty):
    server = start_faulty()
    call = ask(server, THROWS, "a-call")
    assert call.exception(timeout=30).code() == grpc.StatusCode.INTERNAL
    server.wait_for('linnet_engine_restarts_total{model="en-de"}', lambda count: count == 1)
    assert server.translate("A bird sings.").model == "en-de"
    assert server.health("liveness") == 1
    assert server.stop() == 0


def test_call_that_failed_engines_twice_is_named(start_faulty, tmp_path):
    record = tmp_path / "failures"
    for suspected in (0, 1):
        server = start_faulty("--failure-record", str(record))
        ask(server, LOSES_THE_DEVICE, "the-culprit").exception(timeout=30)
        assert server.process.wait(30) == ENGINE_FAILED
        assert len(events(server, "suspect_request")) == suspected
        server.channel.close()
    assert "request_id=the-culprit failures=2" in events(server, "suspect_request")[0]
    assert record.read_text() == "2 the-culprit\n"


def test_record_of_failures_that_cannot_be_written_is_refused_at_the_start(
    program, bundles, tmp_path
):
    record = tmp_path / "none" / "failures"
    flags = ["--models", str(bundles), "--failure-record", str(record)]
    flags += ["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]
    done = subprocess.run(
        [program("linnet_faulty_server"), *flags], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert f"linnet-server: --failure-record: cannot lock {record}.lock: No such" in done.stderr


def test_drain_does_not_wait_for_a_stalled_engine(start_faulty):
    server = start_faulty("--drain-timeout", "20")
    call = ask(server, STALLS, "the-culprit")
    server.wait_for('linnet_requests_in_flight{method="Translate"}', lambda count: count == 1)
    begin = time.monotonic()
    assert server.stop() == ENGINE_FAILED
    assert time.monotonic() - begin < 15
    assert call.exception(timeout=30).code() == grpc.StatusCode.INTERNAL


def test_hanging_engine_factory_ends_the_process(program, bundles):
    flags = ["--models", str(bundles), "--engine-stall-timeout", "0.2"]
    flags += ["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]
    done = subprocess.run(
        [program("linnet_faulty_server"), *flags],
        env={**os.environ, "LINNET_FAULT_LOAD": "hang"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (ENGINE_FAILED, "")


def test_sigterm_does_not_wait_for_a_load_on_demand(start_faulty, monkeypatch):
    monkeypatch.setenv("LINNET_FAULT_LOAD", "hang")
    server = start_faulty("--load-on-demand", "true", "--drain-timeout", "1")
    call = ask(server, 10, "first")
    server.wait_for('linnet_model_state{model="en-de",state="loading"}', lambda value: value == 1)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(20) == 0
    assert call.exception(timeout=30).code() == grpc.StatusCode.UNAVAILABLE
    assert events(server, "stopped")
