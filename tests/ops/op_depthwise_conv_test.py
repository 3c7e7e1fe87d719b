"""depthwise_conv against plain loops, torch's convolution, and properties."""

import op_reference as plain
import pytest
import torch
from op_cases import assert_near, depthwise_arguments, ints, numbers

TYPES = [torch.float32, torch.bfloat16]
convolve = torch.ops.linnet.depthwise_conv

# (batch, time, channels, width, dilation)
SHAPES = [
    (2, 9, 32, 3, 1),
    (3, 20, 64, 7, 2),
    (2, 12, 24, 5, 4),
    (1, 1, 16, 31, 1),  # one position, filter wider than the sentence
    (4, 5, 48, 31, 1),  # ragged, filter wider than every sentence
    (2, 40, 512, 31, 1),  # the base model's layer
    (3, 7, 130, 15, 1),  # two blocks of channels and a rest
    (2, 6, 21, 9, 3),  # an uncommon width
    (2, 5, 16, 3, 8),  # taps further apart than the sentence is long
    (1, 50, 33, 7, 16),  # Tay et al.'s largest dilations
    (1, 4, 1, 63, 1),  # one channel
    (2, 3, 3, 5, 2),  # fewer channels than any vector has
    (2, 3, 12, 1, 1),  # a single tap
    (2, 3, 12, 1, 5),  # a single tap, which cannot be far from itself
]
SHAPE_NAMES = ["x".join(map(str, shape)) for shape in SHAPES]


def paddings(width: int, dilation: int) -> set[int]:
    """Nothing before a position, centred, one less (between the taps), and causal."""
    reach = (width - 1) * dilation
    return {0, reach // 2, max(0, reach - 1), reach}


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_equals_plain_loops(shape, dtype):
    *sizes, dilation = shape
    x, weight, lengths = depthwise_arguments(*sizes, dtype)
    for padding_left in paddings(sizes[-1], dilation):
        got = convolve(x, weight, lengths, padding_left, dilation)
        assert got.dtype == dtype
        assert got.shape == x.shape
        assert_near(got, plain.depthwise_conv(x, weight, lengths, padding_left, dilation), dtype)


def test_accepts_every_padding_and_dilation():
    x, weight, lengths = depthwise_arguments(3, 7, 20, 5)
    for dilation in range(1, 9):
        for padding_left in range(4 * dilation + 1):
            got = convolve(x, weight, lengths, padding_left, dilation)
            want = plain.depthwise_conv(x, weight, lengths, padding_left, dilation)
            assert_near(got, want, torch.float32)


@pytest.mark.parametrize("dilation", [1, 3])
def test_equals_torch_convolution(dilation):
    x, weight, _ = depthwise_arguments(2, 30, 48, 7)
    want = torch.nn.functional.conv1d(
        x.transpose(1, 2), weight[:, None], padding=3 * dilation, dilation=dilation, groups=48
    ).transpose(1, 2)
    got = convolve(x, weight, ints(30, 30), 3 * dilation, dilation)
    torch.testing.assert_close(got, want, atol=2e-6, rtol=4e-6)


@pytest.mark.parametrize("shape", [(2, 0, 8), (0, 5, 8), (0, 0, 8), (2, 5, 0)], ids=str)
def test_accepts_empty_input(shape):
    lengths = torch.zeros(shape[0], dtype=torch.int32)
    assert convolve(torch.zeros(shape), torch.zeros(shape[2], 3), lengths, 1, 1).shape == shape


@pytest.mark.parametrize("dilation", [1, 3])
def test_ignores_and_zeroes_padding(dilation):
    x, weight, lengths = depthwise_arguments(3, 10, 32, 7)
    want = convolve(x, weight, lengths, 3 * dilation, dilation)
    for b, length in enumerate(lengths):
        x[b, length:] = torch.nan
    got = convolve(x, weight, lengths, 3 * dilation, dilation)
    assert torch.equal(got, want)
    for b, length in enumerate(lengths):
        assert not got[b, length:].any()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_is_batch_invariant(dtype):
    x, weight, lengths = depthwise_arguments(3, 12, 130, 31, dtype)
    whole = convolve(x, weight, lengths, 30, 1)
    for b, length in enumerate(lengths.tolist()):
        alone = convolve(x[b : b + 1, :length], weight, ints(length), 30, 1)
        assert torch.equal(alone[0], whole[b, :length])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_channels_are_independent(dtype):
    x, weight, lengths = depthwise_arguments(2, 9, 70, 5, dtype)
    whole = convolve(x, weight, lengths, 4, 2)
    for channels in (slice(0, 1), slice(3, 70), slice(60, 67)):
        part = convolve(x[..., channels], weight[channels], lengths, 4, 2)
        assert torch.equal(part, whole[..., channels])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_transposed_weight_gives_the_same_bits(dtype):
    x, weight, lengths = depthwise_arguments(2, 9, 70, 5, dtype)
    by_tap = weight.t().contiguous().t()
    assert not by_tap.is_contiguous()
    assert torch.equal(convolve(x, by_tap, lengths, 2, 1), convolve(x, weight, lengths, 2, 1))


def test_accepts_non_contiguous_inputs():
    x, weight, lengths = depthwise_arguments(3, 8, 20, 5)
    want = convolve(x, weight, lengths, 2, 1)
    x = x.transpose(0, 1).contiguous().transpose(0, 1)
    weight = torch.stack([weight, weight], -1)[..., 0]
    lengths = torch.stack([lengths, lengths], 1)[:, 0]
    assert not any(tensor.is_contiguous() for tensor in (x, weight, lengths))
    got = convolve(x, weight, lengths, 2, 1)
    assert torch.equal(got, want)
    assert got.is_contiguous()


def test_does_not_normalise_taps():
    x = numbers(0, 1, 6, 8)
    weight = torch.tensor([0.0, -300.0, 0.0]).expand(8, 3)
    assert torch.equal(convolve(x, weight, ints(6), 1, 1), -300 * x)


REFUSED = {
    "float64": ({"x": torch.zeros(2, 5, 8).double()}, "x is Double on cpu; supported are float32"),
    "float16 on the cpu": ({"x": torch.zeros(2, 5, 8).half()}, "x is Half on cpu; supported are"),
    "weight of another type": ({"weight": torch.zeros(8, 3).bfloat16()}, "need one type"),
    "x of two dimensions": ({"x": torch.zeros(5, 8)}, r"x has shape \[5, 8\], needs 3 dim"),
    "weight per head": ({"weight": torch.zeros(2, 4, 3)}, r"needs 2 dimensions \[C, K\]"),
    "weight of other channels": (
        {"weight": torch.zeros(2, 3)},
        r"weight has shape \[2, 3\], dimension 0 \(C\) must be 8 as in x",
    ),
    "an even width": ({"weight": torch.zeros(8, 4)}, "filter width is 4, must be odd"),
    "no width": ({"weight": torch.zeros(8, 0)}, "filter width is 0, must be odd"),
    "no dilation": ({"dilation": 0}, "dilation is 0, must be at least 1"),
    "negative dilation": ({"dilation": -2}, "dilation is -2, must be at least 1"),
    "padding beyond the filter": (
        {"padding_left": 5},
        r"padding_left is 5, must lie between 0 and 4 \(\(width - 1\) \* dilation\)",
    ),
    "negative padding": ({"padding_left": -1}, "padding_left is -1, must lie between 0 and 4"),
    "int64 lengths": ({"lengths": torch.tensor([5, 5])}, "lengths is Long, needs int32"),
    "lengths of another batch": ({"lengths": ints(5)}, r"lengths has shape \[1\], dimension 0"),
    "a length beyond T": ({"lengths": ints(5, 6)}, r"lengths\[1\] is 6, must lie between 0 and 5"),
}


@pytest.mark.parametrize("change", REFUSED, ids=str)
def test_refuses_wrong_arguments(change):
    changes, message = REFUSED[change]
    arguments = {
        "x": torch.zeros(2, 5, 8),
        "weight": torch.zeros(8, 3),
        "lengths": ints(5, 5),
        "padding_left": 2,
        "dilation": 2,
    }
    with pytest.raises(RuntimeError, match=f"depthwise_conv: .*{message}"):
        convolve(**(arguments | changes))


@pytest.mark.parametrize("dtype", [*TYPES, torch.float16], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_cuda_equals_plain_loops(cuda, shape, dtype):
    *sizes, dilation = shape
    x, weight, lengths = depthwise_arguments(*sizes, dtype)
    for padding_left in paddings(sizes[-1], dilation):
        got = convolve(x.to(cuda), weight.to(cuda), lengths.to(cuda), padding_left, dilation)
        assert_near(got, plain.depthwise_conv(x, weight, lengths, padding_left, dilation), dtype)
