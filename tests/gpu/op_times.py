"""Times the operators on a GPU, beside a plain copy as the roof and the equivalent code in torch.

A kernel of microseconds ends before Python launches the next one. Therefore calls with different
buffers are recorded in a CUDA graph, and the graph is replayed: launches cost as much as in a
decoder, and the buffers do not stay in the cache.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from session import Case, Setup
from torch import Tensor
from trained_logits import trained_logits

WIDTH, HEADS, BEAM = 31, 16, 5
BLOCK_TOKENS = 16  # of the encoder cache
MAX_BEAM, PLAN_FIELDS = 16, 13
ROTATED_BYTES = 2**28  # several times the cache of an H200
MAX_SETS = 64


@dataclass(frozen=True)
class Call:
    """A call of an operator with its own buffers."""

    name: str
    size: str
    run: Callable[[], object]
    moved: int  # bytes that it must read and write


def replay_seconds(calls: list[Callable[[], object]], replays: int = 20) -> float:
    """Returns the median time per call, from replays of a CUDA graph of all calls."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())  # which fills the buffers
    with torch.cuda.stream(stream):
        for call in calls[:2]:  # initialises libraries
            call()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for call in calls:
            call()
    times = []
    for _ in range(replays + 3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3 / len(calls))
    return statistics.median(times[3:])


def eager_seconds(call: Callable[[], object]) -> float:
    """Returns the time of one call, for dry runs."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(
    make: Callable[[], list[Call]], dtype: torch.dtype, device: str
) -> list[dict[str, Any]]:
    """Times each call of `make`. Enough sets of buffers take turns that none stays in the cache."""
    first = make()
    sets = 1
    if device == "cuda":
        sets = max(2, min(MAX_SETS, ROTATED_BYTES // sum(call.moved for call in first)))
    calls = list(zip(*[first, *(make() for _ in range(sets - 1))], strict=True))
    rows = []
    for same in calls:
        runs = [call.run for call in same]
        seconds = replay_seconds(runs) if device == "cuda" else eager_seconds(runs[0])
        rows.append(
            {
                "operator": same[0].name,
                "size": same[0].size,
                "type": str(dtype).removeprefix("torch."),
                "us": round(seconds * 1e6, 2),
                "GB/s": round(same[0].moved / seconds / 1e9, 1),
                "sets": sets,
            }
        )
    return rows


def bytes_of(*tensors: Tensor) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def steps(rows: int, channels: int, dtype: torch.dtype, device: str) -> list[Call]:
    """Returns the operators of one step: convolutions, attention over the last WIDTH positions, and
    attention over 32 source tokens per beam."""
    options = {"device": device, "dtype": dtype}
    x = torch.randn(rows, channels, **options)
    weight = torch.randn(rows, HEADS, WIDTH, **options)
    taps = torch.randn(WIDTH, channels, **options).t()  # layout of the model
    window = torch.randn(WIDTH, rows, channels, **options)
    cache = torch.randn(WIDTH, rows, 2, channels, **options)
    both = torch.randn(rows, 2 * channels, **options)  # candidates and gates
    cells = torch.randn(2, rows, channels, device=device)
    positions = torch.full((rows,), 100, dtype=torch.int32, device=device)
    slot = torch.arange(rows, device=device)[:, None]
    ago = torch.arange(WIDTH, device=device)[None]
    first = slot // BEAM * BEAM
    backpointers = (first + (slot - first + 2 * ago) % BEAM).clamp(max=rows - 1).int()
    backpointers[:, 0] = slot[:, 0]
    ops, size = torch.ops.linnet, f"{rows} rows x {channels}"
    return [
        Call(
            "dynamic_conv_step",
            size,
            lambda: ops.dynamic_conv_step(x, weight, window, positions, backpointers),
            bytes_of(x, x, weight, window),
        ),
        Call(
            "depthwise_conv_step",
            size,
            lambda: ops.depthwise_conv_step(x, taps, window, positions, backpointers, 1),
            bytes_of(x, x, taps, window),
        ),
        Call(
            "ssru_step",
            size,
            lambda: ops.ssru_step(both, cells, positions, backpointers),
            bytes_of(both, x, cells),
        ),
        Call(
            "self_attention_step",
            size,
            lambda: ops.self_attention_step(x, x, x, cache, positions, backpointers, HEADS, 1),
            bytes_of(x, x, x, x, x, x, cache),
        ),
        *attention(rows, channels, 32, dtype, device),
        Call("copy of the window", size, window.clone, bytes_of(window, window)),
        *ends_of_blocks(x),
    ]


def attention(rows: int, channels: int, tokens: int, dtype: torch.dtype, device: str) -> list[Call]:
    """Returns attention over so many tokens of each source, a source per beam."""
    sources, each = -(-rows // BEAM), tokens // BLOCK_TOKENS
    x = torch.randn(rows, channels, device=device, dtype=dtype)
    memory = torch.randn(each * sources, BLOCK_TOKENS, 2, channels, device=device, dtype=dtype)
    blocks = torch.arange(each * sources, dtype=torch.int32, device=device).view(-1, each)
    blocks = blocks[torch.arange(rows, device=device) // BEAM].contiguous()
    lengths = torch.full((rows,), tokens, dtype=torch.int32, device=device)
    of_tokens = "" if tokens == 32 else f", {tokens} tokens"
    return [
        Call(
            "source_attention",
            f"{rows} rows x {channels}{of_tokens}",
            lambda: torch.ops.linnet.source_attention(x, memory, blocks, lengths, HEADS),
            bytes_of(x, x, memory),
        )
    ]


def ends_of_blocks(x: Tensor) -> list[Call]:
    """Returns the operators after a gemm, fused and by torch."""
    rows, channels = x.shape
    size, ops = f"{rows} rows x {channels}", torch.ops.linnet
    norm, bias = torch.ones_like(x[0]), torch.zeros_like(x[0])
    weight = torch.randn(4 * channels, channels, device=x.device, dtype=x.dtype) * channels**-0.5
    wide = weight.new_zeros(4 * channels)
    moved = bytes_of(x, weight, wide) + 4 * bytes_of(x)

    def sum_and_norm() -> Tensor:
        return torch.nn.functional.layer_norm(x + x, (channels,), norm, bias)

    def linear_and_relu() -> Tensor:
        return torch.relu(torch.nn.functional.linear(x, weight, wide))

    return [
        Call("add_norm", size, lambda: ops.add_norm(x, x, norm, bias), 3 * bytes_of(x)),
        Call("torch: sum, layer_norm", size, sum_and_norm, 3 * bytes_of(x)),
        Call("linear with relu", size, lambda: ops.linear(x, weight, wide, "relu"), moved),
        Call("torch: linear, relu", size, linear_and_relu, moved),
    ]


TRAINED = "en-de"


def search(rows: int, vocabulary: int | str, dtype: torch.dtype, device: str) -> list[Call]:
    """Returns a step of beam search over a whole vocabulary, and torch's log-softmax and top-k for
    comparison. The logits are random, or for TRAINED those of that model."""
    ints = {"dtype": torch.int32, "device": device}
    fields = torch.zeros(rows, PLAN_FIELDS + MAX_BEAM + 4, dtype=torch.int32)
    for r in range(rows):
        fields[r, 0] = r // BEAM
        first = r * BEAM
        if first + BEAM > rows:
            continue
        fields[r, 1:13] = torch.tensor([BEAM, first, 7, -1, 1, 0, 0, 0, 0, 30, 50, 0])
        fields.view(torch.float32)[r, 9] = 1.0  # temperature
        fields[r, PLAN_FIELDS : PLAN_FIELDS + BEAM] = torch.arange(first, first + BEAM)
    plan = fields.to(device)
    tables = [
        torch.zeros(rows, **ints),
        torch.zeros(rows, device=device),
        torch.zeros(rows, WIDTH, **ints),
        torch.zeros(2, rows, 64, **ints),
        torch.full((rows, 2), BEAM, **ints),
        torch.zeros(rows, **ints),
    ]
    tables[4][:, 1] = 0
    if isinstance(vocabulary, str):
        logits = trained_logits(rows).to(device, dtype)
    else:
        logits = torch.randn(rows, vocabulary, device=device).to(dtype)
    record = torch.zeros(rows, 8, **ints)
    ops, special = torch.ops.linnet, [2, 1, 2, 3]
    size = f"{rows} rows x {logits.size(1)}"
    if isinstance(vocabulary, str):
        size += f", {vocabulary}"
    backpointers = ops.beam_inputs(plan, tables, special, 4)[2]

    def in_torch() -> object:
        scores = torch.log_softmax(logits, dim=-1, dtype=torch.float32)
        return scores.view(-1, BEAM * logits.size(1)).topk(2 * BEAM)

    def step() -> None:
        ops.beam_step(plan, logits, backpointers, tables, special, [], record)
        tables[4].copy_(counts)  # so that no search ends

    counts = tables[4].clone()
    return [
        Call("beam_step", size, step, bytes_of(logits)),
        Call("torch: log_softmax, topk", size, in_torch, bytes_of(logits)),
        Call("beam_inputs", size, lambda: ops.beam_inputs(plan, tables, special, 4), 4 * rows),
    ]


def whole(batch: int, time: int, channels: int, dtype: torch.dtype, device: str) -> list[Call]:
    x = torch.randn(batch, time, channels, device=device, dtype=dtype)
    weight = torch.randn(batch, time, HEADS, WIDTH, device=device, dtype=dtype)
    lengths = torch.full((batch,), time, dtype=torch.int32, device=device)
    taps = torch.randn(WIDTH, channels, device=device, dtype=dtype).t()  # layout of the model
    ops, size = torch.ops.linnet, f"{batch} x {time} x {channels}"
    return [
        Call(
            "dynamic_conv",
            size,
            lambda: ops.dynamic_conv(x, weight, lengths, WIDTH // 2),
            bytes_of(x, x, weight),
        ),
        Call(
            "depthwise_conv",
            size,
            lambda: ops.depthwise_conv(x, taps, lengths, WIDTH // 2, 1),
            bytes_of(x, x, taps),
        ),
    ]


def cases(setup: Setup, part: str) -> Iterator[Case]:
    """Yields operators of the base and the big model with few and many rows, or in the part
    "search" the search alone, whose logits are float32 in a float16 engine as well; a dry run on a
    CPU."""
    torch.ops.load_library(setup.library)
    device = setup.device
    if not setup.dry:
        torch.ops.load_library(setup.library.with_name("liblinnet_ops_cuda.so"))
    if part == "search":
        counts = (10,) if setup.dry else (5, 160, 640, 2560)
        shapes = [(search, rows, of) for of in (32000, TRAINED, 6000) for rows in counts]
        types = [torch.float32]
    elif setup.dry:
        shapes = [(steps, 5, 64), (attention, 5, 64, 64), (whole, 2, 8, 64)]
        types = [torch.float32]
    else:
        shapes = [(steps, rows, channels) for channels in (1024, 512) for rows in (5, 160, 640)]
        shapes += [(attention, rows, 512, tokens) for rows in (5, 160) for tokens in (512, 1024)]
        shapes += [(search, rows, 32000) for rows in (5, 160, 640, 2560)]
        shapes += [(whole, 32, 64, channels) for channels in (512, 1024)]
        types = [torch.float16, torch.bfloat16, torch.float32]
    for dtype in types:
        for make, *sizes in shapes:
            name = f"{make.__name__} {' x '.join(map(str, sizes))}, {dtype}"
            made = functools.partial(make, *sizes, dtype, device)
            yield name, functools.partial(measure, made, dtype, device)
