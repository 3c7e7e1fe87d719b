"""The program linnet-corpus."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import linnet
import pyarrow as pa
from google.protobuf.json_format import MessageToDict

from .checks import merge, verify
from .embedded import Embedded
from .files import find_inputs
from .fleet import Fleet
from .job import Chunk, Done, Job, Output, Worker
from .languages import check_expected
from .progress import Bar, Summary, plot
from .rows import Backend, CorpusError
from .table import Columns
from .version import __version__

Value = int | float | bool


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Exits with status 2 and a message if an argument is wrong."""
    parser = argparse.ArgumentParser(
        prog="linnet-corpus", description="Translates corpora with Linnet, each row exactly once."
    )
    parser.add_argument("--version", action="version", version=f"linnet-corpus {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (
        ("run", "translate the rows of files; the same command continues an interrupted run"),
        ("score", "score the pairs of two columns: the log-probability of each target"),
        ("backtranslate", "sample a translation for each row, reproducibly"),
    ):
        command = commands.add_parser(name, help=about)
        command.add_argument("inputs", nargs="+", metavar="INPUT", help="file, address or glob")
        _add_output(command, name)
        _add_backend(command)
    command = commands.add_parser("verify", help="check an output, and decode a sample again")
    command.add_argument("output", metavar="OUTPUT")
    command.add_argument("--sample", type=_share, default=1e-4, help="share of rows [1e-4]")
    command.add_argument("--seed", type=int, default=0, help="chooses the sample [0]")
    command.add_argument("--bundle", type=Path, metavar="DIR", help="decode the sample with it")
    _add_machine(command)
    command = commands.add_parser("merge", help="write a finished output to one file")
    command.add_argument("outputs", nargs="+", metavar="OUTPUT")
    command.add_argument("-o", "--output", required=True, metavar="FILE")
    command.add_argument("--distinct", action="store_true", help="leave out repeated rows")
    given = parser.parse_args(arguments)
    if hasattr(given, "inputs") and given.bundle is None and not given.to:
        parser.error("--server needs --to: the language to translate to")
    return given


def _add_output(command: argparse.ArgumentParser, name: str) -> None:
    add = command.add_argument
    add("-o", "--output", required=True, metavar="OUTPUT", help="folder or address; resumed")
    add("--shard", type=_shard, default=(0, 1), metavar="I/N", help="rows of worker I of 0 to N-1")
    add("--chunk-rows", type=_count, default=10_000, metavar="N", help="rows of a chunk [10000]")
    add("--text", action="append", metavar="COLUMN", help="column to translate (repeatable) [text]")
    if name == "score":
        add("--target", required=True, metavar="COLUMN", help="column to score")
    if name == "backtranslate":
        add("--seed", type=int, default=1, help="seed of the samples; each row gets its own [1]")
    add("--language", default="", metavar="COLUMN", help="column with the language of each row")
    add("--expect", default="", metavar="LANGUAGE", help="refuse texts in another language")
    add("--keep", action="append", default=[], metavar="COLUMN", help="column to keep [all]")
    add("--only-changed", metavar="OUTPUT", help="keep the answers of that job to equal rows")
    add("--plots", type=Path, metavar="DIR", help="write histograms of lengths and scores")
    add("--engine", choices=("ray", "spark"), help="spread the chunks over its workers")
    add("--actors", type=_count, default=1, metavar="N", help="with --engine ray: actors [1]")


def _add_backend(command: argparse.ArgumentParser) -> None:
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument("--bundle", type=Path, metavar="DIR", help="decode here, with linnet-decode")
    where.add_argument("--server", metavar="HOST:PORT,…", help="decode on these servers")
    add = command.add_argument
    add("--to", default="", metavar="LANGUAGE", help="language to translate to")
    add("--from", dest="source", default="", metavar="LANGUAGE", help="with --server: of texts")
    add("--model", default="", help="with --server: [its model for the languages]")
    add("--glossary", type=Path, metavar="FILE", help="with --server: SOURCE<tab>TARGET lines")
    add("--option", type=_option, action="append", default=[], metavar="NAME=VALUE",
        help="decoding option, such as beam_size=5 (repeatable)")  # fmt: skip
    add("--compute", default="int8", help="with --bundle: float32, int8, … [int8]")
    _add_machine(command)


def _add_machine(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--children", type=_count, default=1, metavar="N", help="with --bundle: processes [1]")
    add("--threads", type=_count, default=len(os.sched_getaffinity(0)), metavar="N",
        help="with --bundle: threads of each process [cores]")  # fmt: skip
    add("--batch", type=_count, default=32, metavar="N", help="with --bundle: sequences [32]")
    add("--decode", type=Path, metavar="FILE", help="linnet-decode [LINNET_DECODE, or in the path]")
    add(
        "--stall-timeout",
        type=_count,
        default=300,
        metavar="SECONDS",
        help="with --bundle: a process without an answer for so long is replaced [300]",
    )


def _count(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text} is no share from 0 to 1")
    return share


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and int(index) < int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is no I/N with I from 0 to N-1, such as 0/8")
    return int(index), int(count)


def _option(text: str) -> tuple[str, Value]:
    name, _, value = text.partition("=")
    if name not in linnet.DecodingOptions.DESCRIPTOR.fields_by_name:
        known = ", ".join(linnet.DecodingOptions.DESCRIPTOR.fields_by_name)
        raise argparse.ArgumentTypeError(f"there is no option {name!r}, there are {known}")
    try:
        found = json.loads(value)
        linnet.DecodingOptions(**{name: found})
    except (ValueError, TypeError):
        raise argparse.ArgumentTypeError(f"{value!r} is no value of {name}") from None
    return name, found


def _backend(given: argparse.Namespace) -> tuple[Callable[[], Backend], dict[str, Any]]:
    """Makes the back end of the arguments, in any process; and what its answers depend on."""
    options = dict(given.option)
    if given.bundle:
        for name in ("source", "model", "glossary"):
            if getattr(given, name):
                raise CorpusError(f"--{name.replace('source', 'from')} is for --server")
        fixed = {"target_language": given.to, "decoding": options}
        return _embedded(given, given.compute, fixed), fixed
    settings = linnet.TranslateRequest(
        source_language_code=given.source, target_language_code=given.to, model=given.model
    )
    settings.options.CopyFrom(linnet.DecodingOptions(**options))
    if given.glossary:
        try:
            text = given.glossary.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise CorpusError(f"{given.glossary} cannot be read: {error}") from None
        for number, line in enumerate(text.splitlines(), 1):
            if line.count("\t") != 1:
                raise CorpusError(f"{given.glossary}: line {number} is no SOURCE<tab>TARGET")
            source, target = line.split("\t")
            settings.glossary.entries.add(source_text=source, target_text=target)
    return partial(Fleet, given.server.split(","), settings), MessageToDict(settings)


def _embedded(
    given: argparse.Namespace, compute: str, fixed: dict[str, Any]
) -> Callable[[], Embedded]:
    return partial(
        Embedded,
        given.bundle,
        compute=compute,
        options=fixed["decoding"],
        target_language=fixed["target_language"],
        children=given.children,
        threads=given.threads,
        batch=given.batch,
        decode=given.decode,
        stall_timeout=given.stall_timeout,
    )


def _translated(
    given: argparse.Namespace, left: Sequence[Chunk], make: Callable[[], Backend], bar: Bar
) -> Iterator[tuple[Done, pa.Table]]:
    """Translates chunks, here or in the workers of an engine. Yields each when it is done."""
    make_worker = partial(Worker, given.output, make, given.only_changed or "", os.getcwd())
    if not left:
        return
    if not given.engine:
        with closing(make_worker()) as worker:
            for chunk in left:
                yield worker.translate(chunk, bar.came)
        return
    try:
        engine = import_module(f".{given.engine}", __package__)
    except ImportError as error:
        raise CorpusError(
            f"--engine {given.engine}: {error}; python -m pip install "
            f"'linnet-corpus[{given.engine}]'"
        ) from None
    actors = (given.actors, given.children * given.threads) if given.engine == "ray" else ()
    finished = engine.translate_chunks(left, make_worker, *actors)
    output = Output(given.output)
    for done in finished:
        yield done, output.table(done.chunk)


def _run(given: argparse.Namespace) -> int:
    columns = Columns(
        texts=tuple(given.text or ["text"]),
        target=getattr(given, "target", ""),
        language=given.language,
        seed=getattr(given, "seed", None),
        expect=given.expect,
    )
    if given.expect:
        check_expected(given.expect)
    output = Output(given.output)
    make, options = _backend(given)
    with closing(make()) as backend:  # starts nothing until it has rows
        wanted = Job(
            inputs=(),
            columns=columns,
            keep=tuple(given.keep),
            chunk_rows=given.chunk_rows,
            backend=backend.name,
            bundle=backend.bundle,
            compute=backend.compute,
            options=options,
        )
    job = output.begin(wanted, find_inputs(given.inputs))
    index, count = given.shard
    chunks = job.shard(index, count)
    left = [chunk for chunk in chunks if not output.is_done(chunk)]
    summary = Summary(already_done=len(chunks) - len(left))
    bar = Bar(sum(chunk.end - chunk.begin for chunk in left), has_engine=bool(given.engine))
    for done, table in _translated(given, left, make, bar):
        summary.add(job, done, table)
        bar.chunk(summary)
    bar.end()
    summary.seconds = round(bar.seconds(), 3)
    name = f"summary-{index}-of-{count}.json"
    said = json.dumps(vars(summary), indent=1) + "\n"
    (output.place / name).write(said.encode())
    output.remove_unfinished()
    print(summary.table())
    if given.plots:
        plot(summary, given.plots)
    return 0


def _verify(given: argparse.Namespace) -> int:
    output = Output(given.output)
    job = output.job()
    if given.bundle is None:
        report = verify(output, None)
    elif job.backend != "embedded":
        raise CorpusError(f"{given.output} was translated by servers: leave out --bundle")
    else:
        with closing(_embedded(given, job.compute, job.options)()) as backend:
            report = verify(output, backend, given.sample, given.seed)
    for note in report.notes:
        print(f"note: {note}", file=sys.stderr)
    for fault in report.faults:
        print(f"fault: {fault}", file=sys.stderr)
    print(
        f"{report.rows:,} rows in {report.chunks:,} chunks checked, {report.compared:,} decoded "
        f"again, {len(report.faults):,} faults"
    )
    return 1 if report.faults else 0


def _merge(given: argparse.Namespace) -> int:
    rows = merge([Output(name) for name in given.outputs], given.output, given.distinct)
    print(f"{rows:,} rows in {given.output}")
    return 0


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "score": _run,
    "backtranslate": _run,
    "verify": _verify,
    "merge": _merge,
}


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    try:
        status = COMMANDS[given.command](given)
    except (CorpusError, linnet.LinnetError) as error:
        print(f"error: {error}", file=sys.stderr)
        status = 1
    except KeyboardInterrupt:
        print("\nerror: interrupted; the same command goes on from here", file=sys.stderr)
        status = 130
    raise SystemExit(status)


if __name__ == "__main__":
    main()
