"""Runs linnet-decode of a portable folder on the CPU and on the GPU."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from session import ROOT, Setup

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
GERMAN = [
    "Ein Hund läuft.",
    "Wo ist der nächste Bahnhof?",
    "Ich hätte gern zwei Karten nach Hamburg, bitte.",
    "Sie sagte ihm, dass sie das Meer noch nie gesehen habe.",
    "Die Datei konnte nicht geöffnet werden, weil ein anderes Programm sie verwendet.",
    "Wenn es morgen regnet, bleiben wir zu Hause; sonst gehen wir zusammen an den See.",
    "Version 3.2 des Programms erschien am 14. März 2021.",
    "Nein!",
]
# Execution modes of a step and its search on a GPU.
WAYS = {
    "graphs": ("--search", "device"),
    "kernel by kernel": ("--search", "device", "--no-graphs"),
    "the library's gemms": ("--search", "device", "--no-time-gemms"),
    "search on the host": ("--search", "host"),
}


@dataclass(frozen=True)
class Decoder:
    portable: Path
    library: Path  # folder of liblinnet_ops*.so; it precedes that of the portable folder
    device: str

    def environment(self) -> dict[str, str]:
        folders = [self.library, Path(torch.__file__).parent / "lib", self.portable / "lib"]
        paths = [str(folder.resolve()) for folder in folders]
        if known := os.environ.get("LD_LIBRARY_PATH"):  # may have the driver's libraries
            paths.append(known)
        return os.environ | {"LD_LIBRARY_PATH": ":".join(paths)}

    def run(
        self, *flags: str, lines: Sequence[dict[str, Any]] = (), timeout: float | None = None
    ) -> list[dict[str, Any]]:
        """Decodes `lines` and returns the answers."""
        done = subprocess.run(
            [self.portable / "bin/linnet-decode", *flags],
            input="".join(json.dumps(line) + "\n" for line in lines),
            env=self.environment(),
            text=True,
            capture_output=True,
            timeout=timeout,
        )
        if done.returncode:
            command = f"linnet-decode {' '.join(flags)}"
            raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr[-1200:]}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def synthetic(self, bundle: Path, batch: int, beam: int, *flags: str) -> dict[str, Any]:
        """Measures tokens per second of random sources whose targets all reach the limit."""
        words = ["--bundle", str(bundle), "--device", self.device, "--synthetic"]
        words += ["--batch", str(batch), "--beam", str(beam), *flags]
        (line,) = self.run(*words)
        return line


def decoder_of(setup: Setup) -> Decoder:
    assert setup.portable is not None
    return Decoder(setup.portable, setup.library.parent, setup.device)


def texts_for(bundle: Path) -> list[str]:
    """Texts in the language that the bundle reads."""
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    return GERMAN if manifest["source_language_code"] == "de" else TEXTS


def bundles() -> list[Path]:
    return sorted(file.parent for file in (ROOT / "model/bundles").glob("*/manifest.json"))
