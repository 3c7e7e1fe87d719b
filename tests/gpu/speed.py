"""Measures target tokens per second of Linnet, of the same model in eager PyTorch as fairseq
computes it, and of Hugging Face Marian's `generate` on a Transformer of the same size, beside the
roof of the device.

All have random weights in float16, 30 source tokens, and 30 target tokens without an earlier end.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from decode import WAYS, decoder_of
from session import ROOT, Case, Setup

BENCH = ROOT / "tests/bench/engine"
PEERS = {"fairseq's way": "peer_fairseq.py", "Marian": "peer_marian.py"}
PEER_SECONDS = 40  # time limit of a peer; results up to then are kept
ENCODER_KERNELS = [3, 7, 15, 31, 31, 31, 31]  # of linnet_model.network.presets
DECODER_KERNELS = [3, 7, 15, 31, 31, 31]


@dataclass(frozen=True)
class Sizes:
    preset: str
    width: int
    ffn: int
    heads: int
    vocabulary: int = 32000
    tokens: int = 30  # of sources and of targets


# Modes that show the gain of graphs and the cost of batch invariance.
MODES = WAYS | {"batch invariant": ("--search", "device", "--batch-invariant")}
SIZES = {
    "base": Sizes("dynamic_base", 512, 2048, 8),
    "big": Sizes("dynamic_big", 1024, 4096, 16),
    "tiny": Sizes("tiny", 32, 64, 4, 400, 8),
}


@dataclass(frozen=True)
class Plan:
    device: str
    compute: str
    batches: tuple[int, ...]
    beams: tuple[int, ...]
    repeat: int


FULL = Plan("cuda", "float16", (32, 1, 128, 8, 512), (5, 1), 5)  # the most important settings first
DRY = Plan("cpu", "float32", (2, 1), (2, 1), 1)


# The limits of the device, measured.


def copy_bandwidth(device: str) -> float:
    """Returns the bytes per second that a plain copy reads and writes."""
    count = 2**31 if device == "cuda" else 2**22
    one = torch.zeros(count, dtype=torch.uint8, device=device)
    other = torch.empty_like(one)
    return 2 * count / seconds_of(lambda: other.copy_(one), device)


def gemm_speed(device: str, compute: str) -> float:
    """Returns the floating point operations per second of a large gemm of random numbers."""
    n = 8192 if device == "cuda" else 256
    a, b = (torch.randn(n, n, device=device).to(getattr(torch, compute)) for _ in range(2))
    return 2 * n**3 / seconds_of(lambda: a @ b, device)


def seconds_of(call: Callable[[], object], device: str) -> float:
    """Returns the median of ten calls, after three for warm-up."""
    times = []
    for _ in range(13):
        if device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) / 1e3)
        else:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return median(times[3:])


def roof(
    sizes: Sizes, batch: int, beam: int, bandwidth: float, flops: float, bytes_each: int
) -> float:
    """Target tokens a second if every step took as long as its bytes or its gemms, whichever is
    longer, and so did the encoder.

    A step reads the decoder's weights once, each row's convolution state and the keys and values of
    each source, and writes and reads the logits; each row is multiplied with every weight once.
    """
    d, f, v, t = sizes.width, sizes.ffn, sizes.vocabulary, sizes.tokens
    rows, layers = batch * beam, len(DECODER_KERNELS)
    # linear1 with its gate, linear2; query and output of the attention; feed-forward
    layer = 2 * d * d + d * d + 2 * d * d + 2 * d * f
    taps = sum(d * sizes.heads * k for k in DECODER_KERNELS)
    weights = layers * layer + taps + v * d
    windows = rows * d * sum(DECODER_KERNELS)
    memory = batch * t * 2 * d * layers
    moved = bytes_each * (weights + windows + memory + 2 * rows * v)
    step = max(moved / bandwidth, 2 * rows * weights / flops)
    encoder_weights = len(ENCODER_KERNELS) * (3 * d * d + 2 * d * f) + layers * 2 * d * d
    encoder_weights += sum(d * sizes.heads * k for k in ENCODER_KERNELS)
    encoder = max(bytes_each * encoder_weights / bandwidth, 2 * batch * t * encoder_weights / flops)
    return batch * t / (t * step + encoder)


@functools.cache
def limits(plan: Plan) -> tuple[float, float]:
    return copy_bandwidth(plan.device), gemm_speed(plan.device, plan.compute)


@functools.cache
def made_bundle(name: str) -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """A bundle of random weights, kept as long as this process runs."""
    sys.path.insert(0, str(ROOT / "model"))
    from linnet_model.export.random_bundle import random_bundle

    folder = tempfile.TemporaryDirectory()
    sizes = SIZES[name]
    path = Path(folder.name) / sizes.preset
    random_bundle(path, sizes.preset, sizes.vocabulary, seed=1)
    return folder, path


def measure_linnet(
    setup: Setup, name: str, plan: Plan, batch: int, beam: int, way: str
) -> list[dict[str, Any]]:
    sizes, (bandwidth, flops) = SIZES[name], limits(plan)
    flags = ("--compute", plan.compute, "--repeat", str(plan.repeat), *MODES[way])
    flags += ("--source-tokens", str(sizes.tokens), "--target-tokens", str(sizes.tokens))
    found = decoder_of(setup).synthetic(made_bundle(name)[1], batch, beam, *flags)
    speed = found["tokens_per_second"]
    limit = roof(sizes, batch, beam, bandwidth, flops, 4 if plan.compute == "float32" else 2)
    return [
        {
            "model": name,
            "engine": "Linnet" if way == "graphs" else f"Linnet, {way}",
            "batch": batch,
            "beam": beam,
            "tok/s": round(speed),
            "search": found["search"],
            "roof tok/s": round(limit),
            "of the roof": f"{speed / limit:.1%}",
            "copy TB/s": round(bandwidth / 1e12, 2),
            "gemm TFLOP/s": round(flops / 1e12),
        }
    ]


def measure_peer(
    peer: str, script: str, name: str, plan: Plan, environment: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    """Measures a peer with all settings in one process, because loading takes long. Returns the
    settings that it finished in time."""
    sizes = SIZES[name]
    words = [sys.executable, str(BENCH / script), "--device", plan.device]
    words += ["--compute", plan.compute, "--threads", "2"]
    values = {"width": sizes.width, "ffn": sizes.ffn, "heads": sizes.heads}
    values |= {"vocab": sizes.vocabulary, "source": sizes.tokens, "target": sizes.tokens}
    words += [word for key, value in values.items() for word in (f"--{key}", str(value))]
    settings = [(batch, beam) for batch in plan.batches for beam in plan.beams]
    asked = "".join(
        json.dumps({"batch": batch, "beam": beam, "repeat": plan.repeat}) + "\n"
        for batch, beam in settings
    )
    try:
        done = subprocess.run(
            words, input=asked, text=True, capture_output=True, timeout=PEER_SECONDS,
            env=environment,
        )  # fmt: skip
        output, errors = done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        output, errors = (late.stdout or b"").decode(), f"stopped after {PEER_SECONDS} s"
    lines = [json.loads(line) for line in output.splitlines() if line.endswith("}")]
    rows = [
        {"model": name, "engine": peer, "batch": batch, "beam": beam,
         "tok/s": round(line["target_tokens"] / median(line["seconds"]))}
        for (batch, beam), line in zip(
            settings, (line for line in lines if "seconds" in line), strict=False
        )
    ]  # fmt: skip
    if not rows:
        reason = (errors.strip().splitlines() or ["no answer"])[-1][:120]
        raise RuntimeError(lines[0].get("unavailable", reason) if lines else reason)
    return rows


def measure_ctranslate2(plan: Plan, name: str) -> list[dict[str, Any]]:
    """Measures it with cuBLAS of CUDA 13 under the name of CUDA 12's, which it opens, unless the
    machine has that as well."""
    with tempfile.TemporaryDirectory() as folder:
        for library in Path(torch.__file__).parents[1].glob("nvidia/*/lib/libcublas*.so.13"):
            Path(folder, library.with_suffix(".12").name).symlink_to(library)
        paths = [path for path in (os.environ.get("LD_LIBRARY_PATH"), folder) if path]
        environment = os.environ | {"LD_LIBRARY_PATH": ":".join(paths)}
        peer = f"CTranslate2 {plan.compute}"
        return measure_peer(peer, "peer_ctranslate2.py", name, plan, environment)


def cases(setup: Setup, part: str) -> Iterator[Case]:
    if part == "ctranslate2":
        for compute in ("float32",) if setup.dry else ("float16", "int8_float16"):
            plan = dataclasses.replace(DRY if setup.dry else FULL, compute=compute)
            name = "tiny" if setup.dry else "base"
            yield compute, functools.partial(measure_ctranslate2, plan, name)
        return
    name, plan = ("tiny", DRY) if setup.dry else (part, FULL)
    for beam in plan.beams:
        for batch in plan.batches:
            run = functools.partial(measure_linnet, setup, name, plan, batch, beam, "graphs")
            yield f"batch {batch}, beam {beam}", run
    for peer, script in PEERS.items():
        yield peer, functools.partial(measure_peer, peer, script, name, plan)
    for batch in plan.batches[:2]:
        for way in list(MODES)[1:]:
            run = functools.partial(measure_linnet, setup, name, plan, batch, plan.beams[0], way)
            yield f"batch {batch}, beam {plan.beams[0]}, {way}", run
