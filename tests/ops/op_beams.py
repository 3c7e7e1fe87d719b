"""Decoder slots and beams, managed for the step operators as an engine does."""

import numpy as np
import torch


class Slots:
    """Positions and backpointers of some slots, in the form of the step operators.

    A sequence has as many slots as its beam size. After a step its beam is reordered; the
    backpointers of a new hypothesis are its own slot followed by its parent's backpointers.
    """

    def __init__(self, slots: int, depth: int):
        self.depth = depth
        self.positions = torch.full((slots,), 77, dtype=torch.int32)
        self.backpointers = torch.full((slots, depth), -1, dtype=torch.int32)

    def start(self, rows: list[int]) -> None:
        self.positions[rows] = 0
        self.backpointers[rows] = -1
        for row in rows:
            self.backpointers[row, 0] = row

    def release(self, rows: list[int]) -> None:
        self.backpointers[rows, 0] = -1

    def advance(self, rows: list[int], parents: list[int]) -> None:
        """Row rows[i] extends the hypothesis in row parents[i]."""
        older = self.backpointers[parents, : self.depth - 1].clone()
        self.backpointers[rows, 1:] = older
        self.backpointers[rows, 0] = torch.tensor(rows, dtype=torch.int32)
        self.positions[rows] += 1


class Beams(Slots):
    """Sequences of beam 1 to 4 that start at different steps, are reordered at random, end, and
    leave stale contents in their slots.

    `history` lists for each row that is not idle the step and the row of each of its inputs so
    far, oldest first.
    """

    def __init__(self, slots: int, depth: int, seed: int):
        super().__init__(slots, depth)
        self.random = np.random.default_rng(seed)
        self.step = 0
        self.free = list(range(slots))
        self.sequences: list[tuple[list[int], int]] = []  # rows and last step
        self.history: dict[int, list[tuple[int, int]]] = {}
        self.begin()

    def begin(self) -> None:
        """Starts new sequences in free slots and adds this step's inputs to the histories."""
        self.random.shuffle(self.free)
        while self.free and self.random.random() < 0.7:
            beam = int(self.random.integers(1, 5))
            if beam > len(self.free):
                break
            rows = [self.free.pop() for _ in range(beam)]
            self.start(rows)
            self.sequences.append((rows, self.step + int(self.random.integers(2 * self.depth + 2))))
            self.history |= {row: [] for row in rows}
        self.history = {row: [*past, (self.step, row)] for row, past in self.history.items()}

    def next(self) -> None:
        """Ends some sequences, reorders the beams of the others, and begins the next step."""
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
