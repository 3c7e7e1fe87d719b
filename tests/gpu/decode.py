"""linnet-decode on CPU and GPU: the same answers, and how fast."""

import json
import os
import subprocess
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

COLUMNS = [
    "compute",
    "batch",
    "beam",
    "source_tokens",
    "target_tokens",
    "seconds",
    "tokens_per_second",
]


def linnet_decode(
    portable: Path, library: Path, *flags: str, texts: list[str] | None = None
) -> list[dict]:
    """The answers, one per line. The operators built here go before those that came along."""
    folders = [library, Path(torch.__file__).parent / "lib", portable / "lib"]
    environment = os.environ | {
        "LD_LIBRARY_PATH": ":".join(str(folder.resolve()) for folder in folders)
    }
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts or [])
    done = subprocess.run(
        [portable / "bin/linnet-decode", *flags],
        input=lines,
        env=environment,
        text=True,
        capture_output=True,
    )
    if done.returncode:
        command = f"linnet-decode {' '.join(flags)}"
        raise SystemExit(f"error: {command} ended with {done.returncode}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare_devices(portable: Path, library: Path, bundle: Path) -> dict:
    """The best hypothesis of each text on both devices, in float32 and at beam 5."""
    flags = ("--bundle", str(bundle), "--compute", "float32", "--beam", "5")
    cpu, cuda = [
        linnet_decode(portable, library, *flags, "--device", device, texts=TEXTS)
        for device in ("cpu", "cuda")
    ]
    furthest = 0.0
    result = {"bundle": bundle.name, "texts": len(TEXTS), "same": 0, "ties": 0, "different": 0}
    for lines in zip(cpu, cuda, strict=True):
        one, other = (line["hypotheses"][0] for line in lines)
        distance = abs(one["score"] - other["score"])
        furthest = max(furthest, distance)
        if one["ids"] == other["ids"]:
            result["same"] += 1
        else:
            result["ties" if distance < 1e-4 else "different"] += 1
    return result | {"score difference": f"{furthest:.1e}"}


def measure_decoding(portable: Path, library: Path, bundle: Path) -> list[dict]:
    synthetic = [
        "--synthetic",
        "--source-tokens",
        "30",
        "--target-tokens",
        "30",
        "--repeat",
        "5",
        "--beam",
        "5",
    ]
    synthetic += ["--device", "cuda"]
    rows = []
    for compute in ("float32", "bfloat16", "float16"):
        for batch in (1, 32, 128):
            flags = [
                "--bundle",
                str(bundle),
                "--compute",
                compute,
                "--batch",
                str(batch),
                *synthetic,
            ]
            (line,) = linnet_decode(portable, library, *flags)
            rows.append({"bundle": bundle.name} | {key: line[key] for key in COLUMNS})
    return rows
