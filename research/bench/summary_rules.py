"""Measures what the server's rules for the ends of summaries cost, by ROUGE of the messages here.

Each message with a summary in a style goes to a server with en-summary, and to linnet-decode, which
has no such rules: a title of one phrase, a sentence that is one, no end behind an abbreviation.
Both compute in float32, so the machine does not matter. Writes DIR/summary-rules.json.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
for folder in ("tests/bench", "tests/bench/server", "model", "research"):
    sys.path.insert(0, str(ROOT / folder))

import machine  # noqa: E402
from overload import server  # noqa: E402

from linnet_model.bundle import read_manifest  # noqa: E402
from linnet_model.evaluation.decoding import Decoding  # noqa: E402
from linnet_model.train.rouge import ROUGE, rouge  # noqa: E402
from linnet_research.data.messages import tests  # noqa: E402


def by_server(linnet: Path, address: str, texts: list[str], style: str) -> list[str]:
    done = subprocess.run(
        [str(linnet), "summarize", "--lines", "--language", "en", "--style", style],
        env={"LINNET_SERVER": address},
        input="".join(text + "\n" for text in texts),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, default=ROOT / "build/release/bin")
    parser.add_argument("--bundle", type=Path, default=ROOT / "model/bundles/en-summary")
    parser.add_argument("--results", type=Path, default=ROOT / "tests/bench/results")
    options = parser.parse_args()
    options.compute, options.rows = "float32", 160
    machine.require_commit(options.results)
    manifest = read_manifest(options.bundle)
    decode = Decoding(options.programs / "linnet-decode", {"--compute": "float32"})
    cores = [0]
    styles: dict[str, Any] = {}
    with server(options, cores) as running:
        address = f"127.0.0.1:{running.port}"
        for style, pairs in tests().items():
            pairs = [pair for pair in pairs if pair.target]
            texts, wanted = [pair.source for pair in pairs], [[pair.target] for pair in pairs]
            plain = decode.answers(options.bundle, manifest, texts, style)
            ruled = by_server(options.programs / "linnet", address, texts, style)
            assert len(plain) == len(ruled) == len(texts)
            styles[style] = {
                "texts": len(texts),
                "changed": sum(one != other for one, other in zip(plain, ruled, strict=True)),
                "without_rules": scores(wanted, plain),
                "with_rules": scores(wanted, ruled),
            }
            print(style, styles[style], flush=True)
    result = {
        "version": machine.version_of(ROOT),
        "bundle": manifest["version"],
        "styles": styles,
    }
    machine.write_result(options.results / "summary-rules.json", result)


def scores(references: list[list[str]], answers: list[str]) -> dict[str, float]:
    found = rouge(references, answers, "en")
    return {kind: round(found[kind], 2) for kind in ROUGE}


if __name__ == "__main__":
    main()
