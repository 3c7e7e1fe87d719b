"""DecodingOptions of the proto, the JSON of linnet-decode and the flags of both commands agree."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALIASES = {"beam_size": "--beam"}


def fields() -> set[str]:
    proto = (ROOT / "proto/linnet/v1/text_service.proto").read_text()
    message = re.search(r"^message DecodingOptions \{(.*?)^\}", proto, re.MULTILINE | re.DOTALL)[1]
    return set(re.findall(r"^  optional \w+ (\w+) = \d+;", message, re.MULTILINE))


def flags() -> set[str]:
    return {"--" + field.replace("_", "-") for field in fields()} | set(ALIASES.values())


@pytest.mark.parametrize(
    "command", [("linnet-decode",), ("linnet", "translate"), ("linnet", "summarize")]
)
def test_flags_are_the_fields(program, command):
    name, *rest = command
    shown = subprocess.run(
        [program(name), *rest, "--help"], capture_output=True, text=True, check=True
    ).stdout
    group = re.search(r"^Decoding:\n(.*?)^$", shown, re.MULTILINE | re.DOTALL)[1]
    names = ",".join(re.findall(r"^  (--\S+)", group, re.MULTILINE))
    assert set(names.split(",")) == flags()


def test_json_names_are_the_fields(run, bundle):
    done = run(bundle, lines=[{"source_ids": [5], "options": {"no": 1}}])
    known = done.answers[0]["error"]["message"].partition("known are ")[2]
    assert set(known.split(", ")) == fields()


def test_both_names_of_the_beam_mean_the_same(run, bundle):
    for flag in ("--beam", "--beam-size"):
        done = run(bundle, flag, "0")
        assert (done.status, "beam_size is 0" in done.stderr) == (2, True)
