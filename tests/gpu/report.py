"""The report of tests/gpu.sh, part by part: parts that were measured before keep what they said.

report.py --merge A.json B.json --out DIR makes one report of several.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import torch
from decode import TEXTS, Decoder, compare_devices
from op_times import time_operators
from speed import DRY, FULL, compare_speed

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("tests", "sanitizer", "operators", "answers", "base", "big")


def device_facts(dry: bool) -> dict:
    if dry:
        return {"device": "dry run", "torch": torch.__version__}
    properties = torch.cuda.get_device_properties(0)
    return {
        "device": properties.name,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "memory_gib": round(properties.total_memory / 2**30, 1),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
    }


def run_tests(library: Path, out: Path, dry: bool) -> dict:
    """Those of tests/ops that need a GPU; where none is found they fail. In a dry run one file."""
    report = out / "pytest.xml"
    what = ["tests/ops/op_beam_search_test.py"] if dry else ["tests/ops"]
    command = [sys.executable, "-m", "pytest", *what, "-q", f"--junitxml={report}"]
    environment = os.environ | {"LINNET_OPS_LIBRARY": str(library.resolve())}
    if not dry:
        environment["LINNET_GPU_TESTS"] = "only"
    status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    suite = ElementTree.parse(report).getroot().find("testsuite")
    report.unlink()
    counts = {key: int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")}
    return {"ok": status == 0, **counts}


def run_sanitizer(library: Path) -> list[dict]:
    """A few tests of each kind of kernel under compute-sanitizer: what emulated threads do not
    show."""
    environment = os.environ | {"LINNET_OPS_LIBRARY": str(library.resolve())}
    environment["LINNET_GPU_TESTS"] = "only"
    chosen = ["op_add_norm_test.py", "op_beam_search_test.py", "op_convolution_step_test.py"]
    chosen += ["op_source_attention_test.py", "op_self_attention_step_test.py"]
    rows = []
    for tool in ("memcheck", "racecheck"):
        command = ["compute-sanitizer", "--tool", tool, "--target-processes", "all"]
        command += ["--error-exitcode", "9", sys.executable, "-m", "pytest", "-q", "-x"]
        command += [f"tests/ops/{name}" for name in chosen]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, text=True, capture_output=True, timeout=200
            )
            lines = [line for line in done.stdout.splitlines() if "SUMMARY" in line]
            status, said = str(done.returncode), "; ".join(lines[-2:]) or done.stderr[-200:]
        except FileNotFoundError:
            status, said = "not run", "no compute-sanitizer here"
        except subprocess.TimeoutExpired:
            status, said = "not finished", "after 200 seconds"
        rows.append({"tool": tool, "exit status": status, "said": said.strip()})
    return rows


def table(rows: list[dict]) -> str:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(row.get(c, "")) for c in columns) + " |" for row in rows]
    return "\n".join(lines)


def markdown(results: dict) -> str:
    facts = results["facts"]
    said = ", ".join(f"{key} {value}" for key, value in facts.items() if key != "device")
    parts = [f"# {facts['device']}", f"Written by `tests/gpu.sh`: {said}."]
    if tests := results.get("tests"):
        parts += [
            "## Tests of the operators that need a GPU",
            f"{tests['tests']} in all, {tests['failures'] + tests['errors']} failed, "
            f"{tests['skipped']} skipped.",
        ]
    if rows := results.get("sanitizer"):
        parts += ["## Under compute-sanitizer", table(rows)]
    if rows := results.get("operators"):
        parts += [
            "## Times of the operators",
            "Median of a call, from CUDA events; `GB/s` counts what the call must read and write.",
            table(rows),
        ]
    if rows := results.get("answers"):
        parts += [
            "## linnet-decode, device against CPU, in float32",
            "`ties`: another hypothesis won, with a score less than 1e-4 away.",
            table(rows),
        ]
    for name in ("base", "big"):
        if rows := results.get(name):
            parts += [
                f"## Target tokens a second, {name} model",
                "Random weights, 30 source and 30 target tokens. `fairseq's way`: the same model in"
                " eager PyTorch; `Marian`: a Transformer of 6 + 6 layers of that width, by Hugging"
                " Face's `generate`. `roof`: the bytes and products of a step, whichever takes"
                " longer at the speed of a plain copy and of a large product on this device.",
                table(rows),
            ]
    return "\n\n".join(parts) + "\n"


def write(results: dict, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^a-z0-9]+", "-", results["facts"]["device"].lower()).strip("-")
    (out / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
    (out / f"{name}.md").write_text(markdown(results))


def wrong(results: dict) -> list[str]:
    """What must not be so."""
    found = []
    if not results.get("tests", {"ok": True})["ok"]:
        found.append(f"tests {results['tests']}")
    for row in results.get("sanitizer", []):
        if row["exit status"].isdigit() and row["exit status"] != "0":
            found.append(f"{row['tool']}: {row['said']}")
    for row in results.get("answers", []):
        if row["different"]:
            found.append(f"{row['bundle']}, {row['options']}, {row['way']} decode differently")
    return found


def measure(arguments: argparse.Namespace, results: dict) -> None:
    """Part by part, written down after each: a run that is cut short keeps what it has."""
    dry = arguments.dry
    torch.ops.load_library(arguments.library)
    if not dry:
        torch.ops.load_library(arguments.library.with_name("liblinnet_ops_cuda.so"))
    os.environ["LINNET_OPS_LIBRARY"] = str(arguments.library.resolve())
    decoder = Decoder(Path(arguments.portable), arguments.library.parent, "cpu" if dry else "cuda")
    for part in arguments.parts:
        print(f"== {part}", flush=True)
        if part == "tests":
            results[part] = run_tests(arguments.library, arguments.out, dry)
        elif part == "sanitizer":
            results[part] = [] if dry else run_sanitizer(arguments.library)
        elif part == "operators":
            results[part] = time_operators("cpu" if dry else "cuda")
        elif not arguments.portable:
            print(f"{part}: left out, it needs --portable", flush=True)
        elif part == "answers":
            results[part] = []
            for bundle in sorted((ROOT / "model/bundles").glob("*/manifest.json")):
                texts = TEXTS[:2] if dry else TEXTS
                results[part] += compare_devices(decoder, bundle.parent, texts)
        else:
            results[part] = compare_speed(decoder, "tiny" if dry else part, DRY if dry else FULL)
        write(results, arguments.out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=Path)
    parser.add_argument("--portable", default="", help="empty: none")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--merge", nargs="+", type=Path, default=[])
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()

    results: dict = {}
    for file in arguments.merge:
        results |= json.loads(file.read_text())
    if not arguments.merge:
        results = {"facts": device_facts(arguments.dry)}
        arguments.out.mkdir(parents=True, exist_ok=True)
        measure(arguments, results)
    write(results, arguments.out)
    print(markdown(results))
    if found := wrong(results):
        sys.exit(f"error: {'; '.join(found)}")


if __name__ == "__main__":
    main()
