"""Trains and loads SentencePiece models with the special ids of all our bundles.

The text is not normalised ("identity"), so quotes, double spaces and full-width letters survive.
Characters that the vocabulary lacks are spelled in bytes, so no token is unknown. Each digit is a
piece of its own.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterable
from pathlib import Path

import sentencepiece

from linnet_model.capitals import CapitalsTokenizer
from linnet_model.config import ConfigError, TokenizerConfig, require
from linnet_model.network.encoder_decoder import BOS, EOS, PAD, UNK

# A wide letter, a ligature, an accent that stands alone and two blanks.
UNNORMALISED = "A \uff21 \ufb01 e\u0301  x"
BLANK = "\u2581"  # SentencePiece's sign for a blank
NAME = re.compile("<ph[0-9]+>", re.IGNORECASE)  # of a placeholder


def placeholder_pieces(count: int) -> list[str]:
    """Returns pieces that are never split. Span corruption, inline casing and the server use
    them."""
    return [f"<ph{i}>" for i in range(count)]


def known_placeholders(tokenizer: sentencepiece.SentencePieceProcessor) -> list[int]:
    """Returns the ids of the tokenizer's placeholders <ph0>, <ph1>, ..."""
    ids = []
    for piece in placeholder_pieces(tokenizer.vocab_size()):
        found = tokenizer.piece_to_id(piece)
        if found == tokenizer.unk_id():
            break
        ids.append(found)
    return ids


def free_placeholders(
    tokenizer: sentencepiece.SentencePieceProcessor, capitals_mark: str
) -> list[str]:
    """Returns the placeholders of a SentencePiece model but the capitals mark; the server copies
    text through translations with them."""
    pieces = placeholder_pieces(tokenizer.get_piece_size())
    known = itertools.takewhile(lambda piece: tokenizer.piece_to_id(piece) != UNK, pieces)
    return [piece for piece in known if piece != capitals_mark]


def normalises(tokenizer: sentencepiece.SentencePieceProcessor) -> bool:
    """Returns whether a SentencePiece model changes compatible forms, accents, case or blanks of a
    text before it reads it."""
    return bool(tokenizer.normalize(UNNORMALISED).replace(BLANK, " ").lstrip(" ") != UNNORMALISED)


def spells(tokenizer: sentencepiece.SentencePieceProcessor, text: str) -> bool:
    """Returns whether the pieces of a text have all of it, so that the server copies no part of it
    (FindUnspellable, model/runtime/tokenizer/copied_runs.h) and no blank is written otherwise."""
    if not text.replace(" ", "").isprintable() or BLANK in text or NAME.search(text):
        return False
    values = (byte_of(tokenizer, token) for token in tokenizer.encode(text))
    return all(value is None or value < 0x80 for value in values)


def byte_of(tokenizer: sentencepiece.SentencePieceProcessor, token: int) -> int | None:
    """Returns the byte that a piece such as <0x41> stands for."""
    return int(tokenizer.id_to_piece(token)[1:-1], 16) if tokenizer.is_byte(token) else None


def train_tokenizer(
    lines: Iterable[str], vocabulary: int, config: TokenizerConfig, out: Path
) -> None:
    """Writes a SentencePiece model of exactly `vocabulary` pieces to `out`."""
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=itertools.islice(iter(lines), config.sentences),
            model_writer=model,
            vocab_size=vocabulary,
            model_type=config.kind,
            character_coverage=config.character_coverage,
            byte_fallback=True,
            split_digits=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            user_defined_symbols=placeholder_pieces(config.placeholders),
            bos_id=BOS,
            pad_id=PAD,
            eos_id=EOS,
            unk_id=UNK,
            num_threads=2,
            max_sentence_length=16384,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ConfigError(
            f"no SentencePiece model of {vocabulary} pieces could be trained: {error}"
        ) from None
    out.write_bytes(model.getvalue())


def load_tokenizer(path: Path, capitals_mark: str = "") -> sentencepiece.SentencePieceProcessor:
    """Loads a SentencePiece model with our special ids. With a mark, which must be a piece of the
    model, it marks and restores texts in capitals (capitals.py)."""
    if not Path(path).is_file():
        raise ConfigError(f"no SentencePiece model at {path}")
    try:
        # SentencePiece takes no bytes for no model, and crashes when it is asked something.
        require(Path(path).stat().st_size > 0, f"{path} is no SentencePiece model: it is empty")
        tokenizer = (
            CapitalsTokenizer(str(path), capitals_mark)
            if capitals_mark
            else sentencepiece.SentencePieceProcessor(model_file=str(path))
        )
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{path} is no SentencePiece model: {error}") from None
    found = (tokenizer.bos_id(), tokenizer.pad_id(), tokenizer.eos_id(), tokenizer.unk_id())
    if found != (BOS, PAD, EOS, UNK):
        raise ConfigError(
            f"{path} has bos, pad, eos, unk at {found}, they must be {(BOS, PAD, EOS, UNK)}"
        )
    if capitals_mark and tokenizer.piece_to_id(capitals_mark) == UNK:
        raise ConfigError(
            f"data.capitals_mark is {capitals_mark}, which is not a piece of {path}: use a "
            "placeholder of it, or raise tokenizer.placeholders"
        )
    return tokenizer
