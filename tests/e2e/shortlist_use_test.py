"""Shortlists per bundle: setting, flag, what GetModel says, and both forms of the file."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from random_bundles import random_bundle

TEXTS = ["The dog runs.", "one two three", "a"]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """A bundle whose manifest enables its shortlist, one with a shortlist, and one without."""
    folder = tmp_path_factory.mktemp("models")
    random_bundle(folder / "on", "--seed", "7", "--shortlist", "5")
    random_bundle(folder / "off", "--seed", "7", "--shortlist", "5")
    random_bundle(folder / "none", "--seed", "7")
    path = folder / "on" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"shortlist_by_default": True}))
    return folder


@pytest.mark.parametrize(
    ("flags", "used"),
    [
        ([], {"on"}),
        (["--shortlist", "auto", "--load-on-demand", "true"], {"on"}),
        (["--shortlist", "true"], {"on", "off"}),
        (["--shortlist", "false"], set()),
    ],
)
def test_each_model_says_whether_it_uses_its_shortlist(start, models, flags, used):
    server = start(*flags, models=models)
    assert server.missing == []
    listed = server.method("ListModels")(server.api.ListModelsRequest(), timeout=10).models
    assert {model.name for model in listed} == {"on", "off", "none"}
    assert {model.name for model in listed if model.shortlist} == used
    for name in ("on", "none"):
        found = server.method("GetModel")(server.api.GetModelRequest(name=name), timeout=10)
        assert found.model.shortlist == (name in used)
    assert server.stop() == 0


def test_unknown_use_is_refused(run_server, models):
    status, _, error = run_server("--models", str(models), "--shortlist", "on")
    assert status == 2
    assert 'shortlist "on" is unknown, there are auto, true and false' in error


@pytest.fixture(scope="module")
def decode(program):
    """decode(bundle, *flags) → ids and scores of TEXTS, by linnet-decode."""

    def run(bundle: Path, *flags: str) -> list[tuple[list[int], float]]:
        command = [program("linnet-decode"), "--bundle", bundle, "--threads", "1", *flags]
        lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS)
        done = subprocess.run(
            [*command, "--max-target-tokens", "12"],
            input=lines, capture_output=True, text=True, check=True,
        )  # fmt: skip
        best = [json.loads(line)["hypotheses"][0] for line in done.stdout.splitlines()]
        return [(answer["ids"], answer["score"]) for answer in best]

    return run


def test_flag_of_decode_takes_a_value_or_none(decode, models):
    without = decode(models / "none")
    limited = decode(models / "off", "--shortlist")
    assert limited != without
    assert decode(models / "off", "--shortlist", "true") == limited
    assert decode(models / "off") == without
    assert decode(models / "on") == decode(models / "on", "--shortlist=auto") == limited
    assert decode(models / "on", "--shortlist", "false") == without
    assert decode(models / "none", "--shortlist", "true") == without


def test_json_of_earlier_bundles_gives_the_same_answers(decode, models, tmp_path):
    """Bit for bit: ids and scores."""
    old = tmp_path / "old"
    shutil.copytree(models / "on", old)
    binary = (old / "shortlist.bin").read_bytes()
    (old / "shortlist.bin").unlink()
    sources, _, always, candidates = struct.unpack_from("<4I", binary, 8)
    offsets = struct.unpack_from(f"<{sources + 1}I", binary, 24)
    ids = struct.unpack_from(f"<{always + candidates}H", binary, 24 + 4 * (sources + 1))
    table = {
        "always": ids[:always],
        "counts": [b - a for a, b in itertools.pairwise(offsets)],
        "candidates": ids[always:],
    }
    content = json.dumps(table).encode()
    (old / "shortlist.json").write_bytes(content)
    manifest = json.loads((old / "manifest.json").read_text())
    manifest["shortlist_file"] = "shortlist.json"
    (entry,) = [e for e in manifest["files"] if e["name"] == "shortlist.bin"]
    entry |= {
        "name": "shortlist.json",
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    (old / "manifest.json").write_text(json.dumps(manifest))
    for compute in ("float32", "int8"):
        assert decode(old, "--compute", compute) == decode(models / "on", "--compute", compute)
