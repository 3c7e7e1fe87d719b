"""Makes blocking code of the code for asyncio."""

from __future__ import annotations

import io
import tokenize

_NAMES = {
    "AsyncClient": "Client",
    "AsyncClientLife": "ClientLife",
    "AsyncConnection": "Connection",
    "AsyncDocument": "Document",
    "AsyncIterator": "Iterator",
    "AsyncStream": "Stream",
    "__aiter__": "__iter__",
    "async_connection": "connection",
    "async_document": "document",
    "async_plan": "plan",
    "async_stream": "stream",
}


def blocking(source: str) -> str:
    """Drops every `async` and `await`, and replaces the names of _NAMES. Strings and comments stay
    as they are. Raises ValueError for a name of asyncio that is not in the table."""
    lines = source.splitlines(keepends=True)
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(source).readline))):
        if token.type != tokenize.NAME:
            continue
        (row, begin), (_, end) = token.start, token.end
        line = lines[row - 1]
        if token.string in ("async", "await"):
            lines[row - 1] = line[:begin] + line[end:].removeprefix(" ")
        elif token.string in _NAMES:
            lines[row - 1] = line[:begin] + _NAMES[token.string] + line[end:]
        elif "async" in token.string.lower():
            raise ValueError(f"line {row}: {token.string} has no blocking name in _NAMES")
    return "".join(lines)
