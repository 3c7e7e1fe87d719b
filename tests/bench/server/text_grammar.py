"""Measures the cost of restricting targets to UTF-8 (text_grammar of a bundle's manifest).

Speed of a bundle as it is and of a copy whose manifest asks for no grammar, in turn, on sentences.
(Sources of random tokens say little: for them a trained model ranks highly what is forbidden.)
Writes DIR/MACHINE/text-grammar.json and .md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
from sentences import sentences

SETTINGS = ((1, 1), (1, 4), (32, 1), (32, 4))  # batch, beam


def without_grammar(bundle: Path, folder: Path) -> Path:
    copy = folder / bundle.name
    shutil.copytree(bundle, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    if not manifest.pop("text_grammar", False):
        raise SystemExit(f"error: {bundle} has no text_grammar: there is nothing to compare")
    manifest.pop(
        "placeholders", None
    )  # placeholders need the grammar; synthetic sources copy nothing
    (copy / "manifest.json").write_text(json.dumps(manifest))
    return copy


def seconds(program: Path, bundle: Path, flags: list[str], lines: list[str]) -> float:
    text = "".join(json.dumps({"text": line}) + "\n" for line in lines)
    begin = time.perf_counter()
    command = [str(program), "--bundle", str(bundle), *flags]
    subprocess.run(command, input=text, text=True, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def speeds(bundles: dict[str, Path], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Sentences per second by compute type, batch and beam, without and with grammar; the time of a
    process with one sentence, mostly loading, is subtracted."""
    program = options.programs / "linnet-decode"
    rows = []
    for compute in options.compute:
        for batch, beam in SETTINGS:
            lines = sentences(600 if batch > 1 else 60)
            flags = ["--compute", compute, "--batch", str(batch), "--beam", str(beam)]
            found: dict[str, list[float]] = {name: [] for name in bundles}
            for _ in range(options.rounds):
                for name, bundle in bundles.items():
                    spent = seconds(program, bundle, flags, lines)
                    spent -= seconds(program, bundle, flags, lines[:1])
                    found[name].append((len(lines) - 1) / spent)
            pairs = zip(found["without"], found["with"], strict=True)
            rows.append(
                {"compute": compute, "batch": batch, "beam": beam}
                | {name: median(values) for name, values in found.items()}
                | {"ratio": median(with_it / without for without, with_it in pairs)}
            )
            print(rows[-1], file=sys.stderr)
    return rows


def markdown(data: dict[str, Any]) -> str:
    lines = [
        "# Targets restricted to UTF-8",
        "",
        "Written by `tests/bench/server/text_grammar.py`. "
        f"{machine.sentence(data['machine'])}. "
        f"{data['bundle']} with and without `text_grammar`: sentences a second, medians "
        f"of {data['rounds']} rounds in turn.",
        "",
        "| type | batch | beam | without, sentences/s | with | ratio |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in data["speeds"]:
        lines.append(
            f"| {row['compute']} | {row['batch']} | {row['beam']} | {row['without']:.1f} | "
            f"{row['with']:.1f} | {row['ratio']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    machine.add_server(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--compute", nargs="+", default=["float32", "int8"])
    options = machine.parse(parser, words)
    facts = machine.facts()
    with tempfile.TemporaryDirectory() as folder:
        bundles = {
            "without": without_grammar(options.bundle, Path(folder)),
            "with": options.bundle,
        }
        data = {
            "machine": facts,
            "bundle": machine.bundle_name(options.bundle),
            "rounds": options.rounds,
            "speeds": speeds(bundles, options),
        }
    path = options.out / machine.slug(facts) / "text-grammar.json"
    machine.write_result(path, data, markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
