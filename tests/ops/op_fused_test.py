"""The operators that do several operations of a decoder step at once, against their parts."""

import math

import pytest
import torch
from op_cases import TOLERANCE, assert_near, ints, numbers, step_arguments
from torch import Tensor

ops = torch.ops.linnet
TYPES = [torch.float32, torch.bfloat16]
GPU_TYPES = [*TYPES, torch.float16]


def embedded(
    tokens: Tensor, positions: Tensor, table: Tensor, positional: Tensor | None, steps: float
) -> Tensor:
    """embed_tokens with scale 3 and first position 2; angles are float32, the rest is double."""
    y = 3 * table.double()[tokens]
    where = positions.long() + 2
    if positional is not None:
        return y + positional.double()[where]
    if steps == 0:
        return y
    i = torch.arange(table.size(1) // 2, dtype=torch.float32)
    angles = where.float()[:, None] * torch.exp(i * (-math.log(10000.0) / steps))
    return y + torch.cat([angles.double().sin(), angles.double().cos()], dim=1)


def check_embedding(width: int, kind: str, dtype: torch.dtype, device: str) -> None:
    tokens, positions = torch.tensor([0, 8, 3, 3, 1]), ints(0, 1, 299, 40, 7)
    table = numbers(1, 9, width, dtype=dtype)
    positional = numbers(2, 302, width, dtype=dtype) if kind == "learned" else None
    steps = float(width // 2) if kind == "sinusoidal" else 0.0
    want = embedded(tokens, positions, table, positional, steps)
    own = None if positional is None else positional.to(device)
    on = [tensor.to(device) for tensor in (tokens, positions, table)]
    got = ops.embed_tokens(*on, own, 3.0, 2, steps)
    # An exponential may be off by 2 units in the last place, which an angle near 300 makes 7e-5.
    near = max(1e-4, TOLERANCE[dtype])
    torch.testing.assert_close(got.cpu().double(), want, atol=near, rtol=2 * near)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("kind", ["none", "learned", "sinusoidal"])
def test_embedding_equals_formula(kind, dtype):
    check_embedding(36, kind, dtype, "cpu")


@pytest.mark.parametrize("dtype", GPU_TYPES, ids=str)
@pytest.mark.parametrize("kind", ["none", "learned", "sinusoidal"])
@pytest.mark.parametrize("width", [2, 36, 512, 1030])
def test_embedding_equals_formula_on_cuda(cuda, width, kind, dtype):
    check_embedding(width, kind, dtype, "cuda")


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("kind", ["none", "learned", "sinusoidal"])
def test_added_positions_are_those_of_embedded_tokens(kind, dtype):
    """Row by row with the same bits, in any order, beside any others, and far from the start."""
    table = numbers(1, 9, 36, dtype=dtype)
    learned = numbers(2, 6002, 36, dtype=dtype) if kind == "learned" else None
    rest = (learned, 3.0, 2, 18.0 if kind == "sinusoidal" else 0.0)
    positions = ints(0, 1, 40, 70, 4093, 4094, 5999, 3)
    tokens = torch.arange(8).reshape(1, 8).repeat(3, 1)
    tokens[1] = tokens[1].flip(0)
    together = ops.add_positions(table[tokens], positions, *rest)
    for sequence, ids in zip(together, tokens, strict=True):
        for row, token, position in zip(sequence, ids, positions, strict=True):
            alone = ops.embed_tokens(token[None], position[None], table, *rest)[0]
            assert torch.equal(row, alone)


def test_added_positions_refuse_wrong_arguments():
    embedded, learned = torch.zeros(2, 3, 4), torch.zeros(9, 4)
    with pytest.raises(RuntimeError, match=r"positions\[1\] with the first is 9, .* 0 and 8"):
        ops.add_positions(embedded, ints(0, 7, 1), learned, 1.0, 2, 0.0)
    with pytest.raises(RuntimeError, match="positions"):
        ops.add_positions(embedded, ints(0, 1), learned, 1.0, 2, 0.0)
    with pytest.raises(RuntimeError, match="has 1 dimensions, it must be"):
        ops.add_positions(torch.zeros(4), ints(0), None, 1.0, 2, 0.0)


def test_embedding_refuses_wrong_arguments():
    tokens, positions, table = torch.tensor([1]), ints(0), torch.zeros(4, 3)
    with pytest.raises(RuntimeError, match="table has 3 channels, sinusoids need an even number"):
        ops.embed_tokens(tokens, positions, table, None, 1.0, 2, 4.0)
    with pytest.raises(RuntimeError, match="tokens are Int, they must be int64"):
        ops.embed_tokens(tokens.int(), positions, table, None, 1.0, 2, 0.0)
    with pytest.raises(RuntimeError, match=r"position_table has shape \[9, 4\]"):
        ops.embed_tokens(tokens, positions, table, torch.zeros(9, 4), 1.0, 2, 0.0)


def check_sum_and_norm(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> None:
    x, residual = (numbers(i, *shape, dtype=dtype) for i in range(2))
    weight, bias = (numbers(2 + i, shape[-1], dtype=dtype) for i in range(2))
    given = [tensor.to(device) for tensor in (x, residual, weight, bias)]
    total, y = ops.add_norm_sum(*given)
    assert_near(total, x.double() + residual.double(), dtype)
    assert torch.equal(y, ops.add_norm(*given))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (5, 512), (2, 3, 64), (0, 8)])
def test_sum_and_norm_are_add_norm_with_its_sum(shape, dtype):
    check_sum_and_norm(shape, dtype, "cpu")


@pytest.mark.parametrize("dtype", GPU_TYPES, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (3, 37), (640, 1024), (2, 13000)])
def test_sum_and_norm_are_add_norm_with_its_sum_on_cuda(cuda, shape, dtype):
    check_sum_and_norm(shape, dtype, "cuda")


@pytest.mark.parametrize("kind", [None, "float32", "int8"])
def test_linear_norm_has_the_bits_of_its_parts(kind):
    x, residual, weight = numbers(1, 7, 96), numbers(2, 7, 64), numbers(3, 64, 96)
    bias, norm, norm_bias = numbers(4, 64), numbers(5, 64), numbers(6, 64)
    if kind is not None:
        weight = ops.pack_linear(weight, kind)
    total, y = ops.linear_norm(x, weight, bias, residual, norm, norm_bias)
    assert torch.equal(total, ops.linear(x, weight, bias, "none", residual))
    assert torch.equal(y, torch.layer_norm(total, [64], norm, norm_bias))


@pytest.mark.parametrize("dtype", GPU_TYPES, ids=str)
def test_linear_norm_equals_the_cpu_on_cuda(cuda, dtype):
    x, residual = numbers(1, 5, 512, dtype=dtype), numbers(2, 5, 512, dtype=dtype)
    weight = (numbers(3, 512, 512) * 512**-0.5).to(dtype)
    rest = [numbers(4 + i, 512, dtype=dtype) for i in range(3)]
    want = ops.linear_norm(*(t.float() for t in (x, weight, rest[0], residual, rest[1], rest[2])))
    on = [t.to(cuda) for t in (x, weight, rest[0], residual, rest[1], rest[2])]
    for got, expected in zip(ops.linear_norm(*on), want, strict=True):
        # The product is rounded to the type before the sum.
        torch.testing.assert_close(
            got.cpu().float(), expected, atol=8 * TOLERANCE[dtype], rtol=8 * TOLERANCE[dtype]
        )


def layer_arguments(
    rows: int, channels: int, heads: int, width: int, glu: bool, dtype: torch.dtype
) -> list:
    """Arguments of dynamic_conv_layer_step with as many inputs as channels."""
    x, _, state, positions, backpointers = step_arguments(rows, channels, heads, width, True, dtype)
    wide = 2 * channels if glu else channels
    weight = (numbers(5, wide, channels) * channels**-0.5).to(dtype)
    taps = (numbers(6, heads * width, channels) * channels**-0.5).to(dtype)
    activation = "glu" if glu else "none"
    bias = numbers(7, wide, dtype=dtype)
    return [x, weight, bias, activation, taps, heads, state, positions, backpointers]


def composed(
    x: Tensor, weight: Tensor, bias: Tensor, activation: str, taps: Tensor, heads: int,
    state: Tensor, positions: Tensor, backpointers: Tensor,
) -> Tensor:  # fmt: skip
    inputs = ops.linear(x, weight, bias, activation)
    scores = ops.linear(inputs, taps, None).view(x.size(0), heads, state.size(0))
    return ops.dynamic_conv_step(inputs, scores, state, positions, backpointers)


SHAPES = [(1, 16, 1, 3), (6, 24, 24, 5), (5, 512, 8, 31), (7, 130, 2, 15), (4, 12, 2, 1)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("glu", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layer_step_has_the_bits_of_its_parts(shape, glu, packed):
    given = layer_arguments(*shape, glu, torch.float32)
    if packed:
        given[1], given[4] = (ops.pack_linear(given[i], "float32") for i in (1, 4))
    other = [value.clone() if i == 6 else value for i, value in enumerate(given)]
    assert torch.equal(ops.dynamic_conv_layer_step(*given), composed(*other))
    assert torch.equal(given[6], other[6]), "the state"


def check_gated_step(shape: tuple[int, ...], glu: bool, dtype: torch.dtype, device: str) -> None:
    x, weight, bias, activation, taps, heads, state, *indices = layer_arguments(*shape, glu, dtype)
    z = ops.linear(x.float(), weight.float(), bias.float()).to(dtype)
    inputs = (torch.nn.functional.glu(z.float()) if activation == "glu" else z.float()).to(dtype)
    scores = (inputs.float() @ taps.float().t()).view(x.size(0), heads, state.size(0))
    want_state = state.float()
    want = ops.dynamic_conv_step(inputs.float(), scores, want_state, *indices)
    own = state.to(device)
    got = ops.gated_conv_step(
        z.to(device), taps.to(device), heads, own, *(index.to(device) for index in indices)
    )
    # The CPU rounds scores to the type; a score of size 3 moves its tap by that much.
    near = 16 * TOLERANCE[dtype]
    torch.testing.assert_close(got.cpu().float(), want, atol=near, rtol=near)
    torch.testing.assert_close(own.cpu().float(), want_state, atol=near, rtol=near)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("glu", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gated_step_equals_its_parts(shape, glu, dtype):
    check_gated_step(shape, glu, dtype, "cpu")


@pytest.mark.parametrize("dtype", GPU_TYPES, ids=str)
@pytest.mark.parametrize("glu", [True, False])
@pytest.mark.parametrize("shape", [*SHAPES, (8, 1024, 16, 31), (6, 640, 640, 31)], ids=str)
def test_gated_step_equals_its_parts_on_cuda(cuda, shape, glu, dtype):
    check_gated_step(shape, glu, dtype, "cuda")


def test_layer_step_refuses_other_activations():
    given = layer_arguments(4, 12, 2, 3, False, torch.float32)
    given[3] = "relu"
    with pytest.raises(RuntimeError, match='activation is "relu", it must be none or glu'):
        ops.dynamic_conv_layer_step(*given)


def test_gated_step_refuses_other_widths():
    z, taps, state = torch.zeros(2, 30), torch.zeros(6, 10), torch.zeros(3, 4, 10)
    positions, backpointers = ints(0, 0), torch.zeros(2, 3, dtype=torch.int32)
    with pytest.raises(RuntimeError, match="z has 30 channels, state has 10"):
        ops.gated_conv_step(z, taps, 2, state, positions, backpointers)
    with pytest.raises(RuntimeError, match=r"taps_weight has shape \[5, 10\]"):
        ops.gated_conv_step(z[:, :20], taps[:5], 2, state, positions, backpointers)
