"""dynamic_conv_step and light_conv_step against plain loops, whole sequences and fairseq."""

import json

import numpy as np
import op_reference as plain
import pytest
import torch
from op_beams import Beams, Slots
from op_cases import assert_near, ints, numbers, step_arguments
from op_convolution_test import ORACLE
from torch import Tensor

STEPS = {True: torch.ops.linnet.dynamic_conv_step, False: torch.ops.linnet.light_conv_step}
WHOLE = {True: torch.ops.linnet.dynamic_conv, False: torch.ops.linnet.light_conv}

both = pytest.mark.parametrize("dynamic", [True, False], ids=["dynamic", "light"])
# (rows, channels, heads, width)
SHAPES = [
    (1, 16, 1, 3),
    (6, 24, 24, 5),  # one channel per head
    (5, 512, 8, 31),  # the base model's layer, beam 5
    (7, 130, 2, 15),  # 65 channels per head: vectors and a rest
    (12, 64, 1, 7),  # one head
    (6, 21, 7, 9),  # 3 channels per head, an uncommon width
    (4, 12, 2, 1),  # a single tap
    (6, 96, 3, 63),
    (6, 640, 640, 31),  # more taps than fit into a block of a GPU
]
SHAPE_NAMES = ["x".join(map(str, shape)) for shape in SHAPES]
TYPES = [torch.float32, torch.bfloat16]


@both
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_equals_plain_loops(shape, dtype, dynamic):
    for seed in range(3):
        x, weight, state, *indices = step_arguments(*shape, dynamic, dtype, seed)
        want, want_window = plain.conv_step(x, weight, state, *indices)
        got = STEPS[dynamic](x, weight, state, *indices)
        assert got.dtype == dtype
        assert got.shape == x.shape
        assert_near(got, want, dtype)
        assert torch.equal(state.double(), want_window)


@both
def test_accepts_no_rows(dynamic):
    weight = torch.zeros(0, 2, 3) if dynamic else torch.zeros(2, 3)
    state = torch.zeros(3, 0, 8)
    backpointers = torch.zeros(0, 3, dtype=torch.int32)
    assert STEPS[dynamic](torch.zeros(0, 8), weight, state, ints(), backpointers).shape == (0, 8)


@both
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("width", [1, 3, 7, 31])
def test_steps_of_reordered_beams_equal_whole_sequences(width, dtype, dynamic):
    """The last output of a hypothesis equals that of its whole input sequence, bit for bit."""
    slots, channels, heads = 9, 36, 3
    state = numbers(1, width, slots, channels, dtype=dtype) * 1000  # stale contents
    light_weight = numbers(2, heads, width, dtype=dtype)
    x = numbers(3, 60, slots, channels, dtype=dtype)
    scores = numbers(4, 60, slots, heads, width, dtype=dtype)
    beams = Beams(slots, width, seed=width)
    checked = 0
    for step in range(60):
        weight = scores[step] if dynamic else light_weight
        y = STEPS[dynamic](x[step], weight, state, beams.positions, beams.backpointers)
        assert not y[beams.idle].any()
        for row, history in beams.history.items():
            steps, rows = zip(*history, strict=True)
            own = scores[steps, rows][None] if dynamic else light_weight
            whole = WHOLE[dynamic](x[steps, rows][None], own, ints(len(history)), width - 1)
            assert torch.equal(y[row], whole[0, -1])
            checked += 1
        beams.next()
    assert checked > 200


def fairseq_cases():
    index = json.loads((ORACLE / "modules.json").read_text())
    return [pytest.param(case, id=case["name"]) for case in index["cases"] if case["causal"]]


@pytest.mark.parametrize("case", fairseq_cases())
def test_equals_fairseq_step_by_step(case):
    with np.load(ORACLE / "modules.npz", allow_pickle=False) as arrays:
        fields = {
            field: torch.from_numpy(arrays[f"{case['name']}.{field}"])
            for field in ("x", "weight", "y_incremental")
        }
        order = arrays[f"{case['name']}.new_order"].tolist()
    x, weight = fields["x"], fields["weight"]
    time, batch, channels = x.shape
    dynamic = case["kind"] == "dynamic"
    rows = list(range(batch))
    state = numbers(5, case["K"], batch, channels)
    slots = Slots(batch, case["K"])
    slots.start(rows)
    for t in range(time):
        if t > 0:
            slots.advance(rows, order if t == case["reorder_before_step"] else rows)
        if dynamic:
            scores = torch.nn.functional.linear(x[t], weight).view(batch, case["H"], case["K"])
        else:
            scores = weight[:, 0]
        y = STEPS[dynamic](x[t], scores, state, slots.positions, slots.backpointers)
        # 1e-5: fairseq and this each differ from float64 by less than 1e-6
        torch.testing.assert_close(y, fields["y_incremental"][t], atol=1e-5, rtol=0)


@both
def test_is_batch_invariant(dynamic):
    x, weight, state, positions, backpointers = step_arguments(12, 130, 2, 31, dynamic)
    whole = STEPS[dynamic](x, weight, state.clone(), positions, backpointers)
    for row in range(12):
        own = weight[row : row + 1] if dynamic else weight
        one = slice(row, row + 1)
        alone = STEPS[dynamic](x[one], own, state.clone(), positions[one], backpointers[one])
        assert torch.equal(alone[0], whole[row])


@both
def test_accepts_non_contiguous_inputs(dynamic):
    x, weight, state, positions, backpointers = step_arguments(6, 20, 4, 5, dynamic)
    want = STEPS[dynamic](x, weight, state.clone(), positions, backpointers)

    def scattered(tensor: Tensor) -> Tensor:
        return torch.stack([tensor, tensor], -1)[..., 0]

    arguments = [scattered(tensor) for tensor in (x, weight, positions, backpointers)]
    assert not any(tensor.is_contiguous() for tensor in arguments)
    got = STEPS[dynamic](arguments[0], arguments[1], state, *arguments[2:])
    assert torch.equal(got, want)


REFUSED = {
    "float16 on the cpu": ({"x": torch.zeros(2, 8).half()}, "x is Half on cpu; supported are"),
    "state of another type": ({"state": torch.zeros(3, 4, 8).bfloat16()}, "state is BFloat16"),
    "x of three dimensions": ({"x": torch.zeros(1, 2, 8)}, r"needs 2 dimensions \[R, C\]"),
    "weight of another row count": ({"weight": torch.zeros(3, 2, 3)}, r"dimension 0 \(R\) must be"),
    "state of another width": ({"state": torch.zeros(5, 4, 8)}, r"\(K\) must be 3 as in weight"),
    "state of other channels": ({"state": torch.zeros(3, 4, 9)}, r"\(C\) must be 8 as in x"),
    "state that is not contiguous": (
        {"state": torch.zeros(4, 3, 8).transpose(0, 1)},
        "must be contiguous: it is changed in place",
    ),
    "an even width": (
        {"weight": torch.zeros(2, 2, 2), "state": torch.zeros(2, 4, 8)},
        "filter width is 2, must be odd",
    ),
    "uneven heads": ({"weight": torch.zeros(2, 3, 3)}, "8 channels do not fall into 3 heads"),
    "int64 positions": ({"positions": torch.tensor([0, 0])}, "positions is Long, needs int32"),
    "positions of another row count": ({"positions": ints(0)}, r"positions has shape \[1\]"),
    "backpointers shorter than the width": (
        {"backpointers": torch.zeros(2, 2, dtype=torch.int32)},
        "needs at least 3 .the positions in state. slots per row",
    ),
    "a negative position": (
        {"positions": ints(0, -1)},
        r"positions\[1\] is -1, must be at least 0",
    ),
    "a slot that does not exist": (
        {"backpointers": torch.tensor([[0, 4, 0], [1, 1, 1]], dtype=torch.int32)},
        r"backpointers\[0, 1\] is 4, must lie between 0 and 3",
    ),
    "a negative slot": (
        {"backpointers": torch.tensor([[0, 0, -1], [1, 1, 1]], dtype=torch.int32)},
        r"backpointers\[0, 2\] is -1, must lie between 0 and 3",
    ),
    "an own slot below -1": (
        {"backpointers": torch.tensor([[-2, 0, 0], [1, 1, 1]], dtype=torch.int32)},
        r"backpointers\[0, 0\] is -2, .* or be -1 for an idle row",
    ),
    "two rows with one slot": (
        {"backpointers": torch.tensor([[1, 0, 0], [1, 1, 1]], dtype=torch.int32)},
        "rows 0 and 1 both own slot 1",
    ),
}


@pytest.mark.parametrize("change", REFUSED, ids=str)
def test_dynamic_conv_step_refuses_wrong_arguments_and_keeps_the_state(change):
    changes, message = REFUSED[change]
    state = torch.ones(3, 4, 8)
    arguments = {
        "x": torch.zeros(2, 8),
        "weight": torch.zeros(2, 2, 3),
        "state": state,
        "positions": ints(9, 9),
        "backpointers": torch.tensor([[0, 0, 1], [1, 1, 0]], dtype=torch.int32),
    }
    with pytest.raises(RuntimeError, match=message):
        torch.ops.linnet.dynamic_conv_step(**(arguments | changes))
    assert (state == 1).all(), "a refused call changes nothing"


@both
@pytest.mark.parametrize("dtype", [*TYPES, torch.float16], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_cuda_equals_plain_loops(cuda, shape, dtype, dynamic):
    for seed in range(3):
        x, weight, state, *indices = step_arguments(*shape, dynamic, dtype, seed)
        want, want_window = plain.conv_step(x, weight, state, *indices)
        on_device = state.to(cuda)
        got = STEPS[dynamic](
            x.to(cuda), weight.to(cuda), on_device, *(index.to(cuda) for index in indices)
        )
        assert_near(got, want, dtype)
        assert torch.equal(on_device.cpu().double(), want_window)


def test_cuda_step_can_be_captured_in_a_graph(cuda):
    arguments = [tensor.to(cuda) for tensor in step_arguments(6, 64, 4, 7, True)]
    x, weight, state, *indices = arguments
    want_window = state.clone()
    want = torch.ops.linnet.dynamic_conv_step(x, weight, want_window, *indices)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = torch.ops.linnet.dynamic_conv_step(x, weight, state, *indices)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(got, want)
    assert torch.equal(state, want_window)
