"""`linnet.translate("A dog runs.", to="de")`: functions from strings to strings. They share one
client per process, which the first call creates."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from typing import overload

from .client import Client
from .errors import LinnetError
from .texts import Terms
from .v1 import text_service_pb2 as api


@lru_cache(maxsize=8)
def _client(server: str, process: int) -> Client:
    return Client(server)  # `process`: a connection does not survive a fork


def default_client(server: str = "") -> Client:
    """The client of `server`, else of LINNET_SERVER, else of 127.0.0.1:50051."""
    if not isinstance(server, str):
        raise LinnetError.local(f"server is a {type(server).__name__}, not a str")
    return _client(server or os.environ.get("LINNET_SERVER") or "127.0.0.1:50051", os.getpid())


@overload
def translate(  # type: ignore[overload-overlap]
    text: str,
    *,
    to: str,
    source: str = "",
    model: str = "",
    glossary: Terms | None = None,
    options: api.DecodingOptions | None = None,
    direct_only: bool = False,
    line_breaks: str = "",
    mime_type: str = "",
    protected_patterns: Iterable[str] = (),
    markup: api.MarkupOptions | None = None,
    target_prefix: str = "",
    timeout: float | None = None,
    server: str = "",
) -> str: ...
@overload
def translate(
    text: Iterable[str],
    *,
    to: str,
    source: str = "",
    model: str = "",
    glossary: Terms | None = None,
    options: api.DecodingOptions | None = None,
    direct_only: bool = False,
    line_breaks: str = "",
    mime_type: str = "",
    protected_patterns: Iterable[str] = (),
    markup: api.MarkupOptions | None = None,
    target_prefix: str = "",
    timeout: float | None = None,
    server: str = "",
) -> list[str]: ...
def translate(
    text: str | Iterable[str],
    *,
    to: str,
    source: str = "",
    model: str = "",
    glossary: Terms | None = None,
    options: api.DecodingOptions | None = None,
    direct_only: bool = False,
    line_breaks: str = "",
    mime_type: str = "",
    protected_patterns: Iterable[str] = (),
    markup: api.MarkupOptions | None = None,
    target_prefix: str = "",
    timeout: float | None = None,
    server: str = "",
) -> str | list[str]:
    """Translates a text or a list of texts to the language `to`. The language of the texts,
    `source`, is not needed if only one fits the models or if the server can detect it. Where no
    model translates the pair, two do through a third language, unless `direct_only`. With
    `line_breaks="join_paragraphs"` the lines of a paragraph that was wrapped are joined. With
    `mime_type="text/html"` or "application/xml" a text is a fragment whose tags are kept, as
    `markup` says. What `protected_patterns`, regular expressions of RE2, match is copied.
    The translation of a single text begins with `target_prefix`."""
    return default_client(server).translate(
        text,
        to=to,
        source=source,
        model=model,
        glossary=glossary,
        options=options,
        direct_only=direct_only,
        line_breaks=line_breaks,
        mime_type=mime_type,
        protected_patterns=protected_patterns,
        markup=markup,
        target_prefix=target_prefix,
        timeout=timeout,
    )


@overload
def summarize(  # type: ignore[overload-overlap]
    text: str,
    *,
    language: str = "",
    model: str = "",
    words: int | None = None,
    sentences: int | None = None,
    style: str = "",
    timeout: float | None = None,
    server: str = "",
) -> str: ...
@overload
def summarize(
    text: Iterable[str],
    *,
    language: str = "",
    model: str = "",
    words: int | None = None,
    sentences: int | None = None,
    style: str = "",
    timeout: float | None = None,
    server: str = "",
) -> list[str]: ...
def summarize(
    text: str | Iterable[str],
    *,
    language: str = "",
    model: str = "",
    words: int | None = None,
    sentences: int | None = None,
    style: str = "",
    timeout: float | None = None,
    server: str = "",
) -> str | list[str]:
    """Summarises a text or a list of texts in a line each. A text that is longer than the model's
    limit is summarised in chunks. A summary has at most so many `words`, and at least three
    quarters of them, or so many `sentences`. `style` is "title", "sentence" or "paragraph", if the
    model has it; by default the model's first."""
    return default_client(server).summarize(
        text,
        language=language,
        model=model,
        words=words,
        sentences=sentences,
        style=style,
        timeout=timeout,
    )
