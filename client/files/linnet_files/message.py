"""A text of a program: lines with variables, names and tags."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence

from .document import Slot, framed
from .fragment import Code, Fragment, Part, placed
from .variables import parts_of


class Message:
    """Its lines are fragments, or the sentence that was wrapped into them. In a format "%" begins a
    variable or is doubled; where it reorders, variables may get numbers (%2$s)."""

    def __init__(self, text: str, place: str, is_format: bool = False, reorders: bool = False):
        self._is_format, self._reorders = is_format, reorders
        # The text before and behind a fragment, and the width at which it was wrapped.
        self._blocks: list[tuple[list[Part], Fragment, list[Part], int]] = []
        for block in re.findall(r"(?:[^\n]|\n(?=[a-z]))+\n*|\n+", text):
            body = block.rstrip("\n")
            width = max(map(len, body.split("\n"))) if "\n" in body else 0
            head, core, tail = framed(parts_of(re.sub(r" *\n", " ", body), is_format))
            tail.append(block[len(body) :])
            self._blocks.append((head, Fragment(core, place), tail, width))
        self.fragments = tuple(block[1] for block in self._blocks)
        self.codes = [code for fragment in self.fragments for code in fragment.codes]

    def slot(
        self, start: int, end: int, write: Callable[[str], str], beside_source: bool = False
    ) -> Slot:
        """The slot of the message; `write` gives the characters of a text in the file."""
        return Slot(
            *(start, end, self.fragments, lambda answers: write(self.write(answers))),
            beside_source,
        )

    def write(self, answers: Sequence[tuple[Part, ...] | None]) -> str:
        said = []
        for (head, fragment, tail, width), answer in zip(self._blocks, answers, strict=True):
            ordered = self._ordered(fragment.parts, answer or fragment.parts)
            text = "".join(map(self._text, ordered))
            if width:
                text = textwrap.fill(
                    text, max(width, 40), break_long_words=False, break_on_hyphens=False
                )
            said += [*map(_raw, head), text, *map(_raw, tail)]
        return "".join(said)

    def _text(self, part: Part) -> str:
        # All "%" of a format are in codes, so one in the text is a character.
        return (
            part.raw
            if isinstance(part, Code)
            else part.replace("%", "%%" if self._is_format else "%")
        )

    def _ordered(self, source: tuple[Part, ...], answer: tuple[Part, ...]) -> tuple[Part, ...]:
        """The answer with variables that may stand in another order than in the source."""
        before, now = _arguments(source), _arguments(answer)
        if [it.raw for it in before] == [it.raw for it in now]:
            return answer
        if not self._reorders or any("*" in it.raw or "$" in it.raw for it in before):
            return placed(source, "".join(it for it in answer if isinstance(it, str)))
        numbered = {id(it): f"%{number}${it.raw[1:]}" for number, it in enumerate(before, 1)}
        return tuple(
            Code(numbered[id(it)], is_word=True) if id(it) in numbered else it for it in answer
        )


def _arguments(parts: Sequence[Part]) -> list[Code]:
    """The variables that have no name or number."""
    return [
        part
        for part in parts
        if isinstance(part, Code)
        and part.is_word
        and (
            part.raw == "{}" or re.fullmatch(r"%[^(){}%\d$][^$%]*|%[1-9][\d.]*[a-zA-Z]+", part.raw)
        )
        and part.raw != "%m"
    ]


def _raw(part: Part) -> str:
    return part.raw if isinstance(part, Code) else part
