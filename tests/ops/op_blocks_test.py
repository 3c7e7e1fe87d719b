"""The operators over whole sequences give sequences in blocks the bits of padded ones."""

import pytest
import torch
from op_cases import assert_near, ints, numbers
from torch import Tensor

TYPES = [torch.float32, torch.bfloat16]
LENGTHS = [1, 16, 17, 40, 3, 33, 31]
CHANNELS, HEADS = 48, 3
ops = torch.ops.linnet


def dynamic(x: Tensor, weight: Tensor, lengths: Tensor, starts: Tensor | None) -> Tensor:
    return ops.dynamic_conv(x, weight, lengths, weight.size(-1) // 2, starts)


def light(x: Tensor, weight: Tensor, lengths: Tensor, starts: Tensor | None) -> Tensor:
    taps = numbers(5, HEADS, weight.size(-1), dtype=weight.dtype).to(weight.device)
    return ops.light_conv(x, taps, lengths, weight.size(-1) // 2, starts)


def depthwise(x: Tensor, weight: Tensor, lengths: Tensor, starts: Tensor | None) -> Tensor:
    taps = numbers(6, CHANNELS, weight.size(-1), dtype=weight.dtype).to(weight.device)
    return ops.depthwise_conv(x, taps, lengths, weight.size(-1) // 2, 1, starts)


def dilated(x: Tensor, weight: Tensor, lengths: Tensor, starts: Tensor | None) -> Tensor:
    taps = numbers(7, CHANNELS, 5, dtype=weight.dtype).to(weight.device)
    return ops.depthwise_conv(x, taps, lengths, 4 * 2, 4, starts)


def attention(x: Tensor, weight: Tensor, lengths: Tensor, starts: Tensor | None) -> Tensor:
    projected = torch.cat([x, x.flip(-1), x * 0.5], dim=-1)
    return ops.self_attention(projected, lengths, HEADS, starts)


each_operator = pytest.mark.parametrize(
    "operator", [dynamic, light, depthwise, dilated, attention], ids=lambda it: it.__name__
)


def padded(width: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """x [B, S, C], taps of each position and lengths; NaN behind each sequence."""
    x = numbers(1, len(LENGTHS), max(LENGTHS), CHANNELS, dtype=dtype)
    weight = numbers(2, len(LENGTHS), max(LENGTHS), HEADS, width, dtype=dtype)
    for b, length in enumerate(LENGTHS):
        x[b, length:] = torch.nan
        weight[b, length:] = torch.nan
    return x, weight, ints(*LENGTHS)


def in_blocks(values: Tensor, block: int) -> tuple[Tensor, Tensor, Tensor]:
    """values: [B, S, ...] -> the same in blocks [N, block, ...], their lengths and starts. There
    are unused blocks among and behind the sequences."""
    unused = torch.full((1, block, *values.shape[2:]), torch.nan, dtype=values.dtype)
    rows, lengths, starts = [], [], []
    for b, length in enumerate(LENGTHS):
        for start in range(0, length, block):
            row = unused.clone()
            count = min(block, length - start)
            row[0, :count] = values[b, start : start + count]
            rows, lengths, starts = [*rows, row], [*lengths, length], [*starts, start]
        if b % 3 == 2 or b == len(LENGTHS) - 1:
            rows, lengths, starts = [*rows, unused], [*lengths, 0], [*starts, 0]
    return torch.cat(rows), ints(*lengths), ints(*starts)


def sequences(y: Tensor, block: int) -> list[Tensor]:
    """The sequences of a result in blocks; checks that it is zero behind them."""
    found, row = [], 0
    for b, length in enumerate(LENGTHS):
        count = -(-length // block)
        whole = y[row : row + count].flatten(0, 1)
        assert not whole[length:].any()
        found.append(whole[:length])
        row += count
        if b % 3 == 2 or b == len(LENGTHS) - 1:
            assert not y[row].any()
            row += 1
    return found


@each_operator
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("width", [3, 9, 31])
@pytest.mark.parametrize("block", [16, 40, 5, 1])
def test_blocks_have_the_bits_of_padded_sequences(operator, dtype, width, block):
    x, weight, lengths = padded(width, dtype)
    want = operator(x, weight, lengths, None)
    blocks, block_lengths, starts = in_blocks(x, block)
    got = operator(blocks, in_blocks(weight, block)[0], block_lengths, starts)
    assert got.shape == blocks.shape
    for b, own in enumerate(sequences(got, block)):
        assert torch.equal(own, want[b, : LENGTHS[b]])


@each_operator
@pytest.mark.parametrize("dtype", [*TYPES, torch.float16], ids=str)
@pytest.mark.parametrize("width", [3, 9, 31])
def test_cuda_blocks_are_near_those_of_the_cpu(cuda, operator, dtype, width):
    x, weight, lengths = padded(width, dtype)
    want = operator(x.float(), weight.float(), lengths, None)
    blocks, block_lengths, starts = in_blocks(x, 16)
    taps = in_blocks(weight, 16)[0].to(cuda)
    got = operator(blocks.to(cuda), taps, block_lengths.to(cuda), starts.to(cuda)).cpu()
    for b, own in enumerate(sequences(got, 16)):
        assert_near(own, want[b, : LENGTHS[b]].double(), dtype)


@each_operator
@pytest.mark.parametrize(
    ("lengths", "starts", "message"),
    [
        (ints(20, 20), ints(0, 17), r"starts\[1\] is 17, must lie between 0 and 16"),
        (ints(20, 20), ints(0, -1), r"starts\[1\] is -1"),
        (ints(33, 20), ints(0, 16), r"lengths\[0\] is 33, must lie between 0 and 32"),
        (ints(20, 20), ints(0), r"starts has shape \[1\], dimension 0 \(B\) must be 2"),
        (ints(20, 20), torch.zeros(2), "starts is Float, needs int32"),
    ],
)
def test_sequences_outside_of_the_batch_are_refused(operator, lengths, starts, message):
    with pytest.raises(RuntimeError, match=message):
        operator(torch.zeros(2, 16, CHANNELS), torch.zeros(2, 16, HEADS, 3), lengths, starts)
