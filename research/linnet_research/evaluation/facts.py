"""python -m linnet_research.evaluation.facts: counts the facts that a translator carries over.

Decodes made-up sentences between English and German, and writes the share of their facts that the
answers carry over into scores.json of the bundle, and its card.

BLEU hardly notices a wrong number. Each of 20 templates in each language holds one or two facts: a
number, a date, a time, an amount of money, a name or an address, with random values. The forms that
count as carried over are those of correct texts in the other language (facts_english.py for English
sentences, facts_german.py for German ones).
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linnet_model.bundle import model_sha256, read_manifest
from linnet_model.command_line import command, count_from, parser_for
from linnet_model.config import ConfigError
from linnet_model.evaluation.decoding import choose_decoding
from linnet_model.export.card import write_card
from linnet_model.json_files import read_json, write_json
from linnet_research.evaluation import facts_english, facts_german
from linnet_research.evaluation.fact import Fact, literal

FORMS = {("en", "de"): facts_english, ("de", "en"): facts_german}
FIRST = ("Anna", "Peter", "Maria", "Thomas", "Laura", "David", "Emma", "Robert", "Julia", "Frank")
LAST = ("Becker", "Miller", "Novak", "Jensen", "Rossi", "Taylor", "Schmitt", "Carter", "Lindgren")


@dataclass(frozen=True)
class Sentence:
    text: str
    facts: tuple[Fact, ...]


def made_up_sentences(count: int, languages: tuple[str, str], seed: int = 1) -> list[Sentence]:
    """`count` sentences to translate between these languages, the templates in turn. The same for
    the same arguments."""
    rng, forms = random.Random(seed), FORMS[languages]
    found = []
    for at in range(count):
        first, last, hour = rng.choice(FIRST), rng.choice(LAST), rng.randint(1, 10)
        amounts = (5, 18, 25, 49, 120, 350, 1250, 2400)
        values = {
            "amount": forms.amount(rng.choice(amounts), rng.random() < 0.5),
            "address": forms.address(rng.randint(2, 199), rng.choice(forms.STREETS)),
            "count": forms.number(rng.randint(13, 99)),
            "date": forms.date(rng.randint(1, 28), rng.randint(1, 12), rng.randint(1990, 2035)),
            "email": literal(f"{first}.{last}{rng.randint(1, 99)}@example.org".lower()),
            "later": forms.time(hour + 1, 0, afternoon=True),
            "name": forms.name(first, last),
            "number": forms.number(rng.randint(13, 99999)),
            "time": forms.time(hour, rng.choice((0, 0, 15, 30, 45)), rng.random() < 0.5),
            "url": literal(f"https://example.org/{last.lower()}/{rng.randint(1, 999)}"),
        }
        template = forms.TEMPLATES[at % len(forms.TEMPLATES)]
        facts = {key: values[key] for key in re.findall(r"{(\w+)}", template)}
        text = template.format(**{key: fact.text for key, fact in facts.items()})
        found.append(Sentence(text, tuple(facts.values())))
    return found


def carried_over(sentences: list[Sentence], answers: list[str]) -> dict[str, Any]:
    """The share of facts that the answers carry over, per kind and of all, and of the sentences all
    of whose facts are."""
    found: Counter[str] = Counter()
    of: Counter[str] = Counter()
    whole = 0
    for sentence, answer in zip(sentences, answers, strict=True):
        kept = [fact.is_in(answer) for fact in sentence.facts]
        whole += all(kept)
        for fact, is_kept in zip(sentence.facts, kept, strict=True):
            found[fact.kind] += is_kept
            of[fact.kind] += 1
    return {
        "sentences": len(sentences),
        "all": found.total() / of.total(),
        "whole_sentences": whole / len(sentences),
        "kinds": {kind: found[kind] / of[kind] for kind in sorted(of)},
    }


def add_facts(bundle: Path, decode: Path | None, count: int) -> dict[str, Any]:
    """Adds the facts to scores.json of a bundle, and returns them. The scores must be those of
    linnet-score with the same weights and search."""
    manifest = read_manifest(bundle)
    pair = manifest.get("source_language_code", ""), manifest.get("target_language_code", "")
    if pair not in FORMS:
        raise ConfigError(
            f"{bundle} translates {' to '.join(pair)}, the made-up sentences are for translators "
            "between en and de"
        )
    decoding = choose_decoding("command", decode, [], publish=True)
    found = {
        "model_sha256": model_sha256(manifest),
        "engine": decoding.name,
        "options": decoding.options(manifest),
    }
    scores = read_json(bundle / "scores.json") or {}
    different = [key for key, value in found.items() if scores.get(key) != value]
    if different:
        raise ConfigError(
            f"{bundle}/scores.json was made with another {', '.join(different)}: run linnet-score "
            "--write first"
        )
    sentences = made_up_sentences(count, pair)
    answers = decoding.answers(bundle, manifest, [it.text for it in sentences])
    facts = carried_over(sentences, answers)
    write_json(bundle / "scores.json", scores | {"facts": facts})
    write_card(bundle)
    return facts


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
    parser.add_argument(
        "--count", type=count_from(1), default=1000, metavar="N", help="sentences [1000]"
    )
    return parser.parse_args(arguments)


@command
def main(arguments: list[str] | None = None) -> None:
    options = parse_arguments(arguments)
    facts = add_facts(options.bundle, options.decode, options.count)
    print(f"{facts['all']:.1%} of the facts of {facts['sentences']} sentences are carried over")


if __name__ == "__main__":
    sys.exit(main())
