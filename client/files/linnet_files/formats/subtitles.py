"""Cues: sentences that span several are translated as one and split again."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from ..document import Document, Slot, Source, trimmed
from ..fragment import CLOSE, OPEN, Code, Fragment, Part, joined, pairs
from .format import Options

MAX_CUES = 6  # that are translated as one
_TRIES = 8  # to find lines of equal length
MAX_GAP = 2.0  # seconds between two cues with parts of one sentence
_SENTENCE_END = re.compile(r"[.!?…。！？♪♫\])]['\"”’»\s]*$")
_NEW_SPEAKER = re.compile(r"\s*(?:[-–—♪♫\[(>#*]|[\w .]{1,20}:)")
# Words, and characters of scripts without blanks.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uff00-\uffef]\W?|[^\s\u3040-\u30ff\u3400-\u9fff]+")
_STAND_INS = "\ue000\ue001"  # for the characters of a code that is a word
_PUNCTUATION = tuple(",.;:!?…、。，！？")


@dataclass(frozen=True)
class Cue:
    """A part of the file with lines of text, and the seconds for which it is shown."""

    start: int
    end: int
    shown_from: float
    shown_to: float
    parts: tuple[Part, ...]  # line ends are blanks

    @property
    def text(self) -> str:
        return "".join(part for part in self.parts if isinstance(part, str)).strip()


class _Border(Code):
    """What stands in the file between the texts of two cues."""


def document_of(
    source: Source, cues: Sequence[Cue], escape: Callable[[str], str], options: Options
) -> Document:
    """The document with these cues. When it is written, cues that keep no limit are noted."""
    notes: list[str] = []
    slots: list[Slot] = []
    group: list[Cue] = []
    for cue, following in zip_longest(cues, cues[1:]):
        group.append(cue)
        if following and len(group) < MAX_CUES and _continues(source, cue, following):
            continue
        slots.append(_slot(source, group, escape, options, notes))
        group = []
    return Document(source, slots, notes=notes)


def _continues(source: Source, cue: Cue, following: Cue) -> bool:
    """True if a sentence goes on in the next cue."""
    text, more = cue.text, following.text
    gap = following.shown_from - cue.shown_to
    if not text or not more or not -MAX_GAP <= gap <= MAX_GAP:
        return False
    if following.shown_from <= cue.shown_from:  # another speaker, or another place on the screen
        return False
    if _SENTENCE_END.search(text) and not (text.endswith(("...", "…")) and more[0].islower()):
        return False
    line = source.text.rfind("\n", 0, following.start) + 1
    if _NEW_SPEAKER.match(source.text[line : following.start] + more):
        return False
    has_case = text.lower() != text.upper()
    return has_case or text.endswith(("、", "，", ","))


def _slot(
    source: Source,
    cues: list[Cue],
    escape: Callable[[str], str],
    options: Options,
    notes: list[str],
) -> Slot:
    whole: list[Part] = list(cues[0].parts)
    for before, cue in pairwise(cues):
        border = _Border(source.text[before.end : cue.start])
        whole = _connected(whole, border, list(cue.parts))
    first, last = trimmed(whole)
    head, parts, tail = whole[:first], joined(whole[first:last]), whole[last:]

    def write(answers: Sequence[tuple[Part, ...] | None]) -> str:
        said = split((*head, *(answers[0] or parts), *tail), cues, options)
        borders = [part.raw for part in whole if isinstance(part, _Border)]
        written = []
        for cue, lines, border in zip(cues, said, [*borders, ""], strict=True):
            notes.extend(f"{source.place(cue.start)}: {it}" for it in _excess(cue, lines, options))
            written.append(
                "".join(
                    part.raw
                    if isinstance(part, Code)
                    else source.newline
                    if part == "\n"
                    else escape(part)
                    for part in lines
                )
            )
            written.append(border)
        return "".join(written)

    place = source.place(cues[0].start)
    return Slot(cues[0].start, cues[-1].end, (Fragment(parts, place),), write)


def _excess(cue: Cue, parts: Sequence[Part], options: Options) -> Iterator[str]:
    """What the text of a cue has more of than the options want."""
    text = "".join(part for part in parts if isinstance(part, str))
    lines, seconds = text.count("\n") + 1, cue.shown_to - cue.shown_from
    if lines > options.lines:
        yield f"the cue has {lines} lines, {options.lines} are wanted"
    if (width := _width(text)) > max(1.0, options.reading_speed * seconds):
        yield (
            f"the cue has {width} characters in {seconds:g} s, "
            f"{options.reading_speed:g} a second are wanted"
        )


def _connected(parts: list[Part], border: _Border, more: list[Part]) -> list[Part]:
    """A pair that closes before the border and opens again behind it goes on: `split` closes and
    opens it where the border is then."""
    starts = {end: start for start, end in pairs(parts).items()}
    if (
        parts
        and more
        and (start := starts.get(len(parts) - 1)) is not None
        and parts[start] == more[0]
    ):
        return [*parts[:-1], " ", border, *more[1:]]
    return [*parts, " ", border, *more]


def split(parts: tuple[Part, ...], cues: Sequence[Cue], options: Options) -> list[list[Part]]:
    """Splits a translation into the parts of each cue, with "\\n" between its lines. The borders
    move from where the codes stand to where the cues keep their limits."""
    text, codes, wanted = "", [], []  # codes: (position, index in parts)
    names: list[Code] = []
    for index, part in enumerate(parts):
        if isinstance(part, str):
            text += part.lstrip() if text.endswith(" ") else part
        elif isinstance(part, _Border):
            text = text.rstrip()
            text += " " * (_width(text[-1:]) == 1)
            wanted.append(len(text))
        elif part.is_word:  # a word for what follows
            text += _STAND_INS[len(names) % 2] * len(part.raw)
            names.append(part)
        else:
            codes.append((len(text), index))
    words = [(found.start(), found.end()) for found in _WORD.finditer(text)]
    if not words:
        return [list(parts if not number else ()) for number in range(len(cues))]
    ranges = _ranges(text, words, sorted(wanted), cues, options)
    ends = pairs(parts)
    closing = set(ends.values())
    said: list[list[Part]] = []
    open_: list[int] = []
    next_code = 0
    for number, (start, end) in enumerate(ranges):
        is_last = number == len(ranges) - 1
        line_ends = _line_ends(text, start, end, options)
        shown: list[Part] = [parts[index] for index in open_]
        position = start
        while next_code < len(codes):
            at, index = codes[next_code]
            # At a border, what closes stays before it and everything else goes behind it.
            if not is_last and (at > end or (at >= ranges[number + 1][0] and index not in closing)):
                break
            if not is_last and at >= end and index not in closing:
                break
            at = min(max(at, position), end)
            shown += [*_lines(text, position, at, line_ends), parts[index]]
            position = at
            next_code += 1
            if index in ends:
                open_.append(index)
            elif index in closing and open_:
                open_.pop()
        shown += [
            *_lines(text, position, end, line_ends),
            *(parts[ends[index]] for index in reversed(open_)),
        ]
        said.append(shown)
    taken = iter(names)
    return [[it for part in shown for it in _named(part, taken)] for shown in said]


def _named(part: Part, names: Iterator[Code]) -> Iterator[Part]:
    """The part with the codes that stand-ins stand for."""
    if isinstance(part, Code):
        yield part
        return
    for piece in re.findall(f"{_STAND_INS[0]}+|{_STAND_INS[1]}+|[^{_STAND_INS}]+", part):
        yield next(names) if piece[0] in _STAND_INS else piece


def _lines(text: str, start: int, end: int, line_ends: set[int]) -> list[Part]:
    """The characters `start` to `end` with "\\n" in the place of the white space at line ends."""
    found: list[Part] = []
    for at in sorted(it for it in line_ends if start <= it < end):
        found += [text[start:at].rstrip(), "\n"]
        start = at + len(text[at:end]) - len(text[at:end].lstrip())
    return [*found, text[start:end]]


def _ranges(
    text: str,
    words: list[tuple[int, int]],
    wanted: list[int],
    cues: Sequence[Cue],
    options: Options,
) -> list[tuple[int, int]]:
    """The characters of each cue: the cheapest borders at words by the distance from the wanted
    ones, the lines and characters above the limits, and the punctuation before them."""
    if len(words) < len(cues):  # a word stays for the cues that it was said in
        picks = [
            min(number * len(words) // len(cues), len(words) - 1) for number in range(len(cues))
        ]
        return [words[pick] for pick in picks]
    best: list[dict[int, tuple[float, int]]] = [{0: (0.0, 0)}]  # words so far: cost, words before
    for number, cue in enumerate(cues):
        left = len(cues) - 1 - number
        fast = max(1.0, options.reading_speed * (cue.shown_to - cue.shown_from))
        now: dict[int, tuple[float, int]] = {}
        for begun, (cost, _) in best[-1].items():
            lines, line = 1, words[begun][0]
            for ended in range(begun + 1, len(words) - left + 1):
                start, end = words[ended - 1]
                if _width(text[line:end]) > options.line_length and start > line:
                    lines, line = lines + 1, start
                if not left and ended < len(words):
                    continue
                width = _width(text[words[begun][0] : end])
                total = cost + 200 * max(0, lines - options.lines) + max(0.0, width - fast)
                if left:
                    total += abs(words[ended][0] - wanted[number])
                    total -= 4 * text.endswith(_PUNCTUATION, 0, end)
                if ended not in now or total < now[ended][0]:
                    now[ended] = total, begun
        best.append(now)
    borders = [len(words)]
    for step in reversed(best[1:]):
        borders.append(step[borders[-1]][1])
    borders.reverse()
    found = [(words[first][0], words[last - 1][1]) for first, last in pairwise(borders)]
    found[0] = 0, found[0][1]
    found[-1] = found[-1][0], len(text)
    return found


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(it) in "WF" else 1 for it in text)


def _line_ends(text: str, start: int, end: int, options: Options) -> set[int]:
    """Where lines end: as few lines as the limit allows, of about equal length."""
    words = [(start + it.start(), start + it.end()) for it in _WORD.finditer(text[start:end])]
    count = max(1, -(-_width(text[start:end]) // options.line_length))
    for _ in range(_TRIES):
        goal = -(-_width(text[start:end]) // count)
        found = _filled(text, words, goal, options.line_length)
        if len(found) < count:
            return set(found)
        count += 1
    return set(_filled(text, words, options.line_length, options.line_length))


def _filled(text: str, words: list[tuple[int, int]], goal: int, limit: int) -> list[int]:
    """Line ends when a line ends with the word that brings it nearest to `goal`, below `limit`."""
    found: list[int] = []
    begun = 0
    for number in range(1, len(words)):
        with_word = _width(text[words[begun][0] : words[number][1]])
        without = _width(text[words[begun][0] : words[number - 1][1]])
        if with_word > limit or with_word - goal > goal - without:
            found.append(words[number - 1][1])
            begun = number
    return found


def lines_of(
    text: str, start: int, end: int, tags: re.Pattern[str], unescape: Callable[[str], str]
) -> tuple[Part, ...]:
    """The parts of the lines of a cue: tags are codes, line ends are blanks."""
    found: list[Part] = []
    at = start
    for tag in [*tags.finditer(text, start, end), None]:
        stop = tag.start() if tag else end
        found.append(unescape(re.sub(r"[ \t]*\r?\n[ \t]*", " ", text[at:stop])))
        if tag:
            found.append(_code(tag))
            at = tag.end()
    return joined(found)


def _code(tag: re.Match[str]) -> Code:
    raw = tag[0]
    if not raw.startswith("<") or raw[1:2].isdigit():
        return Code(raw, is_word=not raw.startswith(("<", "{")))
    return Code(raw, CLOSE if raw.startswith("</") else OPEN)
