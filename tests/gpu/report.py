"""Writes the report DEVICE/gpu.md and DEVICE/gpu.json from the rows of tests/gpu.sh.

report.py ROWS.jsonl… --out DIR merges several calls into one report.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

Row = dict[str, Any]
OURS = "Linnet"
UNFINISHED = "its process ended, or its time was over"

TITLES = {
    "smoke": "## linnet-decode on the GPU\n\nOne text in each way in which a step can run.",
    "kernels": "## Tests on the GPU\n\nThe kernels' tests run without torch, alone and under "
    "compute-sanitizer; the device decoder's tests compare it with the search on the host; those "
    "of tests/ops compare each operator with its reference.",
    "answers": "## Answers, GPU against the CPU's float32\n\n`ties`: another hypothesis won, with "
    "a score less than 1e-4 away. `score off`: how far the best hypotheses' scores are apart. "
    "In float16 and bfloat16 answers may differ; the BLEU of a test set says what that means.",
    "base": "## Target tokens a second, base model",
    "big": "## Target tokens a second, big model",
    "serving": "## The server beside the engine\n\nSentences a second at full load: "
    "`linnet-decode`, and `linnet-server` with `linnet-load` on the same machine.",
    "encoder": "## Encoder calls\n\nSources of 30 tokens: padded and launched kernel by kernel; in "
    "blocks; in blocks as one graph. `off`: the largest difference between keys and values.",
    "search": "## Times of the search\n\nAs in the times of the operators, with random logits and "
    "with those of `en-de`.",
    "latencies": "## Latencies of the device\n\nPer kernel, barrier or read; "
    "`tests/gpu/latencies.cu`.",
    "ctranslate2": "## Target tokens a second, CTranslate2\n\nA Transformer of the base "
    "model's size, random weights, 30 source and 30 target tokens.",
    "mixed": "## Searches on the host beside those on the device\n\nSentences a second without "
    "the sampled ones.",
    "profile": "## A decoder step, kernel by kernel\n\nFrom torch's profiler; `the whole step` "
    "is a replay of it as a CUDA graph: what it takes longer than `all kernels` is gaps.",
    "operators": "## Times of the operators\n\nMedian of a call, from replays of a CUDA graph of "
    "calls that use `sets` sets of buffers in turn; `GB/s` counts what a call moves at least.",
    "counters": "## Hardware counters of a decoder step\n\nFrom ncu, kernel by kernel.",
}
SPEED = (
    "Random weights, 30 source and 30 target tokens. `fairseq's way`: the same model in eager "
    "PyTorch; `Marian`: a Transformer of 6 + 6 layers of that width, by Hugging Face's `generate`. "
    "`roof`: the bytes and gemms of a step, whichever takes longer at the speed of a plain copy "
    "({copy} TB/s) and of a large gemm ({gemm} TFLOP/s) on this device."
)


def read_rows(files: list[Path]) -> list[Row]:
    """Reads all complete lines; the last line of a file may be incomplete."""
    whole = [file.read_text().rpartition("\n")[0] for file in files]
    return [json.loads(line) for text in whole for line in text.splitlines()]


def collect(lines: list[Row]) -> dict[str, Any]:
    """Returns rows, failures and end of each part. The later result of a repeated case counts."""
    results: dict[str, Any] = {"facts": {}, "parts": {}}
    cases: dict[tuple[str, str], Row] = {}
    begun: dict[tuple[str, str], Row] = {}
    for line in lines:
        part = results["parts"].setdefault(line["part"], {"rows": [], "failed": {}})
        if "end" in line:
            part["end"], part["seconds"] = line["end"], line["seconds"]
        elif "begun" in line:
            begun[line["part"], line["case"]] = line
        else:
            cases[line["part"], line["case"]] = line
    for (part, case), line in cases.items():
        if "error" in line:
            results["parts"][part]["failed"][case] = line["error"]
        else:
            results["parts"][part]["rows"] += line["rows"]
    for part, case in begun.keys() - cases.keys():
        results["parts"][part]["failed"][case] = UNFINISHED
    machine = results["parts"].pop("facts", {"rows": []})["rows"]
    results["facts"] = machine[0] if machine else {"device": "unknown device"}
    return results


def table(rows: list[Row]) -> str:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(row.get(c, "")) for c in columns) + " |" for row in rows]
    return "\n".join(lines)


def tables(rows: list[Row]) -> list[str]:
    """Returns a table for each set of columns."""
    shapes: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        shapes.setdefault(tuple(row), []).append(row)
    return [table(same) for same in shapes.values()]


def speed_section(rows: list[Row]) -> list[str]:
    """Returns a table with a line per batch and beam and a column per engine."""
    found: dict[tuple[int, int], Row] = {}
    for row in sorted(rows, key=lambda row: (row["batch"], row["beam"])):
        line = found.setdefault(
            (row["batch"], row["beam"]), {"batch": row["batch"], "beam": row["beam"]}
        )
        line[row["engine"]] = row["tok/s"]
        if row["engine"] == OURS:
            line |= {key: row[key] for key in ("roof tok/s", "of the roof")}
    ours = next((row for row in rows if row["engine"] == OURS), None)
    said = []
    if ours is not None:
        said.append(SPEED.format(copy=ours["copy TB/s"], gemm=ours["gemm TFLOP/s"]))
        said.append(f"Linnet searches on the {ours['search']}.")
    return [" ".join(said), table(list(found.values()))]


def markdown(results: dict[str, Any]) -> str:
    facts = results["facts"]
    said = ", ".join(f"{key} {value}" for key, value in facts.items() if key != "device")
    parts = [f"# {facts['device']}", f"Written by `tests/gpu.sh`: {said}."]
    for name in [name for name in TITLES if name in results["parts"]]:
        part = results["parts"][name]
        parts.append(TITLES[name])
        if part["rows"]:
            speeds = name in ("base", "big")
            parts += speed_section(part["rows"]) if speeds else tables(part["rows"])
        failures = [{"case": case, "failed": error} for case, error in part["failed"].items()]
        if failures:
            parts.append(table([{k: v.replace("\n", " ") for k, v in f.items()} for f in failures]))
        if part.get("end", "complete") != "complete":
            parts.append(f"This part is not complete: {part['end']}.")
    return "\n\n".join(parts) + "\n"


def wrong(results: dict[str, Any]) -> list[str]:
    """Returns the errors. A part that ran out of time is not an error."""
    found = []
    for name, part in results["parts"].items():
        if name in ("smoke", "encoder", "kernels", "answers", "operators"):
            found += [
                f"{name}, {case}: {error[:200]}"
                for case, error in part["failed"].items()
                if error != UNFINISHED or not part.get("end", "").startswith("stopped")
            ]
        if part.get("end", "").startswith("ended"):
            found.append(f"{name} {part['end']}")
        for row in part["rows"]:
            if name == "kernels" and row["exit status"] != 0:
                found.append(f"{row['tests']}: {row['said']}")
            if name == "answers" and row.get("compute") == "float32" and row.get("different"):
                found.append(f"{row['bundle']}, {row['options']}, {row['way']} decode differently")
    return found


def write_report(files: list[Path], out: Path) -> int:
    results = collect(read_rows(files))
    device = re.sub(r"[^a-z0-9]+", "-", results["facts"]["device"].lower()).strip("-")
    folder = out / device
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gpu.json").write_text(json.dumps(results, separators=(",", ":")) + "\n")
    (folder / "gpu.md").write_text(markdown(results))
    print(markdown(results))
    if found := wrong(results):
        print(f"error: {'; '.join(found)}", file=sys.stderr)
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    return write_report(arguments.rows, arguments.out)


if __name__ == "__main__":
    sys.exit(main())
