"""Makes the models in this folder and oracle.json, what Marian says of them.

    make.py --marian PYTHON     PYTHON has pymarian 1.12.42 installed, which no test needs

Each model is trained for seconds on made-up lines, so that its answers end by themselves. The
folders are in the layout of a download:

    shared     SSRU, norms after the blocks, one table: Firefox's students; with a shortlist
    int8       the same as Firefox ships it, .bin with int8 weights and ranges of activations
    mainline   hardly trained, and converted by Marian itself to .bin with int8 weights
    split      SSRU, norms before the blocks, a vocabulary per side
    attention  self-attention decoder, a table for the output of its own, swish

Marian cannot read Firefox's .bin, whose numbers of types differ. Its oracle is an .npz with the
weights that the .bin stands for, which is thrown away. fxtranslate 0.5.0, an engine of its own for
Firefox's models, reads the .bin too, and gives 27 of 30 of its greedy answers.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import shutil
import struct
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import sentencepiece

HERE = Path(__file__).resolve().parent
SETTINGS = "special:model.yml"
LINES, CASES = 600, 30
LENGTH_FACTOR = 3  # Marian's max-length-factor: a target's tokens per token of the source
UNKNOWN = "Ж"  # in no vocabulary


def words(text: str) -> list[str]:
    return text.split()


SMALL = words("--dim-emb 24 --transformer-heads 4 --transformer-dim-ffn 48")
TRAIN = words(
    "--type transformer --cost-type ce-mean-words --mini-batch 16 --learn-rate 0.004 --seed 7 "
    "--cpu-threads 1 --workspace 256 --quiet"
)
AFTER = words("--transformer-preprocess d --transformer-postprocess dan")
BEFORE = words(
    "--transformer-preprocess n --transformer-postprocess da --transformer-postprocess-top n"
)
SSRU = words("--transformer-decoder-autoreg rnn --dec-cell ssru")
RELU = words("--transformer-ffn-activation relu")
DEPTHS = words("--enc-depth 1 --dec-depth 2")
MODELS = {
    "shared": [*AFTER, *SSRU, *DEPTHS, *RELU, "--tied-embeddings-all"],
    "split": [*BEFORE, *SSRU, *DEPTHS, *RELU, "--tied-embeddings"],
    "attention": [*AFTER, *DEPTHS, *words("--transformer-ffn-activation swish")],
}


def made_up_lines() -> tuple[list[str], list[str]]:
    """Sources, and targets that have the syllables of their words in another alphabet."""
    rng = random.Random(1)
    syllables = words("ka lo mi ter run ba est qui no ven tal or")
    others = words("schö gu ren ün lich bär auf ze wo dan ist öl")
    in_target = dict(zip(syllables, others, strict=True))
    known = [rng.choices(syllables, k=rng.randint(1, 3)) for _ in range(60)]
    rows = [rng.choices(known, k=rng.randint(2, 7)) for _ in range(LINES)]
    sources = [" ".join("".join(word) for word in row) + "." for row in rows]
    targets = [" ".join("".join(in_target[s] for s in word) for word in row) + "!" for row in rows]
    return sources, targets


def train_pieces(lines: list[str], pieces: int, file: Path) -> None:
    """Trains a SentencePiece model with Firefox's special ids."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=pieces,
        bos_id=-1,
        eos_id=0,
        unk_id=1,
        pad_id=-1,
        hard_vocab_limit=False,
        normalization_rule_name="identity",  # others add 240 kB of tables
        num_threads=1,
        minloglevel=2,
    )
    file.write_bytes(model.getvalue())


class Marian:
    def __init__(self, python: str, folder: Path):
        self.python, self.folder = python, folder

    def __call__(self, *arguments: str) -> list[str]:
        script = "import sys, _pymarian; _pymarian.main(sys.argv[1:])"
        command = [self.python, "-c", script, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder)
        if done.returncode != 0:
            raise SystemExit(f"{arguments[0]} failed:\n{done.stderr[-2000:]}")
        return done.stdout.splitlines()


def vocabularies(folder: Path) -> list[Path]:
    shared = folder / "vocab.spm"
    return [shared, shared] if shared.is_file() else [folder / "src.spm", folder / "trg.spm"]


def ask(marian: Marian, model: Path, folder: Path, lines: tuple[list[str], list[str]]) -> dict:
    """Returns Marian's scores of the pairs and its greedy answers, with ids instead of texts."""
    common = ["-m", str(model), "-v", *map(str, vocabularies(folder))]
    common += words("--cpu-threads 1 -w 256 --quiet")
    texts = [marian.folder / f"case.{side}" for side in ("source", "target")]
    for text, side in zip(texts, lines, strict=True):
        text.write_text("".join(line + "\n" for line in side), encoding="utf-8")
    scores = marian("score", "-t", *map(str, texts), *common)
    flags = "--beam-size 1 --normalize 1 --n-best --word-scores --no-spm-decode --mini-batch 1"
    flags += f" --max-length-factor {LENGTH_FACTOR}"
    answers = marian("decode", "-i", str(texts[0]), *words(flags), *common)
    pieces = [sentencepiece.SentencePieceProcessor(str(f)) for f in vocabularies(folder)]
    sources, targets = (
        [[*model.encode(line), model.eos_id()] for line in side]
        for model, side in zip(pieces, lines, strict=True)
    )
    greedy = []
    for source, answer in zip(sources, answers, strict=True):
        _, said, numbers, total, _ = answer.split(" ||| ")
        ids = [pieces[1].piece_to_id(piece) for piece in said.split()]
        ended = len(numbers.split()) == len(ids) + 2  # a label before them, the end token behind
        assert ended or len(ids) >= LENGTH_FACTOR * len(source), answer
        ids += [pieces[1].eos_id()] * ended
        greedy.append({"ids": ids, "score": float(total.removeprefix("F0= "))})
    flags = f"--beam-size 1 --alignment soft --mini-batch 1 --max-length-factor {LENGTH_FACTOR}"
    aligned = marian("decode", "-i", str(texts[0]), *words(flags), *common)
    return {
        "sources": sources,
        "targets": targets,
        "alignments": alignments(aligned),
        "scores": [float(score) for score in scores],
        "greedy": greedy,
    }


def alignments(lines: list[str]) -> list[list[list[float]]]:
    """Returns for each line and target token, the end token included, the source token with the
    highest weight, and the weight. `lines` are answers with `--alignment soft`."""
    found = []
    for line in lines:
        rows = [[float(x) for x in row.split(",")] for row in line.split(" ||| ")[1].split()]
        found.append([[row.index(max(row)), round(max(row), 5)] for row in rows])
    return found


def write_firefox_bin(weights: dict[str, np.ndarray], file: Path) -> dict[str, np.ndarray]:
    """Writes the .bin that browsermt's marian-conv makes for intgemm8, with ranges of activations,
    and returns the weights that it stands for."""
    exact, items = {}, []
    for name, weight in weights.items():
        if name == SETTINGS:
            items.append((name, 0x0101, weight.shape, weight.tobytes()))
            exact[name] = weight
        elif weight.shape[0] > 1:
            multiplier = np.float32(127 / np.abs(weight).max())
            integers = np.clip(np.rint(weight * multiplier), -127, 127).astype(np.int8)
            exact[name] = integers.astype(np.float32) / multiplier
            stored = integers if "Wemb" in name else integers.T
            data = np.ascontiguousarray(stored).tobytes() + struct.pack("<f", multiplier)
            items.append((name, 0x4101, weight.shape, data))
            if "Wemb" not in name:
                items.append((f"{name}_QuantMultA", 0x0404, (1, 1), struct.pack("<f", 21.5)))
        else:
            items.append((name, 0x0404, weight.shape, weight.astype("<f4").tobytes()))
            exact[name] = weight
    items.append(("none_QuantMultA", 0x0404, (1, 1), struct.pack("<f", 20.25)))
    padded = [data + bytes(-len(data) % 256) for *_, data in items]
    out = struct.pack("<2Q", 1, len(items))
    for (name, kind, shape, _), data in zip(items, padded, strict=True):
        out += struct.pack("<4Q", len(name) + 1, kind, len(shape), len(data))
    out += b"".join(name.encode() + b"\0" for name, *_ in items)
    out += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    gap = -(len(out) + 8) % 256
    file.write_bytes(out + struct.pack("<Q", gap) + bytes(gap) + b"".join(padded))
    return exact


def make_shortlist(
    marian: Marian, spm: Path, lines: tuple[list[str], list[str]], file: Path
) -> dict[str, list[int]]:
    """Writes a shortlist of made-up probabilities with Marian and returns the lists it has."""
    first, best = 20, 4
    model = sentencepiece.SentencePieceProcessor(str(spm))
    counts: dict[int, Counter] = {}
    for source, target in zip(*lines, strict=True):
        for piece in model.encode(source):
            counts.setdefault(piece, Counter()).update(model.encode(target))
    rows, lists = [], {}
    for source, found in sorted(counts.items()):
        # Probabilities without ties, so that the best ones are known.
        ranked = sorted(found, key=lambda target: (-found[target], target))
        lists[str(source)] = sorted(ranked[:best])
        for rank, target in enumerate(ranked):
            pair = model.id_to_piece(target), model.id_to_piece(source)
            rows.append(f"{pair[0]} {pair[1]} {0.5 / (rank + 1):.6f}\n")
    table = marian.folder / "lex.s2t"
    table.write_text("".join(rows), encoding="utf-8")
    marian(
        *("convert", "--shortlist", str(table), str(first), str(best), "0"),
        *("--dump-shortlist", str(file), "--vocabs", str(spm), str(spm)),
    )
    return {"first": first, "candidates": lists}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--marian", required=True, help="a Python with pymarian")
    options = parser.parse_args()
    lines = made_up_lines()
    cases = tuple([*side[:CASES], f"{side[0][:-1]} {UNKNOWN}{side[1]}"] for side in lines)
    oracle: dict = {"marian": "pymarian 1.12.42", "length_factor": LENGTH_FACTOR}
    with tempfile.TemporaryDirectory() as temporary:
        marian = Marian(options.marian, Path(temporary))
        texts = [marian.folder / f"train.{side}" for side in ("source", "target")]
        for text, side in zip(texts, lines, strict=True):
            text.write_text("".join(line + "\n" for line in side), encoding="utf-8")
        for name, flags in MODELS.items():
            folder = HERE / name
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            if name == "split":
                train_pieces(lines[0], 60, folder / "src.spm")
                train_pieces(lines[1], 80, folder / "trg.spm")
            else:
                train_pieces([*lines[0], *lines[1]], 120, folder / "vocab.spm")
            model = marian.folder / f"{name}.npz"
            marian(
                *("train", "--model", str(model), *TRAIN, *SMALL, *flags),
                *("--after", "500u", "--train-sets", *map(str, texts)),
                *("--vocabs", *map(str, vocabularies(folder))),
            )
            shutil.copy(model, folder / "model.npz")
            oracle[name] = ask(marian, model, folder, cases)
        shared = HERE / "shared"
        oracle["shortlist"] = make_shortlist(
            marian, shared / "vocab.spm", lines, shared / "lex.50.50.ende.s2t.bin"
        )
        (HERE / "int8").mkdir(exist_ok=True)
        weights = dict(np.load(shared / "model.npz"))
        exact = write_firefox_bin(weights, HERE / "int8" / "model.ende.intgemm.alphas.bin")
        np.savez(marian.folder / "exact.npz", **exact)
        oracle["int8"] = ask(marian, marian.folder / "exact.npz", shared, cases)
        mainline = HERE / "mainline"
        shutil.rmtree(mainline, ignore_errors=True)
        mainline.mkdir()
        flags = words("--dim-emb 16 --transformer-heads 4 --transformer-dim-ffn 32 --after 1u")
        marian(
            *("train", "--model", str(marian.folder / "mainline.npz"), *TRAIN, *flags),
            *MODELS["shared"],
            *("--train-sets", *map(str, texts), "--vocabs", *map(str, vocabularies(shared))),
        )
        shutil.copy(marian.folder / "mainline.npz", mainline / "model.npz")
        converted = str(mainline / "model.bin")
        marian("convert", "-f", str(mainline / "model.npz"), "-t", converted, "-g", "intgemm8")
    text = json.dumps(oracle, separators=(",", ":")).replace('],"', '],\n"')
    (HERE / "oracle.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
