"""CTranslate2 on a model that its converter wrote, for the benchmark of families."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import ctranslate2
import numpy as np
from peer import Run, serve


def words_of(folder: Path) -> list[str]:
    """Words of the source's vocabulary that are no special tokens."""
    names = ("shared_vocabulary.json", "source_vocabulary.json")
    found = next(folder / name for name in names if (folder / name).exists())
    words = json.loads(found.read_text(encoding="utf-8"))
    return [word for word in words if word[:1] not in "<_>" and "madeupword" not in word]


def load(options: argparse.Namespace) -> Run:
    translator = ctranslate2.Translator(
        str(options.model),
        device="cpu",
        compute_type=options.compute,
        intra_threads=max(1, options.threads // options.workers),
        inter_threads=options.workers,
    )
    words = words_of(options.model)
    random = np.random.default_rng(7)

    def run(batch: int, beam: int) -> int:
        rows = random.integers(0, len(words), (batch, options.source - 1))
        results = translator.translate_batch(
            [[*(words[i] for i in row), "</s>"] for row in rows],
            beam_size=beam,
            max_batch_size=-(-batch // options.workers),
            min_decoding_length=options.target,
            max_decoding_length=options.target,
        )
        return sum(len(result.hypotheses[0]) for result in results)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the converter")
    parser.add_argument("--compute", default="int8")
    for name in ("threads", "workers", "source", "target"):
        parser.add_argument(f"--{name}", type=int, required=True, metavar="N")
    options = parser.parse_args()
    serve(f"CTranslate2 {ctranslate2.__version__}", lambda: load(options))


if __name__ == "__main__":
    main()
