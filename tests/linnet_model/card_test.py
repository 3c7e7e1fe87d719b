"""Tests of the model card: author and licence of all training texts are known."""

from pathlib import Path

import pytest

from linnet_model.config import ConfigError
from linnet_model.export.card import example_part, notice_part
from linnet_model.export.command import license_line
from linnet_model.sources import sources_of
from linnet_model.train.stages import read_stages

RECIPES = sorted((Path(__file__).resolve().parents[2] / "model" / "recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipes_avoid_share_alike_texts(path: Path):
    for stage in read_stages(path):
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
