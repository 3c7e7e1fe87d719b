"""Administration: rights, reloads, the batch snapshot and the log level."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import time

import grpc
import pytest

SEARCH = "search-0123456789abcdef"
OPS = "ops-0123456789abcdef"


def admin(server, name: str, address: str = "", token: str = "", timeout: float = 60, **fields):
    """Calls a method of AdminService, on its own port unless another is given."""
    channel = grpc.insecure_channel(address or server.admin)
    request = getattr(server.api, f"{name}Request")(**fields)
    call = channel.unary_unary(
        f"/linnet.v1.AdminService/{name}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=getattr(server.api, f"{name}Response").FromString,
    )
    headers = [("authorization", f"Bearer {token}")] if token else []
    try:
        return call(request, timeout=timeout, metadata=headers)
    finally:
        channel.close()


def code(*arguments, **named) -> grpc.StatusCode:
    try:
        admin(*arguments, **named)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


@pytest.fixture(scope="module")
def models(bundles, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "models"
    shutil.copytree(bundles, folder)
    return folder


@pytest.fixture(scope="module")
def administered(start, models):
    return start("--admin-listen", "127.0.0.1:0", models=models)


def outcomes(response) -> dict[str, tuple[int, str, str]]:
    return {each.folder: (each.outcome, each.model, each.model_version) for each in response.models}


def test_reload_reports_the_result_of_each_model(administered, models):
    manifest = models / "en-de" / "manifest.json"
    before = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**before, "version": "next"}))
    loaded, unchanged, failed = 1, 2, 3
    version = administered.translate("A bird sings.").model_version
    assert outcomes(admin(administered, "Reload")) == {
        "en-de": (loaded, "en-de", "next"),
        "en-summary": (unchanged, "en-summary", version),
    }
    assert administered.translate("A bird sings.").model_version == "next"
    model = models / "en-de" / "model.pt"
    good = model.read_bytes()
    model.write_bytes(good[:-1])
    manifest.write_text(json.dumps({**before, "version": "broken"}))
    response = admin(administered, "Reload", model="en-de")
    assert outcomes(response) == {"en-de": (failed, "en-de", "next")}
    assert "model.pt" in response.models[0].error.message
    assert administered.translate("A bird sings.").model_version == "next"
    model.write_bytes(good)
    manifest.write_text(json.dumps(before))
    assert outcomes(admin(administered, "Reload", model="en-de"))["en-de"][0] == loaded


def test_reload_of_unknown_model_is_not_found(administered, api):
    with pytest.raises(grpc.RpcError) as error:
        admin(administered, "Reload", model="babel")
    assert "en-de, en-summary" in error.value.details()
    assert api.check_error(error.value)["ErrorInfo"].reason == "MODEL_NOT_FOUND"
    assert admin(administered, "Reload", no_wait=True).ByteSize() == 0


def test_batch_snapshot_contains_no_text(administered):
    request_id = "the-one-that-is-looked-for"
    request = administered.api.TranslateRequest(
        contents=["secretword two three"] * 64,
        source_language_code="en",
        target_language_code="de",
        options={"beam_size": 5, "min_target_tokens": 1000, "max_target_tokens": 1024},
        priority=1,
    )
    call = administered.method("Translate").future(
        request, timeout=120, metadata=[("x-request-id", request_id), ("x-client-id", "batchy")]
    )
    administered.wait_for(
        'linnet_sequences{model="en-de",state="running"}', lambda running: running > 0
    )
    batch = admin(administered, "GetBatch", model="en-de", max_sequences=40)
    call.cancel()
    (model,) = batch.models
    assert (model.model, model.engine_state, model.rows) == ("en-de", 1, 160)
    assert model.running + model.waiting == 64
    assert 0 < model.rows_in_use <= 120, "one call may use at most three quarters"
    assert len(model.sequences) == 40
    first, last = model.sequences[0], model.sequences[-1]
    assert (first.phase, last.phase) == (2, 1), "running sequences come first"
    assert {each.request_id for each in model.sequences} == {request_id}
    assert {each.client for each in model.sequences} == {"ipv4:127.0.0.1/batchy"}
    assert len({each.call for each in model.sequences}) == 1
    assert first.rows == 5
    assert 0 < first.steps <= 1024
    assert first.max_target_tokens == 1024
    assert first.age.ToTimedelta() >= first.running_for.ToTimedelta()
    assert 100 < first.time_left.seconds <= 120
    assert b"secretword" not in batch.SerializeToString()


def test_log_level_changes_by_call_and_by_signal(administered):
    debug, info = 1, 2

    marks = (f"m{n}" for n in itertools.count())

    def logged() -> bool:  # a call is logged before it is answered
        mark = next(marks)
        administered.translate("A bird sings.", labels={"mark": mark})
        return f'labels="mark={mark}"' in administered.log.read_text()

    def change(how: int, level: int) -> None:
        administered.process.send_signal(how)
        end = time.monotonic() + 10
        # Once the signal has taken effect, the call sets the same level and changes nothing.
        while admin(administered, "SetLogLevel", level=level).previous_level != level:
            assert time.monotonic() < end
            administered.process.send_signal(how)

    assert not logged()
    response = admin(administered, "SetLogLevel", level=debug)
    assert (response.previous_level, response.level) == (info, debug)
    assert logged()
    assert admin(administered, "SetLogLevel").level == info, "the level of the settings"
    assert not logged()
    change(signal.SIGUSR1, debug)
    assert logged()
    change(signal.SIGUSR2, info)
    assert not logged()
    assert "log_level before=info now=debug" in administered.log.read_text()


def test_administration_is_off_by_default(server, administered):
    assert code(server, "GetBatch", server.grpc) == grpc.StatusCode.UNIMPLEMENTED
    assert code(administered, "GetBatch", administered.grpc) == grpc.StatusCode.UNIMPLEMENTED
    translate = grpc.insecure_channel(administered.admin).unary_unary(
        "/linnet.v1.TextService/Translate"
    )
    with pytest.raises(grpc.RpcError) as error:
        translate(b"", timeout=20)
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED, (
        "TextService is not on the admin port"
    )


def test_administration_needs_the_right_on_either_port(start, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{SEARCH} search inference\n{OPS} ops admin\n")
    server = start("--tokens", str(tokens), "--admin-listen", "127.0.0.1:0")
    for address in (server.grpc, server.admin):
        assert code(server, "GetBatch", address) == grpc.StatusCode.UNAUTHENTICATED
        assert code(server, "GetBatch", address, SEARCH) == grpc.StatusCode.PERMISSION_DENIED
        assert code(server, "GetBatch", address, OPS) == grpc.StatusCode.OK
    assert code(server, "Reload", server.grpc, OPS) == grpc.StatusCode.OK
    log = server.log.read_text()
    assert "method=Reload code=OK" in log
    assert "client=subject:ops" in log
    assert server.stop() == 0


def test_remote_administration_needs_tokens(run_server, bundles):
    status, _, stderr = run_server(
        *("--models", str(bundles / "en-de"), "--admin-listen", "0.0.0.0:0"),
        *("--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"),
    )
    assert status == 1
    assert "--tokens" in stderr


def test_drain_allows_debug_calls_and_refuses_reloads(start):
    server = start("--admin-listen", "127.0.0.1:0")
    call = server.translate_slowly(15)
    server.wait_for('linnet_sequences{model="en-de",state="running"}', lambda running: running > 0)
    server.process.send_signal(signal.SIGTERM)
    server.wait_for("linnet_ready", lambda ready: ready == 0)
    assert admin(server, "GetBatch", model="en-de").models[0].running > 0
    end = time.monotonic() + 20
    while code(server, "Reload") != grpc.StatusCode.UNAVAILABLE:
        assert time.monotonic() < end
    os.kill(server.process.pid, signal.SIGTERM)  # a second one ends it at once
    assert server.process.wait(30) == -signal.SIGTERM
    assert call.exception(timeout=60).code() == grpc.StatusCode.UNAVAILABLE
