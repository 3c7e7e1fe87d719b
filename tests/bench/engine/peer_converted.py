"""CTranslate2 on a model that its converter wrote, for the benchmark of families."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import ctranslate2
import numpy as np
from peer import Run, serve
from peer_ctranslate2 import translation, translator_of


def words_of(folder: Path) -> list[str]:
    """Words of the source's vocabulary that are no special tokens."""
    names = ("shared_vocabulary.json", "source_vocabulary.json")
    found = next(folder / name for name in names if (folder / name).exists())
    words = json.loads(found.read_text(encoding="utf-8"))
    return [word for word in words if word[:1] not in "<_>" and "madeupword" not in word]


def load(options: argparse.Namespace) -> Run:
    words = words_of(options.model)
    random = np.random.default_rng(7)

    def sentences(batch: int) -> list[list[str]]:
        rows = random.integers(0, len(words), (batch, options.source - 1))
        return [[*(words[i] for i in row), "</s>"] for row in rows]

    return translation(translator_of(str(options.model), options), options, sentences)


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
