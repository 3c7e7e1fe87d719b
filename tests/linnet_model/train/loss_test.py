"""Tests of the loss with its own gradients, against torch's."""

import pytest
import torch

from linnet_model.train.loss import ROWS, smoothed_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("rows", [1, ROWS["cpu"], ROWS["cpu"] + 3])
def test_loss_and_gradients_equal_torch(smoothing: float, rows: int):
    torch.manual_seed(rows)
    features = torch.randn(rows, 5, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(7, (rows,))
    loss, likelihood = smoothed_cross_entropy(features, weight, targets, smoothing)
    found = torch.autograd.grad(3.0 * loss, (features, weight))
    logits = features @ weight.t()
    expected = torch.nn.functional.cross_entropy(
        logits, targets, label_smoothing=smoothing, reduction="sum"
    )
    wanted = torch.autograd.grad(3.0 * expected, (features, weight))
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(found, wanted)
    plain = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
    torch.testing.assert_close(likelihood, plain.detach())


def test_gradients_equal_finite_differences():
    torch.manual_seed(0)
    features = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 4, 2, 2])
    assert torch.autograd.gradcheck(
        lambda f, w: smoothed_cross_entropy(f, w, targets, 0.1)[0], (features, weight)
    )


def test_autocast_uses_bfloat16_gemm_and_float32_sums():
    torch.manual_seed(1)
    features = torch.randn(40, 8, requires_grad=True)
    weight = torch.randn(20, 8, requires_grad=True)
    targets = torch.randint(20, (40,))
    exact = torch.autograd.grad(
        smoothed_cross_entropy(features, weight, targets, 0.1)[0], (features, weight)
    )
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = smoothed_cross_entropy(features, weight, targets, 0.1)
    assert loss.dtype == torch.float32
    rounded = torch.autograd.grad(loss, (features, weight))
    for a, b in zip(rounded, exact, strict=True):
        assert a.dtype == torch.float32
        # 2e-2 of the max: bfloat16 keeps 8 bits
        torch.testing.assert_close(a, b, rtol=0, atol=2e-2 * float(b.abs().max()))
