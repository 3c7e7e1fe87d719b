"""Engines that are loaded when they are first used, within max-model-bytes."""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

ON_DEMAND = ("--load-on-demand", "true")
AVAILABLE, LOADED = 1, 3


def states(server) -> dict[str, int]:
    models = server.method("ListModels")(server.api.ListModelsRequest(), timeout=30).models
    return {model.name: model.state for model in models}


def file_bytes(bundles, name: str) -> int:
    return sum(path.stat().st_size for path in (bundles / name).iterdir())


def test_models_are_loaded_when_they_are_first_used(start, server):
    lazy = start(*ON_DEMAND)
    assert states(lazy) == {"en-de": AVAILABLE, "en-summary": AVAILABLE}
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: lazy.translate("one two three").translations, range(4)))
    expected = server.translate("one two three").translations
    assert all(answer == expected for answer in answers)
    assert states(lazy) == {"en-de": LOADED, "en-summary": AVAILABLE}
    loads = 'linnet_model_loads_total{model="en-de",result="ok"}'
    lazy.wait_for(loads, lambda value: value == 1)
    assert lazy.metric('linnet_model_state{model="en-summary",state="available"}') == 1
    described = lazy.method("GetModel")(lazy.api.GetModelRequest(name="en-summary"), timeout=30)
    eager = server.method("GetModel")(server.api.GetModelRequest(name="en-summary"), timeout=30)
    assert eager.model.state == LOADED
    for response in (described, eager):
        response.model.ClearField("state")
    assert described == eager, "known without the engine"


def test_the_least_recently_used_model_makes_room(start, server, bundles):
    limit = max(file_bytes(bundles, name) for name in ("en-de", "en-summary")) * 5 // 4
    small = start(*ON_DEMAND, "--max-model-bytes", str(limit))
    for _ in range(3):
        assert small.translate("one two").translations == server.translate("one two").translations
        assert states(small) == {"en-de": LOADED, "en-summary": AVAILABLE}
        assert small.summarize("one two").summaries == server.summarize("one two").summaries
        assert states(small) == {"en-de": AVAILABLE, "en-summary": LOADED}
    loads = 'linnet_model_loads_total{model="en-summary",result="ok"}'
    small.wait_for(loads, lambda value: value == 3)


def test_a_first_load_that_ends_too_late_is_refused(start, bundles, api):
    """Its time is known from the other model: nothing is unloaded for a call that cannot end."""
    limit = max(file_bytes(bundles, name) for name in ("en-de", "en-summary")) * 5 // 4
    small = start(*ON_DEMAND, "--max-model-bytes", str(limit))
    assert small.translate("one").translations
    seconds = float(re.search(r"engine_loaded .*seconds=(\S+)", small.log.read_text())[1])
    request = api.SummarizeRequest(contents=["one"], language_code="en")
    with pytest.raises(grpc.RpcError) as refused:
        small.method("Summarize")(request, timeout=0.7 * seconds)
    assert refused.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert api.details(refused.value)["ErrorInfo"].reason == "DEADLINE_TOO_CLOSE"
    assert states(small) == {"en-de": LOADED, "en-summary": AVAILABLE}
    assert small.summarize("one").summaries


def test_pinned_models_are_loaded_at_start_and_stay(start, bundles):
    limit = file_bytes(bundles, "en-de") + file_bytes(bundles, "en-summary")
    pinned = start("--load-on-demand", "except=en-de", "--max-model-bytes", str(limit))
    assert states(pinned) == {"en-de": LOADED, "en-summary": AVAILABLE}
    assert pinned.translate("one").translations


def test_a_failed_load_is_an_error_that_is_retried_later(start, copied_bundle):
    lazy = start(*ON_DEMAND, models=copied_bundle.parent)
    moved = copied_bundle.parent.parent / "model.pt"
    shutil.move(copied_bundle / "model.pt", moved)
    with pytest.raises(grpc.RpcError) as failed:
        lazy.translate("one")
    assert failed.value.code() == grpc.StatusCode.UNAVAILABLE
    lazy.api.check_error(failed.value)
    assert "engine_not_loaded" in lazy.log.read_text()
    shutil.move(moved, copied_bundle / "model.pt")
    serving = 'linnet_model_serving{model="en-de"}'
    lazy.wait_for(serving, lambda value: value == 0)
    lazy.wait_for(serving, lambda value: value == 1)
    assert lazy.translate("one").translations


def test_an_unknown_pinned_model_is_refused(run_server, bundles):
    flags = ("--models", str(bundles), "--metrics-listen", "127.0.0.1:0")
    status, _, error = run_server(*flags, "--load-on-demand", "except=de-en")
    assert status == 1
    assert '--load-on-demand except= has "de-en"' in error


def test_a_version_of_a_pinned_model_is_refused(start, run_server, bundles, tmp_path):
    """The name pins all versions; with a version it would pin nothing."""
    models = tmp_path / "models"
    shutil.copytree(bundles / "en-de", models / "en-de" / "1")
    flags = ("--models", str(models), "--metrics-listen", "127.0.0.1:0")
    status, _, error = run_server(*flags, "--load-on-demand", "except=en-de@1")
    assert status == 1
    assert '--load-on-demand except= has "en-de@1", it takes the name alone' in error
    pinned = start("--load-on-demand", "except= en-de , ", models=models)
    assert states(pinned) == {"en-de": LOADED}
