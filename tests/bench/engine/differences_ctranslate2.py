"""CTranslate2's part of differences.py: the folder of the model as argument, texts as JSON on
standard input, counts as JSON on standard output."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import ctranslate2
import transformers
from ctranslate2.converters import TransformersConverter

TOKEN, LIMIT = "__{}__", 24


def translated(translator: Any, rows: list[list[str]], beam: int, **options: Any) -> list[Any]:
    # 4.8.5 looks a prefix up in the whole vocabulary, and fails if a mapping is shorter.
    prefix = None if options.get("use_vmap") else [[TOKEN.format("de")]] * len(rows)
    found = translator.translate_batch(
        rows,
        target_prefix=prefix,
        beam_size=beam,
        return_scores=True,
        max_decoding_length=LIMIT,
        **options,
    )
    return [(it.hypotheses[0], it.scores[0]) for it in found]


def alone(translator: Any, rows: list[list[str]], beam: int, **options: Any) -> list[Any]:
    return [translated(translator, [row], beam, **options)[0] for row in rows]


def count(ones: list[Any], others: list[Any]) -> int:
    return sum(one == other for one, other in zip(ones, others, strict=True))


def answers(results: list[Any]) -> list[Any]:
    return [tokens for tokens, _ in results]


def add_shortlist(model: Path, lists: dict[str, list[str]]) -> None:
    """A vocabulary mapping; the first line is of every source."""
    lines = ["\t</s>", *(f"{token}\t{' '.join(row)}" for token, row in lists.items())]
    (model / "vmap.txt").write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def main() -> None:
    folder, given = Path(sys.argv[1]), json.loads(sys.stdin.read())
    tokenizer = transformers.M2M100Tokenizer.from_pretrained(folder)
    tokenizer.src_lang = "en"

    def rows_of(texts: list[str]) -> list[list[str]]:
        return [tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids) for text in texts]

    found: dict[str, Any] = {"version": ctranslate2.__version__}
    rows, beam = rows_of(given["texts"]), given["beam"]
    with tempfile.TemporaryDirectory() as name:
        for compute in ("float32", "int8"):
            out = Path(name) / compute
            TransformersConverter(str(folder)).convert(str(out), quantization=compute)
            translator = ctranslate2.Translator(str(out), inter_threads=1, intra_threads=1)
            one, many = alone(translator, rows, beam), translated(translator, rows, beam)
            found[f"identical_{compute}"] = count(one, many)
            found[f"same_answer_{compute}"] = count(answers(one), answers(many))
            if compute == "float32":
                # With length_penalty 0 a score is a sum; score_batch has the sum's parts.
                summed = alone(translator, rows, beam, length_penalty=0)
                targets = [tokens for tokens, _ in summed]
                parts = translator.score_batch(rows, targets)
                gaps = [
                    abs(score - sum(part.log_probs[1:]))
                    for (tokens, score), part in zip(summed, parts, strict=True)
                    if part.tokens[-1] == "</s>" and len(tokens) < LIMIT
                ]
                found["largest_score_gap"] = max(gaps)
                found["score_gaps"] = sum(gap > 1e-4 for gap in gaps)
                add_shortlist(out, given["lists"])
                translator = ctranslate2.Translator(str(out), inter_threads=1, intra_threads=1)
                one = alone(translator, rows, beam, use_vmap=True)
                many = translated(translator, rows, beam, use_vmap=True)
                found["shortlist_identical"] = count(one, many)
                found["shortlist_same_answer"] = count(answers(one), answers(many))
                found["shortlist_answers"] = answers(many)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
