"""Scores bundles on their test sets, for the scripts that compare their quality."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engines import add_folders

ROOT = Path(__file__).resolve().parents[3]
# linnet-score prints such a line for each test set.
LINE = r"^\S+ +(\d+) rows  (.*)  length ratio ([\d.]+)  ([\d.]+) s$"


def score(
    bundle: Path,
    domain: str,
    options: argparse.Namespace,
    flags: list[str],
    more: Sequence[str] = (),
) -> dict[str, Any]:
    """Rows, measures, ratio of lengths, seconds and answers of linnet-decode with these flags, and
    with more words of linnet-score."""
    with tempfile.TemporaryDirectory() as folder:
        answers = Path(folder)
        command = [sys.executable, "-m", "linnet_model.evaluation.score", "--bundle", str(bundle)]
        command += ["--data", str(options.data), "--engine", "command", "--answers", str(answers)]
        command += ["--decode", str(options.programs / "linnet-decode")]
        command += [f"--decode-flag={word}" for word in flags]
        command += [*more, "--domain", domain, "--limit", str(options.limit)]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "model")}
        run = subprocess.run(command, capture_output=True, text=True, env=environment)
        if run.returncode != 0:
            raise SystemExit(f"error: {run.stderr.strip()[-2000:]}")
        line = re.search(LINE, run.stdout, re.MULTILINE)
        assert line, run.stdout
        rows = (answers / f"{domain}.tsv").read_text(encoding="utf-8").split("\n")
    return {
        "rows": int(line[1]),
        "measures": {k: float(v) for k, v in re.findall(r"(\S+) ([\d.]+) \(", line[2])},
        "length_ratio": float(line[3]),
        "seconds": float(line[4]),
        "answers": [row.split("\t")[-1] for row in rows if row],
    }


def options_of(prog: str, about: str | None) -> argparse.ArgumentParser:
    """Returns the parser of a script that measures some test sets of some bundles."""
    parser = argparse.ArgumentParser(
        prog=prog, description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--test", nargs=2, action="append", required=True, metavar=("DIR", "DOMAIN"),
        help="a bundle that can be packed, and one of its test sets (repeatable)")  # fmt: skip
    add("--data", type=Path, required=True, metavar="DIR",
        help="folder that holds the recipe's data.folder")  # fmt: skip
    add("--limit", type=int, default=0, metavar="N", help="first N rows of each; 0: all")
    add_folders(parser, bundles=False)
    return parser
