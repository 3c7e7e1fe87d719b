"""How long the operators take on a GPU, beside a plain copy as the roof, and beside what torch
would do in their place."""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

WIDTH, HEADS, BEAM = 31, 16, 5
VOCABULARY, MOST_BEAM, PLAN_FIELDS = 32000, 16, 10


def median_microseconds(call: Callable[[], object], repeat: int = 50, inner: int = 20) -> float:
    """Median of means of `inner` calls in a row: launches are hidden, as they are in a decoder."""
    if not torch.cuda.is_available():  # a dry run
        start = time.perf_counter()
        call()
        return (time.perf_counter() - start) * 1e6
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


def steps(rows: int, channels: int, dtype: torch.dtype, device: str) -> list[dict]:
    """One token for each row: convolutions, attention over the last WIDTH positions, and attention
    over 32 source tokens per beam."""
    options = {"device": device, "dtype": dtype}
    x = torch.randn(rows, channels, **options)
    weight = torch.randn(rows, HEADS, WIDTH, **options)
    taps = torch.randn(WIDTH, channels, **options).t()  # as the kernel reads them
    window = torch.randn(WIDTH, rows, channels, **options)
    cache = torch.randn(WIDTH, rows, 2, channels, **options)
    positions = torch.full((rows,), 100, dtype=torch.int32, device=device)
    lane = torch.arange(rows, device=device)[:, None]
    ago = torch.arange(WIDTH, device=device)[None]
    first = lane // BEAM * BEAM
    ancestry = torch.minimum(first + (lane - first + 2 * ago) % BEAM, torch.tensor(rows - 1)).int()
    ancestry[:, 0] = lane[:, 0]
    sources = -(-rows // BEAM)
    memory = torch.randn(2 * sources, 16, 2, channels, **options)
    blocks = torch.arange(2 * sources, dtype=torch.int32, device=device).view(-1, 2)
    blocks = blocks[lane[:, 0] // BEAM].contiguous()
    lengths = torch.full((rows,), 32, dtype=torch.int32, device=device)
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
        *ends_of_blocks(x),
    ]


def ends_of_blocks(x: Tensor) -> list[dict]:
    """What stands behind a product, fused and as torch has it."""
    rows, channels = x.shape
    size, dtype, ops = f"{rows} rows x {channels}", x.dtype, torch.ops.linnet
    norm, bias = torch.ones_like(x[0]), torch.zeros_like(x[0])
    weight = torch.randn(4 * channels, channels, device=x.device, dtype=dtype) * channels**-0.5
    wide = weight.new_zeros(4 * channels)
    moved = bytes_of(x, weight, wide) + 4 * bytes_of(x)

    def sum_and_norm() -> Tensor:
        return torch.nn.functional.layer_norm(x + x, (channels,), norm, bias)

    def linear_and_relu() -> Tensor:
        return torch.relu(torch.nn.functional.linear(x, weight, wide))

    return [
        row("add_norm", size, dtype, lambda: ops.add_norm(x, x, norm, bias), 3 * bytes_of(x)),
        row("torch: sum, layer_norm", size, dtype, sum_and_norm, 3 * bytes_of(x)),
        row("linear with relu", size, dtype, lambda: ops.linear(x, weight, wide, "relu"), moved),
        row("torch: linear, relu", size, dtype, linear_and_relu, moved),
    ]


def search(rows: int, dtype: torch.dtype, device: str) -> list[dict]:
    """A step of beam search over a whole vocabulary, beside what a search in Python would take:
    log-softmax and top-k."""
    ints = {"dtype": torch.int32, "device": device}
    fields = torch.zeros(rows, PLAN_FIELDS + MOST_BEAM + 4, dtype=torch.int32)
    for r in range(rows):
        fields[r, 0] = r // BEAM
        first = r * BEAM
        if first + BEAM > rows:
            continue
        fields[r, 1:10] = torch.tensor([BEAM, first, 7, -1, 1, 0, 0, 0, 30])
        fields.view(torch.float32)[r, 8] = 1.0  # temperature
        fields[r, 10 : 10 + BEAM] = torch.arange(first, first + BEAM)
    plan = fields.to(device)
    tables = [
        torch.zeros(rows, **ints),
        torch.zeros(rows, device=device),
        torch.zeros(rows, WIDTH, **ints),
        torch.zeros(2, rows, 64, **ints),
        torch.full((rows, 2), BEAM, **ints),
    ]
    tables[4][:, 1] = 0
    logits = torch.randn(rows, VOCABULARY, device=device).to(dtype)
    record = torch.zeros(rows, 8, **ints)
    ops, special, size = torch.ops.linnet, [2, 1, 2, 3], f"{rows} rows x {VOCABULARY}"
    ancestry = ops.beam_inputs(plan, tables, special, 4)[2]

    def in_torch() -> object:
        scores = torch.log_softmax(logits, dim=-1, dtype=torch.float32)
        return scores.view(-1, BEAM * VOCABULARY).topk(2 * BEAM)

    def step() -> None:
        ops.beam_step(plan, logits, ancestry, tables, special, record)
        tables[4].copy_(counts)  # or the searches would end

    counts = tables[4].clone()
    return [
        row("beam_step", size, dtype, step, bytes_of(logits)),
        row("torch: log_softmax, topk", size, dtype, in_torch, bytes_of(logits)),
        row(
            "beam_inputs", size, dtype, lambda: ops.beam_inputs(plan, tables, special, 4), 4 * rows
        ),
    ]


def whole(batch: int, time: int, channels: int, dtype: torch.dtype, device: str) -> list[dict]:
    x = torch.randn(batch, time, channels, device=device, dtype=dtype)
    weight = torch.randn(batch, time, HEADS, WIDTH, device=device, dtype=dtype)
    lengths = torch.full((batch,), time, dtype=torch.int32, device=device)
    taps = torch.randn(WIDTH, channels, device=device, dtype=dtype).t()  # as the kernel reads them
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


def time_operators(device: str) -> list[dict]:
    """Rows of a table: base and big model, few rows and many. On the CPU a dry run."""
    results = []
    if device == "cpu":
        return (
            steps(5, 64, torch.float32, device)
            + whole(2, 8, 64, torch.float32, device)
            + search(10, torch.float32, device)
        )
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for channels in (512, 1024):
            for rows in (5, 160, 640):
                results += steps(rows, channels, dtype, device)
            results += whole(32, 64, channels, dtype, device)
        for rows in (5, 160, 640, 2560):
            results += search(rows, dtype, device)
    return results
