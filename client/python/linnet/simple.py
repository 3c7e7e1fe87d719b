"""`linnet.translate("A dog runs.", to="de")`: strings in, strings out, with a client of this
process that is made with the first call."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from typing import overload

from .client import Client
from .texts import Terms
from .v1 import text_service_pb2 as api


@lru_cache(maxsize=8)
def _client(server: str, process: int) -> Client:
    return Client(server)  # `process`: a connection does not survive a fork


def default_client(server: str = "") -> Client:
    """Of the server that is named, else LINNET_SERVER, else 127.0.0.1:50051."""
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
    timeout: float | None = None,
    server: str = "",
) -> str | list[str]:
    """A text, or a list of them, in the language `to`. The language of the texts, `source`, may be
    left out where the models leave no choice, or the texts say it."""
    return default_client(server).translate(
        text,
        to=to,
        source=source,
        model=model,
        glossary=glossary,
        options=options,
        timeout=timeout,
    )


@overload
def summarize(  # type: ignore[overload-overlap]
    text: str,
    *,
    language: str = "",
    model: str = "",
    timeout: float | None = None,
    server: str = "",
) -> str: ...
@overload
def summarize(
    text: Iterable[str],
    *,
    language: str = "",
    model: str = "",
    timeout: float | None = None,
    server: str = "",
) -> list[str]: ...
def summarize(
    text: str | Iterable[str],
    *,
    language: str = "",
    model: str = "",
    timeout: float | None = None,
    server: str = "",
) -> str | list[str]:
    """A text, or a list of them, in a line each. What is longer than the model reads is summarised
    in chunks."""
    return default_client(server).summarize(text, language=language, model=model, timeout=timeout)
