"""Writes a SentencePiece model from its pieces, and reads the kinds of its pieces, which the Python
package does not tell.

Only the fields that decide how a text is read are written. The numbers of the fields are those of
sentencepiece_model.proto of SentencePiece 0.2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum


class Kind(IntEnum):
    """ModelProto.SentencePiece.Type."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    BYTE = 6


class Algorithm(IntEnum):
    """TrainerSpec.ModelType."""

    UNIGRAM = 1
    BPE = 2


@dataclass(frozen=True)
class Piece:
    text: str
    score: float
    kind: Kind = Kind.NORMAL


@dataclass(frozen=True)
class SpecialPieces:
    """Ids of the special pieces; -1: the model has no such piece."""

    unk: int
    bos: int
    eos: int
    pad: int


def varint(value: int) -> bytes:
    """A negative number is written in 64 bits, as protobuf does for int32."""
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def integer(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def delimited(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def real(field: int, value: float) -> bytes:
    return varint(field << 3 | 5) + struct.pack("<f", value)


def piece_message(piece: Piece) -> bytes:
    return (
        delimited(1, piece.text.encode("utf-8"))
        + real(2, piece.score)
        + integer(3, int(piece.kind))
    )


def write_sentencepiece(
    pieces: Sequence[Piece],
    algorithm: Algorithm,
    special: SpecialPieces,
    character_map: bytes,
    dummy_prefix: bool = True,
    remove_extra_whitespaces: bool = True,
) -> bytes:
    """Returns the ModelProto. `character_map` is the compiled normalisation; none: identity."""
    byte_fallback = any(piece.kind == Kind.BYTE for piece in pieces)
    trainer = [
        integer(3, int(algorithm)),
        integer(4, len(pieces)),
        integer(35, int(byte_fallback)),
        integer(40, special.unk),
        integer(41, special.bos),
        integer(42, special.eos),
        integer(43, special.pad),
    ]
    named = {45: special.unk, 46: special.bos, 47: special.eos, 48: special.pad}
    trainer += [
        delimited(field, pieces[i].text.encode("utf-8")) for field, i in named.items() if i >= 0
    ]
    normalizer = [
        delimited(1, b"precompiled" if character_map else b"identity"),
        delimited(2, character_map),
        integer(3, int(dummy_prefix)),
        integer(4, int(remove_extra_whitespaces)),
        integer(5, 1),  # blanks become U+2581
    ]
    return b"".join(
        [
            *(delimited(1, piece_message(piece)) for piece in pieces),
            delimited(2, b"".join(trainer)),
            delimited(3, b"".join(normalizer)),
        ]
    )


def read_varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (content[at] & 0x7F) << shift
        shift += 7
        at += 1
        if content[at - 1] < 0x80:
            return value, at


def fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields the number and the value of each field of a message that SentencePiece has read."""
    at = 0
    while at < len(content):
        key, at = read_varint(content, at)
        if key & 7 == 0:
            value, at = read_varint(content, at)
            yield key >> 3, value
            continue
        size, at = read_varint(content, at) if key & 7 == 2 else (4 if key & 7 == 5 else 8, at)
        yield key >> 3, content[at : at + size]
        at += size


def user_defined_pieces(content: bytes) -> set[str]:
    """Returns the pieces that SentencePiece always takes whole."""
    found = set()
    for field, message in fields(content):
        if field == 1 and isinstance(message, bytes):
            piece = dict(fields(message))
            text = piece.get(1, b"")
            if piece.get(3) == Kind.USER_DEFINED and isinstance(text, bytes):
                found.add(text.decode("utf-8"))
    return found
