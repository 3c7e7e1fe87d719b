"""Tests of the model card: author and licence of all training texts are known."""

from pathlib import Path

import pytest

from linnet_model.config import ANSWERED, ConfigError
from linnet_model.export.attribution import data_part, notice_part
from linnet_model.export.card import EXAMPLE_WORDS, example_part, how_it_ended
from linnet_model.export.command import license_line, without_gain
from linnet_model.sources import sources_of
from linnet_model.train.stages import read_stages

RECIPES = sorted((Path(__file__).resolve().parents[2] / "model" / "recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipes_avoid_share_alike_texts(path: Path):
    """Classifiers and parsers have no card, because they are not exported."""
    for stage in read_stages(path):
        if stage.recipe.bundle.task in ANSWERED:
            continue
        data = stage.recipe.data
        for source in sources_of(data.domains).values():
            assert source["author"]
            assert source["attribution"]
            assert "NC" not in source["licence"]
            assert "SA" not in source["licence"]
        assert "CC BY" in license_line({"domains": data.domains, "terms": data.terms})


def test_refuses_domain_without_entry():
    with pytest.raises(
        ConfigError, match=r"author and licence of news, law are unknown, add \[data.terms.news\]"
    ):
        sources_of(["tatoeba", "news", "law"])


def test_card_repeats_required_notices():
    notices = "\n".join(notice_part({"domains": {"zfdoc": 1}}))
    assert "Redistributions in binary form must reproduce" in notices
    assert notice_part({"domains": {"tatoeba": 1}}) == []


def test_card_shows_examples_with_answers():
    lines = example_part({"examples": [{"text": "a|b <i>", "answer": "c"}]})
    assert "| a\\|b &lt;i> | c |" in lines
    assert example_part({"examples": []}) == example_part(None) == []


def test_card_shows_the_first_examples_within_a_number_of_words():
    rows = [{"text": "w " * (EXAMPLE_WORDS // 4), "answer": "v " * (EXAMPLE_WORDS // 4)}] * 3
    lines = example_part({"examples": rows})
    assert "The first 2 of 3 in scores.json. None was chosen for its answer." in lines
    long = {"text": "w " * EXAMPLE_WORDS, "answer": "v"}
    assert "The first 1 of 2 in scores.json." in "\n".join(example_part({"examples": [long, long]}))


def training(task: str, update: int, tokens: int, **more: int) -> dict:
    return {
        "recipe": {
            "train": {"updates": 2000, "seconds": 0.0, "valid_updates": 100},
            "bundle": {"task": task},
        },
        "position": {"update": update, "target_tokens": 10**6, "earlier_target_tokens": tokens},
        **more,
    }


def test_rows_of_tables_are_one_line_with_as_many_cells_as_the_head():
    scores = {"examples": [{"text": "A dog\nruns.", "answer": "Ein Hund | läuft."}]}
    assert example_part(scores)[-2] == "| A dog runs. | Ein Hund \\| läuft. |"
    terms = {"what": "notes", "author": "A | B", "licence": "CC0 1.0", "attribution": "A\nand B\n"}
    recipe = {"data": {"domains": {"mine": 1.0}, "terms": {"mine": terms}}}
    part = data_part({"recipe": recipe, "train": {"mine": {"rows": 3}}})
    assert "| mine | notes | 3 | 1 | A \\| B | CC0 1.0 | A and B |" in part


def test_card_says_by_which_criterion_training_ended():
    for task, update, tokens, more, end in (
        (
            "translate",
            300,
            10**8,
            {},
            "did not have at least 150,000,000 target tokens in all or 5",
        ),
        ("translate", 300, 149 * 10**6, {}, "2,000 updates, with at least 150,000,000 target"),
        ("translate", 9000, 0, {"validations_without_gain": 5}, "with 5 validations in a row"),
        ("translate", 9000, 0, {}, "it did not have at least 150,000,000 target tokens in all."),
        ("summarize", 300, 10**9, {}, "it did not have 5 validations in a row without gain."),
        ("summarize", 9000, 0, {}, "it did not have a criterion that is recorded."),
    ):
        assert end in how_it_ended(training(task, update, tokens, **more))
    timed = training("summarize", 300, 0)
    timed["recipe"]["train"]["seconds"] = 7800.0
    assert "at its set length, 7,800 seconds, not by convergence" in how_it_ended(timed)


def test_card_of_an_unfinished_training_does_not_say_that_it_ended():
    said = how_it_ended(training("translate", 500, 10**9, ended=False))
    assert said == "These are weights from before the end of the training, whose set length is " + (
        "2,000 updates."
    )


def test_validations_after_lowest_loss_are_without_gain():
    for losses, count in (([], 0), ([2.0], 0), ([3.0, 2.0, 2.5, 2.0], 2), ([3.0, 2.0], 0)):
        assert without_gain(losses) == count
