"""The engines of the decoding benchmark as processes: start, measure, watch the memory, stop."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SECONDS = 900  # timeout of loading an engine, and of measuring one setting
POLL_SECONDS = 0.1  # of the memory
# Names of Linnet's own engines begin with this; the mixer of all layers follows.
LINNET = "linnet "
PEERS = {
    "ctranslate2": ("build/peers/bin/python", "peer_ctranslate2.py"),
    "ctranslate2 workers": ("build/peers/bin/python", "peer_ctranslate2.py"),
    "marian": (".venv/bin/python", "peer_marian.py"),
    "fairseq's way": (".venv/bin/python", "peer_fairseq.py"),
}
WORKERS = " workers"  # suffix of peers that split a batch over single-threaded workers
MIXERS = ("dynamic", "light", "self_attention")
ENGINES = [LINNET + mixer for mixer in MIXERS] + list(PEERS)


class Unavailable(Exception):
    """The engine cannot run this: it lacks the type or is not installed."""


class Broken(Exception):
    """The engine exited, or its output is not a list of times."""


def add_folders(
    parser: argparse.ArgumentParser, programs: str = "linnet-decode", bundles: bool = True
) -> None:
    """Adds the flags of the folders that the scripts here read and write."""
    folders = [("programs", "build/release/bin", f"of {programs}")]
    if bundles:
        folders.append(("bundles", "build/bench", "that keeps the random bundles"))
    folders.append(("out", "tests/bench/results", "of the results"))
    for name, default, what in folders:
        parser.add_argument(
            f"--{name}",
            type=Path,
            default=ROOT / default,
            metavar="DIR",
            help=f"folder {what} [{default}]",
        )


@dataclass(frozen=True)
class Sizes:
    """The sizes of models and sentences."""

    name: str  # base, big or tiny
    layers: int
    width: int
    ffn: int
    heads: int
    vocabulary: int
    source: int
    target: int


@dataclass
class Measured:
    seconds: list[float]
    target_tokens: int
    steps: list[float] = field(default_factory=list)  # seconds of each step, if reported

    def tokens_per_second(self) -> list[float]:
        return [self.target_tokens / seconds for seconds in self.seconds]


class Memory:
    """Resident memory of a process, polled from /proc until it ends: the peak, and the working size
    after loading, which is the median of the later half of the samples."""

    def __init__(self, pid: int):
        self.peak = 0
        self._seen: list[int] = []
        self._status = Path(f"/proc/{pid}/status")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        for line in self._status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                self.peak = max(self.peak, 1024 * int(line.split()[1]))
            elif line.startswith("VmRSS:"):
                self._seen.append(1024 * int(line.split()[1]))

    def _watch(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            try:
                self._look()
            except (FileNotFoundError, ProcessLookupError):
                return

    @property
    def working(self) -> int:
        return round(median(self._seen[len(self._seen) // 2 :] or [0]))

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()


class Engine:
    """One engine with one compute type. `peak` and `working` are bytes over all settings."""

    def __init__(self, name: str):
        self.name = name
        self.label = name  # with its version, once it runs
        self.peak = self.working = 0

    def measure(self, batch: int, beam: int, repeat: int) -> Measured:
        raise NotImplementedError

    def stop(self) -> None:
        """Stops the process; may be called twice."""

    def _remember(self, memory: Memory) -> None:
        self.peak = max(self.peak, memory.peak)
        self.working = max(self.working, memory.working)


class Linnet(Engine):
    """linnet-decode --synthetic: one process for each setting, which loads the bundle again."""

    def __init__(self, name: str, program: Path, bundle: Path, sizes: Sizes, flags: list[str]):
        super().__init__(name)
        self._command = [str(program), "--synthetic", "--bundle", str(bundle), *flags]
        self._command += ["--source-tokens", str(sizes.source)]
        self._command += ["--target-tokens", str(sizes.target)]

    def measure(self, batch: int, beam: int, repeat: int) -> Measured:
        counts = {"--batch": batch, "--beam": beam, "--repeat": repeat}
        command = self._command + [str(word) for pair in counts.items() for word in pair]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        memory = Memory(process.pid)
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Broken(f"{self.name}: no answer within {SECONDS} s") from None
        finally:
            memory.stop()
        if process.returncode == 2:  # a flag was refused: the type is not built
            raise Unavailable(err.strip().removeprefix("linnet-decode: "))
        if process.returncode != 0:
            raise Broken(f"{self.name} ended with {process.returncode}: {err.strip()[-2000:]}")
        self._remember(memory)
        line = json.loads(out)
        self.label = f"{self.name}, {line['compute']}"
        tokens = round(line["tokens_per_second"] * line["seconds"])
        return Measured([line["seconds"]], tokens, line.get("step_seconds", []))


class Peer(Engine):
    """A process with the protocol of peer.py, used for all settings."""

    def __init__(self, name: str, command: list[str]):
        super().__init__(name)
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self._memory: Memory | None = None

    def _start(self) -> None:
        python = Path(self._command[0])
        if not python.exists():
            raise Unavailable(f"{self.name} is not installed: no {python.relative_to(ROOT)}")
        # Output during loading goes to standard error.
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._memory = Memory(self._process.pid)
        ready = self._read()
        if "unavailable" in ready:
            self.stop()
            raise Unavailable(ready["unavailable"])
        self.label = ready["engine"]

    def _read(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        watch = threading.Timer(SECONDS, self._process.kill)
        watch.start()
        line = self._process.stdout.readline()
        watch.cancel()
        if not line:
            status = self._process.wait()
            raise Broken(f"{self.name} ended with {status}: {' '.join(self._command)}")
        return dict(json.loads(line))

    def measure(self, batch: int, beam: int, repeat: int) -> Measured:
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        asked = {"batch": batch, "beam": beam, "repeat": repeat}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        measured = self._read()
        if self._memory is not None:
            self._remember(self._memory)
        return Measured(measured["seconds"], measured["target_tokens"])

    def stop(self) -> None:
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(SECONDS)
        if self._memory is not None:
            self._memory.stop()
        self._process = self._memory = None


def preset_of(mixer: str, sizes: Sizes) -> list[str]:
    if sizes.name == "tiny":
        return ["--preset", "tiny", "--mixer", mixer]
    return ["--preset", f"{mixer}_{sizes.name}"]


def bundle_for(
    mixer: str, sizes: Sizes, folder: Path, flags: Sequence[str] = (), suffix: str = ""
) -> Path:
    """A bundle with random weights, created once per folder and version of the model's code;
    `suffix` distinguishes bundles with other flags."""
    words = [mixer, sizes.name, str(sizes.vocabulary), *([suffix] if suffix else [])]
    out = folder / "-".join(words)
    mark, code = out.with_name(out.name + ".code"), code_of_models()
    if not mark.exists() or mark.read_text() != code:
        shutil.rmtree(out, ignore_errors=True)
        command = [sys.executable, "-m", "linnet_model.export.random_bundle", *flags]
        command += ["--out", str(out), *preset_of(mixer, sizes), "--vocab", str(sizes.vocabulary)]
        paths = os.pathsep.join([str(ROOT / "model"), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": paths}
        subprocess.run(command, check=True, env=environment, stdout=sys.stderr)
        mark.write_text(code)
    return out


def code_of_models() -> str:
    """A digest of the code that a new module depends on."""
    code = hashlib.sha256()
    for path in sorted((ROOT / "model/linnet_model").rglob("*.py")):
        code.update(path.read_bytes())
    return code.hexdigest()


def make_engine(
    name: str, sizes: Sizes, compute: str, threads: int, programs: Path, bundles: Path
) -> Engine:
    common = ["--compute", compute, "--threads", str(threads)]
    if name.startswith(LINNET):
        bundle = bundle_for(name.removeprefix(LINNET), sizes, bundles)
        return Linnet(name, programs / "linnet-decode", bundle, sizes, common)
    python, script = PEERS[name]
    command = [str(ROOT / python), str(HERE / script), *common]
    if name.endswith(WORKERS):
        command += ["--workers", str(threads)]
    numbers = {
        "layers": sizes.layers,
        "width": sizes.width,
        "ffn": sizes.ffn,
        "heads": sizes.heads,
        "vocab": sizes.vocabulary,
        "source": sizes.source,
        "target": sizes.target,
    }
    for flag, value in numbers.items():
        command += [f"--{flag}", str(value)]
    return Peer(name, command)


def in_turn(runners: list[Engine], turn: int) -> list[Engine]:
    """The engines in another order in each round, so that none is always first or always after the
    same one."""
    first = turn % max(1, len(runners))
    return runners[first:] + runners[:first]


def settle() -> None:
    """Waits until the previous engine's OpenMP threads sleep: some spin for 200 ms."""
    time.sleep(0.3)
