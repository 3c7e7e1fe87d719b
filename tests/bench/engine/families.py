"""Memory and speed of imported models at their real size, with random weights, beside CTranslate2.

For each family it writes a folder as transformers does (random weights of the published sizes; a
small vocabulary, whose table is filled up to the real number of rows), imports it, converts it with
CTranslate2's own converter, and measures both in turn. Takes about 20 minutes, and 8 GB of disk
for the largest model, one after another.

Writes DIR/MACHINE/families.json and families.md. With --family it keeps what the file has of the
others, if the machine and the settings are the same; each has the version that was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import drift
import engines
import machine
import rounds
from engines import ROOT, Engine, Linnet, Peer, Sizes

PEERS = ROOT / "build/peers"
BEAM = 5
LARGE = {
    "d_model": 1024,
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "max_position_embeddings": 1024,
}


@dataclass(frozen=True)
class Family:
    """A model of the hub: its importer, the sizes of its configuration, and what is decoded."""

    importer: str  # of linnet-model import; empty: a preset of linnet-random-bundle
    kind: str  # of the writer in tests/data
    sizes: dict[str, Any]
    source: int
    target: int
    batches: tuple[int, ...] = (1, 8)


TRANSLATION = {"source": 30, "target": 30}
SUMMARY = {"source": 500, "target": 60, "batches": (1, 4)}
FAMILIES = {
    "Firefox, tiny": Family("", "student_tiny", {"vocab_size": 32000}, **TRANSLATION),
    "Firefox, base": Family("", "student_base", {"vocab_size": 32000}, **TRANSLATION),
    "OPUS-MT": Family(
        "huggingface",
        "marian",
        {
            "vocab_size": 58101,
            "d_model": 512,
            "encoder_layers": 6,
            "decoder_layers": 6,
            "encoder_attention_heads": 8,
            "decoder_attention_heads": 8,
            "encoder_ffn_dim": 2048,
            "decoder_ffn_dim": 2048,
            "max_position_embeddings": 512,
        },
        **TRANSLATION,
    ),
    "M2M-100, 418M": Family(
        "multilingual", "m2m100", LARGE | {"vocab_size": 128112}, **TRANSLATION
    ),
    "NLLB-200, 600M": Family("multilingual", "nllb", LARGE | {"vocab_size": 256206}, **TRANSLATION),
    "mBART-50": Family(
        "multilingual",
        "mbart50",
        LARGE
        | {
            "vocab_size": 250054,
            "normalize_before": True,
            "normalize_embedding": True,
            "tokenizer_class": "MBart50Tokenizer",
        },
        **TRANSLATION,
    ),
    "distilbart-cnn-12-6": Family(
        "summariser", "bart", LARGE | {"vocab_size": 50264, "decoder_layers": 6}, **SUMMARY
    ),
    "bart-large-cnn": Family("summariser", "bart", LARGE | {"vocab_size": 50264}, **SUMMARY),
    "pegasus-large": Family(
        "summariser",
        "pegasus",
        LARGE | {"vocab_size": 96103, "encoder_layers": 16, "decoder_layers": 16},
        **SUMMARY,
    ),
}

# The languages of a model, as its importer takes them; those of tests/data.
FLAGS = {
    "marian": ["--source-language", "en", "--target-language", "de"],
    "m2m100": ["--language=en=en", "--language=de=de"],
    "nllb": ["--language=en=eng_Latn", "--language=de=deu_Latn"],
    "mbart50": ["--language=en=en_XX", "--language=de=de_DE"],
    "bart": ["--language", "en"],
    "pegasus": ["--language", "en"],
}

# Run in a process of its own, whose memory the next ones need.
WRITE = """
import json, sys
from pathlib import Path
import tiny_marian, tiny_multilingual, tiny_summarisers
kind, folder, sizes = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
if kind == "marian":
    tiny_marian.make_tiny_marian(folder, rows=sizes.pop("vocab_size"), **sizes)
elif kind in tiny_multilingual.KINDS:
    tiny_multilingual.make_tiny_multilingual(kind, folder, **sizes)
else:
    tiny_summarisers.make_tiny_summariser(kind, folder, **sizes)
def change(name, **values):
    file = folder / name
    file.write_text(json.dumps(json.loads(file.read_text()) | values))
change("generation_config.json", max_length=256)
if kind == "mbart50":
    change("tokenizer_config.json", bos_token="<s>")
"""
# The table has rows without a token, which CTranslate2 needs a word for; Marian's has none.
CONVERT = """
import sys
from ctranslate2.converters import TransformersConverter, transformers
def filled(words_of, model, tokenizer):
    words = [word or f"<gap{i}>" for i, word in enumerate(words_of(model, tokenizer))]
    return words + [f"<unused{i}>" for i in range(len(words), model.config.vocab_size)]
for name, loader in transformers._MODEL_LOADERS.items():
    if hasattr(loader, "get_vocabulary") and name != "MarianConfig":
        loader.get_vocabulary = filled.__get__(loader.get_vocabulary)
TransformersConverter(sys.argv[1]).convert(sys.argv[2])
"""


def python(*arguments: str, paths: list[Path]) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    subprocess.run(
        [sys.executable, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL
    )


def write_bundle(family: Family, folder: Path, out: Path) -> None:
    """Writes the bundle, and the model it was imported from into `folder`."""
    model = [ROOT / "model"]
    if not family.importer:
        flags = ["--preset", family.kind, "--vocab", str(family.sizes["vocab_size"])]
        python("-m", "linnet_model.export.random_bundle", "--out", str(out), *flags, paths=model)
    else:
        sizes = json.dumps(family.sizes)
        python("-c", WRITE, family.kind, str(folder), sizes, paths=[ROOT / "tests/data"])
        command = ["-m", "linnet_model", "import", family.importer, "--model", str(folder)]
        command += [
            "--out",
            str(out),
            "--no-golden",
            "--license",
            "none: random",
            *FLAGS[family.kind],
        ]
        python(*command, paths=model)


def convert(folder: Path, out: Path) -> None:
    """Converts the folder with CTranslate2."""
    installed = next((PEERS / "lib").glob("python*/site-packages"))
    python("-c", CONVERT, str(folder), str(out), paths=[installed])


def runners_of(family: Family, bundle: Path, converted: Path, options: Any) -> list[Engine]:
    sizes = Sizes("", 0, 0, 0, 0, 0, family.source, family.target)
    common = ["--compute", options.compute, "--threads", str(options.threads)]
    runners: list[Engine] = [
        Linnet("linnet", options.programs / "linnet-decode", bundle, sizes, common)
    ]
    if converted.exists():
        command = [str(PEERS / "bin/python"), str(engines.HERE / "peer_converted.py")]
        command += ["--model", str(converted), *common]
        command += ["--source", str(family.source), "--target", str(family.target)]
        for name, workers in (("ctranslate2", 1), ("ctranslate2 workers", options.threads)):
            runners.append(Peer(name, [*command, "--workers", str(workers)]))
    return runners


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    family = FAMILIES[name]
    found: dict[str, Any] = {"family": name, "source": family.source, "target": family.target}
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        folder, bundle, converted = (
            Path(scratch) / part for part in ("model", "bundle", "converted")
        )
        write_bundle(family, folder, bundle)
        if family.importer:
            convert(folder, converted)
        shutil.rmtree(folder, ignore_errors=True)
        runners = runners_of(family, bundle, converted, options)
        loop = partial(machine.loop_seconds, options.threads)
        speeds: dict[str, dict[str, list[float]]] = {runner.name: {} for runner in runners}
        try:
            for batch in family.batches:
                print(f"{name}, batch {batch} …", file=sys.stderr)
                measured = rounds.measure_group(
                    runners, batch, BEAM, options.rounds, options.max_drift, loop
                )
                for runner in runners:
                    speeds[runner.name][str(batch)] = measured[runner.name]["rounds"]
        finally:
            for runner in runners:
                runner.stop()
    found["engines"] = {
        runner.name: {
            "label": runner.label,
            "peak_bytes": runner.peak,
            "working_bytes": runner.working,
            "rounds": speeds[runner.name],
        }
        for runner in runners
    }
    return found


def best_of_peer(found: dict[str, Any], batch: str) -> float | None:
    """The speed of the faster of CTranslate2's two ways, or None."""
    peers = [one for name, one in found["engines"].items() if name != "linnet"]
    return max((median(one["rounds"][batch]) for one in peers), default=None)


def rows_of(data: dict[str, Any]) -> list[list[str]]:
    """A row of text per family: sizes, memory in MB, speeds and their ratio."""
    rows = []
    for found in data["families"]:
        ours, peer = found["engines"]["linnet"], found["engines"].get("ctranslate2")
        row = [found["family"], f"{found['source']} → {found['target']}"]
        for key in ("peak_bytes", "working_bytes"):
            row.append(f"{ours[key] / 1e6:.0f}")
            row.append(f"{peer[key] / 1e6:.0f}" if peer else "—")
        batches = list(ours["rounds"])
        for batch in (batches[0], batches[-1]):
            own, other = median(ours["rounds"][batch]), best_of_peer(found, batch)
            row.append(f"{own:.0f}" + (f" ({batch})" if batch != "1" else ""))
            row.append(f"{own / other:.1f} ×" if other else "—")
        rows.append(row)
    return rows


HEADS = [
    "family", "tokens", "peak MB", "CTranslate2's", "working MB", "CTranslate2's",
    "tokens/s, one text", "ratio", "tokens/s, several (texts)", "ratio",
]  # fmt: skip


def markdown(data: dict[str, Any]) -> str:
    steady = ""
    if "max_drift" in data:  # older results have no check
        steady = f" in which a fixed loop kept its time within {data['max_drift']:.0%}"
    lines = [
        "# Imported models at their real size",
        "",
        f"Written by `tests/bench/engine/families.py`. {machine.sentence(data['machine'])}. Random "
        f"weights, {data['compute']}, {data['threads']} threads, beam {BEAM}, {data['rounds']} "
        f"rounds in turn{steady}; target tokens of the best hypotheses a second, medians; ratios "
        "to the faster of CTranslate2 with one worker and with one per core; it reads no SSRU. "
        "`tokens` are those of a source and a target. `peak` counts loading; `working` is what is "
        "resident after it. No server takes part.",
        "",
        "| " + " | ".join(HEADS) + " |",
        "|---|---|" + "---:|" * (len(HEADS) - 2),
        *("| " + " | ".join(row) + " |" for row in rows_of(data)),
    ]
    return "\n".join(lines) + "\n"


def kept(path: Path, facts: dict[str, Any], measured: list[str]) -> dict[str, Any]:
    """These facts, and from the file the families that are not measured now, if its facts but for
    the version are the same."""

    def fixed(data: dict[str, Any]) -> dict[str, Any]:
        own = {name: value for name, value in data.items() if name != "families"}
        return own | {"machine": data["machine"] | {"version": ""}}

    before = json.loads(path.read_text()) if path.exists() else {}
    same = bool(before) and fixed(before) == fixed(facts)
    others = [one for one in before["families"] if one["family"] not in measured] if same else []
    return facts | {"families": others}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="families.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--family", nargs="+", choices=FAMILIES, default=list(FAMILIES), metavar="NAME",
        help=f"of {', '.join(repr(name) for name in FAMILIES)} [all]")  # fmt: skip
    add("--compute", choices=("float32", "int8"), default="int8", help="[%(default)s]")
    add("--rounds", type=int, default=3, metavar="N", help="turns of each engine [%(default)s]")
    add(
        "--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="[all cores]"
    )
    drift.add_max_drift(parser)
    engines.add_folders(parser, bundles=False)
    add("--scratch", type=Path, metavar="DIR", help="folder for the models, 8 GB [the system's]")
    options = parser.parse_args(words)
    machine.require_commit(options.out)
    if not (PEERS / "bin/python").exists():
        raise SystemExit("CTranslate2 is not installed: run tests/bench/run --quick first")
    facts = machine.facts()
    settings = {key: getattr(options, key) for key in ("compute", "threads", "rounds", "max_drift")}
    path = options.out / machine.slug(facts) / "families.json"
    data = kept(path, {"machine": facts, **settings}, options.family)
    for name in options.family:
        data["families"].append(measure(name, options) | {"version": facts["version"]})
        data["families"].sort(key=lambda found: list(FAMILIES).index(found["family"]))
        machine.write_result(path, data, markdown(data))
    print(markdown(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
