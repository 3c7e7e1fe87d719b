"""Runs of the step operators: successive positions in one step (convolution_step.h).

The law: however a sequence is cut into runs, its outputs and the state have the bits of single
steps.
"""

import random
from collections.abc import Callable

import pytest
import torch
from op_cases import numbers
from torch import Tensor

ops = torch.ops.linnet
CHANNELS, HEADS, SLOTS, LENGTH = 144, 4, 7, 40  # blocks of 64 channels and a rest
Step = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]  # x, state, positions, backpointers


def dynamic(width: int) -> Step:
    taps = numbers(1, HEADS * width, CHANNELS) * CHANNELS**-0.5

    def step(x: Tensor, state: Tensor, *indices: Tensor) -> Tensor:
        scores = torch.stack([taps.to(x.dtype) @ row for row in x[:, :CHANNELS]])
        weight = scores.view(-1, HEADS, width)
        return ops.dynamic_conv_step(x[:, :CHANNELS], weight, state, *indices)

    return step


def light(width: int) -> Step:
    weight = numbers(1, HEADS, width)
    return lambda x, state, *indices: ops.light_conv_step(
        x[:, :CHANNELS], weight.to(x.dtype), state, *indices
    )


def depthwise(width: int, dilation: int) -> Step:
    weight = numbers(1, CHANNELS, width)
    return lambda x, state, *indices: ops.depthwise_conv_step(
        x[:, :CHANNELS], weight.to(x.dtype), state, *indices, dilation
    )


def attention(neighbour_heads: int) -> Step:
    return lambda x, state, *indices: ops.self_attention_step(
        *x.chunk(3, dim=-1), state, *indices, HEADS, neighbour_heads
    )


def gated(width: int) -> Step:
    taps = numbers(1, HEADS * width, CHANNELS) * CHANNELS**-0.5
    return lambda x, state, *indices: ops.gated_conv_step(
        x[:, : 2 * CHANNELS], taps.to(x.dtype), HEADS, state, *indices
    )


def ssru(x: Tensor, state: Tensor, *indices: Tensor) -> Tensor:
    return ops.ssru_step(x[:, : 2 * CHANNELS], state, *indices)


# The operator, the positions of its state, and the shape of an entry.
CASES = {
    "dynamic, width 1": (dynamic(1), 1, (CHANNELS,)),
    "dynamic, width 5": (dynamic(5), 5, (CHANNELS,)),
    "light, width 31": (light(31), 31, (CHANNELS,)),
    "depthwise, width 3": (depthwise(3, 1), 3, (CHANNELS,)),
    "depthwise, dilation 4": (depthwise(5, 4), 17, (CHANNELS,)),
    "gated, width 7": (gated(7), 7, (CHANNELS,)),
    "attention, whole": (attention(1), LENGTH, (2, CHANNELS)),
    "attention, window 6": (attention(1), 6, (2, CHANNELS)),
    "attention, neighbours": (attention(3), 6, (2, CHANNELS)),
    "ssru": (ssru, 2, (CHANNELS,)),
}


def new_state(depth: int, entry: tuple[int, ...], dtype: torch.dtype, step: Step) -> Tensor:
    kind = torch.float32 if step is ssru else dtype
    return numbers(5, depth, SLOTS, *entry, dtype=kind) * 1000  # stale contents


def take(
    step: Step, state: Tensor, inputs: Tensor, rows: list[tuple[int, int]]
) -> list[tuple[tuple[int, int], Tensor]]:
    """One step of these rows, each a slot (-1: idle) and a position. inputs: [slots, T, 3 C]."""
    slots, positions = (
        torch.tensor(column, dtype=torch.int32) for column in zip(*rows, strict=True)
    )
    backpointers = slots.unsqueeze(1).repeat(1, max(2, state.size(0)))
    x = inputs[slots.long(), positions.long()]
    return list(zip(rows, step(x, state, positions, backpointers), strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_runs_have_the_bits_of_single_steps(case, dtype):
    step, depth, entry = CASES[case]
    inputs = numbers(6, SLOTS, LENGTH, 3 * CHANNELS, dtype=dtype)
    single = new_state(depth, entry, dtype, step)
    want = {}
    for position in range(LENGTH):
        want.update(take(step, single, inputs, [(slot, position) for slot in range(SLOTS)]))
    for seed in range(3):
        chance = random.Random(seed)
        state, taken, got = new_state(depth, entry, dtype, step), [0] * SLOTS, {}
        while min(taken) < LENGTH:
            rows = []
            for slot in chance.sample(range(SLOTS), SLOTS):
                count = min(chance.choice([0, 1, 1, 2, 5, LENGTH]), LENGTH - taken[slot])
                rows += [(slot, taken[slot] + i) for i in range(count)]
                rows += [(-1, 0)] * chance.choice([0, 0, 2])
                taken[slot] += count
            if rows:
                got.update(take(step, state, inputs, rows))
        assert not got.pop((-1, 0), torch.zeros(1)).any()
        assert got.keys() == want.keys()
        assert all(torch.equal(got[row], want[row]) for row in want)
        assert torch.equal(state, single)


def test_rows_of_a_run_share_the_history():
    """A row of a run that reads other slots than the row before it is refused."""
    state, x = torch.zeros(3, 4, 8), torch.zeros(2, 8)
    positions = torch.tensor([5, 6], dtype=torch.int32)
    for history, fits in (([1, 1, 3], True), ([1, 3, 3], False), ([1, 1, 2], False)):
        backpointers = torch.tensor([[1, 3, 2], history], dtype=torch.int32)
        arguments = (x, torch.zeros(2, 2, 3), state, positions, backpointers)
        if fits:
            ops.dynamic_conv_step(*arguments)
            continue
        with pytest.raises(RuntimeError, match=r"rows 0 and 1 both own slot 1; .* unless it is"):
            ops.dynamic_conv_step(*arguments)
