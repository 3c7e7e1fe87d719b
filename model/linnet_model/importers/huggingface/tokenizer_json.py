"""Reads tokenizer.json, in which transformers 5 leaves the only copy of most vocabularies.

It has the pieces of a SentencePiece model with their scores (Unigram) or their merges (BPE), and
the compiled normalisation; or the pieces and the merges of a byte-level BPE. A SentencePiece model
is rebuilt from it where the file determines one. Two things of the original are in no such file:
remove_extra_whitespaces, which is true in all models of these families, and the kinds of the
pieces. A Unigram piece with the score 0 is a symbol that the user has defined, since training
gives any other piece a negative score.

Source: transformers 4.57 and 5.24, convert_slow_tokenizer.py and tokenization_utils_base.py.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linnet_model.importers.files import check_downloaded
from linnet_model.importers.huggingface.config import required_json
from linnet_model.importers.sentencepiece_model import (
    Algorithm,
    Kind,
    Piece,
    SpecialPieces,
    write_sentencepiece,
)
from linnet_model.network.model_config import ConfigError, require

FAST = "tokenizer.json"
BLANK = "\u2581"
BYTE_PIECES = [f"<0x{byte:02X}>" for byte in range(256)]


@dataclass(frozen=True)
class Layout:
    """Where the pieces of a family's SentencePiece model stand among the ids of its tokenizer."""

    specials: tuple[tuple[str, Kind], ...]  # the first pieces of the SentencePiece model
    special: SpecialPieces
    first: int  # id of the first piece behind these


FAIRSEQ_LAYOUT = Layout(
    (("<unk>", Kind.UNKNOWN), ("<s>", Kind.CONTROL), ("</s>", Kind.CONTROL)),
    SpecialPieces(unk=0, bos=1, eos=2, pad=-1),
    first=4,  # <s> <pad> </s> <unk>
)


def copy_from(file: str) -> str:
    return f"copy {file} from the model that was fine-tuned"


def sentencepiece_content(folder: Path, name: str, layout: Layout | None = None) -> bytes:
    """Returns the SentencePiece model `name` of the folder, or the one that tokenizer.json
    determines. No layout: the family has no such file."""
    if (folder / name).is_file():
        check_downloaded(folder / name)
        return (folder / name).read_bytes()
    require(
        layout is not None and (folder / FAST).is_file(),
        f"{folder} has no {name}" + (f", and no {FAST}" if layout else "") + f": {copy_from(name)}",
    )
    assert layout is not None
    return rebuilt_sentencepiece(folder / FAST, name, layout)


def model_of(file: Path, kinds: tuple[str, ...], instead: str) -> tuple[dict[str, Any], Any]:
    """Returns the model of tokenizer.json, whose type is one of `kinds`, and its vocabulary."""
    model = required_json(file).get("model")
    kind = model.get("type") if isinstance(model, dict) else None
    require(
        kind in kinds,
        f"{file} has a model of the type {kind!r}, supported is {' or '.join(kinds)}: {instead}",
    )
    assert isinstance(model, dict)
    return model, model.get("vocab")


def normalisation(file: Path, table: dict[str, Any], instead: str) -> bytes:
    """Returns the compiled character map. The other steps that transformers writes stand for what
    SentencePiece does by itself: a blank for several, none at the end."""
    top = table.get("normalizer")
    steps = [] if top is None else top.get("normalizers", [top]) if isinstance(top, dict) else [top]
    found = b""
    for step in steps:
        kind = step.get("type") if isinstance(step, dict) else None
        if kind == "Precompiled":
            try:
                found = base64.b64decode(step.get("precompiled_charsmap") or "", validate=True)
            except (binascii.Error, ValueError, TypeError):
                raise ConfigError(f"{file} has a damaged precompiled_charsmap: {instead}") from None
            continue
        # Without a character map transformers 5 makes a blank of a line break in PEGASUS's texts.
        known = kind == "Strip" or (
            kind == "Replace"
            and step.get("pattern") in ({"Regex": " {2,}"}, {"Regex": "\\n"})
            and step.get("content") in (" ", BLANK)
        )
        require(known, f"{file} has a normalizer of the type {kind!r}: {instead}")
    return found


def check_blanks(file: Path, table: dict[str, Any], instead: str) -> None:
    """The tokenizer must mark blanks as SentencePiece does, with one before the text."""
    top = table.get("pre_tokenizer")
    steps = top.get("pretokenizers", [top]) if isinstance(top, dict) else [top]
    metaspace = {"replacement": BLANK, "prepend_scheme": "always"}
    known = all(
        isinstance(step, dict)
        and (
            step.get("type") == "WhitespaceSplit"
            or (
                step.get("type") == "Metaspace"
                and metaspace.items() <= ({"prepend_scheme": "always"} | step).items()
                and step.get("add_prefix_space", True) is True
            )
        )
        for step in steps
    )
    require(known, f"{file} has a pre_tokenizer other than Metaspace: {instead}")


def special_ids(file: Path, table: dict[str, Any], first: int) -> set[int]:
    """The ids from `first` on that are no pieces: languages, <mask>, and tokens of a tuning."""
    added = table.get("added_tokens") or []
    require(
        isinstance(added, list) and all(isinstance(token, dict) for token in added),
        f"{file} has no list added_tokens",
    )
    return {
        token["id"]
        for token in added
        if token.get("special") is True and type(token.get("id")) is int and token["id"] >= first
    }


def rebuilt_sentencepiece(file: Path, name: str, layout: Layout) -> bytes:
    instead = copy_from(name)
    table = required_json(file)
    model, vocabulary = model_of(file, ("Unigram", "BPE"), instead)
    characters = normalisation(file, table, instead)
    check_blanks(file, table, instead)
    unigram = model["type"] == "Unigram"
    pairs = unigram_pairs(file, vocabulary) if unigram else bpe_pairs(file, vocabulary)
    other = special_ids(file, table, layout.first)
    kept = [pair for i, pair in enumerate(pairs) if i >= layout.first and i not in other]
    end = layout.first + len(kept)
    require(
        bool(kept) and all(i >= end for i in other),
        f"{file} has special tokens among its pieces: {instead}",
    )
    if not unigram:
        check_merges(file, model.get("merges"), [text for text, _ in kept], instead)
    return write_sentencepiece(
        [
            *(Piece(text, 0.0, kind) for text, kind in layout.specials),
            *typed(kept, unigram),
        ],
        Algorithm.UNIGRAM if unigram else Algorithm.BPE,
        layout.special,
        characters,
    )


def typed(kept: list[tuple[str, float]], unigram: bool) -> list[Piece]:
    """Gives the pieces their kinds. The tokenizers of transformers drop the fallback to bytes, but
    keep its 256 pieces."""
    texts = {text for text, _ in kept}
    with_bytes = texts.issuperset(BYTE_PIECES)
    known, pieces = frozenset(BYTE_PIECES), []
    normal = 0
    for text, score in kept:
        if with_bytes and text in known:
            pieces.append(Piece(text, 0.0, Kind.BYTE))
        elif unigram:
            kind = Kind.USER_DEFINED if score == 0.0 else Kind.NORMAL
            pieces.append(Piece(text, score, kind))
        else:
            pieces.append(Piece(text, -float(normal)))  # in the order of the merges
            normal += 1
    return pieces


def unigram_pairs(file: Path, vocabulary: Any) -> list[tuple[str, float]]:
    require(
        isinstance(vocabulary, list)
        and all(
            isinstance(entry, list)
            and len(entry) == 2
            and isinstance(entry[0], str)
            and type(entry[1]) in (int, float)
            and abs(entry[1]) < 1e30
            for entry in vocabulary
        ),
        f"{file} has no list of pieces with scores",
    )
    return [(text, float(score)) for text, score in vocabulary]


def bpe_pairs(file: Path, vocabulary: Any) -> list[tuple[str, float]]:
    """The pieces in the order of their ids, which must be dense."""
    require(
        isinstance(vocabulary, dict)
        and all(type(i) is int for i in vocabulary.values())
        and sorted(vocabulary.values()) == list(range(len(vocabulary))),
        f"{file} has no pieces with the ids 0, 1, 2 …",
    )
    return [(text, 0.0) for text in sorted(vocabulary, key=lambda text: int(vocabulary[text]))]


def merge_pairs(file: Path, merges: Any) -> list[tuple[str, str]]:
    """Reads ["a", "b"], or "a b" of older files."""
    require(isinstance(merges, list) and bool(merges), f"{file} has no list of merges")
    pairs = [tuple(it.split(" ")) if isinstance(it, str) else tuple(it) for it in merges]
    require(
        all(len(pair) == 2 and all(isinstance(part, str) for part in pair) for pair in pairs),
        f"{file} has a merge that is not a pair of pieces",
    )
    return [(left, right) for left, right in pairs]


def check_merges(file: Path, merges: Any, pieces: list[str], instead: str) -> None:
    """The merges of a SentencePiece model follow from its pieces: any two whose text is a piece,
    earlier pieces first. Any other list was made from no such model."""
    numbers = {piece: i for i, piece in enumerate(pieces)}
    expected: dict[str, set[tuple[str, str]]] = {}
    for piece in pieces:
        if len(piece) == 1 or piece in BYTE_PIECES:
            continue
        halves = [(piece[:i], piece[i:]) for i in range(1, len(piece))]
        pairs = {(left, right) for left, right in halves if left in numbers and right in numbers}
        require(
            bool(pairs),
            f"{file} has the piece {piece!r}, which no merge makes: it was made from no BPE model "
            f"of SentencePiece: {instead}",
        )
        expected[piece] = pairs
    listed = merge_pairs(file, merges)
    made = [numbers.get(left + right, -1) for left, right in listed]
    wanted = set().union(*expected.values()) if expected else set()
    require(
        made == sorted(made) and len(listed) == len(wanted) and set(listed) == wanted,
        f"{file} has other merges than its pieces ask for: {instead}",
    )


def byte_level(folder: Path, names: tuple[str, str]) -> tuple[dict[str, int], bytes]:
    """Returns the vocabulary and the merges (as in merges.txt) of a byte-level BPE."""
    file, instead = folder / FAST, copy_from(" and ".join(names))
    model, vocabulary = model_of(file, ("BPE",), instead)
    top = required_json(file).get("pre_tokenizer")
    require(
        isinstance(top, dict)
        and top.get("type") == "ByteLevel"
        and top.get("add_prefix_space") is False
        and top.get("use_regex", True) is True
        and required_json(file).get("normalizer") is None,
        f"{file} is not the byte-level BPE of BART, without a blank before each text: {instead}",
    )
    pairs = bpe_pairs(file, vocabulary)
    merges = "".join(f"{left} {right}\n" for left, right in merge_pairs(file, model.get("merges")))
    return {text: i for i, (text, _) in enumerate(pairs)}, f"#version: 0.2\n{merges}".encode()
