"""dynamic_conv and light_conv against plain loops, fairseq's numbers, and properties."""

import json
from pathlib import Path

import numpy as np
import op_reference as plain
import pytest
import torch
from op_cases import assert_near, conv_arguments, ints, numbers

OPS = {True: torch.ops.linnet.dynamic_conv, False: torch.ops.linnet.light_conv}
ORACLE = Path(__file__).resolve().parents[1] / "data" / "oracle"

both = pytest.mark.parametrize("dynamic", [True, False], ids=["dynamic", "light"])
# (batch, time, channels, heads, width)
SHAPES = [
    (2, 9, 32, 4, 3),
    (3, 20, 64, 1, 7),  # one head
    (2, 12, 24, 24, 5),  # one channel per head
    (1, 1, 16, 2, 31),  # one position, filter wider than the sentence
    (4, 5, 48, 3, 31),  # ragged, filter wider than every sentence
    (2, 40, 512, 8, 31),  # the base model's layer
    (3, 7, 130, 2, 15),  # 65 channels per head: vectors and a rest
    (2, 6, 21, 7, 9),  # 3 channels per head, an uncommon width
    (1, 4, 5, 1, 63),
    (2, 3, 12, 2, 1),  # a single tap
    (2, 30, 96, 1, 101),
    (2, 129, 12, 2, 31),  # one position more than a block of the kernel
    (2, 131, 40, 1, 7),  # a partial group of four positions, a partial vector of channels
    (2, 300, 6, 3, 5),
]
SHAPE_NAMES = ["x".join(map(str, shape)) for shape in SHAPES]
TYPES = [torch.float32, torch.bfloat16]


@both
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_equals_plain_loops(shape, dtype, dynamic):
    width = shape[-1]
    x, weight, lengths = conv_arguments(*shape, dynamic, dtype)
    for padding_left in {0, width // 2, width - 1}:
        got = OPS[dynamic](x, weight, lengths, padding_left)
        assert got.dtype == dtype
        assert got.shape == x.shape
        assert_near(got, plain.conv(x, weight, lengths, padding_left), dtype)


@both
@pytest.mark.parametrize("width", [1, 3, 7, 9])
def test_accepts_every_padding(width, dynamic):
    x, weight, lengths = conv_arguments(2, 6, 16, 2, width, dynamic)
    for padding_left in range(width):
        got = OPS[dynamic](x, weight, lengths, padding_left)
        assert_near(got, plain.conv(x, weight, lengths, padding_left), torch.float32)


@both
@pytest.mark.parametrize("shape", [(2, 0, 8), (0, 5, 8), (0, 0, 8), (2, 5, 0)], ids=str)
def test_accepts_empty_input(shape, dynamic):
    batch, time, _ = shape
    x = torch.zeros(shape)
    weight = torch.zeros(batch, time, 2, 3) if dynamic else torch.zeros(2, 3)
    assert OPS[dynamic](x, weight, torch.zeros(batch, dtype=torch.int32), 1).shape == shape


@pytest.mark.parametrize("seed", range(20))
def test_equals_plain_loops_at_random_shapes(seed):
    random = np.random.default_rng(seed)
    heads, per_head = int(random.integers(1, 9)), int(random.integers(1, 80))
    width = 2 * int(random.integers(0, 20)) + 1
    shape = (int(random.integers(1, 4)), int(random.integers(1, 25)), heads * per_head, heads)
    dynamic = bool(random.integers(2))
    x, weight, _ = conv_arguments(*shape, width, dynamic, seed=seed)
    lengths = torch.from_numpy(random.integers(0, shape[1] + 1, shape[0]).astype(np.int32))
    padding_left = int(random.integers(width))
    got = OPS[dynamic](x, weight, lengths, padding_left)
    assert_near(got, plain.conv(x, weight, lengths, padding_left), torch.float32)


@both
def test_ignores_and_zeroes_padding(dynamic):
    x, weight, lengths = conv_arguments(3, 10, 32, 2, 7, dynamic)
    want = OPS[dynamic](x, weight, lengths, 3)
    for b, length in enumerate(lengths):
        x[b, length:] = torch.nan
        if dynamic:
            weight[b, length:] = torch.nan
    got = OPS[dynamic](x, weight, lengths, 3)
    assert torch.equal(got, want)
    for b, length in enumerate(lengths):
        assert not got[b, length:].any()


@both
def test_is_batch_invariant(dynamic):
    x, weight, lengths = conv_arguments(3, 12, 130, 2, 31, dynamic)
    whole = OPS[dynamic](x, weight, lengths, 30)
    for b, length in enumerate(lengths.tolist()):
        own = weight[b : b + 1, :length] if dynamic else weight
        alone = OPS[dynamic](x[b : b + 1, :length], own, ints(length), 30)
        assert torch.equal(alone[0], whole[b, :length])


@both
def test_accepts_non_contiguous_inputs(dynamic):
    x, weight, lengths = conv_arguments(3, 8, 20, 4, 5, dynamic)
    want = OPS[dynamic](x, weight, lengths, 2)
    x = x.transpose(0, 1).contiguous().transpose(0, 1)
    weight = weight.transpose(-1, -2).contiguous().transpose(-1, -2)
    lengths = torch.stack([lengths, lengths], 1)[:, 0]
    assert not (x.is_contiguous())
    assert not (weight.is_contiguous())
    assert not (lengths.is_contiguous())
    got = OPS[dynamic](x, weight, lengths, 2)
    assert torch.equal(got, want)
    assert got.is_contiguous()


@both
def test_normalises_scores_of_any_size(dynamic):
    x = numbers(3, 1, 6, 8)
    shape = (1, 6, 1, 5) if dynamic else (1, 5)
    for scores in ([0, 500, -500, 499, 1], [-1e30, -1e30, 0, 0, -1e30], [80, 80, 80, 80, 80]):
        weight = torch.tensor(scores, dtype=torch.float32).expand(shape)
        want = plain.conv(x, weight, ints(6), 4)
        assert_near(OPS[dynamic](x, weight, ints(6), 4), want, torch.float32)
    weight = torch.tensor([0.0, -torch.inf, 1.0, -torch.inf, 2.0]).expand(shape)
    want = plain.conv(x, weight, ints(6), 4)
    assert_near(OPS[dynamic](x, weight, ints(6), 4), want, torch.float32)


@both
def test_propagates_nan_scores(dynamic):
    x, weight, lengths = conv_arguments(1, 4, 8, 1, 5, dynamic)
    weight[..., 3] = torch.nan
    assert OPS[dynamic](x, weight, lengths, 2).isnan().all()


def test_rounds_bfloat16_like_torch():
    """A single tap has weight 1, so y is x, converted to float32 and back."""
    x = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    y = torch.ops.linnet.light_conv(
        x.view(1, 64, 1024), torch.zeros(1, 1, dtype=torch.bfloat16), ints(64), 0
    ).flatten()
    same = (y.view(torch.int16) == x.view(torch.int16)) | (y.isnan() & x.isnan()) | (x == 0)
    assert same.all()


def oracle_cases():
    index = json.loads((ORACLE / "modules.json").read_text())
    return [pytest.param(case, id=case["name"]) for case in index["cases"]]


@pytest.mark.parametrize("case", oracle_cases())
def test_equals_fairseq(case):
    with np.load(ORACLE / "modules.npz", allow_pickle=False) as arrays:
        x, y, weight = (
            torch.from_numpy(arrays[f"{case['name']}.{field}"]) for field in ("x", "y", "weight")
        )
    time, batch, _ = x.shape
    x = x.transpose(0, 1)
    lengths = ints(*[time] * batch)
    if case["kind"] == "dynamic":
        scores = torch.nn.functional.linear(x, weight)
        scores = scores.view(batch, time, case["H"], case["K"])
    else:
        scores = weight[:, 0]
    got = OPS[case["kind"] == "dynamic"](x, scores, lengths, case["padding_l"])
    # 1e-5: fairseq and this each differ from float64 by less than 1e-6
    torch.testing.assert_close(got.transpose(0, 1), y, atol=1e-5, rtol=0)


REFUSED = {
    "float64": ({"x": torch.zeros(2, 5, 8).double()}, "x is Double on cpu; supported are float32"),
    "float16 on the cpu": ({"x": torch.zeros(2, 5, 8).half()}, "x is Half on cpu; supported are"),
    "weight of another type": ({"weight": torch.zeros(2, 5, 2, 3).bfloat16()}, "need one type"),
    "x of two dimensions": ({"x": torch.zeros(5, 8)}, r"x has shape \[5, 8\], needs 3 dim"),
    "weight of three dimensions": ({"weight": torch.zeros(5, 2, 3)}, r"4 dimensions \[B, T, H, K"),
    "weight of another batch": (
        {"weight": torch.zeros(3, 5, 2, 3)},
        r"weight has shape \[3, 5, 2, 3\], dimension 0 \(B\) must be 2 as in x",
    ),
    "weight of another time": ({"weight": torch.zeros(2, 4, 2, 3)}, r"dimension 1 \(T\) must be 5"),
    "uneven heads": ({"weight": torch.zeros(2, 5, 3, 3)}, "8 channels do not fall into 3 heads"),
    "no heads": ({"weight": torch.zeros(2, 5, 0, 3)}, "number of heads is 0, must be at least 1"),
    "an even width": ({"weight": torch.zeros(2, 5, 2, 4)}, "filter width is 4, must be odd"),
    "no width": ({"weight": torch.zeros(2, 5, 2, 0)}, "filter width is 0, must be odd"),
    "padding of the width": ({"padding_left": 3}, "padding_left is 3, must lie between 0 and 2"),
    "negative padding": ({"padding_left": -1}, "padding_left is -1, must lie between 0 and 2"),
    "int64 lengths": ({"lengths": torch.tensor([5, 5])}, "lengths is Long, needs int32"),
    "lengths of another batch": ({"lengths": ints(5)}, r"lengths has shape \[1\], dimension 0"),
    "a length beyond T": ({"lengths": ints(5, 6)}, r"lengths\[1\] is 6, must lie between 0 and 5"),
    "a negative length": ({"lengths": ints(-1, 5)}, r"lengths\[0\] is -1, must lie between 0"),
}


@pytest.mark.parametrize("change", REFUSED, ids=str)
def test_dynamic_conv_refuses_wrong_arguments(change):
    changes, message = REFUSED[change]
    arguments = {
        "x": torch.zeros(2, 5, 8),
        "weight": torch.zeros(2, 5, 2, 3),
        "lengths": ints(5, 5),
        "padding_left": 2,
    }
    with pytest.raises(RuntimeError, match=message):
        torch.ops.linnet.dynamic_conv(**(arguments | changes))


def test_light_conv_refuses_a_filter_per_position():
    with pytest.raises(RuntimeError, match=r"light_conv: weight has shape .* needs 2 dimensions"):
        torch.ops.linnet.light_conv(torch.zeros(2, 5, 8), torch.zeros(2, 5, 2, 3), ints(5, 5), 2)


@both
@pytest.mark.parametrize("dtype", [*TYPES, torch.float16], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_cuda_equals_plain_loops(cuda, shape, dtype, dynamic):
    width = shape[-1]
    x, weight, lengths = conv_arguments(*shape, dynamic, dtype)
    for padding_left in {0, width // 2, width - 1}:
        got = OPS[dynamic](x.to(cuda), weight.to(cuda), lengths.to(cuda), padding_left)
        assert_near(got, plain.conv(x, weight, lengths, padding_left), dtype)


def test_cuda_refuses_arguments_on_two_devices(cuda):
    x, weight, lengths = conv_arguments(2, 5, 8, 2, 3, True)
    with pytest.raises(RuntimeError, match="both need one device"):
        torch.ops.linnet.dynamic_conv(x.to(cuda), weight, lengths.to(cuda), 1)
