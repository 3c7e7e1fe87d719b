"""The progress of a run on a terminal, and its summary."""

from __future__ import annotations

import math
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from .job import Done, Job
from .rows import Answer

_BAR = 24  # characters at most
_LONGEST = 5  # rows
_BIN = 0.1  # of scores


@dataclass
class Summary:
    """What a run did. Times are seconds of the wall clock."""

    rows: int = 0  # of the chunks of this run
    chunks: int = 0
    already_done: int = 0  # chunks that an earlier run did
    decoded: int = 0  # rows; the others were equal to one of these, blank or kept
    kept: int = 0  # rows whose answer is of an earlier bundle
    tokens: int = 0  # of the rows that were decoded
    seconds: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)  # rows, by the code of the error
    warnings: Counter[str] = field(default_factory=Counter)
    cut: int = 0  # rows that reached the limit on target tokens
    longest: list[tuple[int, int]] = field(default_factory=list)  # tokens and number of rows
    lengths: Counter[int] = field(default_factory=Counter)  # rows by their tokens
    scores: Counter[float] = field(default_factory=Counter)  # rows by their score, in steps of 0.1

    def add(self, job: Job, done: Done, table: pa.Table) -> None:
        """Counts a chunk."""
        self.chunks, self.rows = self.chunks + 1, self.rows + len(table)
        self.decoded, self.tokens = self.decoded + done.decoded, self.tokens + done.tokens
        for _, suffix in job.columns.suffixes():
            for error in table["error" + suffix].to_pylist():
                if error is not None:
                    self.errors[error.partition(":")[0]] += 1
            for warnings in table["warnings" + suffix].to_pylist():
                self.warnings.update(warnings)
            self.cut += table["finish_reason" + suffix].to_pylist().count("LENGTH")
            self.kept += sum(it != job.bundle for it in table["bundle" + suffix].to_pylist())
            tokens = table["tokens" + suffix].to_pylist()
            self.lengths.update(tokens)
            scores = [it for it in table["score" + suffix].to_pylist() if it is not None]
            self.scores.update(round(math.floor(it / _BIN) * _BIN, 6) for it in scores)
            numbered = [(count, done.chunk.begin + number) for number, count in enumerate(tokens)]
            self.longest = sorted(self.longest + numbered, key=lambda it: (-it[0], it[1]))[
                :_LONGEST
            ]

    def table(self) -> str:
        """For people."""
        speed = (
            f"{_rate(self.rows, self.seconds)} rows/s, {_rate(self.tokens, self.seconds)} tokens/s"
        )
        lines = [
            ("rows", f"{self.rows:,} in {self.chunks:,} chunks ({self.already_done:,} were done)"),
            ("decoded", f"{self.decoded:,} rows, {self.tokens:,} tokens"),
            ("kept", f"{self.kept:,} rows of an earlier bundle"),
            ("time", f"{self.seconds:.1f} s: {speed}"),
            ("cut", f"{self.cut:,} rows at the limit on target tokens"),
            ("errors", _counts(self.errors)),
            ("warnings", _counts(self.warnings)),
            ("longest", ", ".join(f"row {row} ({count} tokens)" for count, row in self.longest)),
        ]
        return "\n".join(f"{name:9} {said}" for name, said in lines)


def _rate(count: int, seconds: float) -> str:
    return f"{count / seconds:,.0f}" if seconds else "-"


def _counts(found: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(found.items())) or "none"


class Bar:
    """Rows, speed, time left and errors, on standard error if that is a terminal. An engine has a
    display of its own."""

    def __init__(self, total: int, has_engine: bool = False):
        self._total, self._is_shown = total, sys.stderr.isatty() and not has_engine
        self._rows = self._decoded = self._tokens = self._errors = 0
        self._begin = self._shown = time.monotonic()

    def came(self, answer: Answer) -> None:
        """A row of the chunk that is being translated has its answer."""
        self._decoded, self._tokens = self._decoded + 1, self._tokens + answer.tokens
        self._errors += answer.error is not None
        self._show()

    def chunk(self, summary: Summary) -> None:
        """A chunk is committed; some of its rows were not decoded."""
        self._rows, self._decoded = summary.rows, 0
        self._tokens, self._errors = summary.tokens, summary.errors.total()
        self._show()

    def seconds(self) -> float:
        return time.monotonic() - self._begin

    def _show(self) -> None:
        """One line of the terminal, however narrow that is now, five times a second at most."""
        now = time.monotonic()
        if not self._is_shown or now - self._shown <= 0.2:
            return
        self._shown, seconds = now, now - self._begin
        rows = min(self._rows + self._decoded, self._total)
        columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        minutes, left = divmod(round(seconds / rows * (self._total - rows)), 60)
        eta = f"ETA {minutes // 60}:{minutes % 60:02}:{left:02}"
        speed = f"{_rate(rows, seconds)} rows/s {_rate(self._tokens, seconds)} tokens/s"
        said = f"{rows:,}/{self._total:,} {eta} {self._errors:,} errors {speed}"
        width = min(columns - len(said) - 4, _BAR)
        if width > 0:
            said = f"[{'#' * (width * rows // self._total):{width}}] {said}"
        print(f"\r{said[: columns - 1]}\x1b[K", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def plot(summary: Summary, folder: Path) -> None:
    """Writes lengths.svg and scores.svg, histograms of the rows of a run. Needs matplotlib."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    for name, width, label in (("lengths", 1, "tokens of the target"), ("scores", _BIN, "score")):
        counts = getattr(summary, name)
        figure = Figure(figsize=(6, 3), layout="constrained")
        axes = figure.subplots()
        axes.bar(list(counts), list(counts.values()), width=width, align="edge")
        axes.set(xlabel=label, ylabel="rows")
        figure.savefig(folder / f"{name}.svg")
