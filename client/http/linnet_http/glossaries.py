"""Glossaries that callers keep here, in a file of SQLite."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import re
import sqlite3
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from .problem import Problem, invalid

MAX_GLOSSARIES = 1000  # of a caller
MAX_ENTRIES = 256  # of a dictionary: what a request to the server may hold
MAX_TERM_BYTES = 256  # as above
_TABLES = """
CREATE TABLE IF NOT EXISTS glossary (
  id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, created TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS glossary_owner ON glossary (owner);
CREATE TABLE IF NOT EXISTS dictionary (
  glossary TEXT NOT NULL REFERENCES glossary ON DELETE CASCADE,
  source TEXT NOT NULL, target TEXT NOT NULL, entries TEXT NOT NULL, count INTEGER NOT NULL,
  PRIMARY KEY (glossary, source, target));
"""


class Glossary:
    """A glossary without its terms: (source, target, number of terms) of each dictionary."""

    def __init__(self, row: tuple[str, str, str], dictionaries: list[tuple[str, str, int]]):
        self.id, self.name, self.created = row
        self.dictionaries = dictionaries


def language(code: str) -> str:
    """The base language: a glossary for EN applies to EN-US and EN-GB."""
    return code.split("-")[0].split("_")[0].lower()


def parse(text: str, form: str) -> list[tuple[str, str]]:
    """The terms in text of the form "tsv" or "csv", whose third and fourth column DeepL ignores.
    Raises Problem for a line without a target, a term that is empty, too long or has a tab, a
    source that occurs twice, or too many terms."""
    if form not in ("tsv", "csv"):
        raise invalid("entries_format", f'is "{form[:20]}", it must be tsv or csv')
    found: dict[str, str] = {}
    text = text.removeprefix("\ufeff")  # a table of Excel begins with it
    for number, row in enumerate(_rows(text, form), 1):
        if not any(cell.strip() for cell in row):
            continue
        source, target = (cell.strip() for cell in (*row, "")[:2])
        if not source or not target or len(row) > (4 if form == "csv" else 2):
            separator = "comma" if form == "csv" else "tab"
            raise invalid(
                "entries", f"has no source and target with a {separator} between in line {number}"
            )
        if source in found:
            raise invalid("entries", f'has "{source[:40]}" twice, the second time in line {number}')
        for term in (source, target):
            if len(term.encode("utf-8", "replace")) > MAX_TERM_BYTES:
                raise invalid(
                    "entries", f"has a term of more than {MAX_TERM_BYTES} bytes in line {number}"
                )
            if re.search(r"[\t\r\n]", term):
                raise invalid("entries", f"has a tab or a line break in a term in line {number}")
        found[source] = target
    if not found:
        raise invalid("entries", "has no terms")
    if len(found) > MAX_ENTRIES:
        raise Problem(
            413,
            f"entries has {len(found)} terms, a dictionary holds at most {MAX_ENTRIES}",
            "TOO_MANY_ENTRIES",
            field="entries",
        )
    return list(found.items())


def _rows(text: str, form: str) -> Iterator[list[str]]:
    """The cells of each line."""
    if form == "tsv":
        yield from (line.split("\t") for line in text.splitlines())
        return
    try:
        yield from csv.reader(io.StringIO(text, newline=""))
    except csv.Error as error:
        raise invalid("entries", f"cannot be read as csv: {error}") from None


def format_tsv(terms: list[tuple[str, str]]) -> str:
    out = io.StringIO()
    for source, target in terms:
        out.write(f"{source}\t{target}\n")
    return out.getvalue().removesuffix("\n")


class Glossaries:
    """The store. Several processes may use one file; tokens are kept as hashes only. The connection
    stays open, because closing a file's last one empties its log, which waits for the disk three
    more times. Belongs to one thread."""

    def __init__(self, path: Path):
        self._database = sqlite3.connect(path, timeout=10)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA foreign_keys=ON")
        self._database.executescript(_TABLES)

    def close(self) -> None:
        self._database.close()

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A transaction."""
        with self._database:
            yield self._database

    @staticmethod
    def _owner(token: str) -> str:
        return hashlib.sha256(token.encode()).hexdigest()

    def create(
        self, token: str, name: str, dictionaries: dict[tuple[str, str], list[tuple[str, str]]]
    ) -> Glossary:
        if not name.strip() or len(name) > 1024:
            raise invalid("name", "must have 1 to 1024 characters")
        owner, glossary = self._owner(token), str(uuid.uuid4())
        with self._open() as database:
            (count,) = database.execute(
                "SELECT count(*) FROM glossary WHERE owner = ?", (owner,)
            ).fetchone()
            if count >= MAX_GLOSSARIES:
                raise Problem(
                    456,  # DeepL's own; its clients do not send the request again
                    f"there are {count} glossaries, which is the limit: delete one first",
                    "TOO_MANY_GLOSSARIES",
                )
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            database.execute(
                "INSERT INTO glossary VALUES (?, ?, ?, ?)", (glossary, owner, name, now)
            )
            for pair, terms in dictionaries.items():
                self._put(database, glossary, pair, terms)
        return self.get(token, glossary)

    @staticmethod
    def _put(
        database: sqlite3.Connection,
        glossary: str,
        pair: tuple[str, str],
        terms: list[tuple[str, str]],
    ) -> None:
        database.execute(
            "INSERT OR REPLACE INTO dictionary VALUES (?, ?, ?, ?, ?)",
            (glossary, *pair, format_tsv(terms), len(terms)),
        )

    def _row(self, database: sqlite3.Connection, token: str, glossary: str) -> tuple[str, str, str]:
        row = database.execute(
            "SELECT id, name, created FROM glossary WHERE id = ? AND owner = ?",
            (glossary, self._owner(token)),
        ).fetchone()
        if row is None:
            raise Problem(404, f'there is no glossary "{glossary[:64]}"', "GLOSSARY_NOT_FOUND")
        found: tuple[str, str, str] = row
        return found

    def _glossary(self, database: sqlite3.Connection, row: tuple[str, str, str]) -> Glossary:
        dictionaries = database.execute(
            "SELECT source, target, count FROM dictionary WHERE glossary = ? ORDER BY 1, 2",
            (row[0],),
        ).fetchall()
        return Glossary(row, dictionaries)

    def get(self, token: str, glossary: str) -> Glossary:
        with self._open() as database:
            return self._glossary(database, self._row(database, token, glossary))

    def of(self, token: str) -> list[Glossary]:
        """The glossaries of a caller, the oldest first."""
        with self._open() as database:
            rows = database.execute(
                "SELECT id, name, created FROM glossary WHERE owner = ? ORDER BY created, id",
                (self._owner(token),),
            ).fetchall()
            return [self._glossary(database, row) for row in rows]

    def rename(self, token: str, glossary: str, name: str) -> None:
        if not name.strip() or len(name) > 1024:
            raise invalid("name", "must have 1 to 1024 characters")
        with self._open() as database:
            self._row(database, token, glossary)
            database.execute("UPDATE glossary SET name = ? WHERE id = ?", (name, glossary))

    def put(
        self, token: str, glossary: str, pair: tuple[str, str], terms: list[tuple[str, str]]
    ) -> None:
        """Replaces the dictionary of a language pair."""
        with self._open() as database:
            self._row(database, token, glossary)
            self._put(database, glossary, pair, terms)

    def merge(
        self, token: str, glossary: str, pair: tuple[str, str], terms: list[tuple[str, str]]
    ) -> None:
        """Adds terms to the dictionary of a language pair; a new target replaces the old one."""
        old = dict(self._terms(token, glossary, pair, required=False))
        merged = list((old | dict(terms)).items())
        if len(merged) > MAX_ENTRIES:
            raise Problem(
                413,
                f"the dictionary would have {len(merged)} terms, it holds at most {MAX_ENTRIES}",
                "TOO_MANY_ENTRIES",
                field="entries",
            )
        self.put(token, glossary, pair, merged)

    def delete(self, token: str, glossary: str) -> None:
        with self._open() as database:
            self._row(database, token, glossary)
            database.execute("DELETE FROM glossary WHERE id = ?", (glossary,))

    def delete_dictionary(self, token: str, glossary: str, pair: tuple[str, str]) -> None:
        with self._open() as database:
            self._row(database, token, glossary)
            gone = database.execute(
                "DELETE FROM dictionary WHERE glossary = ? AND source = ? AND target = ?",
                (glossary, *pair),
            )
            if not gone.rowcount:
                raise _no_dictionary(pair)

    def _terms(
        self, token: str, glossary: str, pair: tuple[str, str], required: bool = True
    ) -> list[tuple[str, str]]:
        with self._open() as database:
            self._row(database, token, glossary)
            row = database.execute(
                "SELECT entries FROM dictionary WHERE glossary = ? AND source = ? AND target = ?",
                (glossary, *pair),
            ).fetchone()
        if row is None:
            if required:
                raise _no_dictionary(pair)
            return []
        return [(line.split("\t")[0], line.split("\t")[1]) for line in row[0].split("\n") if line]

    def terms(
        self, token: str, glossary: str, source: str, target: str
    ) -> tuple[tuple[str, str], ...]:
        """The terms of a language pair; variants use the dictionary of their language."""
        return tuple(self._terms(token, glossary, (language(source), language(target))))


def _no_dictionary(pair: tuple[str, str]) -> Problem:
    return Problem(
        404,
        f"the glossary has no dictionary from {pair[0]} to {pair[1]}",
        "DICTIONARY_NOT_FOUND",
    )
