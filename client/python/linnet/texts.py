"""Converts plain strings to requests and answers to strings, for both clients."""

from __future__ import annotations

import inspect
import re
import reprlib
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from .errors import LinnetError
from .v1 import bundle_pb2 as bundle
from .v1 import text_service_pb2 as api

# A call is large enough to fill a batch of the server and small enough for its limits and timeouts.
TEXTS_PER_CALL = 64
BYTES_PER_CALL = 64 << 10
# Reasons for which a server refuses a call whose parts it may take: docs/ERRORS.md.
TOO_LARGE = {
    *("CALL_TOO_LARGE", "TEXT_TOO_LARGE", "TOO_MANY_TEXTS", "TOO_MANY_SEGMENTS"),
    "MESSAGE_TOO_LARGE",
}

# Matches a text that is only white space to a server, which refuses it as EMPTY: characters with
# the property White_Space of Unicode, after a byte order mark at most. str.strip() keeps the mark,
# and strips four control characters (U+001C to U+001F) that a server translates.
WHITE_SPACE = re.compile(
    r"\ufeff?[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*"
)

TextAnswer = api.Translation | api.Summary
Start = TypeVar("Start", api.TranslateDocumentRequest, api.SummarizeDocumentRequest)
Terms = api.Glossary | Mapping[str, str | None]


class LinnetWarning(UserWarning):
    """A warning of the server about an answer: see Warning in the API."""


def _depth_of_caller() -> int:
    """The stacklevel of the first frame outside of this package, for warnings.warn."""
    depth, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__package__") == __package__:
        depth, frame = depth + 1, frame.f_back
    return depth


def glossary(terms: Terms) -> api.Glossary:
    """Converts a mapping from terms to translations; None or "" keeps a term as it is."""
    if isinstance(terms, api.Glossary):
        return terms
    if not hasattr(terms, "items"):
        kind = type(terms).__name__
        raise LinnetError.local(f"glossary is a {kind}, not a mapping", field="glossary")
    found = api.Glossary()
    for number, (source, target) in enumerate(terms.items()):
        entry = found.entries.add()
        set_field(entry, "source_text", source, f"glossary.entries[{number}].source_text")
        set_field(entry, "target_text", target, f"glossary.entries[{number}].target_text")
    return found


def set_field(message: Message, field: str, value: object, name: str = "") -> None:
    """Sets a field that is no message to an argument of the caller; None leaves it unset. Raises
    LinnetError with the argument's `name`, by default the field's, for what protobuf refuses with
    an error that does not name it: another type, a number out of range, a lone surrogate."""
    name = name or field
    try:
        if value is not None:
            setattr(message, field, value)
    except (TypeError, ValueError) as error:
        raise LinnetError.local(f"{name} is {reprlib.repr(value)}: {error}", field=name) from error


def check_message(value: object, kind: type[Message], name: str) -> None:
    """Raises LinnetError for an argument that is not a message of this kind."""
    if not isinstance(value, kind):
        raise LinnetError.local(
            f"{name} is a {type(value).__name__}, not a {kind.__name__}", field=name
        )


def check_lines(lines: object, name: str, *, asynchronous: bool = False) -> None:
    """Raises LinnetError for an argument over which no loop can go. Does not begin to iterate: an
    error of the caller's iterator is passed on unchanged."""
    methods = ("__iter__", "__getitem__", *(("__aiter__",) if asynchronous else ()))
    # The lines of a string would be its characters.
    if isinstance(lines, str | bytes) or not any(hasattr(lines, method) for method in methods):
        kind = type(lines).__name__
        raise LinnetError.local(f"{name} is a {kind}, not an iterable of lines", field=name)


def document_start(kind: type[Start], settings: Any, keep_order: bool) -> Start:
    """The first message of a document. Raises LinnetError for wrong arguments."""
    check_message(settings, type(kind().settings), "settings")
    first = kind(settings=settings)
    set_field(first, "keep_order", keep_order)
    return first


def check_text(text: str, field: str) -> None:
    """Raises LinnetError for what protobuf would refuse with an error that does not name the
    text."""
    if not isinstance(text, str):
        raise LinnetError.local(f"{field} is a {type(text).__name__}, not a str", field=field)
    found = re.search(r"[\ud800-\udfff]", text)
    if found:
        raise LinnetError.local(
            f"{field} cannot be UTF-8: character {found.start()} is the lone surrogate "
            f"U+{ord(found[0]):04X}",
            field=field,
        )


def split_at_lines(text: str, maximum: int = BYTES_PER_CALL, joins: bool = False) -> Iterator[str]:
    """Splits a text into parts of at most `maximum` bytes; a longer line is a part of its own. A
    newline always ends a sentence, so the parts are translated like the whole. If the server
    `joins` lines, a part ends with a blank line where it can."""
    part: list[str] = []
    size = 0
    blank = 0  # lines of the part up to its last blank line
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        line_size = len(line.encode("utf-8", "surrogatepass"))
        while part and size + line_size > maximum:
            whole = blank or len(part)
            yield "".join(part[:whole])
            part = part[whole:]
            size = sum(len(it.encode("utf-8", "surrogatepass")) for it in part)
            blank = 0
        part.append(line)
        size += line_size
        if joins and WHITE_SPACE.fullmatch(line):
            blank = len(part)
    if part:
        yield "".join(part)


@dataclass(eq=False)
class Part:
    """A part of a text that is one content of a call; its answer, or the smaller parts that were
    sent in its place."""

    text: int  # index of the text
    content: str
    answer: str | None = None
    smaller: list[Part] = field(default_factory=list)

    def said(self) -> str:
        if self.smaller:
            return "".join(part.said() for part in self.smaller)
        return self.content if self.answer is None else self.answer


@dataclass
class Plan:
    """Distributes texts over calls. A text of white space is its own answer and is not sent."""

    texts: list[str]
    whole: bool = False  # texts are not split
    joins: bool = False  # the server joins lines
    alone: bool = False  # the input was a str, and so is the answer
    parts: list[list[Part]] = field(default_factory=list)  # of each text
    warnings: dict[str, None] = field(default_factory=dict)  # once each, in order

    def __post_init__(self) -> None:
        for number, text in enumerate(self.texts):
            check_text(text, f"contents[{number}]")
            contents = [text] if self.whole else split_at_lines(text, joins=self.joins)
            self.parts.append([Part(number, content) for content in contents])

    @classmethod
    def of(cls, texts: str | Iterable[str], whole: bool = False, joins: bool = False) -> Plan:
        if isinstance(texts, str):
            return cls([texts], whole, joins, alone=True)
        if not isinstance(texts, Iterable) or isinstance(texts, bytes | Message):
            kind = type(texts).__name__
            raise LinnetError.local(f"text is a {kind}, neither a str nor a list of them")
        return cls(list(texts), whole, joins)

    def calls(self) -> Iterator[list[Part]]:
        """Yields the contents of each call."""
        call: list[Part] = []
        size = 0
        for part in (part for parts in self.parts for part in parts):
            if WHITE_SPACE.fullmatch(part.content):
                continue
            more = len(part.content.encode())
            full = size + more > BYTES_PER_CALL or len(call) == TEXTS_PER_CALL
            if call and full:
                yield call
                call, size = [], 0
            call.append(part)
            size += more
        if call:
            yield call

    def smaller(self, call: list[Part], error: LinnetError) -> list[list[Part]]:
        """The calls to make in place of one that the server has refused as too large: of half as
        many parts, or of smaller ones. None if that does not help."""
        if error.reason not in TOO_LARGE:
            return []
        if len(call) > 1:
            middle = len(call) // 2
            return [call[:middle], call[middle:]]
        (part,) = call
        if self.whole:
            return []
        half = -(-len(part.content.encode()) // 2)
        contents = list(split_at_lines(part.content, half, self.joins))
        if len(contents) < 2:
            return []
        part.smaller = [Part(part.text, content) for content in contents]
        return [[it] for it in part.smaller if not WHITE_SPACE.fullmatch(it.content)]

    def answer(self, call: list[Part], answers: Collection[TextAnswer]) -> None:
        if len(answers) != len(call):
            raise LinnetError.local(
                f"the server gave {len(answers)} answers to {len(call)} texts",
                grpc.StatusCode.INTERNAL,
            )
        for part, said in zip(call, answers, strict=True):
            part.answer = said.text
            for warning in said.warnings:
                self.warnings[f"contents[{part.text}]: {warning.message}"] = None

    @contextmanager
    def naming(self, call: list[Part]) -> Iterator[list[str]]:
        """Gives the contents of a call. Makes errors name a text by its index among all texts
        instead of that in its call."""
        try:
            yield [part.content for part in call]
        except LinnetError as error:
            for sent, part in enumerate(call):
                # A server names all contents, not one of them, if the call is too much for it.
                only = len(call) == 1 and error.field == "contents"
                if only or error.field == f"contents[{sent}]":
                    error.rename(error.field, f"contents[{part.text}]")
                    break
            raise

    def answers(self) -> str | list[str]:
        for warning in self.warnings:
            warnings.warn(warning, LinnetWarning, stacklevel=_depth_of_caller())
        joined = ["".join(part.said() for part in parts) for parts in self.parts]
        return joined[0] if self.alone else joined


def keep_language(plan: Plan, request: api.TranslateRequest, reply: api.TranslateResponse) -> None:
    """Uses, for the calls of one long text, the language that was detected in the first for the
    others, if the request names none. Several texts may be in several languages, and a part that is
    in the target language already says nothing about the others."""
    unchanged = any(
        warning.reason == "ALREADY_IN_TARGET_LANGUAGE"
        for translation in reply.translations
        for warning in translation.warnings
    )
    if not plan.alone or unchanged or request.source_language_code:
        return
    request.source_language_code = reply.detected_language.language_code


def check_request_alone(**given: object) -> None:
    """Raises LinnetError for an argument beside a request, which has a field of its own for it."""
    fields = {
        "to": "target_language_code",
        "source": "source_language_code",
        "language": "language_code",
        "words": "length.words",
        "sentences": "length.sentences",
    }
    for name, value in given.items():
        if value not in ("", (), None) and value is not False:
            raise LinnetError.local(
                f"{name} is given beside a request, set {fields.get(name, name)} in the request",
                field=name,
            )


def translation(
    to: str,
    source: str,
    model: str,
    terms: Terms | None,
    options: api.DecodingOptions | None,
    direct_only: bool = False,
    line_breaks: str = "",
    mime_type: str = "",
    protected_patterns: Iterable[str] = (),
    markup: api.MarkupOptions | None = None,
    target_prefix: str = "",
) -> api.TranslateRequest:
    """The request without its texts."""
    if options is not None:
        check_message(options, api.DecodingOptions, "options")
    if markup is not None:
        check_message(markup, api.MarkupOptions, "markup")
    request = api.TranslateRequest(
        glossary=None if terms is None else glossary(terms),
        options=options,
        line_breaks=line_breaks_named(line_breaks),
        markup=markup,
    )
    add_patterns(request, protected_patterns)
    set_field(request, "target_language_code", to, "to")
    set_field(request, "source_language_code", source, "source")
    set_field(request, "model", model)
    set_field(request, "direct_only", direct_only)
    set_field(request, "mime_type", mime_type)
    set_field(request, "target_prefix", target_prefix)
    return request


def add_patterns(request: api.TranslateRequest, patterns: Iterable[str]) -> None:
    name = "protected_patterns"
    if isinstance(patterns, str):
        raise LinnetError.local(f"{name} is a str, not a list of them", field=name)
    try:
        request.protected_patterns.extend(patterns)
    except (TypeError, ValueError) as error:
        raise LinnetError.local(f"{name}: {error}", field=name) from error


def _named(enum: Any, prefix: str, name: str, called: str) -> Any:
    """The value of an enum of the API with this name; unset for an empty one."""
    values = {value.removeprefix(prefix).lower(): number for value, number in enum.items()}
    unset = values.pop("unspecified")
    if not name:
        return unset
    if not isinstance(name, str) or name not in values:
        raise LinnetError.local(
            f"{called} is {name!r}, known are {', '.join(values)}", field=called
        )
    return values[name]


def style_named(name: str) -> bundle.SummaryStyle.ValueType:
    """The style of the API with this name; unset for an empty one."""
    style: bundle.SummaryStyle.ValueType
    style = _named(bundle.SummaryStyle, "SUMMARY_STYLE_", name, "style")
    return style


def line_breaks_named(name: str) -> api.LineBreaks.ValueType:
    """The value of the API for "keep" or "join_paragraphs"; unset for an empty name."""
    line_breaks: api.LineBreaks.ValueType
    line_breaks = _named(api.LineBreaks, "LINE_BREAKS_", name, "line_breaks")
    return line_breaks


def is_whole(request: api.TranslateRequest) -> bool:
    """True if a text is not sent in parts: it is markup, or its translation has a given start."""
    return request.mime_type not in ("", "text/plain") or bool(request.target_prefix)


def joins_lines(request: api.TranslateRequest) -> bool:
    return request.line_breaks == api.LINE_BREAKS_JOIN_PARAGRAPHS


def summary(
    language: str,
    model: str,
    words: int | None = None,
    sentences: int | None = None,
    style: str = "",
) -> api.SummarizeRequest:
    """The request without its texts."""
    if words is not None and sentences is not None:
        raise LinnetError.local(
            "words and sentences are both given, a summary has one length", field="length"
        )
    request = api.SummarizeRequest(long_input=api.LONG_INPUT_CHUNK, style=style_named(style))
    set_field(request, "language_code", language, "language")
    set_field(request, "model", model)
    set_field(request.length, "words", words)
    set_field(request.length, "sentences", sentences)
    return request
