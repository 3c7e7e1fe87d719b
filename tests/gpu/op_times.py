"""How long the operators take on a GPU, beside a plain copy as the roof."""

import statistics
from collections.abc import Callable

import torch
from torch import Tensor

WIDTH, HEADS, BEAM = 31, 16, 5


def median_microseconds(call: Callable[[], object], repeat: int = 50, inner: int = 20) -> float:
    """Median of means of `inner` calls in a row: launches are hidden, as they are in a decoder."""
    for _ in range(10):
        call()
    times = []
    for _ in range(repeat):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(inner):
            call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / inner)
    return statistics.median(times)


def bytes_of(*tensors: Tensor) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def row(name: str, size: str, dtype: torch.dtype, call: Callable[[], object], moved: int) -> dict:
    time = median_microseconds(call)
    return {
        "operator": name,
        "size": size,
        "type": str(dtype).removeprefix("torch."),
        "us": round(time, 2),
        "GB/s": round(moved / time / 1e3, 1),
    }


def steps(rows: int, channels: int, dtype: torch.dtype) -> list[dict]:
    """One token for each row: convolutions, attention over the last WIDTH positions, and attention
    over 32 source tokens per beam."""
    options = {"device": "cuda", "dtype": dtype}
    x = torch.randn(rows, channels, **options)
    weight = torch.randn(rows, HEADS, WIDTH, **options)
    taps = torch.randn(WIDTH, channels, **options).t()  # as the kernel reads them
    window = torch.randn(WIDTH, rows, channels, **options)
    cache = torch.randn(WIDTH, rows, 2, channels, **options)
    positions = torch.full((rows,), 100, dtype=torch.int32, device="cuda")
    lane = torch.arange(rows, device="cuda")[:, None]
    ago = torch.arange(WIDTH, device="cuda")[None]
    first = lane // BEAM * BEAM
    ancestry = torch.minimum(first + (lane - first + 2 * ago) % BEAM, torch.tensor(rows - 1)).int()
    ancestry[:, 0] = lane[:, 0]
    sources = -(-rows // BEAM)
    memory = torch.randn(2 * sources, 16, 2, channels, **options)
    blocks = torch.arange(2 * sources, dtype=torch.int32, device="cuda").view(-1, 2)
    blocks = blocks[lane[:, 0] // BEAM].contiguous()
    lengths = torch.full((rows,), 32, dtype=torch.int32, device="cuda")
    ops, size = torch.ops.linnet, f"{rows} rows x {channels}"
    return [
        row(
            "dynamic_conv_step",
            size,
            dtype,
            lambda: ops.dynamic_conv_step(x, weight, window, positions, ancestry),
            bytes_of(x, x, weight, window),
        ),
        row(
            "depthwise_conv_step",
            size,
            dtype,
            lambda: ops.depthwise_conv_step(x, taps, window, positions, ancestry, 1),
            bytes_of(x, x, taps, window),
        ),
        row(
            "self_attention_step",
            size,
            dtype,
            lambda: ops.self_attention_step(x, x, x, cache, positions, ancestry, HEADS, 1),
            bytes_of(x, x, x, x, x, x, cache),
        ),
        row(
            "source_attention",
            size,
            dtype,
            lambda: ops.source_attention(x, memory, blocks, lengths, HEADS),
            bytes_of(x, x, memory),
        ),
        row("copy of the window", size, dtype, window.clone, bytes_of(window, window)),
    ]


def whole(batch: int, time: int, channels: int, dtype: torch.dtype) -> list[dict]:
    x = torch.randn(batch, time, channels, device="cuda", dtype=dtype)
    weight = torch.randn(batch, time, HEADS, WIDTH, device="cuda", dtype=dtype)
    lengths = torch.full((batch,), time, dtype=torch.int32, device="cuda")
    taps = torch.randn(WIDTH, channels, device="cuda", dtype=dtype).t()  # as the kernel reads them
    ops, size = torch.ops.linnet, f"{batch} x {time} x {channels}"
    return [
        row(
            "dynamic_conv",
            size,
            dtype,
            lambda: ops.dynamic_conv(x, weight, lengths, WIDTH // 2),
            bytes_of(x, x, weight),
        ),
        row(
            "depthwise_conv",
            size,
            dtype,
            lambda: ops.depthwise_conv(x, taps, lengths, WIDTH // 2, 1),
            bytes_of(x, x, taps),
        ),
    ]


def time_operators() -> list[dict]:
    """Rows of a table: base and big model, few rows and many."""
    results = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for channels in (512, 1024):
            for rows in (5, 160, 640):
                results += steps(rows, channels, dtype)
            results += whole(32, 64, channels, dtype)
    return results
