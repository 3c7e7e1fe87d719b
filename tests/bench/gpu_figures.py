"""The tables of figures of GPUs, and of what was trained on them (figures.py)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))
import answers as gpu_answers
import report as gpu_report
from committed import result, table


def on_gpu(results: dict[str, Any]) -> str:
    facts = results["facts"]
    return f"{facts['device']}, driver {facts['driver']}, Linnet {facts['commit'][:7]}."


def base_speeds(results: dict[str, Any]) -> dict[int, dict[str, int]]:
    """Target tokens a second of the base model at beam 5, by batch and engine."""
    found: dict[int, dict[str, int]] = {}
    for row in results["parts"]["base"]["rows"]:
        if row["beam"] == 5:
            found.setdefault(row["batch"], {})[row["engine"]] = row["tok/s"]
    return dict(sorted(found.items()))


def gpu_speed(name: str) -> str:
    """Those of a result beside the peers that it has."""
    results = result(name)
    found = base_speeds(results)
    known = {"fairseq's way": "eager PyTorch", "Marian": "Transformers"}
    peers = {peer: title for peer, title in known.items() if all(peer in s for s in found.values())}
    rows = []
    for batch, speeds in found.items():
        cells = [f"{speeds[gpu_report.OURS]:,}"]
        for peer in peers:
            cells += [f"{speeds[peer]:,}", f"{speeds[gpu_report.OURS] / speeds[peer]:.1f} ×"]
        rows.append([f"{batch} at a time", *cells])
    named = [word for title in peers.values() for word in (title, "ratio")]
    return table(["target tokens a second", "Linnet", *named], rows, on_gpu(results))


def gpu_modes() -> str:
    """The same with and without what makes steps fast."""
    results = result("gpu-earlier")
    rows = results["parts"]["base"]["rows"]
    kinds = list(dict.fromkeys(row["engine"] for row in rows if row["engine"].startswith("Linnet")))
    speeds = {(row["engine"], row["batch"]): row["tok/s"] for row in rows if row["beam"] == 5}
    batches = [batch for batch in (1, 32) if all((kind, batch) in speeds for kind in kinds)]
    names = {kind: kind.removeprefix("Linnet, ") for kind in kinds}
    lines = [[names[kind], *(f"{speeds[kind, batch]:,}" for batch in batches)] for kind in kinds]
    heads = ["target tokens a second, beam 5", *(f"{batch} at a time" for batch in batches)]
    return table(heads, lines, on_gpu(results))


def gpu_bleu() -> str:
    results = result("gpu-answers")
    rows = [
        [f"{row['device']}, {row['compute']}", *(f"{row[name]:.2f}" for name in ("BLEU", "chrF"))]
        for row in results["parts"]["answers"]["rows"]
        if "BLEU" in row
    ]
    heads = ["`en-de` on tatoeba", "BLEU", "chrF"]
    count = f"{gpu_answers.TEST_ROWS:,} rows, with the version of that commit. "
    return table(heads, rows, f"{count}{on_gpu(results)}")


def gpu_server() -> str:
    results = result("gpu-answers")
    rows = [
        [f"batch {row['batch']}, beam {row['beam']}", f"{row['linnet-decode, sentences/s']:,.0f}",
         f"{row['linnet-server, sentences/s']:,.0f}", row["share"]]
        for row in results["parts"]["serving"]["rows"]
    ]  # fmt: skip
    heads = ["`en-de`, sentences a second", "linnet-decode", "linnet-server", "share"]
    return table(heads, rows, on_gpu(results))


FIGURES = {
    "gpu-bleu": gpu_bleu,
    "gpu-modes": gpu_modes,
    "gpu-server": gpu_server,
    "gpu-speed": lambda: gpu_speed("gpu"),
}
