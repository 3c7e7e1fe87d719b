"""Runs clang-tidy with the checks of .clang-tidy: `python tests/tidy.py [FILE or FOLDER ...]`.

clang-tidy spends most of its time on headers, so the sources of a folder are checked as one file
that includes all of them. Names that clash in it are no finding; such sources are checked in a
further file.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIDY = "clang-tidy-14"  # [debian-clang] in deps/versions.txt
PRECOMPILED = re.compile(r"-fpch-preprocess|-Winvalid-pch -include \S+")  # headers of g++'s own
FINDING = re.compile(r"^/.*: (error|warning): ", re.MULTILINE)


def commands(build: Path) -> dict[str, dict[str, str]]:
    """The compile commands of our sources, by their path in the tree."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        sources = [entry["file"]]
        if "/Unity/" in entry["file"]:  # LINNET_UNITY: a file that includes the sources
            sources = re.findall(r'#include "(.*)"', Path(entry["file"]).read_text())
        for source in sources:
            found[Path(source).relative_to(ROOT).as_posix()] = entry
    return {p: e for p, e in found.items() if p.endswith(".cc") and not p.startswith("build/")}


def run(files: list[str], entry: dict[str, str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder, "whole.cc")
        whole.write_text("".join(f'#include "{ROOT / file}"\n' for file in files))
        command = PRECOMPILED.sub("", entry["command"]).replace(entry["file"], str(whole))
        database = [{"directory": entry["directory"], "file": str(whole), "command": command}]
        Path(folder, "compile_commands.json").write_text(json.dumps(database))
        words = [TIDY, f"--config-file={ROOT / '.clang-tidy'}", "--quiet", "-p", folder, str(whole)]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode and not FINDING.search(done.stdout):
            raise RuntimeError(f"{TIDY} ended with {done.returncode} on {files}:\n{done.stderr}")
        return done.stdout


def findings(files: list[str], known: dict[str, dict[str, str]]) -> list[str]:
    """The findings in these sources and in headers of ours that they include."""
    found, clashing = set(), set()
    for line in run(files, known[files[0]]).splitlines():
        if not FINDING.match(line):
            continue
        path = line.partition(":")[0].removeprefix(f"{ROOT}/")
        if "[clang-diagnostic-" in line and len(files) > 1:
            clashing.add(path if path in files else files[0])
        else:
            found.add(line.removeprefix(f"{ROOT}/"))
    again = [file for file in files if file in clashing]
    for batch in [again] if len(again) < len(files) else [[file] for file in again]:
        found |= set(findings(batch, known)) if batch else set()
    return sorted(found)


def main(wanted: list[str]) -> int:
    known = commands(ROOT / "build/release")
    folders = defaultdict(list)
    for path in sorted(known):
        if not wanted or any(path == it or path.startswith(f"{it}/") for it in wanted):
            folders[path.rpartition("/")[0]].append(path)
    status = 0
    for folder, files in folders.items():
        found = findings(files, known)
        print(f"{folder}: {len(files)} sources, {len(found)} findings")
        print(*found, sep="\n", end="\n" * bool(found), flush=True)
        status |= bool(found)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
