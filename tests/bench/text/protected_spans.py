"""Measures what comes back of symbols, variables and codes, and what protecting them costs.

Three sets for each model of a folder: sentences with two, three and four symbols that no model
writes, each beside a number; random codes of twelve classes, alone and in sentences; and lines of
test sets (SOURCE, TARGET with a tab between). Of the first two it counts sentences whose numbers or
codes differ, and how many of them have a warning; of the third the lines with spans, those with a
warning, BLEU and the CPU time of the server. `--before` is the program of an earlier version, which
is measured in the same way. Writes DIR/protected-spans.json.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import linnet
import sacrebleu

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

ROOT = Path(__file__).resolve().parents[3]
PAIRS = ("en-de", "de-en", "en-pt", "pt-en")
SYMBOLS = "🐱🐶🍎🚗🌳🔑🎈🥖"
WITH_SYMBOLS = {
    "en": [
        "I have {} {} and {} {}.",
        "We saw {} {}, {} {} and {} {}.",
        "She bought {} {}, {} {}, {} {} and {} {}.",
    ],
    "de": [
        "Ich habe {} {} und {} {}.",
        "Wir sahen {} {}, {} {} und {} {}.",
        "Sie kaufte {} {}, {} {}, {} {} und {} {}.",
    ],
    "pt": [
        "Tenho {} {} e {} {}.",
        "Vimos {} {}, {} {} e {} {}.",
        "Ela comprou {} {}, {} {}, {} {} e {} {}.",
    ],
}
WITH_CODE = {
    "en": ["The number is {}.", "Please send {} to the office.", "We found {} in the report."],
    "de": [
        "Die Nummer ist {}.",
        "Bitte schicken Sie {} an das Büro.",
        "Wir fanden {} im Bericht.",
    ],
    "pt": ["O número é {}.", "Envie {} para o escritório.", "Encontramos {} no relatório."],
}
LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"


def code(kind: int, rng: random.Random) -> str:
    """A random code of one of twelve classes."""

    def digits(count: int) -> str:
        return "".join(rng.choices("0123456789", k=count))

    def letters(count: int) -> str:
        return "".join(rng.choices(LETTERS, k=count))

    number = rng.randint
    return [
        lambda: (
            f"{letters(2)}{digits(2)} {digits(4)} {digits(4)} {digits(4)} {digits(4)} {digits(2)}"
        ),
        lambda: " ".join(digits(4) for _ in range(4)),
        lambda: digits(15),
        lambda: f"978-{number(0, 9)}-{digits(2)}-{digits(6)}-{number(0, 9)}",
        lambda: ".".join(str(number(0, 255)) for _ in range(4)),
        lambda: f"v{number(0, 20)}.{number(0, 30)}.{number(0, 99)}",
        lambda: f"{letters(2)}{digits(10)}",
        lambda: f"{letters(1)}{digits(3)}-{letters(2)}{digits(2)}",
        lambda: f"{letters(5).lower()}.{letters(4).lower()}@{letters(6).lower()}.com",
        lambda: f"https://{letters(7).lower()}.org/{letters(4).lower()}?id={digits(5)}",
        lambda: f"+{number(1, 99)} {digits(3)} {digits(7)}",
        lambda: f"{digits(8)}-{digits(4)}-{digits(4)}",
    ][kind]()


CLASSES = 12


@contextlib.contextmanager
def served(program: Path, models: Path) -> Iterator[tuple[linnet.Client, int]]:
    """A server of the models: its client and its process."""
    command = [str(program), "--models", str(models), "--listen", "127.0.0.1:0"]
    command += ["--metrics-listen", "127.0.0.1:0", "--log-level", "warning"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            if not ready.startswith("ready grpc="):
                raise SystemExit(f"error: the server ended with {process.wait()}")
            with linnet.Client(ready.split("grpc=")[1].split()[0]) as client:
                yield client, process.pid
        finally:
            process.terminate()


def cpu_seconds(process: int) -> float:
    """The CPU time of a process and its threads so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def translated(client: linnet.Client, pair: str, texts: list[str]) -> list[Any]:
    answers: list[Any] = []
    for begin in range(0, len(texts), 100):
        request = linnet.TranslateRequest(
            contents=texts[begin : begin + 100],
            source_language_code=pair[:2],
            target_language_code=pair[3:],
        )
        answers += client.translate(request, timeout=600).translations
    return answers


def reasons(answer: Any) -> set[str]:
    return {warning.reason for warning in answer.warnings}


def numbers(text: str) -> list[str]:
    return sorted(re.findall(r"\d+", text))


def symbols(client: linnet.Client, pair: str, count: int) -> dict[str, Any]:
    rng = random.Random(3)
    results = {}
    for template in WITH_SYMBOLS[pair[:2]]:
        places = template.count("{}") // 2
        texts, used = [], []
        for _ in range(count):
            chosen = rng.sample(SYMBOLS, places)
            amounts = rng.sample(range(2, 99), places)
            used.append(chosen)
            texts.append(template.format(*itertools.chain(*zip(amounts, chosen, strict=True))))
        answers = translated(client, pair, texts)
        lost = [
            numbers(text) != numbers(answer.text) or any(answer.text.count(s) != 1 for s in chosen)
            for text, chosen, answer in zip(texts, used, answers, strict=True)
        ]
        results[f"{places} symbols"] = {
            "sentences": count,
            "numbers or symbols differ": sum(lost),
            "of these with a warning": sum(
                bool(reasons(answer)) for answer, bad in zip(answers, lost, strict=True) if bad
            ),
            "forced": sum("SPAN_FORCED" in reasons(answer) for answer in answers),
        }
    return results


def codes(client: linnet.Client, pair: str, count: int) -> dict[str, Any]:
    rng = random.Random(5)
    used = [code(kind, rng) for kind in range(CLASSES) for _ in range(count)]
    frames = WITH_CODE[pair[:2]]
    results = {}
    for name, texts in {
        "alone": used,
        "in sentences": [frames[i % len(frames)].format(c) for i, c in enumerate(used)],
    }.items():
        answers = translated(client, pair, texts)
        lost = [
            answer.text.count(wanted) != 1 or numbers(answer.text) != numbers(text)
            for text, wanted, answer in zip(texts, used, answers, strict=True)
        ]
        results[name] = {
            "codes": len(used),
            "lost or changed": sum(lost),
            "of these with a warning": sum(
                bool(reasons(answer)) for answer, bad in zip(answers, lost, strict=True) if bad
            ),
            "forced": sum("SPAN_FORCED" in reasons(answer) for answer in answers),
        }
    return results


def test_set(
    client: linnet.Client, process: int, pair: str, rows: list[tuple[str, str]]
) -> dict[str, Any]:
    begin = cpu_seconds(process)
    answers = translated(client, pair, [source for source, _ in rows])
    seconds = cpu_seconds(process) - begin
    bleu = sacrebleu.corpus_bleu([a.text for a in answers], [[target for _, target in rows]])
    counts = {
        reason: sum(reason in reasons(answer) for answer in answers)
        for reason in ("UNREAD_TEXT", "SPAN_FORCED", "FACTS_DIFFER")
    }
    return {"lines": len(rows), "bleu": round(bleu.score, 2), "cpu_seconds": seconds, **counts}


def rows_of(file: Path, pair: str, count: int) -> list[tuple[str, str]]:
    rows = [line.split("\t")[:2] for line in file.read_text("utf-8").splitlines()[:count]]
    return [(a, b) if pair == "en-de" else (b, a) for a, b in rows]


def measure(program: Path, options: argparse.Namespace) -> dict[str, Any]:
    result: dict[str, Any] = {}
    with served(program, options.models) as (client, process):
        for pair in PAIRS:
            result[pair] = {
                "symbols": symbols(client, pair, 40),
                "codes": codes(client, pair, options.codes),
            }
            if pair in ("en-de", "de-en"):
                result[pair]["test sets"] = {
                    file.stem: test_set(client, process, pair, rows_of(file, pair, options.lines))
                    for file in options.data
                }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, required=True, help=f"folder of {', '.join(PAIRS)}")
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="files, English first")
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--codes", type=int, default=20, help="of each class")
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/bin/linnet-server")
    parser.add_argument("--before", type=Path, help="linnet-server of an earlier version")
    options = machine.parse(parser)
    result: dict[str, Any] = {"version": machine.facts([0])["version"]}
    if options.before:
        result["before"] = measure(options.before, options)
    result["now"] = measure(options.program, options)
    print(json.dumps(result, indent=1, ensure_ascii=False))
    machine.write_result(options.out / "protected-spans.json", result)


if __name__ == "__main__":
    main()
