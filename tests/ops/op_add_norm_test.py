"""torch.ops.linnet.add_norm: the residual sum and the norm at the end of a block, in one launch."""

import pytest
import torch
from op_cases import assert_near, numbers
from torch import Tensor

ops = torch.ops.linnet
TYPES = [torch.float32, torch.bfloat16]


def arguments(*shape: int, dtype: torch.dtype, seed: int = 0) -> list[Tensor]:
    """Sums, weights and biases of size 1, so that results stay below 4."""
    x, residual = (numbers(seed + i, *shape, dtype=dtype) for i in range(2))
    weight, bias = (numbers(seed + 2 + i, shape[-1], dtype=dtype).tanh() * 0.7 for i in range(2))
    return [x, residual, weight.to(dtype), bias.to(dtype)]


def reference(
    x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor, epsilon: float = 1e-5
) -> Tensor:
    s = x.double() + residual.double()
    s = s - s.mean(-1, keepdim=True)
    s = s / (s.square().mean(-1, keepdim=True) + epsilon).sqrt()
    return s * weight.double() + bias.double()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 37), (5, 512), (2, 3, 64), (0, 8)])
def test_equals_formula(shape, dtype):
    given = arguments(*shape, dtype=dtype)
    assert_near(ops.add_norm(*given), reference(*given), dtype)


def test_adds_epsilon_to_variance():
    given = arguments(3, 37, dtype=torch.float32)
    for epsilon in (1e-6, 0.5):
        assert_near(ops.add_norm(*given, epsilon), reference(*given, epsilon), torch.float32)
    with pytest.raises(RuntimeError, match="add_norm: epsilon is 0, must be above 0"):
        ops.add_norm(*given, 0.0)


@pytest.mark.parametrize("dtype", [*TYPES, torch.float16])
@pytest.mark.parametrize("shape", [(1, 1), (3, 37), (5, 512), (640, 1024), (2, 13000)])
def test_cuda_equals_formula(cuda, shape, dtype):
    given = arguments(*shape, dtype=dtype)
    got = ops.add_norm(*[tensor.to(cuda) for tensor in given])
    assert_near(got, reference(*given), dtype)


def test_refuses_wrong_shapes():
    x, residual, weight, bias = arguments(3, 8, dtype=torch.float32)
    with pytest.raises(RuntimeError, match="residual has shape"):
        ops.add_norm(x, residual[:2], weight, bias)
    with pytest.raises(RuntimeError, match=r"weight has shape \[7\]"):
        ops.add_norm(x, residual, weight[:7], bias)
    with pytest.raises(RuntimeError, match="bias is Double"):
        ops.add_norm(x, residual, weight, bias.double())


def test_backward_pass_is_an_error():
    given = arguments(3, 8, dtype=torch.float32)
    y = ops.add_norm(given[0].requires_grad_(), *given[1:])
    with pytest.raises(RuntimeError, match="not implemented"):
        y.sum().backward()
