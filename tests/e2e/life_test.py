"""Models that are added, changed and removed while calls are made."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading

import grpc
import pytest

OK = 'linnet_model_reloads_total{result="ok"}'
FAILED = 'linnet_model_reloads_total{result="failed"}'


@pytest.fixture
def versions(bundles, tmp_path):
    """add("2") puts another version of en-de into a folder of models; at first there is "1"."""
    folder = tmp_path / "models" / "en-de"

    def add(version: str):
        path = folder / version
        shutil.copytree(bundles / "en-de", path)
        manifest = json.loads((path / "manifest.json").read_text())
        manifest["version"] = f"v{version}"
        (path / "manifest.json").write_text(json.dumps(manifest))
        return path

    add("1")
    return add


def reload(server, sample: str) -> None:
    before = server.metric(sample)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for(sample, lambda count: count == before + 1)


def test_versions_change_under_load_without_errors(start, versions, tmp_path):
    server = start(models=tmp_path / "models")
    assert server.translate("A bird sings.").model_version == "v1"
    seen, errors, stop = [], [], threading.Event()
    seen_new = threading.Event()

    def call_on():
        while not stop.is_set():
            try:
                seen.append(server.translate("A bird sings.").model_version)
                if seen[-1] == "v2":
                    seen_new.set()
            except grpc.RpcError as error:
                errors.append(error)

    callers = [threading.Thread(target=call_on) for _ in range(3)]
    for caller in callers:
        caller.start()
    slow = server.translate_slowly(1)
    versions("2")
    reload(server, OK)
    assert server.translate("A bird sings.").model_version == "v2"
    broken = versions("3")
    (broken / "model.pt").write_bytes(b"no model")
    reload(server, FAILED)
    assert server.translate("A bird sings.").model_version == "v2", "the old one keeps serving"
    assert "model_not_loaded" in server.log.read_text()
    assert seen_new.wait(60), "a call that began after the change is answered by the new one"
    stop.set()
    for caller in callers:
        caller.join()
    assert not errors
    assert set(seen) == {"v1", "v2"}
    assert slow.exception(timeout=60) is None
    assert slow.result().model_version == "v1", "a call that began with the old one ends with it"
    gone = 'linnet_model_state{model="en-de@1",state="loaded"}'
    server.wait_for(gone, lambda loaded: loaded == 0)
    assert server.stop() == 0


def test_requests_name_versions_by_label_links(start, versions, tmp_path):
    versions("2")
    folder = tmp_path / "models" / "en-de"
    (folder / "stable").symlink_to("1")
    (folder / "canary").symlink_to("2")
    server = start(models=tmp_path / "models")
    assert server.translate("A bird sings.").model_version == "v1"
    assert server.translate("A bird sings.", model="en-de@canary").model_version == "v2"
    assert server.health("model/en-de@2") == 1
    link = folder / "next"
    link.symlink_to("2")
    os.replace(link, folder / "stable")  # in one step
    reload(server, OK)
    assert server.translate("A bird sings.", model="en-de@stable").model_version == "v2"
    with pytest.raises(grpc.RpcError) as error:
        server.translate("A bird sings.", model="en-de@1")
    assert error.value.code() == grpc.StatusCode.NOT_FOUND
    assert server.stop() == 0
