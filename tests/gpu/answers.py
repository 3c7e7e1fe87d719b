"""Compares answers of the GPU with those of the CPU in float32.

In float32 the answers must be equal. In float16 and bfloat16 they may differ: a row reports the
differences of scores and the number of changed answers, and if --data has test sets, BLEU.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from decode import WAYS, bundles, decoder_of, texts_for
from session import Case, Setup

OPTIONS: dict[str, dict[str, Any]] = {
    "beam 5": {"beam_size": 5},
    "beam 1": {"beam_size": 1},
    "trigrams once": {"beam_size": 4, "no_repeat_ngram_size": 3, "unknown_penalty": 1},
    "drawn": {"beam_size": 2, "seed": 7},
}
TIE = 1e-4  # below this difference of scores, float32 sums in another order may choose either
TEST_ROWS = 1000

Answers = list[dict[str, Any]]


def decode(
    setup: Setup, bundle: Path, device: str, compute: str, options: dict[str, Any],
    texts: list[str], *flags: str,
) -> Answers:  # fmt: skip
    lines = [{"text": text, "options": options | {"n_best": 1}} for text in texts]
    words = ("--bundle", str(bundle), "--device", device, "--compute", compute, *flags)
    answers = decoder_of(setup).run(*words, lines=lines)
    return [answer["hypotheses"][0] for answer in answers]


def tally(cpu: Answers, other: Answers) -> dict[str, Any]:
    result = {"texts": len(cpu), "same": 0, "ties": 0, "different": 0}
    distances = [abs(one["score"] - two["score"]) for one, two in zip(cpu, other, strict=True)]
    for one, two, distance in zip(cpu, other, distances, strict=True):
        same = one["ids"] == two["ids"]
        result["same" if same else "ties" if distance < TIE else "different"] += 1
    mean = sum(distances) / len(distances)
    return result | {"mean score off": f"{mean:.1e}", "max score off": f"{max(distances):.1e}"}


def in_float32(setup: Setup, bundle: Path, name: str) -> list[dict[str, Any]]:
    """Decodes in float32 with each execution mode of a step."""
    texts = texts_for(bundle)[: 2 if setup.dry else None]
    cpu = decode(setup, bundle, "cpu", "float32", OPTIONS[name], texts)
    rows = []
    for way, flags in WAYS.items():
        other = decode(setup, bundle, setup.device, "float32", OPTIONS[name], texts, *flags)
        row = {"bundle": bundle.name, "options": name, "compute": "float32", "way": way}
        rows.append(row | tally(cpu, other))
    return rows


def in_half_precision(setup: Setup, bundle: Path, compute: str) -> list[dict[str, Any]]:
    texts = texts_for(bundle)[: 2 if setup.dry else None]
    cpu = decode(setup, bundle, "cpu", "float32", OPTIONS["beam 5"], texts)
    other = decode(setup, bundle, setup.device, compute, OPTIONS["beam 5"], texts)
    row = {"bundle": bundle.name, "options": "beam 5", "compute": compute, "way": "graphs"}
    return [row | tally(cpu, other)]


@functools.cache
def test_rows(file: Path, count: int) -> tuple[list[str], list[str]]:
    lines = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()[:count]]
    return [line[0] for line in lines], [line[1] for line in lines]


def score(setup: Setup, bundle: Path, file: Path, device: str, compute: str) -> Any:
    import sacrebleu

    sources, references = test_rows(file, 4 if setup.dry else TEST_ROWS)
    start = time.monotonic()
    answers = decode(setup, bundle, device, compute, {}, sources, "--batch", "128")
    texts = [answer["text"] for answer in answers]
    bleu = sacrebleu.corpus_bleu(texts, [references])
    return [
        {
            "test set": file.name,
            "device": device,
            "compute": compute,
            "BLEU": round(bleu.score, 2),
            "chrF": round(sacrebleu.corpus_chrf(texts, [references]).score, 2),
            "mean score": round(sum(a["score"] for a in answers) / len(answers), 5),
            "seconds": round(time.monotonic() - start, 1),
        }
    ]


def cases(setup: Setup, part: str) -> Iterator[Case]:
    halves = ("bfloat16",) if setup.dry else ("float16", "bfloat16")
    for bundle in bundles():
        yield f"{bundle.name}, beam 5", functools.partial(in_float32, setup, bundle, "beam 5")
        for compute in halves:
            run = functools.partial(in_half_precision, setup, bundle, compute)
            yield f"{bundle.name}, {compute}", run
    file = setup.data / "en-de/test.tatoeba.tsv" if setup.data else None
    if file is not None and file.exists():
        places = [("cpu", "float32")] if setup.dry else [("cpu", "float32"), ("cuda", "float32")]
        for device, compute in [*places, *((setup.device, compute) for compute in halves)]:
            run = functools.partial(
                score, setup, bundles()[0].with_name("en-de"), file, device, compute
            )
            yield f"BLEU, {device}, {compute}", run
    for bundle in bundles():
        for name in list(OPTIONS)[1:]:
            yield f"{bundle.name}, {name}", functools.partial(in_float32, setup, bundle, name)
