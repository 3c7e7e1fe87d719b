"""Times encoder calls: sources padded to one length, launched kernel by kernel; in blocks; and in
blocks as one CUDA graph (model/torch/encoder/block_encoder.h). Compares their keys and values."""

from __future__ import annotations

import functools
import json
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from session import Case, Setup
from speed import SIZES, made_bundle
from step_profile import load
from torch import Tensor

BLOCK_TOKENS = 16
RUNS = 15
# float16 keeps 11 bits; keys and values are of size 1, and layers add up roundings.
TOLERANCE = 0.05


def times_of(call: Callable[[], object], device: str) -> dict[str, float]:
    """Medians: until a call returns, and until the device has done it."""
    returned, done = [], []
    for _ in range(RUNS + 3):
        start = time.perf_counter()
        call()
        returned.append(time.perf_counter() - start)
        if device == "cuda":
            torch.cuda.synchronize()
        done.append(time.perf_counter() - start)
    us = {"launched, us": returned[3:], "done, us": done[3:]}
    return {name: round(statistics.median(times) * 1e6, 1) for name, times in us.items()}


def recorded(call: Callable[[], object]) -> Callable[[], object]:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        call()
    return graph.replay


def sequences(encoded: Tensor, count: int, tokens: int) -> Tensor:
    """[B, S, 2, d], or blocks of as many sources, -> [B, tokens, 2, d] in float32."""
    return encoded.reshape(count, -1, 2, encoded.size(-1))[:, :tokens].float()


@torch.inference_mode()
def measure(model: str, count: int, device: str) -> list[dict[str, Any]]:
    """Of so many sources in a call."""
    bundle, tokens = made_bundle(model)[1], SIZES[model].tokens
    file = json.loads((bundle / "manifest.json").read_text())["model_file"]
    dtype = torch.float16 if device == "cuda" else torch.float32
    module = torch.jit.load(str(bundle / file), map_location="cpu").to(device, dtype).eval()
    ints = {"dtype": torch.int32, "device": device}
    source = torch.randint(4, SIZES[model].vocabulary, (count, tokens), device=device)
    lengths = torch.full((count,), tokens, **ints)
    each = -(-tokens // BLOCK_TOKENS)
    blocks = torch.nn.functional.pad(source, (0, each * BLOCK_TOKENS - tokens), value=1)
    blocks = blocks.view(-1, BLOCK_TOKENS)
    starts = torch.arange(each, **ints).mul(BLOCK_TOKENS).repeat(count)
    block_lengths = torch.full((count * each,), tokens, **ints)
    host = blocks.cpu().pin_memory() if device == "cuda" else blocks.clone()

    def padded() -> list[Tensor]:
        return module.encode(source, lengths)

    def in_blocks() -> list[Tensor]:
        return module.encode_blocks(blocks, block_lengths, starts)

    with torch.jit.optimized_execution(False):
        pairs = zip(padded(), in_blocks(), strict=True)
        apart = max(
            (sequences(a, count, tokens) - sequences(b, count, tokens)).abs().max().item()
            for a, b in pairs
        )
        if apart > TOLERANCE:
            raise RuntimeError(f"keys and values of sources in blocks are {apart} off")
        ways = {"padded": padded, "in blocks": in_blocks}
        if device == "cuda":
            replay = recorded(in_blocks)

            def one_graph() -> None:
                blocks.copy_(host, non_blocking=True)
                replay()

            ways["in blocks, one graph"] = one_graph
        return [
            {"model": model, "sources": count, "way": way, **times_of(call, device)}
            | {"off": f"{apart:.1e}"}
            for way, call in ways.items()
        ]


def cases(setup: Setup, part: str) -> Iterator[Case]:
    load(setup)
    model = "tiny" if setup.dry else "base"
    for count in (2,) if setup.dry else (1, 8, 32, 128):
        yield f"{count} sources", functools.partial(measure, model, count, setup.device)
