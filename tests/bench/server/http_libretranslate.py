"""Compares linnet-http with LibreTranslate at --concurrency requests of one sentence.

Both get the same English sentences through the same API, read the same tokens (SentencePiece model
of the bundle) and write the same number of tokens: of the sentences those are taken whose
translation by the bundle has the most common length, and LibreTranslate has a CTranslate2
Transformer with as many layers, the same widths and vocabulary, random weights and that length
(peer_libretranslate.py). Both search with a beam of 4 and int8 weights, with one thread of the
engine on the first core; the clients have the second one. This is done for two models:

- the bundle, whose layers are dynamic convolutions
- a Transformer of base size, which LibreTranslate's own models are, here with random weights

- linnet-http on the second core, beside the clients, as in http_overhead.py
- linnet-http on the first core, beside the server: all of each program has one core

Rounds in which the machine's speed drifted are thrown away (drift.py). --python is that of an
environment with libretranslate. Writes DIR/MACHINE/http-libretranslate.json and
http-libretranslate.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
import server_overhead
import two_cores
from drift import Drift, note
from http_overhead import front_end, http_load
from sentences import sentences
from server_overhead import Placement, on
from two_cores import cpu_seconds

PEER = Path(__file__).with_name("peer_libretranslate.py")
BEAM = 4
TIMES = 5.0
VOCABULARY = 32768  # of the Transformer, as in models of Argos Translate


def usage(grpc: str, texts: list[str]) -> list[Any]:
    """The usage of each text's translation."""
    import linnet

    async def ask() -> list[Any]:
        found: list[Any] = []
        async with linnet.AsyncClient(linnet.Options(server=grpc)) as client:
            for at in range(0, len(texts), 500):
                message = linnet.TranslateRequest(
                    contents=texts[at : at + 500],
                    source_language_code="en",
                    target_language_code="de",
                )
                found += (await client.translate(message, timeout=300)).translations
        return found

    return [it.usage for it in asyncio.run(ask())]


def of_one_length(grpc: str, count: int) -> tuple[list[str], int, float]:
    """Sentences whose translations have the most common number of tokens, that number without the
    end token, and the mean number of source tokens."""
    texts = sentences(count)
    found = usage(grpc, texts)
    lengths = [it.target_tokens for it in found]
    most = max(set(lengths), key=lengths.count)
    chosen = [number for number, length in enumerate(lengths) if length == most]
    source = sum(found[number].source_tokens for number in chosen) / len(chosen)
    return [texts[number] for number in chosen], most - 1, source


@contextmanager
def libretranslate(
    options: argparse.Namespace, core: list[int], tokens: int
) -> Iterator[tuple[str, int]]:
    """The address and the process of a LibreTranslate whose translations have so many tokens."""
    manifest = json.loads((options.bundle / "manifest.json").read_text())
    shape = manifest["architecture"]
    sizes = {
        "tokens": tokens,
        "encoder-layers": len(shape["encoder_mixers"]),
        "decoder-layers": len(shape["decoder_mixers"]),
        "width": shape["model_dimension"],
        "ffn": shape["feed_forward_dimension"],
        "heads": shape["heads"],
        "vocabulary": manifest["vocabulary"]["size"],
    }
    with tempfile.TemporaryDirectory() as folder:
        make = [str(options.python), str(PEER), "package", folder, "--spm"]
        make += [str(options.bundle / "source.spm")]
        make += [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
        subprocess.run(make, check=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [str(options.python), str(PEER), "serve", folder, str(port)]
        with Path(folder, "log").open("w") as log:
            process = subprocess.Popen(on(core, command), stdout=log, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}/languages"
            for _ in range(300):
                try:
                    urllib.request.urlopen(url, timeout=60).close()
                    break
                except OSError:
                    time.sleep(1)
            yield f"127.0.0.1:{port}", process.pid
        finally:
            process.terminate()
            process.wait(60)


def translated(address: str, text: str) -> str:
    body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
    request = urllib.request.Request(
        f"http://{address}/translate", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return str(json.load(reply)["translatedText"])


def transformer(folder: Path, tokenizer: Path, tokens: int) -> Path:
    """A bundle of a Transformer of base size with random weights, whose translations have so many
    tokens."""
    import torch

    from linnet_model.bundle import BundleFacts, write_bundle
    from linnet_model.config import BundleConfig
    from linnet_model.network.encoder_decoder import EncoderDecoder
    from linnet_model.network.presets import preset

    torch.manual_seed(1)
    sizes = preset("self_attention_base", VOCABULARY)
    config = BundleConfig(
        "transformer-base", beam_size=BEAM, min_target_tokens=tokens, target_ratio=0.0,
        target_offset=tokens,
    )  # fmt: skip
    facts = BundleFacts("seed-1", "random weights", "none: random numbers")
    bundle = folder / config.name
    write_bundle(bundle, EncoderDecoder(sizes).eval(), sizes, config, tokenizer, "bfloat16", facts)
    return bundle


def measure(options: argparse.Namespace, cores: list[int]) -> dict[str, Any]:
    first, own = Placement(cores[:1], cores[:1]), options.bundle
    with server_overhead.server(options, first, "int8", BEAM) as grpc:
        texts, tokens, source = of_one_length(grpc, options.sentences)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for bundle in (own, transformer(Path(folder), own / "source.spm", tokens)):
            options.bundle = bundle
            found[machine.bundle_name(bundle)] = compare(options, cores, texts, tokens)
    lengths = {"texts": len(texts), "source_tokens": source, "target_tokens": tokens}
    return {**lengths, "models": found}


def compare(
    options: argparse.Namespace, cores: list[int], texts: list[str], tokens: int
) -> dict[str, Any]:
    """Sentences per second and processor seconds of a sentence, of each program with the bundle of
    the options."""
    first, second = cores[:1], cores[1:2]
    on_first = Placement(first, first)
    drift = Drift(options.max_drift, partial(machine.loop_seconds, len(cores)), options.rounds)
    with (
        tempfile.TemporaryDirectory() as folder,
        server_overhead.server_process(options, on_first, "int8", BEAM) as (grpc, server),
        front_end(second, grpc) as (apart, door),
        front_end(first, grpc) as (together, other_door),
    ):
        assert {it.target_tokens for it in usage(grpc, texts)} == {tokens + 1}
        file = Path(folder) / "texts"
        file.write_text("\n".join(texts) + "\n")
        with libretranslate(options, first, tokens) as (peer, peer_process):
            assert translated(peer, texts[0])
            programs = {
                "apart": (apart, [server, door.pid]),
                "together": (together, [server, other_door.pid]),
                "libretranslate": (peer, [peer_process]),
            }
            flags = ["--file", str(file), "--concurrency", str(options.concurrency)]
            flags += ["--warmup", str(options.seconds / 4), "--seconds", str(options.seconds)]

            def one(address: str, processes: list[int]) -> tuple[float, float]:
                """Sentences per second, and processor seconds of a sentence."""
                before = sum(map(cpu_seconds, processes))
                found = http_load(second, "--http", address, *flags)
                used = sum(map(cpu_seconds, processes)) - before
                return found["per_second"], used / found["answered"]

            def once() -> dict[str, tuple[float, float]]:
                return {name: one(*program) for name, program in programs.items()}

            rounds = [drift.steady(once) for _ in range(options.rounds)]
    return {
        "per_second": {name: [it[name][0] for it in rounds] for name in programs},
        "cpu_seconds": {name: [it[name][1] for it in rounds] for name in programs},
    }


def ratio(ones: list[float], others: list[float]) -> float:
    return median(one / other for one, other in zip(ones, others, strict=True))


def rows_of(model: str, found: dict[str, Any], tokens: int) -> list[list[str]]:
    rates, used = found["per_second"], found["cpu_seconds"]
    rows = []
    for name, title in {
        "apart": "linnet-http, beside the clients",
        "together": "linnet-http, beside the server",
        "libretranslate": "LibreTranslate 1.9.6",
    }.items():
        times = ratio(rates[name], rates["libretranslate"])
        fewer = ratio(used["libretranslate"], used[name])
        rate, cost = median(rates[name]), median(used[name])
        row = [model, title, f"{rate:.1f}", f"{rate * tokens:.0f}", f"{times:.2f}"]
        rows.append([*row, f"{1e3 * cost / tokens:.3f}", f"{fewer:.2f}"])
    return rows


def markdown(results: dict[str, Any]) -> str:
    tokens = results["target_tokens"]
    about = (
        "Written by `tests/bench/server/http_libretranslate.py`. "
        f"{machine.sentence(results['machine'])}; two models, each beside a CTranslate2 "
        f"Transformer of the same layer sizes, int8, beam {BEAM}, one thread of the engine on the "
        f"first core. {results['concurrency']} requests of one sentence in flight, "
        f"{results['source_tokens']:.1f} source and {tokens} target tokens. Wanted: at least "
        f"{TIMES:g} times. Medians over the rounds.{note(results.get('max_drift'))} "
        f"The load average was {results['load_average']} at the start."
    )
    heads = ["model", "program", "sentences/s", "tokens/s", "times"]
    heads += ["processor ms per token", "times less"]
    rows = [row for name, it in results["models"].items() for row in rows_of(name, it, tokens)]
    return machine.report("linnet-http and LibreTranslate", about, heads, rows)


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = two_cores.parser(__doc__, seconds=10, rounds=5)
    add = parser.add_argument
    add("--python", type=Path, required=True, help="of an environment with libretranslate")
    add("--concurrency", type=int, default=64, metavar="N", help="[%(default)s]")
    add("--sentences", type=int, default=3000, metavar="N", help="to choose from [%(default)s]")
    options = two_cores.parsed(parser, words)
    options.batch = options.concurrency
    return options


def main(words: list[str] | None = None) -> int:
    options = parse(words)
    results = two_cores.facts(options, "concurrency")
    results["load_average"] = round(os.getloadavg()[0], 1)  # what else runs here
    cores = sorted(os.sched_getaffinity(0))
    results |= two_cores.steady(lambda: measure(options, cores))
    machine.publish(options.out, "http-libretranslate", results, markdown(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
