"""Measures how often FACTS_DIFFER is said of translations by people, which should be rare.

    tests/bench/text/facts.py FILE... [--lines 100]

The files have an English and a German text on each line, with a tab between. Writes
DIR/facts.json: of each file the lines with a difference, and the first of them.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

ROOT = Path(__file__).resolve().parents[3]
SEED = 1
SHOWN = 3


def measure(program: Path, file: Path, count: int) -> dict[str, Any]:
    rows = [line.split("\t")[:2] for line in file.read_text("utf-8").splitlines()]
    rows = random.Random(SEED).sample(rows, min(count, len(rows)))
    text = "".join(f"en\t{source}\tde\t{target}\n" for source, target in rows)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    found = [
        {"lost": lost, "added": added}
        for lost, added in (line.split("\t") for line in done.stdout.splitlines())
        if lost or added
    ]
    return {"lines": len(rows), "with a difference": len(found), "the first": found[:SHOWN]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--lines", type=int, default=100, help="of each file")
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/bin/bench_facts")
    options = machine.parse(parser)
    result: dict[str, Any] = {
        "version": machine.version_of(ROOT),
        "files": {it.stem: measure(options.program, it, options.lines) for it in options.files},
    }
    print(json.dumps(result, indent=1, ensure_ascii=False))
    machine.write_result(options.out / "facts.json", result)


if __name__ == "__main__":
    main()
