"""torch.ops.linnet.beam_inputs and beam_step: CUDA compared with the CPU, whose tests are in
tests/torch/beam_search_test.cc."""

import numpy as np
import pytest
import torch
from torch import Tensor

ops = torch.ops.linnet
MAX_BEAM, RECORD_WORDS = 16, 8
FIELDS = [
    "search",
    "beam",
    "first_row",
    "position",
    "forced",
    "may_end",
    "ngram",
    "repeats",
    "unknown_penalty",
    "temperature",
    "source_tokens",
    "left",
    "silent",
]
PLAN_WORDS = len(FIELDS) + MAX_BEAM
SLOTS, REACH, LONGEST, BLOCKS = 60, 7, 40, 3
SPECIAL = [2, 1, 2, 3]  # start, pad, eos, unk


class Searches:
    """Some searches in separate slots, from their first step on."""

    def __init__(self, rows: int, vocabulary: int, seed: int):
        rng = self.rng = np.random.default_rng(seed)
        slots = rng.permutation(SLOTS)
        self.rows, self.vocabulary = rows, vocabulary
        self.plan = torch.zeros(rows, PLAN_WORDS + BLOCKS, dtype=torch.int32)
        self.floats = self.plan.view(torch.float32)
        self.set(slice(None), search=-1)
        row = number = 0
        while row < rows:
            beam = min(int(rng.choice([1, 2, 5, 5, MAX_BEAM])), rows - row)
            self.set(
                number,
                beam=beam,
                first_row=row,
                forced=-1,
                may_end=1,
                ngram=rng.choice([0, 0, 1, 3]),
                repeats=rng.choice([0, 0, 1, 2]),
                unknown_penalty=rng.choice([0, 1.5]),
                temperature=rng.choice([1, 0.7]),
                source_tokens=9,
            )
            own = torch.from_numpy(slots[row : row + beam])
            self.plan[number, len(FIELDS) : len(FIELDS) + beam] = own.int()
            self.plan[number, PLAN_WORDS:] = number
            self.set(slice(row, row + beam), search=number)
            row, number = row + beam, number + 1
        self.count = number

    def set(self, at, **values) -> None:
        for name, value in values.items():
            is_float = name in ("unknown_penalty", "temperature")
            (self.floats if is_float else self.plan)[at, FIELDS.index(name)] = value

    def at_step(self, position: int) -> Tensor:
        """The plan of this step: two tokens are forced, the second silently, and eos is forbidden
        at first."""
        every = slice(self.count)
        self.set(every, position=position, may_end=int(position > 2), forced=-1, silent=0)
        if position in (3, 4):
            self.set(0, forced=7, silent=int(position == 4))
        return self.plan

    def logits(self) -> Tensor:
        return torch.from_numpy(
            self.rng.normal(size=(self.rows, self.vocabulary)).astype(np.float32) * 3
        )


def new_tables(device: str | torch.device) -> list[Tensor]:
    ints = {"dtype": torch.int32, "device": device}
    return [
        torch.zeros(SLOTS, **ints),
        torch.zeros(SLOTS, device=device),
        torch.zeros(SLOTS, REACH, **ints),
        torch.zeros(2, SLOTS, LONGEST, **ints),
        torch.zeros(SLOTS, 2, **ints),
        torch.zeros(SLOTS, **ints),
    ]


def grammar_of(vocabulary: int, device: str | torch.device) -> list[Tensor]:
    """Classes 0 to 2: 2 may follow only 1, and must follow it."""
    classes = torch.arange(vocabulary, dtype=torch.uint8, device=device) % 3
    transitions = torch.tensor([[0, 1, 256], [256, 256, 0]], dtype=torch.int32, device=device)
    return [classes, transitions, torch.tensor([0, 1], dtype=torch.int32, device=device)]


def step(
    plan: Tensor, logits: Tensor, tables: list[Tensor], grammar: list[Tensor] | None = None
) -> tuple[tuple[Tensor, ...], Tensor]:
    inputs = ops.beam_inputs(plan, tables, SPECIAL, BLOCKS)
    record = torch.full((plan.size(0), RECORD_WORDS), -9, dtype=torch.int32, device=plan.device)
    ops.beam_step(plan, logits, inputs[2], tables, SPECIAL, grammar or [], record)
    return inputs, record


@pytest.mark.parametrize("vocabulary", [40, 1000, 32000, 32001])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("bound", [False, True], ids=["free", "grammar"])
def test_cuda_equals_cpu(cuda, dtype, vocabulary, bound):
    """Twelve steps of the same logits. Sums may differ in the last bits of the normalizer, which
    logits drawn from so many numbers do not let decide anything; of the halves, which are drawn
    from few, the CPU gets the rounded ones."""
    searches = Searches(40, vocabulary, seed=vocabulary)
    tables, cuda_tables = new_tables("cpu"), new_tables(cuda)
    grammar, cuda_grammar = (
        (grammar_of(vocabulary, "cpu"), grammar_of(vocabulary, cuda)) if bound else ([], [])
    )
    for position in range(12):
        plan = searches.at_step(position)
        logits = searches.logits().to(dtype)
        inputs, record = step(plan, logits.float(), tables, grammar)
        cuda_inputs, cuda_record = step(plan.to(cuda), logits.to(cuda), cuda_tables, cuda_grammar)
        for got, want in zip(cuda_inputs, inputs, strict=True):
            torch.testing.assert_close(got.cpu(), want, rtol=0, atol=0)
        cuda_record = cuda_record.cpu()
        for first in (0, 4):  # parent and token; log-probability and sum
            torch.testing.assert_close(
                cuda_record[:, first : first + 2], record[:, first : first + 2], rtol=0, atol=0
            )
            torch.testing.assert_close(
                cuda_record[:, first + 2 : first + 4].contiguous().view(torch.float32),
                record[:, first + 2 : first + 4].contiguous().view(torch.float32),
                rtol=1e-5,
                atol=1e-4,
            )


def test_ended_search_stays_ended():
    """On the CPU, which also checks that the plans above are valid."""
    searches, tables = Searches(40, 50, seed=3), new_tables("cpu")
    ended = torch.zeros(searches.count, dtype=torch.bool)
    for position in range(30):
        _, record = step(searches.at_step(position), searches.logits(), tables)
        for n in range(searches.count):
            beam, first = (int(searches.plan[n, FIELDS.index(f)]) for f in ("beam", "first_row"))
            alive = bool((record[first : first + beam, 1] >= 0).any())
            assert not (ended[n] and alive)
            ended[n] = not alive
    assert ended.any()


def test_targets_follow_the_grammar():
    """On the CPU: a token of class 2 follows every token of class 1 and no other."""
    searches, tables = Searches(40, 50, seed=3), new_tables("cpu")
    grammar = grammar_of(50, "cpu")
    for position in range(12):
        plan = searches.at_step(position)
        every = slice(searches.count)
        searches.set(every, left=20, forced=-1, silent=0, ngram=0, repeats=0, may_end=0)
        inputs, record = step(plan, searches.logits(), tables, grammar)
        last = torch.where(inputs[1] > 0, inputs[0] % 3, 0)
        for row in range(searches.rows):
            token, search = int(record[row, 1]), int(plan[row, FIELDS.index("search")])
            if token < 0:
                continue
            first = int(plan[search, FIELDS.index("first_row")])
            parent = first + int(record[row, 0])
            assert (int(last[parent]) == 1) == (token % 3 == 2)


def test_refuses_plan_of_another_width():
    tables = new_tables("cpu")
    with pytest.raises(RuntimeError, match=f"plan has 5 words a row, needs {PLAN_WORDS + BLOCKS}"):
        ops.beam_inputs(torch.zeros(2, 5, dtype=torch.int32), tables, SPECIAL, BLOCKS)
