"""python -m linnet_research.evaluation.everyday: keeps a reader's verdicts on everyday sentences.

Decodes the hundred sentences of tests/data/everyday-LANGUAGE.txt with a translator from English or
German, and writes their answers into judgements.json of the bundle, and its card. A verdict is a
reader's: fill in "verdict" and "reason", and run this again. Verdicts on answers that the next
version of a bundle still gives are kept, so that only the other answers need to be read.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from linnet_model.bundle import model_sha256, read_manifest
from linnet_model.command_line import command, parser_for
from linnet_model.config import ConfigError
from linnet_model.evaluation.decoding import choose_decoding
from linnet_model.export.card import JUDGEMENTS, KEPT, write_card
from linnet_model.json_files import read_json, write_json
from linnet_model.network.model_config import require
from linnet_research.texts import everyday_sentences

GOAL = 90  # answers out of a hundred that keep meaning and facts
MEANING, FACT = "meaning lost", "fact lost"
VERDICTS = (KEPT, MEANING, FACT)
RUBRIC = (
    "kept: who reads the answer alone learns without guessing what the text says: who does what "
    "to whom, and whether that is stated, asked, ordered, wished or denied; and all its numbers, "
    "dates, times, amounts, names and places. Mistakes of grammar, register, capitals, "
    "punctuation and style do not count as long as that is so. fact lost: a number, date, time, "
    "amount, name or place is missing or wrong. meaning lost: anything else is missing, wrong, "
    "added or no word of the language. In doubt an answer is lost."
)


def judged(
    texts: list[str], answers: list[str], before: list[dict[str, str]]
) -> list[dict[str, str]]:
    """Returns text, answer, verdict and reason of each text. Verdict and reason are those of
    `before` where the answer is the same, else empty."""
    known = {(row["text"], row["answer"]): row for row in before}
    rows = []
    for text, answer in zip(texts, answers, strict=True):
        row = known.get((text, answer), {})
        rows.append(
            {
                "text": text,
                "answer": answer,
                "verdict": row.get("verdict", ""),
                "reason": row.get("reason", ""),
            }
        )
    return rows


def check(rows: list[dict[str, str]]) -> None:
    for number, row in enumerate(rows, 1):
        missing = {"text", "answer", "verdict", "reason"} - row.keys()
        if missing:
            raise ConfigError(f"verdict {number} has no {', '.join(sorted(missing))}")
        if row["verdict"] not in ("", *VERDICTS):
            raise ConfigError(
                f'verdict {number} is "{row["verdict"]}", it must be one of {", ".join(VERDICTS)}, '
                "or empty if the answer is not judged yet"
            )
        if row["verdict"] in (MEANING, FACT) and not row["reason"]:
            raise ConfigError(f'verdict {number} is "{row["verdict"]}", add its reason')


def judgements(bundle: Path, decode: Path | None) -> dict[str, Any]:
    manifest = read_manifest(bundle)
    language = manifest.get("source_language_code", "several languages")
    texts = everyday_sentences(language)
    if manifest["task"] != "TASK_TRANSLATE" or not texts:
        raise ConfigError(
            f"{bundle} has the task {manifest['task']} and reads {language}, the sentences are for "
            "translators from en or de"
        )
    require(
        (bundle / "training.json").is_file(),
        f"{bundle} has no training.json, without which it has no card to show verdicts in: bundles "
        "of linnet-export have one",
    )
    before = (read_json(bundle / JUDGEMENTS) or {}).get("judged", [])
    check(before)
    decoding = choose_decoding("command", decode, [], publish=True)
    return {
        "model_sha256": model_sha256(manifest),
        "engine": decoding.name,
        "options": decoding.options(manifest),
        "goal": GOAL,
        "rubric": RUBRIC,
        "judged": judged(texts, decoding.answers(bundle, manifest, texts), before),
    }


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_for(__doc__)
    parser.add_argument(
        "--bundle", type=Path, required=True, metavar="DIR", help="bundle of linnet-export"
    )
    parser.add_argument(
        "--decode",
        type=Path,
        metavar="FILE",
        help="path of linnet-decode [that of the release build]",
    )
    return parser.parse_args(arguments)


@command
def main(arguments: list[str] | None = None) -> None:
    options = parse_arguments(arguments)
    found = judgements(options.bundle, options.decode)
    write_json(options.bundle / JUDGEMENTS, found)
    write_card(options.bundle)
    verdicts = [row["verdict"] for row in found["judged"]]
    print(
        f"{verdicts.count(KEPT)} of {len(verdicts)} answers keep meaning and facts, "
        f"{verdicts.count('')} are not judged yet: {options.bundle / JUDGEMENTS}"
    )


if __name__ == "__main__":
    sys.exit(main())
