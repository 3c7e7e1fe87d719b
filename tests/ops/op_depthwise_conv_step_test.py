"""depthwise_conv_step against plain loops and whole sequences."""

import op_reference as plain
import pytest
import torch
from op_beams import Beams
from op_cases import assert_near, depthwise_step_arguments, ints, numbers
from torch import Tensor

TYPES = [torch.float32, torch.bfloat16]
step_of = torch.ops.linnet.depthwise_conv_step

# (rows, channels, width, dilation)
SHAPES = [
    (1, 16, 3, 1),
    (6, 24, 5, 2),
    (5, 512, 31, 1),  # the base model's layer, beam 5
    (7, 130, 15, 3),  # two blocks of channels and a rest
    (12, 64, 7, 16),  # Tay et al.'s largest dilations
    (6, 21, 9, 1),  # an uncommon width
    (4, 12, 1, 1),  # a single tap
    (4, 12, 1, 4),  # a single tap: the state holds one input for any dilation
    (6, 1, 3, 2),  # one channel
    (6, 96, 63, 1),
]
SHAPE_NAMES = ["x".join(map(str, shape)) for shape in SHAPES]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_equals_plain_loops(shape, dtype):
    for seed in range(3):
        x, weight, state, *rest = depthwise_step_arguments(*shape, dtype, seed)
        want, want_window = plain.depthwise_conv_step(x, weight, state, *rest)
        got = step_of(x, weight, state, *rest)
        assert got.dtype == dtype
        assert got.shape == x.shape
        assert_near(got, want, dtype)
        assert torch.equal(state.double(), want_window)


def test_accepts_no_rows():
    backpointers = torch.zeros(0, 3, dtype=torch.int32)
    arguments = (
        torch.zeros(0, 8),
        torch.zeros(8, 3),
        torch.zeros(3, 0, 8),
        ints(),
        backpointers,
        1,
    )
    assert step_of(*arguments).shape == (0, 8)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(("width", "dilation"), [(1, 1), (3, 1), (3, 4), (7, 3), (31, 1)])
def test_steps_of_reordered_beams_equal_whole_sequences(width, dilation, dtype):
    """The last output of a hypothesis equals that of its whole input sequence, bit for bit."""
    slots, channels, reach = 9, 36, (width - 1) * dilation
    weight = numbers(1, channels, width, dtype=dtype)
    state = numbers(2, reach + 1, slots, channels, dtype=dtype) * 1000  # stale contents
    x = numbers(3, 60, slots, channels, dtype=dtype)
    beams = Beams(slots, reach + 1, seed=width)
    checked = 0
    for step in range(60):
        y = step_of(x[step], weight, state, beams.positions, beams.backpointers, dilation)
        assert not y[beams.idle].any()
        for row, history in beams.history.items():
            steps, rows = zip(*history, strict=True)
            whole = torch.ops.linnet.depthwise_conv(
                x[steps, rows][None], weight, ints(len(history)), reach, dilation
            )
            assert torch.equal(y[row], whole[0, -1])
            checked += 1
        beams.next()
    assert checked > 200


def test_is_batch_invariant():
    x, weight, state, positions, backpointers, dilation = depthwise_step_arguments(12, 130, 31, 2)
    whole = step_of(x, weight, state.clone(), positions, backpointers, dilation)
    for row in range(12):
        one = slice(row, row + 1)
        alone = step_of(x[one], weight, state.clone(), positions[one], backpointers[one], dilation)
        assert torch.equal(alone[0], whole[row])


def test_accepts_non_contiguous_inputs():
    x, weight, state, positions, backpointers, dilation = depthwise_step_arguments(6, 20, 5, 2)
    want = step_of(x, weight, state.clone(), positions, backpointers, dilation)

    def scattered(tensor: Tensor) -> Tensor:
        return torch.stack([tensor, tensor], -1)[..., 0]

    arguments = [scattered(tensor) for tensor in (x, weight, positions, backpointers)]
    assert not any(tensor.is_contiguous() for tensor in arguments)
    got = step_of(arguments[0], arguments[1], state, *arguments[2:], dilation)
    assert torch.equal(got, want)


REFUSED = {
    "float16 on the cpu": ({"x": torch.zeros(2, 8).half()}, "x is Half on cpu; supported are"),
    "state of another type": ({"state": torch.zeros(5, 4, 8).bfloat16()}, "state is BFloat16"),
    "x of three dimensions": ({"x": torch.zeros(1, 2, 8)}, r"needs 2 dimensions \[R, C\]"),
    "weight of other channels": ({"weight": torch.zeros(2, 3)}, r"\(C\) must be 8 as in x"),
    "an even width": ({"weight": torch.zeros(8, 2)}, "filter width is 2, must be odd"),
    "no dilation": ({"dilation": 0}, "dilation is 0, must be at least 1"),
    "state of the width alone": (
        {"state": torch.zeros(3, 4, 8)},
        r"state has shape \[3, 4, 8\], dimension 0 .* must be 5 as in weight and dilation",
    ),
    "state of other channels": ({"state": torch.zeros(5, 4, 9)}, r"\(C\) must be 8 as in x"),
    "state that is not contiguous": (
        {"state": torch.zeros(4, 5, 8).transpose(0, 1)},
        "must be contiguous: it is changed in place",
    ),
    "int64 positions": ({"positions": torch.tensor([0, 0])}, "positions is Long, needs int32"),
    "positions of another row count": ({"positions": ints(0)}, r"positions has shape \[1\]"),
    "backpointers shorter than the state": (
        {"backpointers": torch.zeros(2, 4, dtype=torch.int32)},
        "needs at least 5 .the positions in state. slots per row",
    ),
    "a negative position": ({"positions": ints(0, -1)}, r"positions\[1\] is -1, must be at least"),
    "a slot that does not exist": (
        {"backpointers": torch.tensor([[0, 0, 4, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.int32)},
        r"backpointers\[0, 2\] is 4, must lie between 0 and 3 \(slots of state - 1\)",
    ),
    "two rows with one slot": (
        {"backpointers": torch.ones(2, 5, dtype=torch.int32)},
        "rows 0 and 1 both own slot 1",
    ),
}


@pytest.mark.parametrize("change", REFUSED, ids=str)
def test_refuses_wrong_arguments_and_keeps_the_state(change):
    changes, message = REFUSED[change]
    state = torch.ones(5, 4, 8)
    arguments = {
        "x": torch.zeros(2, 8),
        "weight": torch.zeros(8, 3),
        "state": state,
        "positions": ints(9, 9),
        "backpointers": torch.tensor([[0, 0, 1, 1, 0], [1, 1, 0, 0, 0]], dtype=torch.int32),
        "dilation": 2,
    }
    with pytest.raises(RuntimeError, match=f"depthwise_conv_step: .*{message}"):
        step_of(**(arguments | changes))
    assert (state == 1).all(), "a refused call changes nothing"


@pytest.mark.parametrize("dtype", [*TYPES, torch.float16], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_cuda_equals_plain_loops(cuda, shape, dtype):
    for seed in range(3):
        *tensors, dilation = depthwise_step_arguments(*shape, dtype, seed)
        want, want_window = plain.depthwise_conv_step(*tensors, dilation)
        on_device = [tensor.to(cuda) for tensor in tensors]
        assert_near(step_of(*on_device, dilation), want, dtype)
        assert torch.equal(on_device[2].cpu().double(), want_window)
