"""The grammar of a bundle's targets, which makes each of them valid text: byte pieces form UTF-8
characters, and control pieces, which are not text, do not occur.

The same in C++: model/runtime/search/token_grammar.h. Source: the Unicode Standard, table 3-7,
well-formed UTF-8 byte sequences.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import sentencepiece
import torch
from torch import Tensor

from linnet_model.network.encoder_decoder import BOS, EOS, PAD, UNK
from linnet_model.tokenizer import BLANK, byte_of

MAX_FOLLOWING = 3  # bytes of a character behind its first one
ANY = range(0x80, 0xC0)  # the bytes that may follow, where the first one does not narrow them
NARROWED = {0xE0: range(0xA0, 0xC0), 0xED: range(0x80, 0xA0), 0xF0: range(0x90, 0xC0)}
NARROWED[0xF4] = range(0x80, 0x90)


class State(NamedTuple):
    """The state of a target: what it has, and what it must have next."""

    begun: bool  # more than blanks
    rest: tuple[range, ...]  # the bytes that must follow until a character ends; none at its end


START = State(False, ())


def following(byte: int) -> tuple[range, ...] | None:
    """Returns the bytes that must follow the first byte of a longer character; None for one that
    begins none."""
    for count, first in enumerate((range(0xC2, 0xE0), range(0xE0, 0xF0), range(0xF0, 0xF5)), 1):
        if byte in first:
            return (NARROWED.get(byte, ANY), ANY, ANY)[:count]
    return None


class Grammar:
    """The grammar of the pieces of a SentencePiece model. `control_ids` are no text; the mark of a
    text in capitals may begin a target."""

    def __init__(
        self,
        tokenizer: sentencepiece.SentencePieceProcessor,
        capitals_mark: str = "",
        control_ids: Iterable[int] = (),
    ):
        self.size = tokenizer.get_piece_size()
        every = range(self.size)
        values = ((i, byte_of(tokenizer, i)) for i in every)
        self.byte = {i: byte for i, byte in values if byte is not None and byte >= 0x80}
        self.control = {i for i in every if tokenizer.is_control(i)} | {BOS, PAD, UNK, *control_ids}
        self.control.discard(EOS)
        self.first = tokenizer.piece_to_id(capitals_mark) if capitals_mark else None
        self.blank = tokenizer.piece_to_id(BLANK)
        self.masks: dict[tuple[State, int], Tensor] = {}

    @staticmethod
    def of_manifest(
        tokenizer: sentencepiece.SentencePieceProcessor, manifest: dict[str, Any]
    ) -> Grammar | None:
        """Returns the grammar of a bundle's targets; None if it has none."""
        if not manifest.get("text_grammar"):
            return None
        placeholders = [tokenizer.piece_to_id(name) for name in manifest.get("placeholders", [])]
        control_ids = [*placeholders, *manifest.get("control_ids", [])]
        return Grammar(tokenizer, manifest.get("capitals_mark", ""), control_ids)

    def forbidden(self, state: State, left: int) -> Tensor:
        """Returns bool [V], the tokens that may not be next if `left` tokens may follow it."""
        key = state, max(0, min(left, MAX_FOLLOWING))
        if key not in self.masks:
            self.masks[key] = torch.tensor([not self.allows(*key, i) for i in range(self.size)])
        return self.masks[key]

    def allows(self, state: State, left: int, token: int) -> bool:
        if state.rest:  # `left` was sufficient when the character began
            return self.byte.get(token) in state.rest[0]
        if token == self.first:
            return not state.begun
        if token in self.byte:
            rest = following(self.byte[token])
            return rest is not None and len(rest) <= left
        return token not in self.control

    def after(self, state: State, token: int) -> State:
        """Returns the state after a token that is allowed."""
        if state.rest:
            return State(True, state.rest[1:])
        if token == self.blank:
            return state
        rest = following(self.byte[token]) if token in self.byte else None
        return State(True, rest or ())
