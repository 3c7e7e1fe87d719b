"""Compares trainings by the logs of their run folders: what one setting is worth at equal time.

    python research/bench/trainings.py RUN RUN… --device NAME --out DIR

The first run is the one that the others are compared with; of each other one the settings are told
in which its recipe differs. The validation is that after the last update. The name of the device is
that of the machine that the trainings shared, as its folder of results has it. Writes
DIR/trainings.json and trainings.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests/bench"))
import machine

SCORES = ("nll_all", "bleu", "chrf")
HEADS = ["training", "updates", "target tokens", "minutes", "validation loss", "BLEU", "chrF"]


def differences(recipe: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The settings of `other` that `recipe` has not, named section.key; one level of sections."""
    return {
        f"{section}.{key}": value
        for section, settings in other.items()
        for key, value in settings.items()
        if key not in recipe[section] or recipe[section][key] != value
    }


def facts_of(run: Path) -> dict[str, Any]:
    """Returns the facts of a run by its log and settings; one that did not end is an error."""
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    if log[-1]["kind"] != "end":
        raise SystemExit(f"error: the training of {run} did not end: see its log")
    last = next(line for line in reversed(log) if line["kind"] == "train")
    valid = next(line for line in reversed(log) if line["kind"] == "valid")
    settings = json.loads((run / "settings.json").read_text())
    return {
        "name": run.name,
        "recipe": settings["recipe"],
        "parameters": settings["parameters"],
        "updates": log[-1]["update"],
        # Both up to the last line of the training, a few updates before its end.
        "target_tokens": last["target_tokens"],
        "seconds": round(last["seconds"], 1),
        **{score: round(valid[score], 4) for score in SCORES},
    }


def compare(runs: list[Path], device: str) -> dict[str, Any]:
    found = [facts_of(run) for run in runs]
    recipes = [facts.pop("recipe") for facts in found]
    for facts, recipe in zip(found, recipes, strict=True):
        facts["changed"] = differences(recipes[0], recipe)
    valid_rows = recipes[0]["train"]["valid_rows"]
    return {"device": device, "valid_rows": valid_rows, "trainings": found}


def rows_of(results: dict[str, Any]) -> list[list[str]]:
    rows = []
    for facts in results["trainings"]:
        changed = ", ".join(f"`{key} = {value}`" for key, value in facts["changed"].items())
        rows.append(
            [
                changed or f"`{facts['name']}`",
                f"{facts['updates']:,}",
                f"{facts['target_tokens'] / 1e6:.0f}M",
                f"{facts['seconds'] / 60:.1f}",
                f"{facts['nll_all']:.3f}",
                f"{facts['bleu']:.1f}",
                f"{facts['chrf']:.1f}",
            ]
        )
    return rows


def note(results: dict[str, Any]) -> str:
    return f"{results['device']}, all at once, one training each; {results['valid_rows']} rows."


def markdown(results: dict[str, Any]) -> str:
    intro = "Written by `research/bench/trainings.py`."
    table = "\n".join(machine.table(HEADS, rows_of(results)))
    return f"# Trainings at equal time\n\n{intro} {note(results)}\n\n{table}\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--device", required=True, metavar="NAME")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR")
    options = parser.parse_args()
    results = compare(options.runs, options.device)
    (options.out / "trainings.json").write_text(json.dumps(results, indent=1) + "\n")
    (options.out / "trainings.md").write_text(markdown(results))


if __name__ == "__main__":
    main()
