"""The convolutions: training path against plain loops, operators against the training path."""

import pytest
import torch

from linnet_model.dropout import KeepAll
from linnet_model.layers import DynamicConv, LightConv, band_matrix, convolve

KEEP = KeepAll()


def loops(x: torch.Tensor, taps: torch.Tensor, padding_left: int) -> torch.Tensor:
    """The formula of Wu et al. 2019, section 4, one sum at a time."""
    b, t, c = x.shape
    h, k = taps.shape[2:]
    y = torch.zeros_like(x)
    for i in range(b):
        for j in range(t):
            for ch in range(c):
                for tap in range(k):
                    s = j + tap - padding_left
                    if 0 <= s < t:
                        y[i, j, ch] += taps[i, j, ch // (c // h), tap] * x[i, s, ch]
    return y


@pytest.mark.parametrize("length", [1, 2, 5, 9])
@pytest.mark.parametrize(
    ("kernel", "padding_left"), [(1, 0), (3, 1), (3, 2), (7, 3), (7, 6), (5, 1)]
)
def test_the_band_form_is_the_formula(length: int, kernel: int, padding_left: int):
    torch.manual_seed(length * 100 + kernel)
    x = torch.randn(2, length, 6, dtype=torch.float64)
    taps = torch.randn(2, length, 3, kernel, dtype=torch.float64)
    expected = loops(x, taps, padding_left)
    torch.testing.assert_close(convolve(x, taps, padding_left), expected, rtol=0, atol=1e-12)


def test_a_band_matrix_holds_each_tap_at_its_place():
    band = band_matrix(torch.tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]), padding_left=1)
    assert band.tolist() == [[[2.0, 3.0], [4.0, 5.0]]]


@pytest.mark.parametrize("mixer", [DynamicConv, LightConv])
@pytest.mark.parametrize("padding_left", [3, 6])
def test_the_operator_gives_what_training_gave(mixer: type, padding_left: int):
    torch.manual_seed(0)
    conv = mixer(8, 2, 7, padding_left, weight_dropout=0.1)
    x = torch.randn(3, 11, 8)
    lengths = torch.tensor([11, 4, 1], dtype=torch.int32)
    inside = (torch.arange(11) < lengths.unsqueeze(1)).unsqueeze(-1)
    trained = conv(x * inside, KEEP) * inside
    with torch.no_grad():
        served = conv.encode(x * inside, lengths)
    torch.testing.assert_close(served, trained, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mixer", [DynamicConv, LightConv])
def test_steps_give_what_the_whole_gave(mixer: type):
    torch.manual_seed(1)
    conv, length, rows = mixer(8, 2, 5, 4, weight_dropout=0.1), 9, 3
    x = torch.randn(rows, length, 8)
    window = torch.zeros(5, rows, 8)
    ancestry = torch.arange(rows, dtype=torch.int32).unsqueeze(1).repeat(1, 5)
    with torch.no_grad():
        whole = conv(x, KEEP)
        for t in range(length):
            positions = torch.full((rows,), t, dtype=torch.int32)
            step = conv.step(x[:, t].contiguous(), window, positions, ancestry)
            torch.testing.assert_close(step, whole[:, t], rtol=1e-5, atol=1e-6)
