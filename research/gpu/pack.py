"""Packs .gpu/linnet.tar.xz, which a GPU machine needs beside the tracked files.

Trainings and the server together do not fit into what may travel: pack --training for the one call
and --serving for the others, or leave the server out. Further texts can follow in a call with
--no-programs; the machine keeps what earlier calls unpacked.

usage: python3 research/gpu/pack.py [--data DIR] [--training [--recipe FILE]…] [--serving]
                                 [--no-programs] [--build] [--out DIR]

The machine has a torch of the same version, no network, and none of Debian's libraries. Therefore
linnet-decode, the tests and their libraries are built here and packed (deploy/stage.sh --portable).
The size of a transfer is limited, so the sizes are added up and checked.
"""

from __future__ import annotations

import argparse
import functools
import lzma
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "model"))
from linnet_model.config import read_recipe, to_tables  # needs no torch, nor do the next
from linnet_model.new_file import new_file
from linnet_model.text_files import open_lines, rows_file

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build/release"
NEEDED = {"linnet-decode": "bin/linnet-decode", "linnet_ops_cuda": "lib/liblinnet_ops_cuda.so"}
TESTS = ("cuda_kernels_gpu_test", "device_search_test", "gpu_latencies")
SERVING = ("linnet-server", "linnet-load")
LIMIT = 64 * 2**20  # bytes of the tracked files and the packed folder
BLOCK = 512  # bytes of a header in a tar; files are rounded up to it
MAX_COMMAND = 2000  # characters of a call's command
TEST_SET = "en-de/test.tatoeba.tsv"
RECIPES = [ROOT / "research/recipes/en-de-gpu.toml", ROOT / "research/recipes/de-en-gpu.toml"]
MADE_THERE = ("forward", "backward")  # files of linnet-diversify
# Seconds of each call: with the start of the machine and the transfers, about 40 seconds each time,
# they stay below a quarter of an hour.
CALLS = {"1": 330, "2": 210}
TRAINING_CALLS = {"1": 120, "train": 420, "2": 240}
TRAINING = 350  # seconds of the trainings' schedule
# xz for programs, of which most of the folder consists. Takes 128 MiB to unpack.
FILTERS: list[dict[str, int]] = [
    {"id": lzma.FILTER_X86},
    {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 27},
]


def git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"error: git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def commit() -> str:
    """Returns the commit for the report; tracked files must be unchanged."""
    if changed := git("status", "--porcelain", "--untracked-files=no"):
        first = changed.splitlines()[0][3:]
        raise SystemExit(
            f"error: {first} is not committed: the report could not say what it measured"
        )
    return git("rev-parse", "HEAD").strip()


def tracked_bytes() -> int:
    """Returns the bytes of a tar of the tracked files: they travel in one."""
    files = [ROOT / name for name in git("ls-files", "-z").split("\0") if name]
    sizes = [file.lstat().st_size for file in files if file.is_symlink() or file.exists()]
    return sum(BLOCK + -(-size // BLOCK) * BLOCK for size in sizes)


def stage_programs(folder: Path, name: str, serving: bool) -> None:
    for file in [*NEEDED.values(), *(f"bin/{name}" for name in SERVING if serving)]:
        if not (BUILT / file).exists():
            raise SystemExit(f"error: no {file} in {BUILT}: give --build; it needs nvcc")
    for test in TESTS:
        if not (BUILT / "bin" / test).exists():
            print(f"{test} is not built and stays here: its tests will not be run there")
    command = [ROOT / "deploy/stage.sh", "--portable", *(["--serving"] if serving else []), folder]
    subprocess.run(command, check=True, stdout=sys.stderr)
    (folder / "commit").write_text(name + "\n")


def stage_data(folder: Path, data: Path, recipes: list[Path]) -> None:
    if not (data / TEST_SET).exists():
        raise SystemExit(f"error: no {TEST_SET} in {data}")
    (folder / "data" / TEST_SET).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(data / TEST_SET, folder / "data" / TEST_SET)
    for recipe in recipes:
        stage_rows(folder / "data", to_tables(read_recipe(recipe).data), data)


def stage_rows(folder: Path, wanted: dict[str, Any], data: Path) -> None:
    """Writes the rows of the recipe's domains, in files that may have those of another recipe."""
    domains = {"valid": set(wanted["valid_domains"])}
    domains |= {name: set(wanted["domains"]) for name in wanted["files"] if name not in MADE_THERE}
    (folder / wanted["folder"]).mkdir(parents=True, exist_ok=True)
    for name, of_file in domains.items():
        file = rows_file(data / wanted["folder"], name)
        if not file.exists():
            raise SystemExit(f"error: no {file}")
        rows = [row for row in lines_of(file) if row.rpartition("\t")[2].strip() in of_file]
        target = folder / wanted["folder"] / f"{name}.tsv"
        text = "".join(rows)
        if target.exists() and target.read_text(encoding="utf-8") != text:
            raise SystemExit(f"error: two recipes want other rows of {file}")
        target.write_text(text, encoding="utf-8")


@functools.cache
def lines_of(file: Path) -> list[str]:
    with open_lines(file) as lines:
        return [line.decode() for line in lines]


def pack(folder: Path, archive: Path) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    with (
        new_file(archive) as partial,
        lzma.open(partial, "wb", filters=FILTERS) as file,
        tarfile.open(None, "w", file) as tar,
    ):
        for entry in sorted(folder.iterdir()):
            tar.add(entry, entry.name)


def check_size(tracked: int, packed: int) -> None:
    """Prints the sizes and exits if their sum exceeds the limit."""
    whole = tracked + packed
    print(
        f"tracked files {tracked / 2**20:.1f} MiB + packed folder {packed / 2**20:.1f} MiB = "
        f"{whole / 2**20:.1f} MiB of {LIMIT / 2**20:.0f}"
    )
    if whole > LIMIT:
        raise SystemExit(
            f"error: {whole / 2**20:.1f} MiB are more than the {LIMIT / 2**20:.0f} that may "
            "travel: leave out --training, --serving, or --data"
        )


def commands(training: bool) -> list[str]:
    """Returns the commands to run in the root of the checkout on the GPU machine."""
    calls = TRAINING_CALLS if training else CALLS
    flag = {"train": f" --train {TRAINING}"}
    return [
        f'bash research/gpu/call.sh {call}{flag.get(call, "")} --seconds {seconds} --out "$OUT"'
        for call, seconds in calls.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help=f"holds {TEST_SET}: then BLEU is measured")
    parser.add_argument("--training", action="store_true", help="take the training data along")
    parser.add_argument("--recipe", type=Path, action="append", metavar="FILE",
        help="what will be trained [both recipes -gpu of the translators]")  # fmt: skip
    parser.add_argument("--no-programs", action="store_true", help="pack only texts")
    parser.add_argument("--serving", action="store_true", help="take the server along, 7 MiB")
    parser.add_argument("--build", action="store_true", help="build first")
    parser.add_argument("--out", type=Path, default=ROOT / ".gpu")
    arguments = parser.parse_args()
    if arguments.training and arguments.data is None:
        parser.error("--training needs --data")
    if arguments.build:
        build = ["cmake", "--build", str(BUILT), "--target"]
        known = subprocess.run([*build, "help"], capture_output=True, text=True, check=True).stdout
        targets = [*NEEDED, *(test for test in TESTS if f"{test}:" in known)]
        targets += SERVING if arguments.serving else ()
        subprocess.run([*build, *targets], cwd=ROOT, check=True, stdout=sys.stderr)
    name = commit()
    archive = arguments.out / "linnet.tar.xz"
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.no_programs:
            stage_programs(Path(folder), name, arguments.serving)
        if arguments.data is not None:
            recipes = (arguments.recipe or RECIPES) if arguments.training else []
            stage_data(Path(folder), arguments.data, recipes)
        pack(Path(folder), archive)
    check_size(tracked_bytes(), archive.stat().st_size)
    print(
        f"\ngit ignores {archive.parent.name}/: name it where the checkout is carried. "
        "Then run, one directly after the other, with OUT set, and half a minute more allowed than "
        "a command names:\n"
    )
    for command in commands(arguments.training):
        assert len(command) <= MAX_COMMAND
        print(command)


if __name__ == "__main__":
    main()
