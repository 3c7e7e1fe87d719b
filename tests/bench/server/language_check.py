"""Measures the error rate of the language check.

Asks a server for the language of every row of parallel test sets, as `linnet detect` does, and
counts the rows of each side that would be warned of (server/request/language_detector.h): those of
the language that the model reads should not be, those of the other one should. Writes
DIR/language-check.json; the machine does not matter.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
from overload import server

SURE = 0.9  # kSureShare


def other(detection: dict, language: str) -> bool:
    """True if the text is surely in another language, by the rule of OtherLanguage."""
    seen = detection.get("languages", [])
    sure = detection.get("reliable", False) and seen and seen[0].get("confidence", 0) >= SURE
    return bool(sure and seen[0]["language_code"] != language)


def warned_of(linnet: Path, address: str, texts: list[str], language: str) -> int:
    done = subprocess.run(
        [str(linnet), "detect", "--lines", "--json"],
        env={"LINNET_SERVER": address},
        input="".join(text + "\n" for text in texts),
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [json.loads(line)["detections"][0] for line in done.stdout.splitlines()]
    assert len(rows) == len(texts)
    return sum(other(row, language) for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with test.*.tsv")
    parser.add_argument("--languages", nargs=2, default=["en", "de"], help="of the columns")
    machine.add_server(parser)
    parser.add_argument("--compute", default="auto")
    parser.add_argument("--rows", type=int, default=160)
    options = machine.parse(parser)
    cores = [0]
    sets = {}
    with server(options, cores) as running:
        for path in sorted(options.data.glob("test.*.tsv")):
            rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
            sides = [[row[side] for row in rows if row[side].strip()] for side in (0, 1)]
            counts = [
                warned_of(
                    options.programs / "linnet",
                    f"127.0.0.1:{running.port}",
                    side,
                    options.languages[0],
                )
                for side in sides
            ]
            sets[path.name.split(".")[1]] = {
                language: {"texts": len(side), "warned": count}
                for language, side, count in zip(options.languages, sides, counts, strict=True)
            }
    total = {
        language: {
            key: sum(row[language][key] for row in sets.values()) for key in ("texts", "warned")
        }
        for language in options.languages
    }
    result = {
        "version": machine.facts(cores)["version"],
        "reads": options.languages[0],
        "sets": sets,
        "total": total,
    }
    print(json.dumps(result, indent=1))
    machine.write_result(options.out / "language-check.json", result)


if __name__ == "__main__":
    main()
