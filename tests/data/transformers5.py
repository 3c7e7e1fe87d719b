"""Writes the files of a tiny model as transformers 5.24.0 does, from those of 4.57.6, so that the
default run of the tests needs one transformers only. tests/linnet_model/importers/
transformers5_slow_test.py compares the files with those of 5.24.0."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import sentencepiece

VERSION = "5.24.0"
FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")
GONE = ("special_tokens_map.json", "added_tokens.json")
VOCABULARIES = ("sentencepiece.bpe.model", "spiece.model", "vocab.json", "merges.txt")


def read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def write(file: Path, table: Any) -> None:
    file.write_text(json.dumps(table, ensure_ascii=False, indent=2), encoding="utf-8")


def fields(content: bytes) -> dict[int, list[Any]]:
    """Reads one protobuf message: values by the number of their field."""
    found: dict[int, list[Any]] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = content[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(content):
        key = varint()
        value: Any
        if key & 7 == 0:
            value = varint()
        else:
            size = varint() if key & 7 == 2 else 4 if key & 7 == 5 else 8
            value = content[at : at + size]
            at += size
        found.setdefault(key >> 3, []).append(value)
    return found


def character_map(spm: Path) -> bytes:
    """The compiled normalisation of a SentencePiece model."""
    return b"".join(fields(fields(spm.read_bytes())[3][0]).get(2, []))


def token(number: int, content: str, **changes: bool) -> dict[str, Any]:
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, **plain, "special": True} | changes


def mask(number: int, normalized: bool) -> dict[str, Any]:
    return token(number, "<mask>", lstrip=True, normalized=normalized)


def template(before: list[tuple[str, int]], after: list[tuple[str, int]]) -> dict[str, Any]:
    def special(name: str) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": 0}}

    def text(name: str, kind: int = 0) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": kind}}

    start, end = [special(name) for name, _ in before], [special(name) for name, _ in after]
    return {
        "type": "TemplateProcessing",
        "single": [*start, text("A"), *end],
        "pair": [*start, text("A"), text("B"), *end],
        "special_tokens": {
            name: {"id": name, "ids": [number], "tokens": [name]}
            for name, number in sorted([*before, *after])
        },
    }


def fast_tokenizer(
    spm: Path, added: list[dict[str, Any]], model: dict[str, Any], around: dict[str, Any]
) -> dict[str, Any]:
    charsmap = base64.b64encode(character_map(spm)).decode()
    metaspace = {
        "type": "Metaspace",
        "replacement": "\u2581",
        "prepend_scheme": "always",
        "split": True,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Precompiled", "precompiled_charsmap": charsmap},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
            ],
        },
        "pre_tokenizer": metaspace,
        "post_processor": around,
        "decoder": metaspace,
        "model": model,
    }


def unigram(vocabulary: list[tuple[str, float]], unknown: int) -> dict[str, Any]:
    return {
        "type": "Unigram",
        "unk_id": unknown,
        "vocab": [list(pair) for pair in vocabulary],
        "byte_fallback": False,
    }


def merges_of(pieces: list[tuple[str, float]]) -> list[list[str]]:
    """All pairs of pieces whose text is a piece; those of later pieces later."""
    scores = dict(pieces)
    pairs = [
        (piece[:i], piece[i:])
        for piece in scores
        for i in range(1, len(piece))
        if piece[:i] in scores and piece[i:] in scores
    ]
    pairs.sort(key=lambda pair: (-scores["".join(pair)], len(pair[0])))
    return [list(pair) for pair in pairs]


def bpe(vocabulary: list[str], merges: list[list[str]], **changes: Any) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {piece: i for i, piece in enumerate(vocabulary)},
        "merges": merges,
    } | changes


def scored(spm: Path) -> list[tuple[str, float]]:
    processor = sentencepiece.SentencePieceProcessor(model_file=str(spm))
    ids = range(processor.get_piece_size())
    return [(processor.id_to_piece(i), processor.get_score(i)) for i in ids]


def fairseq_tokenizer(folder: Path, kind: str, languages: list[str]) -> dict[str, Any]:
    """Of mBART-50 or NLLB-200."""
    spm = folder / "sentencepiece.bpe.model"
    own = scored(spm)[3:]
    vocabulary = [(name, 0.0) for name in FAIRSEQ] + own
    specials = [token(i, name) for i, name in enumerate(FAIRSEQ)]
    count = len(vocabulary)
    if kind == "mbart50":
        numbers = {name: count + i for i, name in enumerate(languages)}
        vocabulary += [(name, 0.0) for name in (*languages, "<mask>")]
        added = [token(i, name) for name, i in numbers.items()]
        added.append(mask(count + len(languages), normalized=True))
        model = unigram(vocabulary, 3)
        own_language = ("en_XX", numbers["en_XX"])
    else:
        # A tokenizer that is made of the SentencePiece model alone has <mask> first.
        numbers = {name: count + 1 + i for i, name in enumerate(languages)}
        added = [mask(count, normalized=True), *(token(i, name) for name, i in numbers.items())]
        merges = merges_of([*[(name, -0.0) for name in FAIRSEQ], *own])
        names = [piece for piece, _ in vocabulary]
        model = bpe(names, merges, unk_token="<unk>", fuse_unk=True)
        own_language = ("eng_Latn", numbers["eng_Latn"])
    around = template([own_language], [("</s>", 2)])
    return fast_tokenizer(spm, [*specials, *added], model, around)


def pegasus_tokenizer(folder: Path) -> dict[str, Any]:
    spm = folder / "spiece.model"
    fillers = [f"<unk_{i}>" for i in range(2, 103)]
    first = ["<pad>", "</s>", "<mask_2>", "<mask_1>"]
    vocabulary = [*((name, 0.0) for name in first), *((name, -100.0) for name in fillers)]
    vocabulary += [("<unk>", 0.0), *scored(spm)[3:]]
    added = [token(i, name) for i, (name, _) in enumerate(vocabulary[:106])]
    return fast_tokenizer(spm, added, unigram(vocabulary, 105), template([], [("</s>", 1)]))


def bart_tokenizer(folder: Path) -> dict[str, Any]:
    table = read(folder / "tokenizer.json")  # as 4.57.6 writes it
    pieces = sorted(read(folder / "vocab.json").items(), key=lambda item: item[1])
    lines = (folder / "merges.txt").read_text(encoding="utf-8").split("\n")[1:]
    merges = [line.split(" ") for line in lines if line]
    blank = {"continuing_subword_prefix": "", "end_of_word_suffix": ""}
    return table | {"model": bpe([piece for piece, _ in pieces], merges, **blank)}


def settings(table: dict[str, Any], kind: str) -> dict[str, Any]:
    """tokenizer_config.json, whose list of added tokens only the tokenizers in Python keep."""
    python = kind in ("m2m100", "marian")
    listed = table.get("additional_special_tokens") or []
    kept = {key: value for key, value in table.items() if python or key != "added_tokens_decoder"}
    kept.pop("extra_special_tokens", None)
    if kind != "m2m100":
        kept.pop("additional_special_tokens", None)
    if kind == "m2m100":
        kept["extra_special_tokens"] = []
    if kind in ("mbart50", "nllb", "pegasus"):
        kept["extra_special_tokens"] = listed
    if kind in ("mbart50", "pegasus"):
        kept["unk_id"] = {"mbart50": 0, "pegasus": 2}[kind]
    if kind == "bart":
        kept["tokenizer_class"] = "RobertaTokenizer"
    backend = "custom" if python else "tokenizers"
    return kept | {"backend": backend, "is_local": True, "local_files_only": False}


def save_as_5(folder: Path, kind: str, listed: list[str] | None = None) -> None:
    """Rewrites the folder of a tiny model that transformers 4.57.6 saved."""
    file = folder / "tokenizer_config.json"
    table = read(file)
    languages = listed or table.get("additional_special_tokens") or []
    make = {
        "mbart50": lambda: fairseq_tokenizer(folder, kind, languages),
        "nllb": lambda: fairseq_tokenizer(folder, kind, languages),
        "pegasus": lambda: pegasus_tokenizer(folder),
        "bart": lambda: bart_tokenizer(folder),
    }
    fast = make[kind]() if kind in make else None
    write(file, settings(table, kind))
    for name in GONE:
        (folder / name).unlink(missing_ok=True)
    if fast is not None:
        write(folder / "tokenizer.json", fast)
        for name in VOCABULARIES:
            (folder / name).unlink(missing_ok=True)
    config = read(folder / "config.json")
    config.pop("num_hidden_layers", None)
    config |= {"tie_word_embeddings": True, "transformers_version": VERSION}
    if kind not in ("m2m100", "nllb"):
        config["is_decoder"] = False
    write(folder / "config.json", config)
    generation = read(folder / "generation_config.json")
    write(folder / "generation_config.json", generation | {"transformers_version": VERSION})
