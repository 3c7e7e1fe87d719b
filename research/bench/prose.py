"""Counts the NOT_PROSE warnings of texts that are prose, and of files that are code or data.

Prose are the messages and longer texts that the tree has for en-summary, of which each is a text to
summarise. Code and data are the tracked files of the kinds in KINDS. Writes DIR/prose.json; the
machine does not matter.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
for folder in ("tests/bench", "model", "research"):
    sys.path.insert(0, str(ROOT / folder))

import machine  # noqa: E402

from linnet_research.data.messages import read_messages  # noqa: E402

TEXTS = ("messages-test-en", "messages-en", "points-en")
KINDS = {
    "C++": (".cc", ".h", ".cu"),
    "Python": (".py",),
    "shell": (".sh",),
    "JSON": (".json",),
    "TOML": (".toml",),
    "YAML": (".yml", ".yaml"),
    "CMake": ("CMakeLists.txt", ".cmake"),
}
LONGEST = 64 << 10  # what the server reads of a text


def limit() -> float:
    """The share below which the server warns."""
    found = re.search(
        r"kMinProseShare = ([\d.]+);", (ROOT / "server/text/text_warnings.h").read_text("utf-8")
    )
    assert found, "server/text/text_warnings.h has no kMinProseShare"
    return float(found[1])


def files(endings: tuple[str, ...]) -> list[bytes]:
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", *(f"*{ending}" for ending in endings)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = ((ROOT / name).read_bytes()[:LONGEST] for name in listed.stdout.split("\0") if name)
    texts = (data.decode("utf-8", "ignore").strip().replace("\0", " ") for data in found)
    return [text.encode() for text in texts if text]


def count(program: Path, texts: list[bytes], least: float) -> dict[str, Any]:
    done = subprocess.run(
        [program], input=b"".join(text + b"\0" for text in texts), capture_output=True, check=True
    )
    shares = [float(share) for share in done.stdout.split()]
    assert len(shares) == len(texts)
    warned = sum(share < least for share in shares)
    return {"texts": len(texts), "warned": warned, "least": min(shares), "most": max(shares)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, default=ROOT / "build/release/bin")
    parser.add_argument("--results", type=Path, default=ROOT / "tests/bench/results")
    options = parser.parse_args()
    machine.require_commit(options.results)
    program, least = options.programs / "bench_prose", limit()
    prose = {
        name: count(program, [it.source().encode() for it in read_messages(name)], least)
        for name in TEXTS
    }
    other = {kind: count(program, files(endings), least) for kind, endings in KINDS.items()}
    result = {"version": machine.version_of(ROOT), "limit": least, "prose": prose, "other": other}
    print(result)
    machine.write_result(options.results / "prose.json", result)


if __name__ == "__main__":
    main()
