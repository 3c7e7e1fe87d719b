"""ssru_step against plain loops."""

import op_reference as plain
import pytest
import torch
from op_beams import Beams
from op_cases import assert_near, ints, numbers, ssru_arguments
from torch import Tensor

TYPES = [torch.float32, torch.bfloat16]
SHAPES = [(1, 16), (5, 512), (7, 130), (6, 21), (6, 1), (160, 64)]  # (rows, channels)
SHAPE_NAMES = ["x".join(map(str, shape)) for shape in SHAPES]
step_of = torch.ops.linnet.ssru_step


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_equals_plain_loops(shape, dtype):
    for seed in range(3):
        projected, state, *indices = ssru_arguments(*shape, dtype, seed)
        want, want_state = plain.ssru_step(projected, state, *indices)
        got = step_of(projected, state, *indices)
        assert got.dtype == dtype
        assert_near(got, want, dtype)
        assert_near(state, want_state, torch.float32)


def test_gates_saturate_without_overflow():
    state = torch.full((2, 1, 4), 3.0)
    projected = torch.tensor([[5.0, 5.0, 5.0, 5.0, 1e30, -1e30, 88.8, -88.8]])
    backpointers = torch.zeros(1, 2, dtype=torch.int32)
    y = step_of(projected, state, ints(1), backpointers)
    assert y.tolist() == [[3.0, 5.0, 3.0, 5.0]]  # all of the past, or nothing of it


def test_accepts_no_rows():
    backpointers = torch.zeros(0, 2, dtype=torch.int32)
    assert step_of(torch.zeros(0, 16), torch.zeros(2, 0, 8), ints(), backpointers).shape == (0, 8)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_steps_of_reordered_beams_equal_whole_sequences(dtype):
    """The last output of a hypothesis equals that of its inputs alone, bit for bit."""
    slots, channels = 9, 36
    projected = numbers(3, 60, slots, 2 * channels, dtype=dtype)
    state = numbers(2, 2, slots, channels) * 1000  # stale contents
    beams, checked = Beams(slots, 2, seed=1), 0
    own = torch.zeros(1, 2, dtype=torch.int32)
    for step in range(60):
        y = step_of(projected[step], state, beams.positions, beams.backpointers)
        assert not y[beams.idle].any()
        for row, history in beams.history.items():
            alone = torch.zeros(2, 1, channels)
            for position, (when, where) in enumerate(history):
                last = step_of(projected[when, where][None], alone, ints(position), own)
            assert torch.equal(y[row], last[0])
            checked += 1
        beams.next()
    assert checked > 200


def test_is_batch_invariant():
    projected, state, positions, backpointers = ssru_arguments(12, 130)
    whole = step_of(projected, state.clone(), positions, backpointers)
    for row in range(12):
        one = slice(row, row + 1)
        alone = step_of(projected[one], state.clone(), positions[one], backpointers[one])
        assert torch.equal(alone[0], whole[row])


def test_accepts_non_contiguous_inputs():
    projected, state, positions, backpointers = ssru_arguments(6, 20)
    want = step_of(projected, state.clone(), positions, backpointers)

    def scattered(tensor: Tensor) -> Tensor:
        return torch.stack([tensor, tensor], -1)[..., 0]

    got = step_of(scattered(projected), state, scattered(positions), scattered(backpointers))
    assert torch.equal(got, want)


REFUSED = {
    "float16 on the cpu": ({"projected": torch.zeros(2, 16).half()}, "projected is Half on cpu"),
    "state in half precision": (
        {"state": torch.zeros(2, 4, 8).bfloat16()},
        "state is BFloat16 on cpu, needs Float on cpu",
    ),
    "projected of three dimensions": (
        {"projected": torch.zeros(1, 2, 16)},
        r"needs 2 dimensions \[R, 2C\]",
    ),
    "projected without gates": (
        {"projected": torch.zeros(2, 8)},
        r"projected has shape \[2, 8\], dimension 1 \(2C\) must be 16 as in state",
    ),
    "state of three steps": ({"state": torch.zeros(3, 4, 8)}, "must be 2 as in the formula"),
    "state that is not contiguous": (
        {"state": torch.zeros(4, 2, 8).transpose(0, 1)},
        "must be contiguous: it is changed in place",
    ),
    "int64 positions": ({"positions": torch.tensor([0, 0])}, "positions is Long, needs int32"),
    "a single backpointer": (
        {"backpointers": torch.zeros(2, 1, dtype=torch.int32)},
        "needs at least 2 .the positions in state. slots per row",
    ),
    "a negative position": ({"positions": ints(0, -1)}, r"positions\[1\] is -1, must be at least"),
    "a slot that does not exist": (
        {"backpointers": torch.tensor([[0, 4], [1, 1]], dtype=torch.int32)},
        r"backpointers\[0, 1\] is 4, must lie between 0 and 3 \(slots of state - 1\)",
    ),
    "two rows with one slot": (
        {"backpointers": torch.ones(2, 2, dtype=torch.int32)},
        "rows 0 and 1 both own slot 1",
    ),
}


@pytest.mark.parametrize("change", REFUSED, ids=str)
def test_refuses_wrong_arguments_and_keeps_the_state(change):
    changes, message = REFUSED[change]
    state = torch.ones(2, 4, 8)
    arguments = {
        "projected": torch.zeros(2, 16),
        "state": state,
        "positions": ints(9, 9),
        "backpointers": torch.tensor([[0, 1], [1, 0]], dtype=torch.int32),
    }
    with pytest.raises(RuntimeError, match=f"ssru_step: .*{message}"):
        step_of(**(arguments | changes))
    assert (state == 1).all(), "a refused call changes nothing"


@pytest.mark.parametrize("dtype", [*TYPES, torch.float16], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_cuda_equals_plain_loops(cuda, shape, dtype):
    for seed in range(3):
        tensors = ssru_arguments(*shape, dtype, seed)
        want, want_state = plain.ssru_step(*tensors)
        on_device = [tensor.to(cuda) for tensor in tensors]
        assert_near(step_of(*on_device), want, dtype)
        assert_near(on_device[1], want_state, torch.float32)
