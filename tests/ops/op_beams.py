"""Decoder lanes and the beams in them: what an engine does with the step operators."""

import numpy as np
import torch


class Slots:
    """Positions and ancestry of some lanes, as the step operators take them.

    Each sequence holds as many lanes as its beam is wide. After a step its beam is reordered, and
    the ancestry of each new hypothesis is its parent's with its own lane before it.
    """

    def __init__(self, slots: int, depth: int):
        self.depth = depth
        self.positions = torch.full((slots,), 77, dtype=torch.int32)
        self.backpointers = torch.full((slots, depth), -1, dtype=torch.int32)

    def slot_of(self, rows: list[int]) -> None:
        self.positions[rows] = 0
        self.backpointers[rows] = -1
        for row in rows:
            self.backpointers[row, 0] = row

    def release(self, rows: list[int]) -> None:
        self.backpointers[rows, 0] = -1

    def advance(self, rows: list[int], parents: list[int]) -> None:
        """Row rows[i] goes on from the hypothesis in row parents[i]."""
        older = self.backpointers[parents, : self.depth - 1].clone()
        self.backpointers[rows, 1:] = older
        self.backpointers[rows, 0] = torch.tensor(rows, dtype=torch.int32)
        self.positions[rows] += 1


class Beams(Slots):
    """Sequences of beam 1 to 4 that join at different steps, are reordered at random, end, and
    leave their lanes with stale contents to others.

    `history` has, for each row that is not idle, where its inputs so far were given to the
    operator, oldest first: the number of the step and the row.
    """

    def __init__(self, slots: int, depth: int, seed: int):
        super().__init__(slots, depth)
        self.random = np.random.default_rng(seed)
        self.step = 0
        self.free = list(range(slots))
        self.sequences: list[tuple[list[int], int]] = []  # rows, and the step that is the last
        self.history: dict[int, list[tuple[int, int]]] = {}
        self.begin()

    def begin(self) -> None:
        """Newcomers take lanes; the inputs of this step belong to every row's history."""
        self.random.shuffle(self.free)
        while self.free and self.random.random() < 0.7:
            beam = int(self.random.integers(1, 5))
            if beam > len(self.free):
                break
            rows = [self.free.pop() for _ in range(beam)]
            self.slot_of(rows)
            self.sequences.append((rows, self.step + int(self.random.integers(2 * self.depth + 2))))
            self.history |= {row: [] for row in rows}
        self.history = {row: [*past, (self.step, row)] for row, past in self.history.items()}

    def next(self) -> None:
        """Some sequences end, the others' beams are reordered, and the next step begins."""
        for rows, last in list(self.sequences):
            if self.step == last:
                self.sequences.remove((rows, last))
                self.release(rows)
                self.free += rows
                for row in rows:
                    del self.history[row]
            else:
                parents = [int(parent) for parent in self.random.choice(rows, len(rows))]
                self.advance(rows, parents)
                self.history |= {
                    row: self.history[parent] for row, parent in zip(rows, parents, strict=True)
                }
        self.step += 1
        self.begin()

    @property
    def idle(self) -> list[int]:
        return [row for row in range(len(self.positions)) if row not in self.history]
