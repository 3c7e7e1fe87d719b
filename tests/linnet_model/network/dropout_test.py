"""Tests of pooled dropout: the share of zeros, and equal masks for equal updates."""

import pytest
import torch

from linnet_model.network.dropout import REFRESH_UPDATES, Dropout, KeepAll


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_share_of_zeros_and_mean(p: float):
    drop = Dropout(1, pool=1 << 20)
    drop.begin(0)
    y = drop(torch.ones(400, 1000), p)
    # With 400,000 draws the share of zeros has a standard deviation below 8e-4.
    assert float((y == 0).float().mean()) == pytest.approx(p, abs=4e-3)
    assert float(y.mean()) == pytest.approx(1.0, abs=8e-3)


def test_masks_depend_on_use_and_update():
    x = torch.ones(1000)
    drop = Dropout(1, pool=1 << 16)
    drop.begin(7)
    first, second = drop(x, 0.5), drop(x, 0.5)
    assert not torch.equal(first, second)
    later = Dropout(1, pool=1 << 16)
    for update in (2 * REFRESH_UPDATES, 7):
        later.begin(update)
        masks = later(x, 0.5)
    assert torch.equal(masks, first)


def test_drops_tensors_larger_than_pool():
    drop = Dropout(1, pool=100)
    drop.begin(3)
    first = drop(torch.ones(1000), 0.5)
    drop.begin(3)
    assert torch.equal(first, drop(torch.ones(1000), 0.5))
    assert 300 < int((first == 0).sum()) < 700


def test_gradient_has_same_mask():
    drop = Dropout(1, pool=1 << 12)
    drop.begin(0)
    x = torch.ones(500, requires_grad=True)
    y = drop(x, 0.25)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert torch.equal(KeepAll()(x, 0.25), x)
