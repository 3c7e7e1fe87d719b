"""Models of Marian for tests, what Marian says of them, and readers that share no code with the
importer. marian/make.py made the files."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent / "marian"
ORACLE = json.loads((HERE / "oracle.json").read_text(encoding="utf-8"))
INT8 = "model.ende.intgemm.alphas.bin"
SETTINGS = "special:model.yml"


def folder(name: str, out: Path) -> Path:
    """Copies the model `name` to `out`, with vocabularies; int8 shares those of "shared"."""
    shutil.copytree(HERE / name, out)
    if name == "int8":
        shutil.copy(HERE / "shared" / "vocab.spm", out)
    return out


def scored(name: str) -> list[tuple[list[int], list[int], float]]:
    """Returns sources, targets with the end token, and Marian's sums of log-probabilities."""
    cases = ORACLE[name]
    given = zip(cases["sources"], cases["targets"], cases["scores"], strict=True)
    answers = zip(cases["sources"], cases["greedy"], strict=True)
    return [*given, *((source, answer["ids"], answer["score"]) for source, answer in answers)]


def integers(file: Path) -> dict[str, tuple[np.ndarray, float]]:
    """Returns the int8 weights of Firefox's .bin as [outputs, inputs], the embedding as it is, and
    their multipliers."""
    content = file.read_bytes()
    (count,) = struct.unpack_from("<Q", content, 8)
    headers = [struct.unpack_from("<4Q", content, 16 + 32 * i) for i in range(count)]
    at = 16 + 32 * count
    names, shapes = [], []
    for length, *_ in headers:
        names.append(content[at : at + length - 1].decode())
        at += length
    for _, _, dimensions, _ in headers:
        shapes.append(struct.unpack_from(f"<{dimensions}i", content, at))
        at += 4 * dimensions
    (gap,) = struct.unpack_from("<Q", content, at)
    at += 8 + gap
    found = {}
    for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
        if kind == 0x4101:
            rows, columns = shape if "Wemb" in name else shape[::-1]
            values = np.frombuffer(content, np.int8, rows * columns, at).reshape(rows, columns)
            found[name] = values, struct.unpack_from("<f", content, at + rows * columns)[0]
        at += size
    return found


def shortlist(first: int, candidates: list[list[int]], offset: int = 0) -> bytes:
    """Returns a shortlist file; `offset` is added to the second offset."""
    bounds = np.cumsum([0, *map(len, candidates)]).astype(np.int64)
    bounds[1] += offset
    targets = np.array([token for row in candidates for token in row], "<u4")
    body = struct.pack("<4Q", first, 4, len(bounds), len(targets))
    body += bounds.astype("<i8").tobytes() + targets.tobytes()
    seed, mask = 0, 2**64 - 1
    for (word,) in struct.iter_unpack("<Q", body[: len(body) // 8 * 8]):
        seed ^= (word + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & mask
    return struct.pack("<2Q", 0xF11A48D5013417F5, seed) + body
