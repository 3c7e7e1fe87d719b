"""Profiles a decoder step by kernel.

Runs the bundle's TorchScript step on random state under torch's profiler, and replays it as a CUDA
graph: the difference between the replay and the sum of its kernels is gaps between them.

step_profile.py --once MODEL ROWS LIBRARY runs one step, for ncu (counters.py).
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from op_times import eager_seconds, replay_seconds
from session import Case, Setup
from speed import SIZES, made_bundle

STEPS = 10
BLOCK_TOKENS, BEAM = 16, 5
NAMED = 14  # kernels with a row of their own


def make_step(model: str, rows: int, device: str) -> Callable[[], object]:
    """Returns a step of `rows` rows whose targets have 31 tokens."""
    bundle = made_bundle(model)[1]
    file = json.loads((bundle / "manifest.json").read_text())["model_file"]
    dtype = torch.float16 if device == "cuda" else torch.float32
    module = torch.jit.load(str(bundle / file), map_location="cpu").to(device, dtype).eval()
    ints = {"dtype": torch.int32, "device": device}
    sources = -(-rows // BEAM)
    source_blocks = -(-SIZES[model].tokens // BLOCK_TOKENS)
    state = module.new_state(rows)
    cache = module.new_encoder_cache(sources * source_blocks + 1, BLOCK_TOKENS)
    window = max(ring.size(0) for ring in state)
    of_row = torch.arange(rows, device=device)
    tokens = of_row % 100 + 4
    positions = torch.full((rows,), 31, **ints)
    backpointers = of_row.int()[:, None].expand(rows, window).contiguous()
    blocks = torch.arange(sources * source_blocks, **ints).view(sources, source_blocks)
    blocks = blocks[of_row // BEAM].contiguous()
    lengths = torch.full((rows,), SIZES[model].tokens, **ints)

    def step() -> object:
        return module.step(tokens, positions, backpointers, blocks, lengths, cache, state)

    return step


@torch.inference_mode()
def profile(model: str, rows: int, device: str) -> list[dict[str, Any]]:
    from torch.profiler import ProfilerActivity

    with torch.jit.optimized_execution(False):
        step = make_step(model, rows, device)
        for _ in range(3):
            step()
        cuda = device == "cuda"
        activity = ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU
        with torch.profiler.profile(activities=[activity]) as profiler:
            for _ in range(STEPS):
                step()
            if cuda:
                torch.cuda.synchronize()
        whole = replay_seconds([step]) if cuda else eager_seconds(step)
    times: dict[str, tuple[float, int]] = {}
    for event in profiler.key_averages():
        spent = event.self_device_time_total if cuda else event.self_cpu_time_total
        if spent > 0:
            times[event.key] = (spent / STEPS, event.count)
    total = sum(spent for spent, _ in times.values())
    named = sorted(times.items(), key=lambda item: -item[1][0])[:NAMED]
    base = {"model": model, "rows": rows}
    found = [
        base
        | {
            "kernel": key[:90],
            "us of a step": round(spent, 1),
            "share": f"{spent / total:.1%}",
            "calls": round(count / STEPS, 1),
        }
        for key, (spent, count) in named
    ]
    calls = sum(count for _, count in times.values()) / STEPS
    everything = {"us of a step": round(total, 1), "share": "100.0%", "calls": round(calls, 1)}
    replay = {"kernel": "the whole step", "us of a step": round(whole * 1e6, 1)}
    return [*found, base | {"kernel": "all kernels"} | everything, base | replay]


def load(setup: Setup) -> None:
    torch.ops.load_library(setup.library)
    if not setup.dry:
        torch.ops.load_library(setup.library.with_name("liblinnet_ops_cuda.so"))


def cases(setup: Setup, part: str) -> Iterator[Case]:
    load(setup)
    for model in ["tiny"] if setup.dry else ["base", "big"]:
        for rows in (5,) if setup.dry else (5, 160, 640, 2560):
            yield f"{model}, {rows} rows", functools.partial(profile, model, rows, setup.device)


if __name__ == "__main__":
    _, chosen, count, library = sys.argv[1:]
    load(Setup(Path(library), None, None, dry=False))
    with torch.inference_mode(), torch.jit.optimized_execution(False):
        one = make_step(chosen, int(count), "cuda")
        one()  # initialises libraries; counters.py leaves this call out
        torch.cuda.synchronize()
        torch.cuda.nvtx.range_push("step")
        one()
        torch.cuda.nvtx.range_pop()
        torch.cuda.synchronize()
