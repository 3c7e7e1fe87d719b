"""Cancellation, deadlines, capacity and shutdown."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import grpc
import pytest

RUNNING = 'linnet_sequences{model="en-de",state="running"}'
ADMITTED = "linnet_admitted_tokens"


def slow_request(api):
    return api.TranslateRequest(
        contents=["one two three"] * 64,
        source_language_code="en",
        target_language_code="de",
        options={"min_target_tokens": 1000, "max_target_tokens": 1024},
    )


def outcome(name: str) -> str:
    return f'linnet_sequences_total{{model="en-de",outcome="{name}"}}'


def code_of(call) -> grpc.StatusCode:
    return call.exception(timeout=60).code() if call.exception(timeout=60) else grpc.StatusCode.OK


def test_cancelled_call_frees_its_rows(server):
    before = server.metric(outcome("cancelled"))
    call = server.translate_slowly(4)
    server.wait_for(RUNNING, lambda running: running > 0)
    call.cancel()
    server.wait_for(RUNNING, lambda running: running == 0)
    assert server.metric(outcome("cancelled")) > before
    server.wait_for(ADMITTED, lambda tokens: tokens == 0)


def test_deadline_ends_the_work_of_a_call(server, api):
    with pytest.raises(grpc.RpcError) as error:
        server.method("Translate")(slow_request(api), timeout=0.3)
    assert error.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    server.wait_for(ADMITTED, lambda tokens: tokens == 0)
    server.wait_for(RUNNING, lambda running: running == 0)


def test_dead_client_leaves_no_work(server, api):
    script = (
        "import sys, grpc; channel = grpc.insecure_channel(sys.argv[1]);"
        "channel.unary_unary('/linnet.v1.TextService/Translate')(bytes.fromhex(sys.argv[2]))"
    )
    request = slow_request(api).SerializeToString().hex()
    client = subprocess.Popen([sys.executable, "-c", script, server.grpc, request])
    server.wait_for(RUNNING, lambda running: running > 0)
    client.kill()
    client.wait()
    server.wait_for(ADMITTED, lambda tokens: tokens == 0)
    assert server.translate("A bird sings.").model == "en-de"


def test_server_at_capacity_returns_a_retry_delay(start, api):
    small = start("--max-admitted-tokens", "56000")
    running = small.translate_slowly(1)  # 8 x (some + 1024) x 5 tokens of work
    small.wait_for(ADMITTED, lambda tokens: tokens > 40_000)
    wide = {"beam_size": 16, "min_target_tokens": 1024, "max_target_tokens": 1024}
    with pytest.raises(grpc.RpcError) as error:
        small.translate("A bird sings.", options=wide)
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "the limit is 56000" in error.value.details()
    details = api.details(error.value)
    assert details["ErrorInfo"].reason == "TOO_MUCH_WORK"
    delay = details["RetryInfo"].retry_delay.ToTimedelta() / timedelta(milliseconds=1)
    assert delay >= 100
    assert dict(error.value.trailing_metadata())["grpc-retry-pushback-ms"] == str(round(delay))
    assert small.metric('linnet_rejected_total{reason="tokens"}') == 1
    # A retry after the deadline would hide the refusal behind the client's own DEADLINE_EXCEEDED.
    with pytest.raises(grpc.RpcError) as error:
        small.translate(
            "A bird sings.",
            options=wide,
            timeout=delay / 1000 / 2,
        )
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert dict(error.value.trailing_metadata())["grpc-retry-pushback-ms"] == "-1"
    assert code_of(running) == grpc.StatusCode.OK
    assert small.metric(ADMITTED) == 0
    with pytest.raises(grpc.RpcError) as error:  # a call that can never fit is an invalid request
        small.translate(*["one two three"] * 32, options={"max_target_tokens": 1024})
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert small.stop() == 0


def test_sigterm_finishes_running_and_refuses_new_calls(start, api):
    server = start("--drain-timeout", "300")  # with a sanitizer the call takes long
    running = server.translate_slowly(8)
    server.wait_for(RUNNING, lambda running: running > 0)
    server.process.send_signal(signal.SIGTERM)
    server.wait_for("linnet_ready", lambda ready: ready == 0)
    while refused_code(server) != grpc.StatusCode.UNAVAILABLE:  # until the port is closed
        time.sleep(0.01)
    assert not running.done()
    assert code_of(running) == grpc.StatusCode.OK
    assert server.process.wait(30) == 0


def refused_code(server) -> grpc.StatusCode | None:
    try:
        server.translate("A bird sings.", timeout=5)
    except grpc.RpcError as error:
        return error.code()
    return None


def test_lame_duck_serves_while_not_serving(start, api):
    server = start("--lame-duck", "2")
    names = ["", "linnet.v1.TextService", "model/en-de", "liveness"]
    assert [server.health(name) for name in names] == [1, 1, 1, 1]
    watch = server.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=60)
    assert next(watch)[1] == 1
    server.process.send_signal(signal.SIGTERM)
    assert next(watch)[1] == 2, "the health watch reports it"
    assert [server.health(name) for name in names] == [2, 2, 2, 1]
    assert server.translate("A bird sings.").model == "en-de"
    with pytest.raises(grpc.RpcError) as end:  # it does not keep the server from stopping
        next(watch)
    assert end.value.code() == grpc.StatusCode.UNAVAILABLE
    assert server.process.wait(30) == 0


def test_other_signals_do_not_end_a_drain(start):
    server = start("--lame-duck", "5", "--log-level", "warning")
    server.process.send_signal(signal.SIGTERM)
    server.wait_for("linnet_ready", lambda ready: ready == 0)
    for other in (signal.SIGUSR2, signal.SIGHUP):
        server.process.send_signal(other)
    assert server.translate("A bird sings.").model == "en-de"
    server.process.send_signal(signal.SIGUSR1)
    assert server.process.wait(60) == 0
    log = server.log.read_text()
    assert " stopped " in log, "SIGUSR1 still changes the log level"


def test_time_in_which_the_process_did_not_run_is_no_stall(start):
    server = start("--engine-stall-timeout", "1", "--log-level", "warning")
    call = server.translate_slowly(4)
    server.wait_for('linnet_step_rows_count{model="en-de"}', lambda steps: steps > 0)
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(4)  # longer than the gap that the supervisor takes for a busy machine
    server.process.send_signal(signal.SIGCONT)
    assert call.result(60).model == "en-de"
    log = server.log.read_text()
    assert " process_did_not_run seconds=" in log
    assert "engine_failed_for_good" not in log
    assert server.stop() == 0


def test_health_of_unknown_service_is_not_found(server):
    with pytest.raises(grpc.RpcError) as error:
        server.health("model/none")
    assert error.value.code() == grpc.StatusCode.NOT_FOUND


def test_drain_has_a_timeout(start):
    server = start("--drain-timeout", "0.2")
    running = server.translate_slowly(15)
    server.wait_for(RUNNING, lambda running: running > 0)
    begin = time.monotonic()
    assert server.stop(signal.SIGINT) == 0
    assert time.monotonic() - begin < 30
    assert code_of(running) == grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    "method",
    [
        "linnet.v1.TextService/Translate",
        "linnet.v1.TextService/StreamTranslate",
        "linnet.v1.TextService/TranslateDocument",
        "grpc.health.v1.Health/Check",
        "grpc.health.v1.Health/Watch",
    ],
)
def test_drain_does_not_wait_for_a_request_that_does_not_come(start, method):
    server = start("--drain-timeout", "40")
    never = threading.Event()
    call = server.channel.stream_stream(f"/{method}")(iter(never.wait, True), timeout=120)
    if "TextService" in method:
        server.wait_for_calls(1)
    else:  # calls of health are not counted: one sent before an answered one has most likely begun
        server.method("ListModels")(server.api.ListModelsRequest(), timeout=30)
    begin = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    with pytest.raises(grpc.RpcError) as end:
        next(call)
    assert end.value.code() == grpc.StatusCode.UNAVAILABLE
    assert "shutting down" in end.value.details()
    assert server.process.wait(60) == 0
    assert time.monotonic() - begin < 20
    never.set()


def test_process_name_is_linnet_server(server):
    assert Path(f"/proc/{server.process.pid}/comm").read_text() == "linnet-server\n"


def test_idle_server_stops_at_once_and_frees_its_ports(start):
    server = start()
    grpc_address, metrics_address = server.grpc, server.metrics
    begin = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - begin < 10
    again = start("--listen", grpc_address, "--metrics-listen", metrics_address)
    assert again.grpc == grpc_address
    assert again.stop() == 0
