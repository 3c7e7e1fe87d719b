"""Measures linnet-server on the GPU beside the engine alone: sentences per second at full load.

The same sentences go through linnet-decode, which is the batcher and the engine without the
network, and through linnet-server, of which linnet-load keeps twice as many calls in flight as fit
into a step. For linnet-decode the time of a process with few sentences is taken from that of one
with many, so that loading and the last, thinning batch drop out. The server's own
metrics say where its time went.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from decode import bundles, decoder_of
from session import ROOT, Case, Setup

sys.path.insert(0, str(ROOT / "tests/bench/server"))
from sentences import sentences

BEAM = 5
REPEATED = 8  # so that linnet-decode takes seconds
START = 60  # seconds for the server to load its model
# Histograms of the server whose means are reported, and their factor and unit.
MEANS = {
    "step_rows": (1, "rows of a step"),
    "step_duration_seconds": (1e3, "step, ms"),
    "encode_duration_seconds": (1e3, "encoding in a cycle, ms"),
    "queue_duration_seconds": (1e3, "queue, ms"),
    "decode_duration_seconds": (1e3, "decoding, ms"),
    "request_duration_seconds": (1e3, "call, ms"),
}


def compute(setup: Setup) -> str:
    return "float32" if setup.dry else "float16"


def decode_seconds(
    setup: Setup, bundle: Path, texts: list[str], batch: int, host_every: int | None = None
) -> float:
    """Of linnet-decode. Before every `host_every`-th text it gets one that is sampled, which the
    host does."""
    lines: list[dict[str, Any]] = []
    for i, text in enumerate(texts):
        if host_every is not None and i % host_every == 0:
            lines.append({"text": text, "options": {"seed": i}})
        lines.append({"text": text})
    start = time.perf_counter()
    flags = ["--device", setup.device, "--compute", compute(setup)]
    flags += ["--batch", str(batch), "--beam", str(BEAM)]
    decoder_of(setup).run("--bundle", str(bundle), *flags, lines=lines)
    return time.perf_counter() - start


@contextmanager
def running_server(setup: Setup, bundle: Path, batch: int) -> Iterator[tuple[str, str]]:
    """Yields the addresses of a server with one model and of its metrics."""
    assert setup.portable is not None
    command = [str(setup.portable / "bin/linnet-server"), "--models", str(bundle)]
    command += ["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]
    command += ["--device", setup.device, "--compute", compute(setup)]
    command += ["--max-batch-rows", str(batch * BEAM), "--log-level", "warning"]
    environment = decoder_of(setup).environment()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        if not ready.startswith("ready grpc="):
            raise RuntimeError(f"linnet-server ended with {process.wait(START)}")
        grpc, metrics = ready.split()[1:3]
        yield grpc.removeprefix("grpc="), metrics.removeprefix("metrics=")
    finally:
        process.terminate()
        process.wait(START)


def served_rate(setup: Setup, address: str, file: Path, batch: int, seconds: float) -> float:
    """Returns sentences per second of linnet-load."""
    assert setup.portable is not None
    command = [str(setup.portable / "bin/linnet-load"), "--server", address, "--file", str(file)]
    command += ["--from", "en", "--to", "de", "--beam", str(BEAM), "--json"]
    # More connections than twice the calls need: one carries 100.
    command += ["--concurrency", str(2 * batch), "--channels", "8"]
    command += ["--warmup", f"{seconds / 5}s", "--duration", f"{seconds}s"]
    done = subprocess.run(
        command, env=decoder_of(setup).environment(), capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"linnet-load ended with {done.returncode}: {done.stderr[-1200:]}")
    report = json.loads(done.stdout)
    if set(report["by_status"]) != {"OK"}:
        raise RuntimeError(f"not all calls were answered: {report['by_status']}")
    return float(report["texts_per_second"])


def means(page: str) -> dict[str, float]:
    """Returns the mean of each histogram of MEANS, over all its labels, from a page of metrics."""
    found = {}
    for name, (factor, title) in MEANS.items():
        total, count = (
            sum(
                float(v)
                for v in re.findall(rf"^linnet_{name}_{kind}\S* (\S+)$", page, re.MULTILINE)
            )
            for kind in ("sum", "count")
        )
        if count:
            found[title] = round(factor * total / count, 3)
    return found


def mix(setup: Setup, batch: int, count: int) -> list[dict[str, Any]]:
    """Compares a load of plain texts with one in which one of `batch` + 1 is searched by the host:
    the rate of the plain texts."""
    bundle = bundles()[0].with_name("en-de")
    texts = sentences(count) * REPEATED
    few = texts[: 2 * batch]
    rates = []
    for host_every in (None, batch):
        base = decode_seconds(setup, bundle, few, batch, host_every)
        rates.append(
            len(texts) / (decode_seconds(setup, bundle, texts + few, batch, host_every) - base)
        )
    return [
        {
            "batch": batch,
            "beam": BEAM,
            "plain texts alone, sentences/s": round(rates[0], 1),
            "beside searches on the host": round(rates[1], 1),
            "loss": f"{1 - rates[1] / rates[0]:.1%}",
        }
    ]


def compare(setup: Setup, batch: int, count: int, seconds: float) -> list[dict[str, Any]]:
    bundle = bundles()[0].with_name("en-de")
    texts = sentences(count) * REPEATED
    few = texts[: 2 * batch]
    base = decode_seconds(setup, bundle, few, batch)
    whole = decode_seconds(setup, bundle, texts + few, batch)
    if whole <= base:
        raise RuntimeError(
            f"{len(few)} sentences took {base:.1f} s, {len(texts)} more {whole:.1f} s"
        )
    engine = len(texts) / (whole - base)
    with TemporaryDirectory() as folder, running_server(setup, bundle, batch) as addresses:
        address, metrics = addresses
        file = Path(folder) / "texts"
        file.write_text("\n".join(texts) + "\n")
        served = served_rate(setup, address, file, batch, seconds)
        with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=10) as page:
            inside = means(page.read().decode())
    return [
        {
            "batch": batch,
            "beam": BEAM,
            "linnet-decode, sentences/s": round(engine, 1),
            "linnet-server, sentences/s": round(served, 1),
            "share": f"{served / engine:.1%}",
        }
        | inside
    ]


def cases(setup: Setup, part: str) -> Iterator[Case]:
    assert setup.portable is not None
    if part == "mixed":
        batch, count = (4, 24) if setup.dry else (128, 3000)
        yield f"batch {batch}", functools.partial(mix, setup, batch, count)
        return
    if not (setup.portable / "bin/linnet-server").exists():
        return
    # Enough sentences for some seconds: the difference of two processes is the time measured.
    for batch, count, seconds in [(4, 24, 2)] if setup.dry else [(128, 7000, 8), (32, 3000, 6)]:
        yield f"batch {batch}", functools.partial(compare, setup, batch, count, seconds)
