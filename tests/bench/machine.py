"""Facts about the machine that are needed to compare numbers."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WORTH_NAMING = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_bf16", "amx_int8")


def _cpuinfo(key: str) -> str:
    found = re.search(rf"^{key}\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1].strip() if found else "unknown"


def version_of(folder: Path) -> str:
    """The commit of the checkout that a folder is in, marked if files were changed since, other
    than results."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(folder), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        where = (":/", ":(top,exclude)tests/bench/results")
        changed = git("diff", "--name-only", "HEAD", "--", *where)
        return git("describe", "--always") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def facts(cores: list[int] | None = None) -> dict[str, Any]:
    """Of these cores [all that this process may use]."""
    flags = _cpuinfo("flags").split()
    return {
        "cpu": re.sub(r"\((R|TM)\)", "", _cpuinfo("model name")),
        "cores": len(cores or os.sched_getaffinity(0)),
        "features": [flag for flag in WORTH_NAMING if flag in flags],
        "version": version_of(ROOT),
    }


def loop_seconds(cores: int) -> float:
    """The time of a fixed loop on each of the cores at once, the best of three: how fast the
    machine is at this moment."""
    data = bytes(64 << 20)

    def once(pool: ThreadPoolExecutor) -> float:
        start = time.perf_counter()
        list(pool.map(lambda _: hashlib.sha256(data).digest(), range(cores)))
        return time.perf_counter() - start

    with ThreadPoolExecutor(cores) as pool:
        return min(once(pool) for _ in range(3))


def bundle_name(bundle: Path) -> str:
    """Name and version of a bundle, which a result must name: en-de 2026-11-26.1."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    return f"{manifest['name']} {manifest['version']}"


def slug(machine: dict[str, Any]) -> str:
    """A name for a folder: intel-xeon-processor-2-cores-amx.

    It ends with the best instructions for int8, since processors with and without AMX call
    themselves alike.
    """
    best = {"amx_int8": "amx", "avx512_vnni": "vnni", "avx_vnni": "vnni"}
    suffix = next((name for flag, name in best.items() if flag in machine["features"]), "")
    words = f"{machine['cpu']} {machine['cores']} cores {suffix}"
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def require_commit(out: Path, tree: Path = ROOT) -> None:
    """Refuses to write committed results of a tree that was changed since its commit.

    A result must say which code it measured. Call it before measuring. Raises SystemExit.
    """
    version = version_of(tree)
    if out.resolve() == ROOT / "tests/bench/results" and version.endswith("-dirty"):
        raise SystemExit(f"the tree is {version}: commit first, or write elsewhere than {out}")


def add_server(parser: argparse.ArgumentParser) -> None:
    """Adds the folder of the programs that a script starts, and the bundle that they serve."""
    add = parser.add_argument
    add("--programs", type=Path, default=ROOT / "build/release/bin", metavar="DIR")
    add("--bundle", type=Path, default=ROOT / "model/bundles/en-de", metavar="DIR")


def parse(parser: argparse.ArgumentParser, words: list[str] | None = None) -> argparse.Namespace:
    """The arguments of a script, with the folder of its results as `out`; refuses a changed tree
    as require_commit does."""
    folder = ROOT / "tests/bench/results"
    parser.add_argument("--out", type=Path, default=folder, metavar="DIR", help="of the result")
    options = parser.parse_args(words)
    require_commit(options.out)
    return options


def kept(path: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """The result in `path` if it was measured at the same commit with the same settings, else a new
    one of the settings alone."""
    before = json.loads(path.read_text()) if path.exists() else {}
    same = all(before.get(key) == value for key, value in facts.items())
    return before if same else facts


def write_result(path: Path, data: dict[str, Any], report: str | None = None) -> None:
    """Writes a result to `path`, which ends in .json, and its report, if it has one, beside it,
    which ends in .md."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n")
    if report is not None:
        path.with_suffix(".md").write_text(report)


def publish(folder: Path, name: str, data: dict[str, Any], report: str) -> None:
    """Writes a result with the facts of its machine, and its report, to FOLDER/MACHINE/NAME.json
    and .md, and prints the report."""
    write_result(folder / slug(data["machine"]) / f"{name}.json", data, report)
    print(report)


def table(heads: list[str], rows: list[list[str]]) -> list[str]:
    """Returns the lines of a Markdown table whose first column is text; the others are numbers."""
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows)]


def report(title: str, about: str, heads: list[str], rows: list[list[str]]) -> str:
    """Returns a Markdown page of one table."""
    return "\n".join([f"# {title}", "", about, "", *table(heads, rows)]) + "\n"


def hardware(machine: dict[str, Any]) -> str:
    features = ", ".join(machine["features"])
    return f"{machine['cpu']}, {machine['cores']} cores ({features})"


def sentence(machine: dict[str, Any]) -> str:
    return f"{hardware(machine)}, Linnet {machine['version']}"


def pin(cores: list[int]) -> None:
    """Pins this process and the ones that it starts."""
    os.sched_setaffinity(0, cores)
