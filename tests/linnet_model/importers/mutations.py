"""Damages copies of importer inputs. The same seed gives the same damage."""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

# Values for a damaged setting: other types, limits of ranges, and values that are not finite.
VALUES: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 3, 7, 1000, 2**31, 2**63, -(2**63), 10**30),
    *(0.5, -1.0, 1e308, math.nan, math.inf, "", "x", "1", "\u0000", "ä" * 300, "../x", "[1]"),
    *([], [1], [None], [[]], {}, {"a": 1}, [1, 2, 3] * 50),
]


def mutate_table(table: dict[str, Any], rng: random.Random) -> None:
    """Changes, removes or adds one key of the table or of a nested table."""
    key = rng.choice(sorted(table, key=str))
    if isinstance(table[key], dict) and table[key] and rng.random() < 0.7:
        mutate_table(table[key], rng)
    elif rng.random() < 0.15:
        del table[key]
    elif rng.random() < 0.1:
        table[f"new_{rng.randrange(9)}"] = rng.choice(VALUES)
    elif rng.random() < 0.2:
        table[key] = table[rng.choice(sorted(table, key=str))]
    else:
        table[key] = rng.choice(VALUES)


def mutate_tensors(weights: dict[str, Any], rng: random.Random) -> None:
    """Changes name, shape, type or value of one tensor, or removes it."""
    name = rng.choice(sorted(weights))
    tensor = weights[name]

    def filled(value: float) -> torch.Tensor:
        changed = tensor.detach().clone().float()
        changed.view(-1)[:1].fill_(value)
        return changed

    def removed() -> None:
        del weights[name]

    def renamed() -> None:
        del weights[name]
        weights[name + rng.choice(["x", ".weight", "\u0000"])] = tensor

    changes: list[Callable[[], torch.Tensor | None]] = [
        removed,
        renamed,
        lambda: tensor.reshape(-1),
        lambda: tensor.reshape(1, *tensor.shape),
        lambda: tensor.repeat(2, *[1] * (tensor.dim() - 1)) if tensor.dim() else tensor,
        lambda: tensor[:-1].clone() if tensor.dim() else tensor,
        lambda: tensor[:0].clone() if tensor.dim() else tensor,
        lambda: torch.tensor(1.0),
        lambda: tensor.int(),
        lambda: tensor.bool(),
        lambda: tensor.double(),
        lambda: tensor.half(),
        lambda: tensor.to(torch.complex64),
        lambda: filled(math.nan),
        lambda: filled(-math.inf),
        lambda: filled(1e38),
    ]
    changed = rng.choice(changes)()
    if changed is not None:
        weights[name] = changed.contiguous()


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """Truncates, empties, doubles or fills the bytes, or flips bits."""
    at, length = rng.randrange(len(data) + 1), rng.randrange(1, 64)
    noise = rng.randbytes(length)
    return rng.choice(
        [
            lambda: b"",
            lambda: data[:at],
            lambda: data[:at] + noise + data[at + length :],
            lambda: data[:at] + noise + data[at:],
            lambda: data[:at] + data[at + length :],
            lambda: data[:at] + data[at : at + length] * 2 + data[at + length :],
            lambda: data + data,
        ]
    )()


def mutate_file(file: Path, rng: random.Random) -> None:
    """Changes the bytes of the file, removes it, or replaces it by a folder."""
    if rng.random() < 0.1:
        file.unlink()
        if rng.random() < 0.5:
            file.mkdir()
        return
    file.write_bytes(mutate_bytes(file.read_bytes(), rng))


def mutate_json(file: Path, rng: random.Random) -> None:
    table = json.loads(file.read_text(encoding="utf-8"))
    mutate_table(table, rng)
    file.write_text(json.dumps(table), encoding="utf-8")


def mutate_options(options: argparse.Namespace, rng: random.Random) -> None:
    mutate_table(vars(options), rng)
