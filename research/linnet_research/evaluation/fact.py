"""A fact of a made-up sentence, and the forms that carry it over into another language."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    kind: str  # number, date, time, amount, name or address
    text: str  # as in the sentence
    pattern: str  # a regular expression for the forms that carry it over

    def is_in(self, answer: str) -> bool:
        return re.search(rf"(?<![\w.,:]){self.pattern}(?![\w])(?![.,]\d)", answer) is not None


def literal(text: str) -> Fact:
    return Fact("address", text, re.escape(text))
