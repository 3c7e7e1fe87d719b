"""Measures alignments and glossaries on test sets of a translator, without gold data.

    .venv/bin/python tests/bench/measure_words.py --bundle DIR --train train.tsv.xz \\
        --test test.tatoeba.tsv 1000 --test test.debian.tsv 150

Two lexical models (IBM model 1, Brown et al. 1993), one per direction, are estimated from the first
pairs of the training set. A pair of words that both align to each other is a reference alignment.

Alignments: how often the source word with the highest attention is the reference alignment, per
decoder layer, in the step that chooses a token and in the next one; also for words that occur once
and identically on both sides. Glossaries: linnet-decode must produce some aligned words as in the
reference; reports how many appear, and BLEU. Writes DIR/MACHINE/words.json.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import lzma
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import machine

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "model"), str(ROOT / "tests/data")]
EOS = 2
Pair = tuple[list[str], list[str]]


def bare(word: str) -> str:
    return re.sub(r"^\W+|\W+$", "", word)


def words(text: str) -> list[str]:
    return [bare(word).lower() for word in text.split()]


def lexicon(pairs: list[Pair], rounds: int = 5) -> dict[tuple[str, str], float]:
    """Returns the probability of the second word given the first, by expectation maximisation."""
    table: dict[tuple[str, str], float] = {}
    for turn in range(rounds):
        counts: dict[tuple[str, str], float] = collections.defaultdict(float)
        totals: dict[str, float] = collections.defaultdict(float)
        for source, target in pairs:
            for word in target:
                given = ["", *source]
                shares = [table.get((w, word), 1e-9) if turn else 1.0 for w in given]
                for w, share in zip(given, shares, strict=True):
                    counts[w, word] += share / sum(shares)
                    totals[w] += share / sum(shares)
        table = {key: value / totals[key[0]] for key, value in counts.items() if value > 1e-4}
    return table


class AlignedWords:
    """Returns target word j -> source word i for pairs that both directions align."""

    def __init__(self, pairs: list[Pair]):
        self.forward = lexicon(pairs)
        self.backward = lexicon([(target, source) for source, target in pairs])

    def of(self, source: list[str], target: list[str]) -> dict[int, int]:
        def best(word: str, row: list[str], table) -> int | None:
            likely = [
                (table.get((w, word), 0.0), i) for i, w in enumerate(row) if w and row.count(w) == 1
            ]
            return max(likely)[1] if likely and max(likely)[0] > 0.15 else None

        found = {j: best(word, source, self.forward) for j, word in enumerate(target) if word}
        back = {i: best(word, target, self.backward) for i, word in enumerate(source) if word}
        return {j: i for j, i in found.items() if i is not None and back.get(i) == j}


def read(path: Path, maximum: int) -> list[tuple[str, str]]:
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t")[:2] for line in itertools.islice(lines, maximum)]
    return [(source, target) for source, target in rows]


def attentions(model, source: list[int], target: list[int]) -> list:
    """Returns the attention of each layer, [target + 1, source + 1]."""
    import torch
    from forced_attention import forced_attention

    from linnet_model.network.encoder_decoder import forced_logits

    length = torch.tensor([len(source) + 1], dtype=torch.int32)
    ids = (torch.tensor([[*source, EOS]]), length, torch.tensor([[*target, EOS]]))
    layers = range(len(model.decoder))
    return [forced_attention(forced_logits, model, *ids, layer)[0] for layer in layers]


def measure_alignments(options, tests, aligned) -> dict[str, Any]:
    import sentencepiece
    import torch

    from linnet_model.bundle import read_bundle_weights
    from linnet_model.network.encoder_decoder import EncoderDecoder

    weights, sizes = read_bundle_weights(options.bundle)
    model = EncoderDecoder(sizes).eval()
    model.load_state_dict(weights)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(options.bundle / "source.spm"))

    def word_of(ids: list[int]) -> list[int]:
        number, numbers = -1, []
        for piece in map(pieces.id_to_piece, ids):
            number += piece.startswith("\u2581")
            numbers.append(max(number, 0))
        return numbers

    right: dict[tuple[int, int, str], int] = collections.Counter()
    of: dict[str, int] = collections.Counter()
    for source, target in tests:
        ids, target_ids = pieces.encode(source), pieces.encode(target)
        a, b = words(source), words(target)
        word_a, word_b = word_of(ids), word_of(target_ids)
        if (len(set(word_a)), len(set(word_b))) != (len(a), len(b)):
            continue
        wanted = {
            "aligned words": aligned.of(a, b),
            "same words": {
                j: a.index(w) for j, w in enumerate(b) if w and a.count(w) == b.count(w) == 1
            },
        }
        for kind, pairs in wanted.items():
            of[kind] += len(pairs)
        for layer, attention in enumerate(attentions(model, ids, target_ids)):
            for shift in (0, 1):
                rows = attention[shift : shift + len(target_ids), :-1]
                table = torch.zeros(len(b), len(ids)).index_add_(0, torch.tensor(word_b), rows)
                table = torch.zeros(len(b), len(a)).index_add_(1, torch.tensor(word_a), table)
                chosen = table.argmax(1).tolist()
                for kind, pairs in wanted.items():
                    right[layer, shift, kind] += sum(chosen[j] == i for j, i in pairs.items())
    rows = [
        {"layer": layer, "next_step": bool(shift), "kind": kind, "share": count / of[kind]}
        for (layer, shift, kind), count in sorted(right.items())
    ]
    return {"pairs": dict(of), "rows": rows}


def measure_glossaries(options, tests, aligned) -> list[dict[str, Any]]:
    import sacrebleu
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(model_file=str(options.bundle / "source.spm"))

    def decode(lines: list[dict]) -> list[str]:
        command = [str(options.programs / "linnet-decode"), "--bundle", str(options.bundle)]
        done = subprocess.run(
            [*command, "--batch", "16"],
            input="".join(json.dumps(line) + "\n" for line in lines),
            capture_output=True,
            text=True,
            check=True,
        )
        return [json.loads(line)["hypotheses"][0]["text"] for line in done.stdout.splitlines()]

    def there(text: str, term: str) -> bool:
        return re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text) is not None

    references = [[target for _, target in tests]]
    rows = []
    for beam in (4, 8):
        lines = [{"text": source, "options": {"beam_size": beam}} for source, _ in tests]
        plain = decode(lines)
        for maximum in (1, 2, 3):
            terms = []
            for source, target in tests:
                known = aligned.of(words(source), words(target))
                forms = {bare(target.split()[j]) for j in known}
                terms.append(
                    sorted((t for t in forms if len(t) > 3), key=len, reverse=True)[:maximum]
                )
            ids = [[pieces.encode(term) for term in own] for own in terms]
            answers = decode(
                [{**line, "constraint_ids": own} for line, own in zip(lines, ids, strict=True)]
            )

            def share(texts: list[str], terms=terms) -> float:
                found = [
                    there(text, term)
                    for text, own in zip(texts, terms, strict=True)
                    for term in own
                ]
                return sum(found) / len(found)

            rows.append(
                {
                    "beam": beam,
                    "max_terms": maximum,
                    "terms": sum(map(len, terms)),
                    "met": share(answers),
                    "met_without": share(plain),
                    "bleu": sacrebleu.corpus_bleu(answers, references).score,
                    "bleu_without": sacrebleu.corpus_bleu(plain, references).score,
                }
            )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    machine.add_server(parser)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--train-rows", type=int, default=90000)
    parser.add_argument("--test", nargs=2, action="append", required=True)
    options = machine.parse(parser)
    tests = [pair for path, rows in options.test for pair in read(Path(path), int(rows))]
    pairs = [(words(a), words(b)) for a, b in [*read(options.train, options.train_rows), *tests]]
    short = [
        ([w for w in a if w], [w for w in b if w]) for a, b in pairs if max(len(a), len(b)) < 25
    ]
    aligned = AlignedWords(short)
    results = {
        "machine": machine.facts(),
        "bundle": machine.bundle_name(options.bundle),
        "sentences": len(tests),
        "alignments": measure_alignments(options, tests, aligned),
        "glossaries": measure_glossaries(options, tests, aligned),
    }
    path = options.out / machine.slug(results["machine"]) / "words.json"
    machine.write_result(path, results)
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
