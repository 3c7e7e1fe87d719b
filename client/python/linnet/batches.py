"""Distributes texts and pairs over calls of DetectLanguage and Score, for both clients."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import grpc
from google.protobuf.message import Message

from .errors import LinnetError
from .texts import (
    BYTES_PER_CALL,
    TEXTS_PER_CALL,
    TOO_LARGE,
    WHITE_SPACE,
    check_message,
    check_text,
    set_field,
    style_named,
)
from .v1 import text_service_pb2 as api

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Pair = tuple[str, str]


@dataclass
class Batch(Generic[Item]):
    """The items of one call, and their indices in the caller's list."""

    items: list[Item]
    indices: list[int]


class Batches(Generic[Item, Answer]):
    """The calls for a list of items. `sizes` has the bytes of each item, and `field` is the field
    of the request that holds the items. Answers that need no call are in `known`."""

    def __init__(
        self,
        items: list[Item],
        sizes: list[int],
        field: str,
        alone: bool,
        known: dict[int, Answer] | None = None,
    ):
        self._field, self._alone = field, alone
        self._answers: dict[int, Answer] = dict(known or {})
        self._left: list[Batch[Item]] = []
        size = 0
        for index, (item, more) in enumerate(zip(items, sizes, strict=True)):
            if index in self._answers:
                continue
            full = size + more > BYTES_PER_CALL or (
                self._left and len(self._left[-1].items) == TEXTS_PER_CALL
            )
            if not self._left or full:
                self._left.append(Batch([], []))
                size = 0
            self._left[-1].items.append(item)
            self._left[-1].indices.append(index)
            size += more
        self._left.reverse()

    def next(self) -> Batch[Item] | None:
        """The next call to make; None after the last one."""
        return self._left.pop() if self._left else None

    def answer(self, batch: Batch[Item], answers: Collection[Answer]) -> None:
        if len(answers) != len(batch.items):
            raise LinnetError.local(
                f"the server gave {len(answers)} answers to {len(batch.items)} {self._field}",
                grpc.StatusCode.INTERNAL,
            )
        self._answers.update(zip(batch.indices, answers, strict=True))

    def refused(self, batch: Batch[Item], error: LinnetError) -> None:
        """Halves a call that was too large. Raises any other error, with the index of the item in
        the caller's list in place of that in its call."""
        if error.reason in TOO_LARGE and len(batch.items) > 1:
            middle = len(batch.items) // 2
            for part in (slice(middle, None), slice(middle)):
                self._left.append(Batch(batch.items[part], batch.indices[part]))
            return
        named = re.match(rf"{self._field}\[(\d+)\]", error.field)
        if named and int(named[1]) < len(batch.indices):
            error.rename(named[0], f"{self._field}[{batch.indices[int(named[1])]}]")
        raise error

    def answers(self) -> Answer | list[Answer]:
        ordered = [self._answers[index] for index in sorted(self._answers)]
        return ordered[0] if self._alone else ordered


def detections(text: str | Iterable[str]) -> Batches[str, api.LanguageDetection]:
    """The calls that detect the languages of a text or of a list. White space is in none."""
    if not isinstance(text, Iterable) or isinstance(text, bytes | Message):
        kind = type(text).__name__
        raise LinnetError.local(f"text is a {kind}, neither a str nor a list of them")
    alone = isinstance(text, str)
    texts = [cast(str, text)] if alone else list(text)
    for number, each in enumerate(texts):
        check_text(each, f"contents[{number}]")
    blank = {
        number: api.LanguageDetection()
        for number, each in enumerate(texts)
        if WHITE_SPACE.fullmatch(each)
    }
    return Batches(texts, [len(each.encode()) for each in texts], "contents", alone, blank)


def scores(pairs: Pair | Iterable[Pair]) -> Batches[Pair, api.TargetScore]:
    """The calls that score a pair of source and target, a tuple of two strings, or a list of
    pairs."""
    alone = isinstance(pairs, tuple) and len(pairs) == 2 and all(isinstance(p, str) for p in pairs)
    if not isinstance(pairs, Iterable) or isinstance(pairs, str | bytes | Message):
        kind = type(pairs).__name__
        raise LinnetError.local(
            f"pairs is a {kind}, neither a pair (source, target) nor a list of them"
        )
    listed = [cast(Pair, pairs)] if alone else [_pair(it, n) for n, it in enumerate(pairs)]
    for number, (source, target) in enumerate(listed):
        check_text(source, f"pairs[{number}].source_text")
        check_text(target, f"pairs[{number}].target_text")
    sizes = [len(source.encode()) + len(target.encode()) for source, target in listed]
    return Batches(listed, sizes, "pairs", alone)


def _pair(pair: Any, number: int) -> Pair:
    # A string of two letters could be unpacked as well.
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return pair[0], pair[1]
    what = f"{type(pair).__name__} of {len(pair)}" if hasattr(pair, "__len__") else type(pair)
    raise LinnetError.local(
        f"pairs[{number}] is a {what}, not a pair (source, target)", field=f"pairs[{number}]"
    )


def scoring(
    source: str, to: str, model: str, style: str, options: api.ScoringOptions | None
) -> api.ScoreRequest:
    """The request without its pairs."""
    if options is not None:
        check_message(options, api.ScoringOptions, "options")
    request = api.ScoreRequest(options=options, style=style_named(style))
    set_field(request, "source_language_code", source, "source")
    set_field(request, "target_language_code", to, "to")
    set_field(request, "model", model)
    return request
