"""The report of tests/gpu.sh: GPU tests, times of the operators, linnet-decode on both devices."""

import argparse
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import torch
from decode import compare_devices, measure_decoding
from op_times import time_operators

ROOT = Path(__file__).resolve().parents[2]


def device_facts() -> dict:
    properties = torch.cuda.get_device_properties(0)
    return {
        "device": properties.name,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "memory_gib": round(properties.total_memory / 2**30, 1),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
    }


def run_tests(library: Path, folder: Path) -> dict:
    """pytest of tests/ops; where a GPU is promised, a test that needs one and finds none fails."""
    report = folder / "pytest.xml"
    command = [sys.executable, "-m", "pytest", "tests/ops", "-q", f"--junitxml={report}"]
    environment = os.environ | {"LINNET_GPU_TESTS": "1"}
    environment["LINNET_OPS_LIBRARY"] = str(library.resolve())
    status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    suite = ElementTree.parse(report).getroot().find("testsuite")
    counts = {key: int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")}
    return {"ok": status == 0, **counts}


def table(rows: list[dict]) -> str:
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(row[column]) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def markdown(results: dict) -> str:
    facts, tests = results["facts"], results["tests"]
    parts = [
        f"# {facts['device']}",
        f"Written by `tests/gpu.sh`. Compute capability {facts['compute_capability']}, "
        f"{facts['memory_gib']} GiB, torch {facts['torch']}, CUDA {facts['cuda']}.",
        "## Tests of the operators",
        f"{tests['tests']} in all, {tests['failures'] + tests['errors']} failed, "
        f"{tests['skipped']} skipped.",
        "## Times of the operators",
        "Median of a call, from CUDA events; `GB/s` counts what the call must read and write.",
        table(results["operators"]),
    ]
    if results["same"]:
        parts += [
            "## linnet-decode, GPU against CPU in float32",
            "`ties`: another hypothesis won, with a score less than 1e-4 away.",
            table(results["same"]),
            "## linnet-decode --synthetic",
            table(results["decoding"]),
        ]
    else:
        parts.append("linnet-decode was not run: no --portable folder, or no bundle.")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--portable", default="", help="empty: none")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()

    torch.ops.load_library(arguments.library)
    torch.ops.load_library(arguments.library.with_name("liblinnet_ops_cuda.so"))
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = {"facts": device_facts()}
    results["tests"] = run_tests(arguments.library, arguments.library.parent)
    results["operators"] = time_operators()
    results["same"], results["decoding"] = [], []
    if arguments.portable:
        for bundle in sorted((ROOT / "model/bundles").glob("*/manifest.json")):
            one = (Path(arguments.portable), arguments.library.parent, bundle.parent)
            results["same"].append(compare_devices(*one))
            results["decoding"] += measure_decoding(*one)

    name = re.sub(r"[^a-z0-9]+", "-", results["facts"]["device"].lower()).strip("-")
    (arguments.out / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
    (arguments.out / f"{name}.md").write_text(markdown(results))
    print(markdown(results))
    wrong = [row["bundle"] for row in results["same"] if row["different"]]
    if wrong or not results["tests"]["ok"]:
        sys.exit(f"error: tests {results['tests']}, bundles that decode differently: {wrong}")


if __name__ == "__main__":
    main()
