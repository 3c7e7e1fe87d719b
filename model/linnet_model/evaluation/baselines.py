"""Answers that need no model, which linnet-score measures beside those of the model."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from statistics import median

from linnet_model.sentences import split_sentences

LEAD = (1, 2)  # first sentences of lead-1 and lead-2


def lead(text: str, count: int) -> str:
    return " ".join(split_sentences(text)[:count])


class Tokenizer:
    """Words of a sentence for sumy, whose own tokenizer downloads data."""

    def to_words(self, sentence: str) -> list[str]:
        return re.findall(r"\w+", sentence)


def lexrank(texts: list[str]) -> list[str] | None:
    """Returns the most central sentence of each English text by LexRank (Erkan and Radev 2004);
    None without sumy."""
    try:
        from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
        from sumy.nlp.stemmers import Stemmer
        from sumy.summarizers.lex_rank import LexRankSummarizer
        from sumy.utils import get_stop_words
    except ImportError:
        print(
            "linnet-score: the baseline LexRank is left out, it needs pip install sumy",
            file=sys.stderr,
        )
        return None
    tokenizer, summarizer = Tokenizer(), LexRankSummarizer(Stemmer("english"))
    summarizer.stop_words = get_stop_words("english")
    found = []
    for text in texts:
        sentences = [Sentence(sentence, tokenizer) for sentence in split_sentences(text)]
        best = summarizer(ObjectDocumentModel([Paragraph(sentences)]), 1)
        found.append(" ".join(str(sentence) for sentence in best))
    return found


def baselines(
    task: str, language: str, texts: list[str], references: list[list[str]]
) -> dict[str, list[str]]:
    """Returns the answers of each baseline by its name. `references`: all of each text."""
    if task == "translate":
        return {"source copied": texts}
    words = round(median(len(r[0].split()) for r in references))
    answers = {"first words": [" ".join(text.split()[:words]) for text in texts]}
    answers |= {f"lead-{count}": [lead(text, count) for text in texts] for count in LEAD}
    central = lexrank(texts) if language == "en" else None
    return answers | ({"LexRank": central} if central is not None else {})


def described(names: list[str]) -> dict[str, str]:
    """Says what the baselines of these names are, where the name does not."""
    about = {"first words": "as many as the median reference has", "lead-1": "the first sentence"}
    about["lead-2"] = "the first two sentences"
    if "LexRank" in names:
        version = importlib.metadata.version("sumy")
        about["LexRank"] = f"sumy {version}, one sentence, English stop words, stemmed"
    return {name: about[name] for name in names if name in about}
