"""No sentence, name or street that measures facts is trained on."""

import re

from linnet_model.data.fact_pairs import FRAMES, STREET_WORDS
from linnet_model.data.synthetic import GIVEN_NAMES
from linnet_research.evaluation import facts_english, facts_german
from linnet_research.evaluation.facts import FIRST


def test_sentences_of_the_evaluation_are_not_trained_on():
    def words(text: str) -> str:
        return re.sub(r"{\w+}", "{}", text)

    for side, forms in enumerate((facts_english, facts_german)):
        assert not {words(frame[side]) for frame in FRAMES} & set(map(words, forms.TEMPLATES))


def test_names_and_streets_of_the_evaluation_are_not_trained_on():
    assert not set(FIRST) & set(GIVEN_NAMES)
    assert not set(facts_german.STREETS) & set(STREET_WORDS)
