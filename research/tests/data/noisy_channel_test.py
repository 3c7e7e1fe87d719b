"""Tests of noisy-channel reranking: which of the hypotheses is chosen."""

import argparse
from pathlib import Path

import pytest

from linnet_model.config import ConfigError
from linnet_research.data.noisy_channel import (
    Channel,
    add_channel_flags,
    channel_of,
    rerank_texts,
)

# Finds two hypotheses for every text, and scores a source by whether its translation says "never".
# A translation of more than 40 characters is too long for it.
DECODER = """refused = False
for line in map(json.loads, sys.stdin):
    if "target" not in line:
        found = {"hypotheses": [
            {"text": line["text"].replace("nie ", ""), "token_scores": [-0.1, -0.3]},
            {"text": line["text"].replace("nie", "never"), "token_scores": [-0.5, -0.7, -0.3]},
        ]}
    elif len(line["text"]) > 40:
        refused, found = True, {"error": {"message": "too long"}}
    else:
        lost = "nie" in line["target"] and "never" not in line["text"]
        found = {"hypotheses": [{"text": line["target"], "token_scores": [-3.0 if lost else -1.0]}]}
    print(json.dumps(found))
sys.exit(refused)
"""


@pytest.fixture
def decoder(fake_decoder) -> Path:
    return fake_decoder(DECODER)


def chosen(decoder: Path, weight: float, *texts: str) -> list[str]:
    return rerank_texts(decoder, Path("de-en"), Channel(Path("en-de"), 2, weight), texts)


def test_channel_model_outweighs_the_search(decoder: Path):
    """-.5 - .5 * 1 is more than -.2 - .5 * 3, and -.5 - .1 * 1 less than -.2 - .1 * 3."""
    assert chosen(decoder, 0.5, "er antwortet nie mehr") == ["er antwortet never mehr"]
    assert chosen(decoder, 0.1, "er antwortet nie mehr") == ["er antwortet mehr"]


def test_choice_is_made_for_each_text(decoder: Path):
    assert chosen(decoder, 0.5, "er antwortet", "sie antwortet nie") == [
        "er antwortet",
        "sie antwortet never",
    ]


def test_hypotheses_that_the_channel_model_refuses_are_not_chosen(decoder: Path):
    assert chosen(decoder, 0.5, "nie " + "a" * 35, "b" * 50) == ["a" * 35, ""]


def test_hypotheses_that_tell_too_little_of_the_text_are_not_chosen(decoder: Path):
    def chosen_above(score: float) -> list[str]:
        channel = Channel(Path("en-de"), 2, 0.0, min_score=score)
        return rerank_texts(decoder, Path("de-en"), channel, ["sie antwortet nie mehr"])

    assert chosen_above(-4.0) == ["sie antwortet mehr"]
    assert chosen_above(-2.0) == ["sie antwortet never mehr"]
    assert chosen_above(-0.5) == [""]


def test_channel_model_must_translate_back():
    bundles = Path(__file__).resolve().parents[3] / "model/bundles"
    parser = argparse.ArgumentParser()
    add_channel_flags(parser)
    flags = parser.parse_args(["--channel", str(bundles / "de-en"), "--hypotheses", "4"])
    channel = channel_of(flags, bundles / "en-de")
    assert channel == Channel(bundles / "de-en", 4, 0.2)
    for other in ("de-en", "en-summary"):
        with pytest.raises(ConfigError, match="translates de to en, to choose among"):
            channel_of(flags, bundles / other)
    assert channel_of(parser.parse_args([]), bundles / "en-de") is None


@pytest.mark.parametrize("flag", ["--hypotheses", "--channel-weight"])
def test_flags_of_a_channel_without_one_are_refused(flag: str):
    parser = argparse.ArgumentParser()
    add_channel_flags(parser)
    with pytest.raises(ConfigError, match=rf"^{flag} is 2(\.0)? and no --channel is given"):
        channel_of(parser.parse_args([flag, "2"]), Path("en-de"))


def test_error_of_the_search_is_raised(tmp_path: Path):
    with pytest.raises(ConfigError, match="gave 0 answers to 1 texts and status 0"):
        rerank_texts(Path("/bin/true"), tmp_path, Channel(tmp_path, 2, 0.5), ["a"])
