"""The program linnet-file."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import linnet

from .document import EncodingError, FileError
from .formats import FORMATS, Options, find
from .job import Report, load, translate_file, words
from .terms import read_glossary, write_tmx
from .translate import Outcome
from .version import __version__

_BAR = 30  # characters
# Errors of one file, such as a language that no model reads; the next file may have none.
_OF_THE_FILE = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)
_PARTLY = 3  # the exit status if the server refused some texts
_SHOWN = 20  # lines of a report


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Exits with status 2 and a message if an argument is wrong."""
    default = Options()
    parser = argparse.ArgumentParser(
        prog="linnet-file", description="Translates files with Linnet."
    )
    parser.add_argument("--version", action="version", version=f"linnet-file {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("formats", help="list the formats")
    command = commands.add_parser(
        "translate", help="translate files; everything but their text stays as it is"
    )
    add = command.add_argument
    add("inputs", nargs="+", type=Path, metavar="INPUT", help="a file, or a folder with files")
    add("-o", "--output", type=Path, help="file to write; a folder if there are several inputs")
    add("--to", required=True, metavar="LANGUAGE", help="language to translate to, such as de")
    add("--from", dest="source", default="", metavar="LANGUAGE", help="default: detect it per file")
    add("--model", default="", help="default: the server's model for the languages")
    add("--glossary", type=Path, metavar="FILE", help="terms: TMX, or lines with SOURCE<tab>TARGET")
    add("--tmx", type=Path, metavar="FILE", help="also write texts and translations to this TMX")
    add("--all-entries", action="store_true", help="also entries that have a translation")
    add("--encoding", default="", help="of text files that do not say it (default UTF-8)")
    add("--overwrite", action="store_true", help="replace outputs that are there")
    add("--dry-run", action="store_true", help="count the words, and translate nothing")
    add(
        "--line-length",
        type=int,
        default=default.line_length,
        help="max characters of a line of subtitles (default %(default)s)",
    )
    add(
        "--lines",
        type=int,
        default=default.lines,
        help="max lines of a subtitle (default %(default)s)",
    )
    add(
        "--reading-speed",
        type=float,
        default=default.reading_speed,
        help="max characters per second of subtitles (default %(default)s)",
    )
    server = os.environ.get("LINNET_SERVER", "127.0.0.1:50051")
    add("--server", default=server, help="HOST:PORT (default LINNET_SERVER, or 127.0.0.1:50051)")
    add("--ca-file", type=Path, help="connect with TLS and trust the authorities in this PEM file")
    add("--token-file", type=Path, help="file with a bearer token")
    given = parser.parse_args(arguments)
    if given.command == "translate":
        if given.output is None and not given.dry_run:
            parser.error("-o is missing: name the file or folder to write")
        if not 10 <= given.line_length <= 1000:
            parser.error(f"--line-length is {given.line_length}, it must be 10 to 1000")
        if not 1 <= given.lines <= 10:
            parser.error(f"--lines is {given.lines}, it must be 1 to 10")
        if not 1 <= given.reading_speed <= 1000:
            parser.error(f"--reading-speed is {given.reading_speed:g}, it must be 1 to 1000")
    return given


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    if given.command == "formats":
        for format_ in FORMATS:
            print(f"{format_.name:12} {' '.join(format_.extensions)}")
        return
    try:
        status = asyncio.run(_translate(given))
    except (FileError, linnet.LinnetError) as error:
        status = _complain(str(error))
    except KeyboardInterrupt:
        _complain("interrupted; the same command goes on from here")
        status = 130
    raise SystemExit(status)


def _complain(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 1


def _complain_of(source: Path, error: FileError) -> int:
    more = ", or name its encoding with --encoding" if isinstance(error, EncodingError) else ""
    return _complain(f"{source}: {error}{more}")


def _jobs(given: argparse.Namespace) -> Iterator[tuple[Path, Path]]:
    """Each file to read with the file to write. Raises FileError for what cannot be."""
    several = len(given.inputs) > 1 or given.inputs[0].is_dir()
    output = given.output or Path()
    for path in given.inputs:
        if path.is_dir():
            if given.output and path.resolve() in [output.resolve(), *output.resolve().parents]:
                raise FileError(f"{output} is within {path}: name another folder with -o")
            for found in sorted(path.rglob("*")):
                if found.is_file() and not found.is_symlink() and not found.name.startswith("."):
                    yield found, output / found.relative_to(path)
        else:
            into = several or output.is_dir()
            yield path, output / path.name if into else output


async def _translate(given: argparse.Namespace) -> int:
    options = Options(
        source=given.source,
        target=given.to,
        encoding=given.encoding,
        all_entries=given.all_entries,
        line_length=given.line_length,
        lines=given.lines,
        reading_speed=given.reading_speed,
    )
    if given.dry_run:
        return _count(given, options)
    settings = linnet.TranslateRequest(
        source_language_code=given.source, target_language_code=given.to, model=given.model
    )
    if given.glossary:
        for term, wanted in read_glossary(given.glossary, given.source, given.to):
            settings.glossary.entries.add(source_text=term, target_text=wanted)
    if given.tmx and given.tmx.exists() and not given.overwrite:
        raise FileError(f"{given.tmx} is there: use --overwrite, or another name")
    tls = linnet.Tls(ca_file=given.ca_file) if given.ca_file else None
    connection = linnet.Options(server=given.server, tls=tls, token_file=given.token_file)
    reports: list[Report] = []
    status = 0
    async with linnet.AsyncClient(connection) as client:
        for source, target in _jobs(given):
            try:
                if _is_done(source, target, given):
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                with _Bar(source) as bar:
                    report = await translate_file(
                        client, settings, source, target, options, bar.show
                    )
                _print(source, report)
                if report.counts()[Outcome.FAILED]:
                    status = status or _PARTLY
                reports.append(report)
            except FileError as error:
                status = _complain_of(source, error)
            except linnet.LinnetError as error:
                status = _complain(f"{source}: {error}")
                if error.code not in _OF_THE_FILE:
                    break
    if given.tmx:
        write_tmx(given.tmx, reports, given.source or "en", given.to)
    return status


def _is_done(source: Path, target: Path, given: argparse.Namespace) -> bool:
    """True if there is nothing to do. Raises FileError if the output is there and may not be
    replaced."""
    in_folder = source not in given.inputs
    if in_folder and _is_left_out(source):
        return True
    if not target.exists() or given.overwrite:
        return False
    if in_folder:
        print(f"{source}: {target} is there", file=sys.stderr)
        return True
    raise FileError(f"{target} is there: use --overwrite, or another name")


def _is_left_out(source: Path) -> bool:
    """True for a file in a folder that is of no known format."""
    try:
        find(source.name)
    except FileError as error:
        print(f"{source}: left out: {error}", file=sys.stderr)
        return True
    return False


def _count(given: argparse.Namespace, options: Options) -> int:
    status = total = 0
    for source, _ in _jobs(given):
        try:
            if source not in given.inputs and _is_left_out(source):
                continue
            count = words(load(source, options))
            total += count
            print(f"{count:8} {source}")
        except FileError as error:
            status = _complain_of(source, error)
    print(f"{total:8} words")
    return status


def _print(source: Path, report: Report) -> None:
    counts = report.counts()
    said = [f"{report.words} words"]
    said += [f"{counts[it]} {it.name.lower()}" for it in Outcome if counts[it]]
    print(f"{source}: {', '.join(said)}", file=sys.stderr)
    lines = report.lines()
    for line in lines[:_SHOWN]:
        print(f"  {line}", file=sys.stderr)
    if len(lines) > _SHOWN:
        print(f"  and {len(lines) - _SHOWN} more", file=sys.stderr)


class _Bar:
    """The progress of a file, on a terminal."""

    def __init__(self, path: Path):
        self._name = path.name[-40:]
        self._is_shown = sys.stderr.isatty()

    def show(self, done: int, total: int) -> None:
        if self._is_shown:
            filled = "#" * (_BAR * done // max(total, 1))
            said = f"\r[{filled:{_BAR}}] {done}/{total} {self._name}"
            print(said, end="", file=sys.stderr, flush=True)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
