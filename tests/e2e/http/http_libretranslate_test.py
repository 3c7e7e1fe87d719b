"""LibreTranslate itself and linnet-http, asked the same: statuses and fields of the answers.

Slow: LibreTranslate is in an environment of its own. Its model has random weights, so the texts
differ.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from pathlib import Path

import libretranslatepy
import pytest
from http_files_test import send
from programs import ROOT, tools

pytestmark = pytest.mark.slow

PEER = ROOT / "tests/bench/server/peer_libretranslate.py"
SIZES = "--tokens 5 --encoder-layers 1 --decoder-layers 1 --width 64 --ffn 64 --heads 2"
START_SECONDS = 180


@pytest.fixture(scope="module")
def libretranslate(door, tmp_path_factory):
    """LibreTranslate with models for en and de, with the methods of a Door."""
    python = tools(Path(__file__).with_name("libretranslate_tools.txt")) / "bin/python"
    folder = tmp_path_factory.mktemp("libretranslate")
    bundle = ROOT / "model/bundles/en-de"
    size = json.loads((bundle / "manifest.json").read_text())["vocabulary"]["size"]
    make = [str(python), str(PEER), "package", str(folder / "packages"), *SIZES.split()]
    make += ["--vocabulary", str(size), "--spm", str(bundle / "source.spm")]
    subprocess.run(make, check=True, cwd=folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(python), str(PEER), "serve", str(folder / "packages"), str(port)]
    log = folder / "log"
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    peer = type(door)(process, f"http://127.0.0.1:{port}", log)
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            peer.get("/languages")
            break
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.2)
    yield peer
    process.terminate()
    process.wait(60)


def shape(value):
    """A JSON value without its texts and numbers."""
    if isinstance(value, dict):
        return {name: shape(it) for name, it in value.items()}
    if isinstance(value, list):
        return [shape(it) for it in value]
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


ENGLISH = "The dog runs over the street and looks for his friend."
PAIR = {"source": "en", "target": "de"}
JOBS = [
    {"q": ENGLISH, **PAIR},
    {"q": [ENGLISH, ENGLISH], **PAIR},
    {"q": ENGLISH, **PAIR, "format": "text", "api_key": ""},
    {"q": f"<p>{ENGLISH}</p>", **PAIR, "format": "html"},
    {"q": ENGLISH, "source": "auto", "target": "de"},
    {"q": [ENGLISH, ENGLISH], "source": "auto", "target": "de"},
    {"q": ENGLISH, **PAIR, "alternatives": 2},
    {"q": [ENGLISH, ENGLISH], **PAIR, "alternatives": 2},
    {"q": ENGLISH, "source": "en", "target": "en"},
    {"source": "en", "target": "de"},
    {"q": ENGLISH, "target": "de"},
    {"q": ENGLISH, "source": "en"},
    {"q": "", **PAIR},
    {"q": ENGLISH, "source": "en", "target": "xx"},
    {"q": ENGLISH, "source": "xx", "target": "de"},
    {"q": ENGLISH, **PAIR, "format": "md"},
]


def fits(ours, theirs) -> None:
    """The status is the same, and all that LibreTranslate answers is there, in the same form."""
    assert ours.status == theirs.status, (ours.body, theirs.body)
    said, wanted = shape(ours.json), shape(theirs.json)
    if isinstance(wanted, dict):
        said = {name: it for name, it in said.items() if name in wanted}
    for found in (said, wanted):
        if isinstance(found, dict) and "alternatives" in found:  # as many as the models have
            found["alternatives"] = type(found["alternatives"])
    assert said == wanted, (ours.body, theirs.body)


@pytest.mark.parametrize("job", JOBS, ids=str)
def test_translate_answers_alike(door, libretranslate, job):
    fits(door.post("/translate", job), libretranslate.post("/translate", job))
    if isinstance(job.get("q"), str):
        form = "&".join(f"{name}={value}" for name, value in job.items())
        fits(door.post("/translate", form), libretranslate.post("/translate", form))


def test_other_paths_answer_alike(door, libretranslate):
    for body in ({"q": ENGLISH}, {"q": ""}, {}):
        fits(door.post("/detect", body), libretranslate.post("/detect", body))
    ours, theirs = (it.get("/languages").json for it in (door, libretranslate))
    assert shape(ours)[0].keys() == shape(theirs)[0].keys()
    ours, theirs = (shape(it.get("/frontend/settings").json) for it in (door, libretranslate))
    for one in (ours, theirs):
        assert one.pop("supportedFilesFormat")[0] is str
    assert ours == theirs
    fits(door.get("/health"), libretranslate.get("/health"))
    ours, theirs = (it.get("/spec").json for it in (door, libretranslate))
    assert ours["swagger"] == theirs["swagger"]
    for path, operations in ours["paths"].items():
        assert operations.keys() == theirs["paths"][path].keys(), path
    assert door.get("/none").status == libretranslate.get("/none").status == 404


def test_files_are_answered_alike(door, libretranslate):
    for data, fields in (
        (ENGLISH.encode(), PAIR),
        (ENGLISH.encode(), {"source": "en"}),
        (ENGLISH.encode(), {"source": "en", "target": "xx"}),
    ):
        ours, theirs = (
            send(it, "/translate_file", "a.txt", data, **fields) for it in (door, libretranslate)
        )
        fits(ours, theirs)
    ours, theirs = (
        send(it, "/translate_file", "a.xyz", b"a", **PAIR) for it in (door, libretranslate)
    )
    fits(ours, theirs)


def test_its_client_sees_the_same(door, libretranslate):
    for it in (door, libretranslate):
        client = libretranslatepy.LibreTranslateAPI(it.url)
        assert client.translate(ENGLISH, "en", "de")
        assert client.detect(ENGLISH)[0]["language"] == "en"
        assert "de" in {target for one in client.languages() for target in one["targets"]}
