#!/usr/bin/env python3
"""Compares linnet_corpus.ray with linnet-decode alone, and with CTranslate2 in Ray's map_batches.

    build/engines/bin/python tests/bench/engine/corpus_ray.py --bundle BUNDLE --lines FILE [--peer]

build/engines is made by tests/corpus/engines_slow_test.py. Ray has one actor, which has one core.
All engines decode in int8 with one thread and 32 sequences at a time. Without --peer the lines of
the file are translated by a real model. With --peer, lines that are one sentence of plain words are
read; CTranslate2 has a random Transformer of the layer sizes and the vocabulary of BUNDLE, both
read the same pieces and write --target tokens, and CTranslate2 is given whole blocks, which it
sorts by length; this needs peers.txt and sentencepiece in build/engines, and a BUNDLE made by

    linnet-random-bundle --preset dynamic_base --tokenizer --vocab 4900 --dtype float32 --out BUNDLE

Speeds are target tokens a second, of the wall clock and of the CPU time of all processes, Ray's
included, from the first block that is done to the last. Runs take turns. On a busy machine they
scatter; `busy` does not: the share of the time in which linnet-decode runs or waits for a core, or
in which CTranslate2 is called. In the rest they wait for rows.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "corpus"))
import machine
from campaign import children

LAYERS = {"layers": 6, "width": 512, "ffn": 2048, "heads": 8, "vocab": 4900, "source": 128}
BATCH = 32
OURS, PEERS = ("linnet alone", "linnet ray"), ("ctranslate2 alone", "ctranslate2 ray")


def spent_by(pid: int) -> dict[int, tuple[float, float]]:
    """CPU seconds of a process and each of its descendants that run, and the seconds in which their
    threads ran or waited for a core. A thread that has ended, as Ray's do after a block, counts in
    the first alone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return {}
    cpu, busy = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), 0.0
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):  # has ended
            busy += sum(map(int, file.read_text().split()[:2])) / 1e9
    found = {pid: (cpu, busy)}
    for child in children(pid):
        found |= spent_by(child)
    return found


class CTranslate2:
    """What a user of CTranslate2 writes: an actor that splits into pieces and translates."""

    def __init__(self, model: str, spm: str, beam: int, target: int):
        import ctranslate2
        import sentencepiece

        self._pieces = sentencepiece.SentencePieceProcessor(model_file=spm)
        self._translator = ctranslate2.Translator(model, compute_type="int8", intra_threads=1)
        lengths = {"min_decoding_length": target, "max_decoding_length": target}
        self._options = {"beam_size": beam, "max_batch_size": BATCH, **lengths}

    def __call__(self, table: pa.Table) -> pa.Table:
        begin = time.monotonic()
        ids = self._pieces.encode(table["text"].to_pylist())
        sources = [[f"w{number}" for number in it] for it in ids]
        results = self._translator.translate_batch(sources, **self._options)
        found = [it.hypotheses[0] for it in results]
        texts = self._pieces.decode(
            [[int(word[1:]) for word in it if word[0] == "w"] for it in found]
        )
        table = table.append_column("translation", pa.array(texts, pa.string()))
        # Linnet counts the end token.
        table = table.append_column("tokens", pa.array([len(it) + 1 for it in found], pa.int32()))
        seconds = (time.monotonic() - begin) / len(table)
        return table.append_column("seconds", pa.array([seconds] * len(table)))


def options_of(given: argparse.Namespace) -> dict[str, int]:
    lengths = {"min_target_tokens": given.target, "max_target_tokens": given.target}
    return {"beam_size": given.beam} | (lengths if given.model else {})


def decode_alone(given: argparse.Namespace, tables: list[pa.Table]) -> Iterator[list[bytes]]:
    """What linnet-decode says of each block, whose texts it gets in the order of linnet-corpus."""
    command = [os.environ["LINNET_DECODE"], f"--bundle={given.bundle}", "--compute=int8"]
    command += ["--threads=1", f"--batch={BATCH}", "--split"]
    for name, value in options_of(given).items():
        command.append(f"--{name.replace('_', '-')}={value}")
    with tempfile.TemporaryFile("w+") as asked:
        for table in tables:
            for text in sorted(table["text"].to_pylist(), key=len, reverse=True):
                asked.write(json.dumps({"text": text}) + "\n")
        asked.seek(0)
        with subprocess.Popen(command, stdin=asked, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for table in tables:
                yield [process.stdout.readline() for _ in range(len(table))]


def blocks_of(arm: str, given: argparse.Namespace) -> Iterator[pa.Table | list[bytes]]:
    """The blocks of an arm when they are done."""
    texts = given.lines.read_text().splitlines()
    tables = [
        pa.table({"text": texts[at : at + given.block]}) for at in range(0, len(texts), given.block)
    ]
    spm = str(given.bundle / "source.spm")
    if arm == "linnet alone":
        yield from decode_alone(given, tables)
        return
    if arm == "ctranslate2 alone":
        yield from map(CTranslate2(str(given.model), spm, given.beam, given.target), tables)
        return
    import ray.data
    from linnet_corpus import Embedded
    from linnet_corpus.ray import translate

    ray.init(
        num_cpus=2, object_store_memory=256 << 20, include_dashboard=False, log_to_driver=False
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    dataset = ray.data.from_arrow(tables)
    if arm == "linnet ray":
        make = partial(Embedded, given.bundle, options=options_of(given), batch=BATCH)
        done = translate(dataset, make, batch_size=given.block)
    else:
        done = dataset.map_batches(
            CTranslate2,
            fn_constructor_args=(str(given.model), spm, given.beam, given.target),
            batch_format="pyarrow",
            batch_size=given.block,
            num_cpus=1,
            compute=ray.data.ActorPoolStrategy(size=1),
        )
    yield from done.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0)


def tokens_of(block: pa.Table | list[bytes], given: argparse.Namespace) -> int:
    if isinstance(block, pa.Table):
        return int(sum(block["tokens"].to_pylist()))
    return sum(json.loads(line)["translation"]["tokens"] for line in block)


def measure(arm: str, given: argparse.Namespace) -> None:
    """Prints the tokens, the wall and CPU seconds after the first block, and the busy seconds."""
    blocks, begin, before = [], 0.0, {}
    for number, block in enumerate(blocks_of(arm, given)):
        end, after = time.monotonic(), spent_by(os.getpid())
        if number == 0:
            begin, before = end, after
        else:
            blocks.append(block)
    spent = [
        (cpu - before.get(pid, (0.0, 0.0))[0], busy - before.get(pid, (0.0, 0.0))[1])
        for pid, (cpu, busy) in after.items()
    ]
    wall, used, busy = end - begin, sum(cpu for cpu, _ in spent), max(busy for _, busy in spent)
    if arm in PEERS:
        # The second call begins before the first block is here, and delays it. Calls follow one
        # another, so they take at least their sum. The CPU time grows in proportion.
        busy = sum(sum(table["seconds"].to_pylist()) for table in blocks)
        wall = max(end - begin, busy)
        used *= wall / (end - begin)
    tokens = sum(tokens_of(block, given) for block in blocks)
    print(json.dumps([tokens, wall, used, busy]))


def shares(speeds: dict[str, float], has_peer: bool) -> dict[str, float]:
    found = {"linnet_ray_over_alone": speeds["linnet ray"] / speeds["linnet alone"]}
    if has_peer:
        alone = speeds["linnet alone"] / speeds["ctranslate2 alone"]
        inside = speeds["linnet ray"] / speeds["ctranslate2 ray"]
        found |= {"linnet_over_ctranslate2_alone": alone, "linnet_over_ctranslate2_in_ray": inside}
        found["ratio_kept_in_ray"] = inside / alone
    return {name: round(value, 3) for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--lines", type=Path, required=True, help="texts, one a line")
    parser.add_argument("--rows", type=int, default=16384, help="different lines of the file")
    parser.add_argument("--block", type=int, default=4096, help="rows")
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--peer", action="store_true", help="compare with CTranslate2")
    parser.add_argument("--target", type=int, default=30, help="tokens, with --peer")
    parser.add_argument("--rounds", type=int, default=3)
    for name, kind in (("arm", str), ("beam", int), ("model", Path)):  # of one measurement
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)
    given = machine.parse(parser)
    os.environ.setdefault("LINNET_DECODE", str(machine.ROOT / "build/release/bin/linnet-decode"))
    if given.arm:
        measure(given.arm, given)
        return
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    wanted = re.compile(r"[^\W\d_]([^\W\d_]|[ ,'-]){0,118}[.?!]?" if given.peer else r".{1,119}")
    lines = dict.fromkeys(filter(wanted.fullmatch, given.lines.read_text().splitlines()))
    result: dict[str, Any] = {"machine": facts, "bundle": machine.bundle_name(given.bundle)}
    if given.peer:
        result |= {"sizes": LAYERS, "target": given.target}
    result |= {"rows": given.rows, "block": given.block, "rounds": given.rounds}
    name = "corpus-ray-peer.json" if given.peer else "corpus-ray.json"
    place = given.out / machine.slug(facts) / name
    result = machine.kept(place, result)
    arms = OURS + (PEERS if given.peer else ())
    # Ray runs its workers with niceness 15, which is slow beside any other program.
    environment = {**os.environ, "RAY_worker_niceness": "0"}
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder, "lines.txt")
        texts.write_text("".join(f"{line}\n" for line in list(lines)[: given.rows]))
        command = [sys.executable, __file__, "--bundle", str(given.bundle), "--lines", str(texts)]
        command += ["--block", str(given.block), "--target", str(given.target)]
        command += ["--out", str(given.out)]
        if given.peer:
            from peer_ctranslate2 import random_transformer

            Path(folder, "model").mkdir()
            random_transformer(argparse.Namespace(**LAYERS, target=given.target), f"{folder}/model")
            command += ["--model", f"{folder}/model"]
        for beam in given.beams:
            runs: dict[str, list[tuple[float, float]]] = {arm: [] for arm in arms}
            for number in range(given.rounds):
                for arm in arms if number % 2 == 0 else reversed(arms):
                    flags = ["--arm", arm, "--beam", str(beam)]
                    done = subprocess.run(
                        [*command, *flags], stdout=subprocess.PIPE, check=True, env=environment
                    )
                    tokens, wall, cpu, busy = json.loads(done.stdout.splitlines()[-1])
                    runs[arm].append((tokens / wall, tokens / cpu, busy / wall))
                    print(beam, arm, tokens, *runs[arm][-1], file=sys.stderr)
            speeds_of = result.setdefault("beams", {}).setdefault(str(beam), {})
            for column, unit in enumerate(("second", "cpu_second")):
                middle = {arm: statistics.median(it[column] for it in runs[arm]) for arm in arms}
                speeds = {arm: round(speed) for arm, speed in middle.items()}
                found = {f"tokens_per_{unit}": speeds, "shares": shares(middle, given.peer)}
                speeds_of[unit] = found
            busy = {arm: statistics.median(it[2] for it in runs[arm]) for arm in arms}
            speeds_of["busy"] = {arm: round(share, 3) for arm, share in busy.items()}
            speeds_of["busy"]["shares"] = shares(busy, given.peer)
            machine.write_result(place, result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
