"""The vocabularies of BART and PEGASUS.

BART has vocab.json and merges.txt, a byte-level BPE. PEGASUS has a SentencePiece model whose ids
are shifted: <pad> </s> <mask_1> <mask_2> <unk_2> … <unk_102>, then the pieces from the third on.

transformers 5 writes tokenizer.json in place of all three files, and numbers <mask_2> before
<mask_1>. Neither occurs in a text to summarise.

Source: transformers 4.57 and 5.24, BartTokenizer and PegasusTokenizer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from linnet_model.bundle import SpecialIds, TokenizerFiles
from linnet_model.importers.files import pieces_of, read_sentencepiece
from linnet_model.importers.huggingface.config import TOKENIZER
from linnet_model.importers.huggingface.tokenizer_json import (
    FAST,
    Layout,
    byte_level,
    copy_from,
    sentencepiece_content,
)
from linnet_model.importers.huggingface.vocabulary import (
    added_tokens,
    numbered,
    read_vocabulary,
    refuse_added,
    tokenizer_table,
)
from linnet_model.importers.multilingual.vocabulary import FAIRSEQ, MASK
from linnet_model.importers.sentencepiece_model import (
    Kind,
    SpecialPieces,
    user_defined_pieces,
)
from linnet_model.importers.summarisers.config import BART, SummariserFacts
from linnet_model.network.model_config import ConfigError, require

VOCABULARY, MERGES, SPM = "vocab.json", "merges.txt", "spiece.model"
PEGASUS_OFFSET = 103  # ids before the first piece of PEGASUS's SentencePiece model
PEGASUS_MASKS = ("<mask_1>", "<mask_2>")
PEGASUS_LAYOUT = Layout(
    (("<pad>", Kind.CONTROL), ("</s>", Kind.CONTROL), ("<unk>", Kind.UNKNOWN)),
    SpecialPieces(unk=2, bos=-1, eos=1, pad=0),
    first=PEGASUS_OFFSET + 3,
)


@dataclass
class Tokens:
    """The tokenizer files, the special ids with that of the unknown token, and ids that are no
    text."""

    files: TokenizerFiles
    special: SpecialIds
    control_ids: list[int]


def byte_characters() -> set[str]:
    """The printable characters by which GPT-2 writes the 256 bytes."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = 256 - len(printable)
    return {chr(code) for code in [*printable, *range(0x100, 0x100 + others)]}


def check_special(
    folder: Path, ids: dict[str, int], special: SpecialIds, names: dict[str, str]
) -> None:
    """Compares the ids of a vocabulary with those of the configuration. `names`: pieces by the
    fields of SpecialIds."""
    for field, piece in names.items():
        found, expected = ids.get(piece), getattr(special, field)
        require(
            found == expected,
            f"{folder} gives {piece} the id {found}, the configuration has {expected}",
        )


def check_added(folder: Path, known: dict[str, int], anywhere: Collection[str] = ()) -> None:
    """Refuses tokens that were added to a tokenizer: text would be split at them."""
    file = folder / TOKENIZER
    table = tokenizer_table(folder)
    require(
        not table.get("add_prefix_space"),
        f"{file} has add_prefix_space true, a blank before each text is not supported",
    )
    refuse_added(folder, table, known, anywhere)


def check_merges(content: bytes, file: Path, pieces: set[str], vocabulary: str) -> None:
    """Refuses merges of pieces that are not in the vocabulary, as tokenizers does."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8: {error}") from None
    lines = text.rstrip("\n").split("\n")
    first = 1 if lines[0].startswith("#version:") else 0
    require(len(lines) > first, f"{file} has no merge operations")
    for number, line in enumerate(lines[first:], start=first + 1):
        parts = line.strip(" \r").split(" ")
        require(
            len(parts) == 2 and all(parts),
            f"{file}: line {number} is no merge operation: two pieces with one blank between them",
        )
        lost = [piece for piece in (*parts, "".join(parts)) if piece not in pieces]
        require(
            not lost, f"{file}: line {number} merges {', '.join(lost)}, which {vocabulary} lacks"
        )


def bart_files(folder: Path, rows: int) -> tuple[list[str], Path, bytes, Path]:
    """Returns the pieces and the merges, each with the file that has them."""
    present = [name for name in (VOCABULARY, MERGES) if (folder / name).is_file()]
    if not present and (folder / FAST).is_file():
        vocabulary, merges = byte_level(folder, (VOCABULARY, MERGES))
        file = folder / FAST
        return numbered(file, vocabulary, rows), file, merges, file
    for name in (VOCABULARY, MERGES):
        require(name in present, f"{folder} has no {name}: {copy_from(name)}")
    pieces = read_vocabulary(folder / VOCABULARY, rows)
    return pieces, folder / VOCABULARY, (folder / MERGES).read_bytes(), folder / MERGES


def read_bart(folder: Path, facts: SummariserFacts) -> Tokens:
    rows = facts.sizes.vocabulary
    # The table of some models has no row for <mask>, which is the last piece.
    pieces, file, merges, merges_file = bart_files(folder, rows + 1)
    ids = {piece: i for i, piece in enumerate(pieces)}
    if len(pieces) > rows:
        require(
            pieces[-1] == MASK, f"{file} has {len(pieces)} pieces, the model's table {rows} rows"
        )
        pieces = pieces[:rows]
    special = dataclasses.replace(facts.special, unk=ids.get(FAIRSEQ[3], -1))
    require(special.unk >= 0, f"{file} has no {FAIRSEQ[3]}, which stands for unknown pieces")
    check_special(folder, ids, special, {"bos": "<s>", "pad": "<pad>", "eos": "</s>"})
    lost = byte_characters() - ids.keys()
    require(not lost, f"{file} lacks {len(lost)} of the 256 bytes, it is no byte-level vocabulary")
    check_added(folder, {name: ids[name] for name in (*FAIRSEQ, MASK) if name in ids})
    check_merges(merges, merges_file, set(pieces), file.name)
    mask = [ids[MASK]] if MASK in ids and ids[MASK] < rows else []
    return Tokens(
        TokenizerFiles(
            source=merges,
            source_vocabulary=pieces,
            target_vocabulary=pieces,
            byte_level=True,
        ),
        special,
        # <mask>, and rows without a token.
        control_ids=sorted({*mask, *range(len(pieces), rows)}),
    )


def read_pegasus(folder: Path, facts: SummariserFacts) -> Tokens:
    file, rows = folder / SPM, facts.sizes.vocabulary
    content = sentencepiece_content(folder, SPM, PEGASUS_LAYOUT)
    spm = pieces_of(read_sentencepiece(content, file), file)
    require(
        spm[:3] == ["<pad>", "</s>", "<unk>"],
        f"{file} begins with the pieces {', '.join(spm[:3])}, it must with <pad>, </s>, <unk>",
    )
    table = tokenizer_table(folder)
    offset = table.get("offset", PEGASUS_OFFSET)
    require(
        offset == PEGASUS_OFFSET,
        f"{folder / TOKENIZER} has offset {offset!r}, supported is only {PEGASUS_OFFSET}",
    )
    unknown = [f"<unk_{i}>" for i in range(2, PEGASUS_OFFSET)]
    pieces = ["<pad>", "</s>", "<mask_1>", "<mask_2>", *unknown, *spm[2:]]
    require(
        len(pieces) <= rows,
        f"{folder} has {len(pieces)} tokens, the model's table {rows} rows",
    )
    bad = next((piece for piece in pieces if "\n" in piece or not piece), None)
    require(bad is None, f"{file} has the piece {bad!r}, which no line of a file can hold")
    require(len(set(pieces)) == len(pieces), f"{file} has a piece twice, or one of the unknown")
    special = dataclasses.replace(facts.special, unk=PEGASUS_OFFSET + 2)
    ids = {piece: i for i, piece in enumerate(pieces)}
    check_special(folder, ids, special, {"pad": "<pad>", "eos": "</s>"})
    added = added_tokens(folder, table)
    masks = {added[name] for name in PEGASUS_MASKS if name in added}
    require(
        masks <= {2, 3},
        f"{folder} gives {' and '.join(PEGASUS_MASKS)} the ids {sorted(masks)}, they must be 2 and "
        "3 in either order",
    )
    # A tokenizer in Rust lists the user's symbols among the added tokens, with their own ids.
    own = user_defined_pieces(content) & ids.keys()
    names = ("<unk>", *pieces[: PEGASUS_OFFSET + 2], *own)
    check_added(folder, {name: ids[name] for name in names}, PEGASUS_MASKS)
    return Tokens(
        TokenizerFiles(source=content, source_vocabulary=pieces, target_vocabulary=pieces),
        special,
        control_ids=[*range(2, PEGASUS_OFFSET + 2), *range(len(pieces), rows)],
    )


def read_tokens(folder: Path, facts: SummariserFacts) -> Tokens:
    return (read_bart if facts.model_type == BART else read_pegasus)(folder, facts)
