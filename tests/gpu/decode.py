"""linnet-decode on CPU and GPU: the same answers, and how fast."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

TEXTS = [
    "A dog runs.",
    "Where is the nearest station?",
    "I would like to have two tickets to Hamburg, please.",
    "She told him that she had never seen the sea before.",
    "The file could not be opened because it is used by another program.",
    "If it rains tomorrow, we will stay at home; otherwise we will go to the lake together.",
    "Version 3.2 of the program was released on 14 March 2021.",
    "No!",
]
# Each on both devices: the ways in which a step and its search can run, and options of the search.
WAYS = {
    "graphs": ("--search", "device"),
    "kernel by kernel": ("--search", "device", "--no-graphs"),
    "search on the host": ("--search", "host"),
}
OPTIONS: dict[str, dict] = {
    "beam 5": {"beam_size": 5},
    "beam 1": {"beam_size": 1},
    "trigrams once": {"beam_size": 4, "no_repeat_ngram_size": 3, "unknown_penalty": 1},
    "drawn": {"beam_size": 2, "seed": 7},
}


@dataclass(frozen=True)
class Decoder:
    """A linnet-decode that was built elsewhere, and the operators it is to use."""

    portable: Path
    library: Path  # the folder of liblinnet_ops*.so: goes before those that came along
    device: str

    def run(self, *flags: str, lines: Sequence[dict] = ()) -> list[dict]:
        """The answers, one per line."""
        folders = [self.library, Path(torch.__file__).parent / "lib", self.portable / "lib"]
        paths = [str(folder.resolve()) for folder in folders]
        if known := os.environ.get("LD_LIBRARY_PATH"):  # the driver's, for one
            paths.append(known)
        environment = os.environ | {"LD_LIBRARY_PATH": ":".join(paths)}
        done = subprocess.run(
            [self.portable / "bin/linnet-decode", *flags],
            input="".join(json.dumps(line) + "\n" for line in lines),
            env=environment,
            text=True,
            capture_output=True,
        )
        if done.returncode:
            command = f"linnet-decode {' '.join(flags)}"
            raise SystemExit(
                f"error: {command} ended with {done.returncode}: {done.stderr[-2000:]}"
            )
        return [json.loads(line) for line in done.stdout.splitlines()]

    def synthetic(self, bundle: Path, batch: int, beam: int, *flags: str) -> dict:
        """Tokens a second of random sources, every target as long as the limit."""
        words = ["--bundle", str(bundle), "--device", self.device, "--synthetic"]
        words += ["--batch", str(batch), "--beam", str(beam), *flags]
        (line,) = self.run(*words)
        return line


def compare_devices(decoder: Decoder, bundle: Path, texts: list[str]) -> list[dict]:
    """The best hypothesis of each text on the CPU and on the device, in float32."""
    rows = []
    for options, chosen in OPTIONS.items():
        lines = [{"text": text, "options": chosen | {"n_best": 1}} for text in texts]
        flags = ("--bundle", str(bundle), "--compute", "float32")
        cpu = decoder.run(*flags, "--device", "cpu", lines=lines)
        for way, how in WAYS.items():
            other = decoder.run(*flags, "--device", decoder.device, *how, lines=lines)
            rows.append({"bundle": bundle.name, "options": options, "way": way} | tally(cpu, other))
    return rows


def tally(cpu: list[dict], other: list[dict]) -> dict:
    result = {"texts": len(cpu), "same": 0, "ties": 0, "different": 0}
    furthest = 0.0
    for lines in zip(cpu, other, strict=True):
        one, two = (line["hypotheses"][0] for line in lines)
        distance = abs(one["score"] - two["score"])
        furthest = max(furthest, distance)
        if one["ids"] == two["ids"]:
            result["same"] += 1
        else:
            result["ties" if distance < 1e-4 else "different"] += 1
    return result | {"score difference": f"{furthest:.1e}"}
