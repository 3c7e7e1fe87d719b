"""Counts what nvcc makes of CUDA kernels, beside an earlier commit: registers, memory and
instructions of a thread, and for the search the exchanges of a warp, on emulated threads.

    tests/gpu/kernel_counts.py [--nvdisasm PROGRAM]

It needs nvcc and nvdisasm (nvidia-cuda-nvdisasm of PyPI) and no GPU, and for the logits of en-de
what `./test.sh` has built. Writes DIR/nvidia-h200/kernel-counts.json and .md.
"""

from __future__ import annotations

import argparse
import array
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import machine

ROOT = machine.ROOT
ARCHITECTURE = "sm_90"
FOLDER, NAME = "nvidia-h200", "kernel-counts"
CUDA = "model/ops/cuda"
# Of each file the commit before a change of its kernels; "" where the file was new.
BEFORE = {
    "beam_search.cu": "50e67570",
    "convolution.cu": "51d4edc8",
    "depthwise_conv.cu": "51d4edc8",
    "self_attention.cu": "",
}
# The instances that the base model uses in a float16 engine, and the search's of other logits.
SHOWN = re.compile(r"FillRows|AnyRows|<float, 4>|<float>|<__half, 31>|<__half, 2>")
# SASS: shuffles, votes, reductions of a warp; barriers; loads and stores of three memories.
GROUPS = {
    "exchanges": ("SHFL", "VOTE", "VOTEU", "REDUX", "MATCH"),
    "barriers": ("BAR", "WARPSYNC"),
    "global": ("LDG", "STG", "RED", "ATOMG", "LD", "ST", "ATOM"),
    "shared": ("LDS", "STS", "ATOMS"),
    "local": ("LDL", "STL"),
}
COLUMNS = ["registers", "shared bytes", "spilled bytes", "instructions", *GROUPS]
SEARCHES = [(5, 6000, "random"), (5, 32000, "random"), (5, 6000, "en-de")]


def run(*command: str | Path, given: bytes | None = None) -> str:
    done = subprocess.run([*map(str, command)], input=given, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stderr.decode()[-2000:]}")
    return (done.stdout + done.stderr).decode()


def plain_names(names: list[str]) -> dict[str, str]:
    """Demangled names without namespaces and arguments: Convolve<__half, 31>."""
    found = run("c++filt", *names).splitlines()
    unwanted = r"\(int\)|linnet::ops::|\(anonymous namespace\)::|^void "
    short = [re.sub(unwanted, "", it) for it in found]
    return {name: it.split("(")[0] for name, it in zip(names, short, strict=True)}


def resources(log: str) -> dict[str, dict[str, int]]:
    """What `ptxas -v` says of each kernel."""
    found: dict[str, dict[str, int]] = {}
    for entry in log.split("Compiling entry function '")[1:]:
        registers = re.search(r"Used (\d+) registers", entry)
        shared = re.search(r"(\d+) bytes smem", entry)
        spilled = re.findall(r"(\d+) bytes spill (?:stores|loads)", entry)
        assert registers, entry
        found[entry.split("'")[0]] = {
            "registers": int(registers[1]),
            "shared bytes": int(shared[1]) if shared else 0,
            "spilled bytes": sum(map(int, spilled)),
        }
    return found


def instructions(listing: str) -> dict[str, dict[str, int]]:
    """Of each kernel in nvdisasm's listing, padding behind its end left out."""
    found: dict[str, dict[str, int]] = {}
    for part in re.split(r"^\.text\.", listing, flags=re.MULTILINE)[1:]:
        name = part.split(":")[0]
        names = re.findall(
            r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z0-9_]+)", part, re.MULTILINE
        )
        while names and names[-1] in ("NOP", "BRA"):
            names.pop()
        counts = {"instructions": len(names)}
        for group, members in GROUPS.items():
            counts[group] = sum(it in members for it in names)
        found[name] = counts
    return found


def count_kernels(
    root: Path, file: str, nvdisasm: Path | None, folder: Path
) -> dict[str, dict[str, int]]:
    """Of the kernels of a file, by their plain names; without nvdisasm no instructions."""
    made = folder / "kernels.cubin"
    options = ["-std=c++17", "-O3", f"-arch={ARCHITECTURE}", "-cubin", "-Xptxas", "-v"]
    log = run("nvcc", *options, "-I", root, root / CUDA / file, "-o", made)
    used = resources(log)
    counted = instructions(run(nvdisasm, "-c", made)) if nvdisasm else {}
    names = plain_names(list(used))
    return {names[it]: used[it] | counted.get(it, {}) for it in used if SHOWN.search(names[it])}


def extract(commit: str, folder: Path) -> Path:
    """The operators of an earlier commit."""
    folder.mkdir()
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit, "model/ops"], capture_output=True, check=True
    )
    run("tar", "-x", "-C", folder, given=archive.stdout)
    return folder


def build_search(root: Path, folder: Path) -> Path:
    """Builds count_exchanges.cc with the search kernels of `root`."""
    made, program = folder / "beam_search_emulated.cc", folder / "count_exchanges"
    tests = ROOT / "tests/ops/cuda"
    run(sys.executable, tests / "emulate.py", root / CUDA / "beam_search.cu", made)
    nvcc = shutil.which("nvcc")
    assert nvcc, "nvcc has compiled kernels before"
    headers = Path(nvcc).resolve().parents[1] / "include"
    compiler = ["g++", "-std=c++20", "-O2", "-w", "-I", root, "-I", ROOT, "-isystem", headers]
    emulated = [*compiler, "-include", tests / "emulation.h", "-c", made, "-o", f"{made}.o"]
    run(*emulated)
    sources = [tests / "count_exchanges.cc", tests / "emulation.cc"]
    run(*compiler, *sources, f"{made}.o", "-o", program)
    return program


def logits(rows: int, vocabulary: int, of: str) -> bytes:
    if of == "random":
        normal = random.Random(1)
        values = (normal.gauss(0, 1) for _ in range(rows * vocabulary))
        return array.array("f", values).tobytes()
    sys.path.insert(0, str(ROOT / "model"))
    from trained_logits import trained_logits

    from linnet_model.network import ops

    ops.load()
    found = trained_logits(rows)
    assert found.shape == (rows, vocabulary)
    return bytes(found.contiguous().numpy().tobytes())


def count_searches(programs: dict[str, Path], searches: Any) -> Iterator[dict[str, Any]]:
    """The exchanges of a warp for each row of a step, whose records must be equal."""
    for rows, vocabulary, of in searches:
        given = logits(rows, vocabulary, of)
        found = {
            name: json.loads(run(program, str(rows), str(vocabulary), given=given))
            for name, program in programs.items()
        }
        same = len({it["record"] for it in found.values()}) == 1
        counts = {name: it["exchanges"] / rows for name, it in found.items()}
        yield {"vocabulary": vocabulary, "logits": of, "same record": same, **counts}


def measure(nvdisasm: Path | None, before: dict[str, str], searches: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        roots = {
            commit: extract(commit, folder / commit) for commit in {*before.values()} if commit
        }
        kernels = []
        for file, commit in before.items():
            for label, root in (("before", roots.get(commit)), ("now", ROOT)):
                if root is None:
                    continue
                for kernel, counts in count_kernels(root, file, nvdisasm, folder).items():
                    kernels.append({"file": file, "kernel": kernel, "of": label, **counts})
        programs = {}
        for label, root in (("before", roots[before["beam_search.cu"]]), ("now", ROOT)):
            (folder / label).mkdir()
            programs[label] = build_search(root, folder / label)
        found = list(count_searches(programs, searches))
    compiler = re.search(r"release ([\d.]+, V[\d.]+)", run("nvcc", "--version"))
    return {
        "version": machine.version_of(ROOT),
        "nvcc": compiler[1] if compiler else "unknown",
        "architecture": ARCHITECTURE,
        "before": before,
        "kernels": kernels,
        "searches": found,
    }


def markdown(data: dict[str, Any]) -> str:
    earlier = ", ".join(
        f"{file} {commit}" if commit else f"{file} none" for file, commit in data["before"].items()
    )
    about = (
        "Written by `tests/gpu/kernel_counts.py`. Linnet "
        f"{data['version']}, nvcc {data['nvcc']}, {data['architecture']}; before: {earlier}. "
        "Counts of the compiled code, not times: a loop counts once."
    )
    rows = [
        [
            f"{it['file']}: {it['kernel']}, {it['of']}",
            *(f"{it.get(column, 0):,}" for column in COLUMNS),
        ]
        for it in data["kernels"]
    ]
    lines = [machine.report("Counts of CUDA kernels", about, ["kernel", *COLUMNS], rows)]
    lines.append(
        "Exchanges of a warp per row of a beam-search step with beam 5, emulated. The results "
        "have the same bits where the last column says so.\n"
    )
    searches = [
        [
            f"{it['logits']}, V {it['vocabulary']:,}",
            f"{it['before']:,.0f}",
            f"{it['now']:,.0f}",
            "yes" if it["same record"] else "no",
        ]
        for it in data["searches"]
    ]
    lines += machine.table(["logits", "before", "now", "same bits"], searches)
    return "\n".join(lines) + "\n"


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="kernel_counts.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found = shutil.which("nvdisasm")
    parser.add_argument("--nvdisasm", type=Path, default=Path(found) if found else None)
    options = machine.parse(parser, words)
    if options.nvdisasm is None:
        parser.error("there is no nvdisasm on PATH: name it with --nvdisasm")
    data = measure(options.nvdisasm, BEFORE, SEARCHES)
    machine.write_result(options.out / FOLDER / f"{NAME}.json", data, markdown(data))
    print(markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
