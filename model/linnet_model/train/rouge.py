"""ROUGE (Lin 2004) in any language, by the package rouge-score.

The package's own tokenizer keeps a to z and the digits and drops the rest, and its stemmer is that
of English. So English summaries are scored with both, as everybody scores them, and those of other
languages with the words of their script, unstemmed. Where no blanks tell the words, each character
is a word, as in BLEU.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

ROUGE = ("rouge1", "rouge2", "rougeL")
# Scripts without blanks between words, as the names of their characters begin.
UNSPACED = ("CJK ", "HIRAGANA ", "KATAKANA", "THAI ", "LAO ", "KHMER ", "MYANMAR ")


class WordsOfAnyScript:
    """A tokenizer of rouge-score. Composed and decomposed letters are the same. Marks belong to
    the letter before them: Hindi writes its vowels with them."""

    def tokenize(self, text: str) -> list[str]:
        words: list[str] = []
        before = "between"  # what the last character was
        for character in unicodedata.normalize("NFC", text).lower():
            category = unicodedata.category(character)[0]
            if category not in "LMN":
                before = "between"
                continue
            alone = unicodedata.name(character, "").startswith(UNSPACED)
            joins = before != "between" if category == "M" else before == "word" and not alone
            if joins:
                words[-1] += character
                continue
            words.append(character)
            before = "alone" if alone else "word"
        return words


def is_english(language: str) -> bool:
    return language.split("-")[0].lower() == "en"


def rouge_scorer(language: str) -> Any:
    """Returns rouge-score's scorer of summaries in `language`, BCP-47."""
    from rouge_score import rouge_scorer as package  # only needed for summaries

    if is_english(language):
        return package.RougeScorer(list(ROUGE), use_stemmer=True)
    return package.RougeScorer(list(ROUGE), tokenizer=WordsOfAnyScript())


def rouge_signature(version: str, language: str) -> str:
    words = "use_stemmer=True" if is_english(language) else "words of any script, no stemmer"
    return f"rouge-score {version}, F1, {words}, the best of all references"


def rouge_of_rows(
    references: Sequence[Sequence[str]], predictions: Sequence[str], language: str
) -> dict[str, list[float]]:
    """Returns F1 of each answer in percent; the best of its references counts for each measure."""
    scorer = rouge_scorer(language)
    rows: dict[str, list[float]] = {kind: [] for kind in ROUGE}
    for wanted, predicted in zip(references, predictions, strict=True):
        scores = [scorer.score(reference, predicted) for reference in wanted]
        for kind in ROUGE:
            rows[kind].append(100.0 * max(score[kind].fmeasure for score in scores))
    return rows


def rouge(
    references: Sequence[Sequence[str]], predictions: Sequence[str], language: str
) -> dict[str, float]:
    """Returns the means over the answers."""
    rows = rouge_of_rows(references, predictions, language)
    return {kind: sum(values) / len(predictions) for kind, values in rows.items()}
