"""Reads the tensors of Marian's binary format: the .bin files of Firefox Translations, and those
that `marian-conv` writes.

    u64 version = 1, u64 n
    n × { u64 name_length (with its NUL), u64 type, u64 shape_length, u64 data_length }
    n × name;  n × i32 shape[shape_length];  u64 gap;  gap bytes
    n × data[data_length]

All numbers are little-endian. An int8 item of E elements has E bytes, then its multiplier as
float32, then padding: the weights are int8 / multiplier, where the multiplier is 127 / the largest
weight. Matrices are stored transposed, except for those with "Wemb" in their name.

Every size is checked against the file before it is used. Layouts that are made for one processor
(FBGEMM, prepared intgemm) are refused by name.

Source: src/common/binary.cpp and types.h of browsermt/marian-dev and marian-nmt/marian-dev.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from linnet_model.network.model_config import ConfigError, require

VERSION = 1
MAX_ITEMS = 1 << 14  # 256 layers have some thousand
MAX_NAME = 256
MAX_DIMENSIONS = 8

FLOAT32, INT8, FORK_INT8, MAINLINE_INT8 = 0x0404, 0x0101, 0x4101, 0x10001
QUANTISED = (FORK_INT8, MAINLINE_INT8)
READ = "float32, int8 and intgemm8"

Array = NDArray[np.generic]


class Bytes:
    """The content of a file, read from front to back."""

    def __init__(self, file: Path, content: bytes):
        self.file, self.content, self.position = file, content, 0

    def take(self, count: int, what: str) -> bytes:
        left = len(self.content) - self.position
        if count > left:
            raise ConfigError(
                f"{self.file} ends in {what}: {count} bytes are needed, {left} are left"
            )
        self.position += count
        return self.content[self.position - count : self.position]

    def numbers(self, kind: str, count: int, what: str) -> tuple[int, ...]:
        """`kind`: the letter of struct, Q for u64, i for i32."""
        form = f"<{count}{kind}"
        return struct.unpack(form, self.take(struct.calcsize(form), what))


def type_name(kind: int) -> str:
    """Describes a type that is not read."""
    for bit, name in (
        (0x0800, "packed for FBGEMM"),
        (0x1000, "prepared for one processor"),
        (0x2000, "prepared for one processor"),
    ):
        if kind & bit:
            return name
    return {0x4102: "intgemm16", 0x0402: "float16", 0x0408: "float64"}.get(kind, "unknown")


@dataclass
class Item:
    """The place of an item in a file."""

    name: str
    kind: int
    shape: tuple[int, ...]
    length: int  # bytes of its data, with padding


def has_int8_matrices(file: Path) -> bool:
    """Returns whether all matrices of weights in the file are int8, so that a bundle in int8 has
    its weights unchanged."""
    items = read_items(Bytes(file, file.read_bytes()))
    matrices = [item for item in items if len(item.shape) == 2 and min(item.shape) > 1]
    return all(item.kind in QUANTISED for item in matrices)


def read_binary(file: Path) -> dict[str, Array]:
    """Returns the items by name in the shapes that the file gives, matrices of weights in float32
    as [inputs, outputs], and bytes (the configuration) as int8."""
    read = Bytes(file, file.read_bytes())
    found = {}
    for item in read_items(read):
        data = read.take(item.length, f"the data of {item.name}")
        found[item.name] = read_item(file, item.name, item.kind, item.shape, data)
    left = len(read.content) - read.position
    if left:
        raise ConfigError(f"{file} has {left} bytes behind its last item")
    return found


def read_items(read: Bytes) -> list[Item]:
    """Reads all that stands before the data."""
    file = read.file
    version, count = read.numbers("Q", 2, "its header")
    require(version == VERSION, f"{file} has version {version}, this reads {VERSION}")
    require(count <= MAX_ITEMS, f"{file} has {count} items, at most {MAX_ITEMS} are read")
    headers = [read.numbers("Q", 4, "the headers") for _ in range(count)]
    names = [read_name(read, length) for length, _, _, _ in headers]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    require(not twice, f"{file} has {', '.join(twice)} twice")
    shapes = []
    for name, (_, _, dimensions, _) in zip(names, headers, strict=True):
        if dimensions > MAX_DIMENSIONS:
            raise ConfigError(f"{file}: {name} has {dimensions} dimensions")
        shape = read.numbers("i", dimensions, f"the shape of {name}")
        if any(size < 0 for size in shape):
            raise ConfigError(f"{file}: {name} has the shape {list(shape)}")
        shapes.append(shape)
    (gap,) = read.numbers("Q", 1, "its header")
    read.take(gap, "the gap before the data")
    return [
        Item(name, kind, shape, length)
        for name, (_, kind, _, length), shape in zip(names, headers, shapes, strict=True)
    ]


def read_name(read: Bytes, length: int) -> str:
    if not 1 <= length <= MAX_NAME:
        raise ConfigError(f"{read.file} has a name of {length} bytes, names have 1 to {MAX_NAME}")
    name = read.take(length, "the names").rstrip(b"\0")
    if not name or not name.isascii() or not name.decode("ascii").isprintable():
        raise ConfigError(f"{read.file} has the name {name!r}, names are printable ASCII")
    return name.decode("ascii")


def read_item(file: Path, name: str, kind: int, shape: tuple[int, ...], data: bytes) -> Array:
    elements = math.prod(shape)
    require(
        kind in (FLOAT32, INT8, *QUANTISED),
        f"{file}: {name} has the type {kind:#x} ({type_name(kind)}), read are {READ}",
    )
    needed = elements * (4 if kind == FLOAT32 else 1) + (4 if kind in QUANTISED else 0)
    if needed > len(data):
        raise ConfigError(
            f"{file}: {name} of shape {list(shape)} needs {needed} bytes and has {len(data)}"
        )
    if kind == FLOAT32:
        return np.frombuffer(data, "<f4", elements).reshape(shape)
    values = np.frombuffer(data, np.int8, elements)
    if kind == INT8:
        return values.reshape(shape)
    (multiplier,) = struct.unpack_from("<f", data, elements)
    require(
        math.isfinite(multiplier) and multiplier > 0,
        f"{file}: {name} has the multiplier {multiplier}, it must be positive",
    )
    require(
        kind != MAINLINE_INT8 or all(size % 16 == 0 for size in shape),
        f"{file}: {name} has the shape {list(shape)}, intgemm8 of Marian needs multiples of 16",
    )
    if len(shape) == 2 and "Wemb" not in name:
        values = values.reshape(shape[1], shape[0]).T
    with np.errstate(over="ignore"):  # infinite weights are refused later, by name
        return values.reshape(shape).astype(np.float32) / np.float32(multiplier)
