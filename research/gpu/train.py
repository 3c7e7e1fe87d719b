"""Runs trainings in the background on a GPU machine, across several commands.

  train.py start --recipe FILE [--recipe FILE …] --data DIR --runs DIR --seconds N [--from-bundles]
                                  starts a training of N seconds for each recipe, at the same time,
                                  from the start or with the weights of the bundle of that name
  train.py collect --runs DIR --out DIR --wait SECONDS
                                  waits for their ends, at most SECONDS, and writes each run to
                                  OUT/NAME.tar.1-of-2, …; exits with 1 if one did not end well
  train.py join PIECES… --runs DIR
                                  makes the run folders of the pieces, on the other machine, for
                                  linnet-export and --init-from

A command can return 8 files of 16 MiB. Therefore only the averaged weights are returned, in
bfloat16; the state of the optimizer is not.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "model"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/gpu"))
from session import with_package

from linnet_model.config import read_recipe
from linnet_model.train.checkpoint import checkpoints, load_checkpoint
from linnet_model.train.training_log import has_ended

ROOT = Path(__file__).resolve().parents[2]
PIECE = 15 * 2**20  # max bytes of a piece
LOGGED = ("log.jsonl", "settings.json", "source.spm", "samples.txt", "output")


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


def beginning(recipe: Path, from_bundle: bool) -> list[str]:
    """Returns the flags of linnet-train that name its first weights or only its vocabulary."""
    if not from_bundle:
        return ["--tokenizer-from", str(ROOT / "model/bundles/en-de")]
    return ["--init-from", str(ROOT / "model/bundles" / read_recipe(recipe).bundle.name)]


def start(
    recipe: Path, data: Path, run: Path, seconds: int, dry: bool, from_bundle: bool = False
) -> None:
    if (run / "process").exists():
        print(f"{run} was started already", flush=True)
        return
    run.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "linnet_model.train", "--recipe", str(recipe)]
    words += ["--data", str(data), "--out", str(run), "--device", "cpu" if dry else "cuda"]
    words += [*beginning(recipe, from_bundle), "--set", f"train.seconds={seconds}"]
    if dry:
        words += ["--set", "train.batch_target_tokens=500"]
        words += [] if from_bundle else ["--set", "model.width=64"]
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


def packed(run: Path, checkpoint: dict[str, Any] | None) -> bytes:
    """Returns a tar of the run's log and of its last checkpoint, if it has one, without optimizer
    and with the averaged weights alone, rounded to bfloat16."""
    whole = io.BytesIO()
    with tarfile.open(None, "w", whole) as tar:
        for name in LOGGED:
            if (run / name).exists():
                tar.add(run / name, name)
        if checkpoint is not None:
            average = {name: w.to(torch.bfloat16) for name, w in checkpoint["average"].items()}
            facts = {key: checkpoint[key] for key in ("recipe", "position")}
            file = io.BytesIO()
            torch.save({"average": average, **facts}, file)
            entry = tarfile.TarInfo(checkpoints(run)[-1].name)
            entry.size = file.tell()
            file.seek(0)
            tar.addfile(entry, file)
    return whole.getvalue()


def collect(run: Path, out: Path) -> bool:
    """Returns whether the training reached the end of its schedule and was validated."""
    print((run / "output").read_text()[-1500:], flush=True)
    checkpoint = load_checkpoint(run) if checkpoints(run) else None
    whole = packed(run, checkpoint)
    out.mkdir(parents=True, exist_ok=True)
    begins = range(0, len(whole), PIECE)
    for number, begin in enumerate(begins, 1):
        piece = out / f"{run.name}.tar.{number}-of-{len(begins)}"
        piece.write_bytes(whole[begin : begin + PIECE])
    return checkpoint is not None and has_ended(run, checkpoint["position"]["update"])


def join(pieces: list[Path], run: Path) -> Path:
    """Makes a run folder, whose checkpoint has float32 weights, from the pieces of its tar."""
    by_number = {int(piece.suffix[1:].partition("-of-")[0]): piece for piece in pieces}
    wanted = int(pieces[0].name.rpartition("-of-")[2])
    if missing := [str(i) for i in range(1, wanted + 1) if i not in by_number]:
        raise SystemExit(
            f"error: pieces {', '.join(missing)} of {wanted} of {run.name} are missing"
        )
    whole = b"".join(by_number[i].read_bytes() for i in range(1, wanted + 1))
    run.mkdir(parents=True, exist_ok=True)
    with tarfile.open(None, "r", io.BytesIO(whole)) as tar:
        # Debian 12's Python has no filter for extractall: only files of the folder itself are kept.
        for entry in tar:
            content = tar.extractfile(entry)
            if content is not None:
                (run / Path(entry.name).name).write_bytes(content.read())
    for path in checkpoints(run):
        kept = load_checkpoint(path)
        average = {name: weight.float() for name, weight in kept["average"].items()}
        torch.save({**kept, "model": average, "average": average, "optimizer": {}}, path)
    return run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("start", "collect", "join"))
    parser.add_argument("pieces", nargs="*", type=Path)
    parser.add_argument("--recipe", type=Path, action="append", default=[])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--wait", type=float, default=0)
    parser.add_argument("--from-bundles", action="store_true")
    parser.add_argument("--dry", action="store_true")
    arguments = parser.parse_args()
    runs: Path = arguments.runs
    if arguments.what == "start":
        for recipe in arguments.recipe:
            start(
                recipe,
                arguments.data,
                runs / recipe.stem,
                arguments.seconds,
                arguments.dry,
                arguments.from_bundles,
            )
    elif arguments.what == "collect":
        deadline = time.monotonic() + arguments.wait
        started = sorted(file.parent for file in runs.glob("*/process"))
        while any(map(running, started)) and time.monotonic() < deadline:
            time.sleep(1)
        if unfinished := [run.name for run in started if not collect(run, arguments.out)]:
            raise SystemExit(f"error: {', '.join(unfinished)} did not end: see its output")
    else:
        names = sorted({piece.name.partition(".tar.")[0] for piece in arguments.pieces})
        for name in names:
            own = [piece for piece in arguments.pieces if piece.name.startswith(f"{name}.tar.")]
            print(join(own, runs / name))


if __name__ == "__main__":
    main()
