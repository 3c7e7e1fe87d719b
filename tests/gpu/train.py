"""Runs a training in the background on a GPU machine, across several commands.

  train.py start --recipe FILE --data DIR --run RUN    starts the training in its own session
  train.py collect --run RUN --out DIR --wait SECONDS  waits for its end, at most SECONDS, and
                                                       writes the weights in pieces
  train.py join PIECES… --run RUN                      joins the pieces to a checkpoint for
                                                       linnet-export, on the other machine

A command can return 8 files of 16 MiB. Therefore only the averaged weights are returned, in
bfloat16 and in pieces; the state of the optimizer is not.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from session import ROOT, with_package
from torch import Tensor

TOKENIZER = "source.spm"
PIECE = 15 * 2**20  # max bytes of weights in a piece


def running(run: Path) -> bool:
    """Returns whether the process that `start` created is still running."""
    file = run / "process"
    if not file.exists():
        return False
    stat = Path(f"/proc/{file.read_text().strip()}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def start(recipe: Path, data: Path, run: Path, dry: bool) -> None:
    if (run / "process").exists():
        print(f"{run} was started already", flush=True)
        return
    run.mkdir(parents=True, exist_ok=True)
    device = "cpu" if dry else "cuda"
    words = [sys.executable, "-m", "linnet_model.train", "--recipe", str(recipe)]
    words += ["--data", str(data), "--out", str(run), "--device", device]
    words += ["--tokenizer-from", str(ROOT / "model/bundles/en-de")]
    if dry:
        words += ["--set", "train.seconds=20", "--set", "train.valid_updates=100000"]
        words += ["--set", "model.width=64", "--set", "train.batch_target_tokens=500"]
        words += ["--set", "train.bfloat16=false", "--set", "train.valid_rows=2"]
    environment = with_package() | {"PYTHONUNBUFFERED": "1"}
    with (run / "output").open("w") as output:
        process = subprocess.Popen(
            words,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    (run / "process").write_text(f"{process.pid}\n")
    print(f"training {recipe.stem} in process {process.pid}", flush=True)


def pieces(weights: dict[str, Tensor], limit: int) -> Iterator[dict[str, Tensor]]:
    """Yields the weights in bfloat16 in pieces of `limit` bytes, the last one smaller. A weight
    that does not fit is cut between rows into NAME/0, NAME/1, …"""
    piece: dict[str, Tensor] = {}
    left = limit
    for name, weight in weights.items():
        rest, part = weight.to(torch.bfloat16), 0
        while 2 * rest.numel() > left:
            rows = left // (2 * rest[:1].numel())
            if rows > 0:
                piece[f"{name}/{part}"], rest, part = rest[:rows].clone(), rest[rows:], part + 1
            yield piece
            piece, left = {}, limit
        piece[name if part == 0 else f"{name}/{part}"] = rest.clone()
        left -= 2 * rest.numel()
    yield piece


def join(parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Returns the weights that were given to `pieces`, rounded to bfloat16, as float32."""
    cut: dict[str, list[Tensor]] = {}
    for part in parts:
        for name, weight in part.items():
            cut.setdefault(name.partition("/")[0], []).append(weight)
    return {
        name: (torch.cat(weights) if len(weights) > 1 else weights[0]).float()
        for name, weights in cut.items()
    }


def collect(run: Path, out: Path, wait: float) -> None:
    deadline = time.monotonic() + wait
    while running(run) and time.monotonic() < deadline:
        time.sleep(1)
    out.mkdir(parents=True, exist_ok=True)
    print((run / "output").read_text()[-1500:] if (run / "output").exists() else "no output")
    for name in ("log.jsonl", "settings.json"):
        if (run / name).exists():
            shutil.copy(run / name, out / f"training-{name}")
    if (run / TOKENIZER).exists():
        shutil.copy(run / TOKENIZER, out / TOKENIZER)
    found = sorted(run.glob("checkpoint-*.pt"))
    if not found:
        print(f"no checkpoint in {run} yet", flush=True)
        return
    checkpoint = torch.load(found[-1], map_location="cpu", weights_only=True)
    cut = list(pieces(checkpoint["average"], PIECE))
    for number, weights in enumerate(cut, 1):
        facts = {"recipe": checkpoint["recipe"], "position": checkpoint["position"]}
        torch.save({**facts, "weights": weights}, out / f"weights-{number}-of-{len(cut)}.pt")
    print(f"{found[-1].name} in {len(cut)} pieces", flush=True)


def join_files(files: list[Path], run: Path) -> Path:
    """Writes a checkpoint for linnet-export and --init-from."""
    parts: list[dict[str, Any]] = [torch.load(file, weights_only=True) for file in sorted(files)]
    wanted = int(sorted(files)[0].stem.rpartition("-")[2])
    if len(parts) != wanted:
        raise SystemExit(f"error: {len(parts)} of {wanted} pieces were given")
    weights = join([part["weights"] for part in parts])
    position = parts[0]["position"]
    run.mkdir(parents=True, exist_ok=True)
    path = run / f"checkpoint-{position['update']:07d}.pt"
    whole = {"recipe": parts[0]["recipe"], "position": position}
    torch.save({**whole, "model": weights, "average": weights, "optimizer": {}}, path)
    if (files[0].parent / TOKENIZER).exists():
        shutil.copy(files[0].parent / TOKENIZER, run / TOKENIZER)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("start", "collect", "join"))
    parser.add_argument("pieces", nargs="*", type=Path)
    parser.add_argument("--recipe", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--wait", type=float, default=0)
    parser.add_argument("--dry", action="store_true")
    arguments = parser.parse_args()
    if arguments.what == "start":
        start(arguments.recipe, arguments.data, arguments.run, arguments.dry)
    elif arguments.what == "collect":
        collect(arguments.run, arguments.out, arguments.wait)
    else:
        print(join_files(arguments.pieces, arguments.run))


if __name__ == "__main__":
    main()
