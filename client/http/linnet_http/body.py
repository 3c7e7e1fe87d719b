"""Reads the body of a request: JSON, a form, or nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from .problem import Problem, invalid, missing

_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json")
_FORM = "application/x-www-form-urlencoded"
MAX_FORM_FIELDS = 4096
# Ruby writes nil as a name without "=": Mastodon sends "source_lang" so.
_NAMES = re.compile(
    "alternatives|api_key|context|format|formality|from|glossary_id|html|source|source_lang|"
    "src_lang|tag_handling"
)
BODY_SECONDS = 30  # for all of a body to arrive

Value = Any  # what JSON holds; of a form, a str or a list of them


class Fields(Mapping[str, Value]):
    """The fields of a request, with checks of their types. A form has text only, so numbers and
    truth values may be text; a field that occurs several times in a form is a list."""

    def __init__(self, values: Mapping[str, Value]):
        self._values = values

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def text(self, name: str, default: str | None = None) -> str:
        """The text in a field; null counts as absent. Raises Problem if it is missing and has no
        default, or is no text."""
        value = self._values.get(name)
        if value is None:
            if default is None:
                raise missing(name)
            return default
        if not isinstance(value, str):
            raise invalid(name, f"is {_kind(value)}, not a string")
        return _checked(value, name)

    def texts(self, name: str, maximum: int) -> list[str]:
        """The texts in a field that holds one or a list of them."""
        value = self._values.get(name)
        if value is None:
            raise missing(name)
        if isinstance(value, str):
            return [_checked(value, name)]
        if not isinstance(value, list):
            raise invalid(name, f"is {_kind(value)}, not a string or a list of strings")
        if len(value) > maximum:
            raise Problem(
                413,
                f"{name} has {len(value)} texts, at most {maximum} are allowed in one request: "
                "send the rest in another",
                "TOO_MANY_TEXTS",
                field=name,
            )
        for number, text in enumerate(value):
            if not isinstance(text, str):
                raise invalid(f"{name}[{number}]", f"is {_kind(text)}, not a string")
            _checked(text, f"{name}[{number}]")
        return value

    def number(self, name: str, default: int, least: int, most: int) -> int:
        value = self._values.get(name)
        if value is None or value == "":
            return default
        if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise invalid(name, f"is {_kind(value)}, not a whole number")
        if not least <= value <= most:
            raise invalid(name, f"is {value}, it must be {least} to {most}")
        return value

    def choice(self, name: str, choices: Iterable[str], default: str) -> str:
        value = self.text(name, default)
        allowed = list(choices)
        if value not in allowed:
            said = ", ".join(filter(None, allowed))
            raise invalid(name, f'is "{value[:40]}", it must be one of {said}')
        return value


def _kind(value: Value) -> str:
    names = {dict: "an object", list: "a list", bool: "true or false", int: "a number"}
    names |= {float: "a number", str: "a string", type(None): "null"}
    return names[type(value)]


def _checked(text: str, name: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise invalid(
            name,
            f"is not valid Unicode: character {error.start} is the lone surrogate "
            f"U+{ord(text[error.start]):04X}",
        ) from None
    return text


async def read_bytes(request: web.Request, maximum: int) -> bytes:
    """The body, unpacked if it is compressed. Raises Problem as soon as it is longer than
    `maximum` bytes or has taken too long."""
    said = request.content_length
    if said is not None and said > maximum:
        raise _too_large(maximum)
    if request.content.is_eof():  # it came with the head
        found = bytearray(request.content.read_nowait())
    else:
        found = bytearray()
        async with in_time():
            async for chunk in request.content.iter_any():
                found += chunk
                if len(found) > maximum:
                    break
    if len(found) > maximum:
        raise _too_large(maximum)
    return bytes(found)


@contextlib.asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Raises Problem if the body takes too long to arrive."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            yield
    except TimeoutError:
        raise Problem(
            408, f"the body did not arrive within {BODY_SECONDS} s", "BODY_TOO_SLOW"
        ) from None


def _too_large(maximum: int) -> Problem:
    return Problem(
        413,
        f"the body has more than {maximum} bytes: send less text in one request",
        "BODY_TOO_LARGE",
    )


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _object(found: list[tuple[str, Value]]) -> dict[str, Value]:
    values = dict(found)
    if len(values) < len(found):
        names = [name for name, _ in found]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f'"{twice[:40]}" occurs twice in an object')
    return values


_DECODER = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_object)


def parse_json(body: bytes) -> Value:
    """JSON by RFC 8259: UTF-8, without NaN, and with no name twice in an object."""
    try:
        return _DECODER.decode(body.decode().removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        raise Problem(
            400, f"the body is not UTF-8: byte {error.start} is wrong", "INVALID_UTF8"
        ) from None
    except json.JSONDecodeError as error:
        raise Problem(
            400, f"the body is not JSON: {error.msg} at character {error.pos}", "MALFORMED"
        ) from None
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise Problem(400, f"the body is not JSON: {said}", "MALFORMED") from None


def parse_form(text: str) -> dict[str, Value]:
    """The fields of a form or of the query string of a URL, as it was sent."""
    parts = [part for part in text.split("&") if part]
    for part in parts:
        if "=" not in part and not _NAMES.fullmatch(part):  # the rest of a text would be lost
            raise Problem(
                400,
                f'the form has "{part[:40]}" without "=": write "&" in a text as %26',
                "MALFORMED",
            )
    try:
        pairs = parse_qsl(
            "&".join(parts),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_FORM_FIELDS,
        )
    except UnicodeDecodeError:
        raise Problem(400, "a field of the form is not UTF-8", "INVALID_UTF8") from None
    except ValueError as error:
        raise Problem(400, f"the form cannot be read: {error}"[:200], "MALFORMED") from None
    found: dict[str, Value] = {}
    for name, value in pairs:
        if name not in found:
            found[name] = value
        elif isinstance(found[name], list):
            found[name].append(value)
        else:
            found[name] = [found[name], value]
    return found


async def _multipart(request: web.Request) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, value in (await request.post()).items():
        if not isinstance(value, str):
            raise invalid(name, "is a file: this path takes text")
        found[name] = value if name not in found else [*_listed(found[name]), value]
    return found


def _listed(value: Value) -> list[Value]:
    return value if isinstance(value, list) else [value]


def query_fields(request: web.Request) -> dict[str, Value]:
    """The fields of the URL. aiohttp's own ones hide bytes that are not UTF-8."""
    return parse_form(request.rel_url.raw_query_string)


async def read_fields(request: web.Request, maximum: int) -> Fields:
    """The fields of the body; those of the query string where there is no body. A GET may have a
    body: DeepL's and LibreTranslate's clients send their forms so."""
    kind = request.content_type if "Content-Type" in request.headers else ""
    charset = (request.charset or "utf-8").lower()
    if kind == "multipart/form-data":
        try:
            async with in_time():
                return Fields(await _multipart(request))
        except web.HTTPRequestEntityTooLarge:
            raise _too_large(maximum) from None
        except (ValueError, AssertionError) as error:
            raise Problem(400, f"the form cannot be read: {error}"[:200], "MALFORMED") from None
    body = await read_bytes(request, maximum)
    if not body:
        return Fields(query_fields(request))
    if charset not in ("utf-8", "utf8", "us-ascii"):
        raise Problem(415, f"the charset {charset[:40]} is not supported: send UTF-8", "BAD_TYPE")
    if kind == _FORM:
        if body.lstrip()[:1] == b"{":
            raise Problem(
                415, "the body is JSON: send it with the Content-Type application/json", "BAD_TYPE"
            )
        try:
            return Fields(parse_form(body.decode()))  # `curl -d` does not percent-encode
        except UnicodeDecodeError as error:
            raise Problem(
                400, f"the body is not UTF-8: byte {error.start} is wrong", "INVALID_UTF8"
            ) from None
    if _JSON.fullmatch(kind):
        value = parse_json(body)
        if not isinstance(value, dict):
            raise Problem(400, f"the body is {_kind(value)}, not an object", "MALFORMED")
        return Fields(value)
    raise Problem(
        415,
        f'the Content-Type "{kind[:80]}" is not supported: send application/json or {_FORM}',
        "BAD_TYPE",
    )
