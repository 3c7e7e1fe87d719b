#!/usr/bin/env python3
"""Compares linnet_corpus.ray with linnet-decode alone, and with CTranslate2 in Ray's map_batches.

    build/engines/bin/python tests/bench/engine/corpus_ray.py --bundle BUNDLE --lines FILE

build/engines is made by tests/corpus/engines_slow_test.py; this also needs peers.txt and
sentencepiece there. BUNDLE is made by

    linnet-random-bundle --preset dynamic_base --tokenizer --vocab 4900 --dtype float32 --out BUNDLE

and CTranslate2 has a random Transformer of the same layer sizes and vocabulary. Both read the same
pieces of the same texts and write --target tokens, in int8, with one thread and 32 sequences at a
time; CTranslate2 is given SentencePiece and whole blocks, which it sorts by length. The unit is
target tokens in a CPU second of all processes, Ray's included, from the first block that is done to
the last: other programs on the machine change the time of the wall clock. Runs take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

LAYERS = {"layers": 6, "width": 512, "ffn": 2048, "heads": 8, "vocab": 4900, "source": 128}
BATCH = 32
ARMS = ("linnet alone", "linnet ray", "ctranslate2 alone", "ctranslate2 ray")


def cpu_seconds(pid: int) -> float:
    """Of a process and its descendants that run."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(cpu_seconds(int(child)) for child in children)


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
        ids = self._pieces.encode(table["text"].to_pylist())
        sources = [[f"w{number}" for number in it] for it in ids]
        results = self._translator.translate_batch(sources, **self._options)
        found = [it.hypotheses[0] for it in results]
        texts = self._pieces.decode(
            [[int(word[1:]) for word in it if word[0] == "w"] for it in found]
        )
        table = table.append_column("translation", pa.array(texts, pa.string()))
        return table.append_column("tokens", pa.array([len(it) for it in found], pa.int32()))


def blocks_of(arm: str, given: argparse.Namespace) -> Iterator[pa.Table]:
    """The blocks of an arm when they are done."""
    texts = given.lines.read_text().splitlines()
    tables = [
        pa.table({"text": texts[at : at + given.block]}) for at in range(0, len(texts), given.block)
    ]
    from linnet_corpus import Embedded, translate_table

    engine, _, where = arm.partition(" ")
    lengths = {"min_target_tokens": given.target, "max_target_tokens": given.target}
    options = {"beam_size": given.beam, **lengths}
    spm = str(given.bundle / "source.spm")
    if where == "alone":
        if engine == "linnet":
            with_linnet = Embedded(given.bundle, options=options, batch=BATCH)
            yield from (translate_table(table, with_linnet) for table in tables)
        else:
            yield from map(CTranslate2(str(given.model), spm, given.beam, given.target), tables)
        return
    import ray.data
    from linnet_corpus.ray import translate

    ray.init(
        num_cpus=2, object_store_memory=256 << 20, include_dashboard=False, log_to_driver=False
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    dataset = ray.data.from_arrow(tables)
    if engine == "linnet":
        make = partial(Embedded, given.bundle, options=options, batch=BATCH)
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


def measure(arm: str, given: argparse.Namespace) -> None:
    """Prints the tokens and the CPU and wall seconds after the first block."""
    tokens, begin, wall = 0, 0.0, 0.0
    for number, table in enumerate(blocks_of(arm, given)):
        if number == 0:
            begin, wall = cpu_seconds(os.getpid()), time.monotonic()
        else:
            tokens += sum(table["tokens"].to_pylist())
    seconds = cpu_seconds(os.getpid()) - begin
    print(json.dumps([tokens, seconds, time.monotonic() - wall]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--lines", type=Path, required=True, help="texts, one a line")
    parser.add_argument("--rows", type=int, default=400, help="different lines of the file")
    parser.add_argument("--block", type=int, default=100, help="rows")
    parser.add_argument("--target", type=int, default=30, help="tokens")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=machine.ROOT / "tests/bench/results")
    for name, kind in (("arm", str), ("beam", int), ("model", Path)):  # of one measurement
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ.setdefault("LINNET_DECODE", str(machine.ROOT / "build/release/bin/linnet-decode"))
    if given.arm:
        measure(given.arm, given)
        return
    machine.require_commit(given.out)
    facts = machine.facts(sorted(os.sched_getaffinity(0)))
    lines = dict.fromkeys(it for it in given.lines.read_text().splitlines() if 0 < len(it) < 120)
    result: dict[str, Any] = {"machine": facts, "sizes": LAYERS, "target": given.target}
    result |= {"rows": given.rows, "rounds": given.rounds, "beams": {}}
    with tempfile.TemporaryDirectory() as folder:
        from peer_ctranslate2 import random_transformer

        Path(folder, "model").mkdir()
        random_transformer(argparse.Namespace(**LAYERS, target=given.target), f"{folder}/model")
        texts = Path(folder, "lines.txt")
        texts.write_text("".join(f"{line}\n" for line in list(lines)[: given.rows]))
        command = [sys.executable, __file__, "--bundle", str(given.bundle), "--lines", str(texts)]
        command += ["--model", f"{folder}/model", "--block", str(given.block)]
        for beam in (1, 5):
            speeds: dict[str, list[float]] = {arm: [] for arm in ARMS}
            for number in range(given.rounds):
                for arm in ARMS[number % 2 :] + ARMS[: number % 2]:
                    flags = ["--arm", arm, "--beam", str(beam), "--target", str(given.target)]
                    done = subprocess.run([*command, *flags], stdout=subprocess.PIPE, check=True)
                    tokens, seconds, _ = json.loads(done.stdout.splitlines()[-1])
                    speeds[arm].append(tokens / seconds)
                    print(beam, arm, round(tokens / seconds), file=sys.stderr)
            middle = {arm: statistics.median(found) for arm, found in speeds.items()}
            alone = middle["linnet alone"] / middle["ctranslate2 alone"]
            inside = middle["linnet ray"] / middle["ctranslate2 ray"]
            result["beams"][beam] = {
                "tokens_per_cpu_second": {arm: round(it) for arm, it in middle.items()},
                "ray_share_of_linnet_alone": round(
                    middle["linnet ray"] / middle["linnet alone"], 3
                ),
                "linnet_over_ctranslate2_alone": round(alone, 3),
                "linnet_over_ctranslate2_in_ray": round(inside, 3),
                "ratio_kept_in_ray": round(inside / alone, 3),
            }
    machine.write_result(given.out / machine.slug(facts) / "corpus-ray.json", result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
