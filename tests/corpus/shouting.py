"""A back end and a linnet-decode whose translations are their texts in capitals."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from linnet_corpus import Answer, Row

# A linnet-decode in Python. A text with "poison" kills it, one with "flaw" does the first time, and
# one with "stall" stops it the first time.
PROGRAM = """#!{python} -S
import json, os, signal, sys, time
if "--beam-size=0" in sys.argv:
    sys.exit(2)
flags = dict(flag.lstrip("-").partition("=")[::2] for flag in sys.argv[1:])
file = os.path.join(flags["bundle"], "once")
for line in sys.stdin:
    row = json.loads(line)
    text = row["text"]
    first = not os.path.exists(file)
    if "poison" in text or ("flaw" in text and first):
        open(file, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    if "stall" in text and first:
        open(file, "w").close()
        time.sleep(600)
    if "long" in text or not text:
        said = {{"error": {{"code": "INVALID_ARGUMENT", "message": "the source has 999 tokens"}}}}
    else:
        said = row.get("target") or text.upper()
        seed = row.get("options", {{}}).get("seed")
        said += f" {{seed}}" if seed is not None else ""
        tokens, score = len(text.split()) + 1, -len(said) / 32
        if "target" in row:
            said = {{"hypotheses": [{{"ids": [5] * tokens, "score": score}}]}}
        else:
            best = {{"text": said, "score": score, "tokens": tokens, "finish_reason": "STOP"}}
            said = {{"translation": best | {{"warnings": ["FACTS_DIFFER"] * ("7" in text)}}}}
    print(json.dumps(said), flush=True)
"""


def write_bundle(folder: Path, sha256: str = "a" * 64) -> Path:
    folder.mkdir()
    files = [{"name": "model.pt", "sha256": sha256}]
    (folder / "manifest.json").write_text(json.dumps({"model_file": "model.pt", "files": files}))
    return folder


def write_program(path: Path) -> Path:
    path.write_text(PROGRAM.format(python=sys.executable))
    path.chmod(0o755)
    return path


class Shouting:
    """A back end in this process, which remembers what it was asked."""

    name, bundle, compute, processor = "embedded", "a" * 64, "int8", "avx2"

    def __init__(self) -> None:
        self.asked: list[Row] = []

    def answers(self, rows: Sequence[Row], came=lambda answer: None) -> list[Answer]:
        self.asked += rows
        found = [
            Answer(error="INVALID_ARGUMENT: bad")
            if "bad" in row.text
            else Answer(row.text.upper(), -len(row.text) / 32, "STOP", tokens=len(row.text.split()))
            for row in rows
        ]
        for answer in found:
            came(answer)
        return found

    def close(self) -> None: ...
