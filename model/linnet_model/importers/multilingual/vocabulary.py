"""The vocabularies and language tokens of M2M-100, NLLB-200 and mBART-50.

M2M-100 has vocab.json, whose pieces are followed by the languages. The others have the order of
fairseq: <s> <pad> </s> <unk>, the pieces of the SentencePiece model from its fourth on, the
languages, <mask>.

transformers 5 writes tokenizer.json in place of the SentencePiece model (but of M2M-100), and the
languages of NLLB-200 as extra_special_tokens of tokenizer_config.json.

Source: transformers 4.57 and 5.24, M2M100Tokenizer, NllbTokenizer and MBart50Tokenizer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linnet_model.bundle import TokenizerFiles
from linnet_model.importers.files import pieces_of, read_sentencepiece
from linnet_model.importers.huggingface.config import TOKENIZER, required_json
from linnet_model.importers.huggingface.tokenizer_json import (
    FAIRSEQ_LAYOUT,
    sentencepiece_content,
)
from linnet_model.importers.huggingface.vocabulary import (
    added_tokens,
    name_of,
    read_vocabulary,
    refuse_added,
    tokenizer_table,
)
from linnet_model.importers.multilingual.codes import M2M100, MBART50, WMT21
from linnet_model.importers.multilingual.config import MBART, MultilingualFacts
from linnet_model.importers.sentencepiece_model import user_defined_pieces
from linnet_model.network.model_config import require

SPM, VOCABULARY = "sentencepiece.bpe.model", "vocab.json"
SPECIAL = "special_tokens_map.json"
FAIRSEQ = ["<s>", "<pad>", "</s>", "<unk>"]
MASK = "<mask>"


@dataclass
class Tokens:
    """The tokenizer files and the ids of the language tokens by their names, as the model has them
    ("__de__", "de_DE", "deu_Latn")."""

    files: TokenizerFiles
    languages: dict[str, int]
    control_ids: list[int]  # ids that are no text
    nllb: bool
    legacy: bool  # the source language stands behind the end token


def language_names(folder: Path, kind: str, tokenizer: dict[str, Any]) -> list[str]:
    """Returns the names of the language tokens in the order of their ids."""
    if kind == MBART:
        return MBART50.split()
    if (folder / VOCABULARY).is_file():
        known = {"m2m100": M2M100, "wmt21": WMT21}
        codes = tokenizer.get("language_codes", "m2m100")
        require(
            codes in ("m2m100", "wmt21"),
            f"{folder / TOKENIZER} has language_codes {codes!r}, known are {', '.join(known)}",
        )
        return [f"__{code}__" for code in known[codes].split()]
    # NLLB-200: every folder lists them.
    file, key = folder / SPECIAL, "additional_special_tokens"
    if file.is_file():
        listed = required_json(file).get(key)
    else:
        file, key = folder / TOKENIZER, "extra_special_tokens"
        listed = tokenizer.get(key)
        require(
            isinstance(listed, list) and bool(listed),
            f"{folder} has no {SPECIAL}, and no {key} in {TOKENIZER}, which name the languages in "
            "their order: without them transformers 5 reads each language as <unk>",
        )
    require(
        isinstance(listed, list) and all(isinstance(t, str | dict) for t in listed),
        f"{file} has no list {key}, which names the languages",
    )
    assert isinstance(listed, list)
    names = [name for name in map(name_of, listed) if name not in (*FAIRSEQ, MASK)]
    require(bool(names), f"{file} names no language tokens")
    require(len(set(names)) == len(names), f"{file} names a language token twice")
    return names


def language_ids(
    folder: Path, names: list[str], first: int, rows: int, tokenizer: dict[str, Any]
) -> dict[str, int]:
    """Returns the ids of the languages: those that a file gives all of them, else in their order
    from `first` on."""
    given = added_tokens(folder, tokenizer)
    explicit = {name: given[name] for name in names if name in given}
    require(
        len(explicit) in (0, len(names)),
        f"{folder} gives {len(explicit)} of {len(names)} language tokens an id, it must give "
        "one to all of them, or to none",
    )
    ids = explicit or {name: first + i for i, name in enumerate(names)}
    for name, number in ids.items():
        require(
            first <= number < rows,
            f"{folder} gives the language token {name!r} the id {number}, languages are behind the "
            f"{first} pieces and within the {rows} rows of the model's table",
        )
    require(len(set(ids.values())) == len(ids), f"{folder} gives two language tokens the same id")
    return ids


def spm_pieces(content: bytes, file: Path) -> list[str]:
    pieces = pieces_of(read_sentencepiece(content, file), file)
    require(
        pieces[:3] == ["<unk>", "<s>", "</s>"],
        f"{file} begins with the pieces {', '.join(pieces[:3])}, it must with <unk>, <s>, </s>",
    )
    return pieces


def read_tokens(folder: Path, facts: MultilingualFacts) -> Tokens:
    rows = facts.sizes.vocabulary
    nllb = facts.model_type != MBART and not (folder / VOCABULARY).is_file()
    m2m100 = facts.model_type != MBART and not nllb
    content = sentencepiece_content(folder, SPM, None if m2m100 else FAIRSEQ_LAYOUT)
    spm = spm_pieces(content, folder / SPM)
    if not m2m100:
        pieces = FAIRSEQ + spm[3:]
    else:
        pieces = read_vocabulary(folder / VOCABULARY, rows)
        require(
            pieces[:4] == FAIRSEQ,
            f"{folder / VOCABULARY} begins with {', '.join(pieces[:4])}, it must with "
            f"{', '.join(FAIRSEQ)}",
        )
    tokenizer = tokenizer_table(folder)
    names = language_names(folder, facts.model_type, tokenizer)
    languages = language_ids(folder, names, len(pieces), rows, tokenizer)
    whole = pieces + [""] * (max(languages.values()) + 1 - len(pieces))
    for name, i in languages.items():
        whole[i] = name
    require(
        len(whole) <= rows,
        f"{folder} has {len(whole)} tokens, the model's table {rows} rows",
    )
    for piece, number in zip(FAIRSEQ, (0, 1, 2, 3), strict=True):
        ours = {"<s>": facts.special.bos, "<pad>": facts.special.pad, "</s>": facts.special.eos}
        require(
            ours.get(piece, number) == number,
            f"{folder} gives {piece} the id {number}, the configuration has {ours.get(piece)}",
        )
    # A tokenizer in Rust lists the user's symbols among the added tokens, with their own ids.
    own = user_defined_pieces(content) | languages.keys()
    refuse_added(
        folder,
        tokenizer,
        {piece: i for i, piece in enumerate(whole) if i < 4 or piece in own},
        (MASK,),
    )
    twice = [piece for piece, count in Counter(filter(None, whole)).items() if count > 1]
    require(not twice, f"{folder} has the token {', '.join(map(repr, twice[:3]))} twice")
    bad = next((piece for piece in pieces if "\n" in piece or not piece), None)
    require(bad is None, f"{folder} has the piece {bad!r}, which no line of a file can hold")
    return Tokens(
        files=TokenizerFiles(source=content, source_vocabulary=whole, target_vocabulary=whole),
        languages=languages,
        # Languages, <mask>, made-up words and rows without a token.
        control_ids=list(range(len(pieces), rows)),
        nllb=nllb,
        legacy=nllb and tokenizer.get("legacy_behaviour") is True,
    )
