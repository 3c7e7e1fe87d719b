"""Output of a training: statistics of the data, progress and the log."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from linnet_model.new_file import new_file, writing
from linnet_model.train.datasets import PairDataset

PROGRESS_SECONDS = 30.0  # interval between lines of progress without a terminal


class Log:
    """Writes one JSON object per line to log.jsonl, and the same numbers to tensorboard if
    requested."""

    def __init__(self, folder: Path, tensorboard: bool, update: int = 0):
        """Removes the lines after `update`, the last checkpoint: a resumed training writes them
        again."""
        self.path = folder / "log.jsonl"
        if self.path.exists():
            kept = [s for s in whole_lines(self.path) if json.loads(s)["update"] <= update]
            with new_file(self.path) as partial:
                partial.write_text("".join(kept), encoding="utf-8")
        self.file = self.path.open("a", encoding="utf-8")
        self.writer: Any = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(str(folder / "tensorboard"), purge_step=update + 1)

    def forget(self, kind: str, update: int) -> None:
        """Removes the line of this kind at this update, if there is one: it is written again."""

        def is_kept(line: str) -> bool:
            entry = json.loads(line)
            return (entry["kind"], entry["update"]) != (kind, update)

        lines = list(whole_lines(self.path))
        kept = list(filter(is_kept, lines))
        if len(kept) < len(lines):
            self.file.close()
            with new_file(self.path) as partial:
                partial.write_text("".join(kept), encoding="utf-8")
            self.file = self.path.open("a", encoding="utf-8")

    def write(self, kind: str, update: int, values: dict[str, Any]) -> None:
        with writing(self.path):
            self.file.write(
                json.dumps({"kind": kind, "update": update, **values}, ensure_ascii=False) + "\n"
            )
            self.file.flush()
        if self.writer is not None:
            for name, value in values.items():
                if isinstance(value, (int, float)):
                    self.writer.add_scalar(f"{kind}/{name}", value, update)

    def close(self) -> None:
        with writing(self.path):
            self.file.close()
        if self.writer is not None:
            self.writer.close()


def whole_lines(path: Path) -> Iterable[str]:
    """Yields all lines but an incomplete last one, left by a killed training."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield line


def has_ended(run: Path, update: int) -> bool:
    """Returns whether the log of a run folder ends with the end of the training at `update`."""
    path = run / "log.jsonl"
    last = deque(whole_lines(path) if path.is_file() else (), maxlen=1)
    return [json.loads(line) for line in last] == [{"kind": "end", "update": update}]


class Progress:
    """A progress bar on a terminal, else a line every PROGRESS_SECONDS; both show the time left."""

    def __init__(self, update: int, updates: int):
        self.first, self.updates = update, updates
        self.begin = self.last_line = time.monotonic()
        self.bar = None
        if sys.stderr.isatty():
            self.bar = tqdm(total=updates, initial=update, unit="update", mininterval=5.0)

    def expect(self, updates: int) -> None:
        """Changes the number of updates, of a training whose length is a time."""
        self.updates = updates
        if self.bar is not None:
            self.bar.total = updates

    def advance(self) -> None:
        if self.bar is not None:
            self.bar.update()

    def log(self, update: int, nll: float, tokens_per_second: float) -> None:
        now = time.monotonic()
        if self.bar is not None:
            self.bar.set_postfix(nll=f"{nll:.3f}", tokens_s=f"{tokens_per_second:.0f}")
        elif now - self.last_line >= PROGRESS_SECONDS:
            left = (now - self.begin) / (update - self.first) * (self.updates - update)
            self.say(progress_line(update, self.updates, nll, tokens_per_second, left))
            self.last_line = now

    def say(self, line: str) -> None:
        tqdm.write(line, file=sys.stderr)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def progress_line(
    update: int, updates: int, nll: float, tokens_per_second: float, seconds_left: float
) -> str:
    return (
        f"update {update:,} of {updates:,} ({100 * update // updates} %), "
        f"{nll:.3f} nats per token, {tokens_per_second:,.0f} tokens/s, "
        f"{duration(seconds_left)} left"
    )


def duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def statistics_table(name: str, dataset: PairDataset, shares: dict[str, float]) -> list[str]:
    """Returns a table of rows, tokens and lengths of each domain."""
    head = ("rows", "share", "source tokens", "target tokens", "longest", "left out")
    lines = [f"{name:14}" + "".join(f"{column:>15}" for column in head)]
    for domain, facts in dataset.statistics().items():
        rows = dataset.rows_of[domain]
        longest = f"{dataset.source_lengths[rows].max()} / {dataset.target_lengths[rows].max()}"
        cells = (
            f"{facts['rows']:,}",
            f"{shares.get(domain, 1.0):g}",
            f"{facts['source_tokens']:,}",
            f"{facts['target_tokens']:,}",
            longest,
            f"{facts['dropped_as_too_long']:,}",
        )
        lines.append(f"{domain:14}" + "".join(f"{cell:>15}" for cell in cells))
    return lines
