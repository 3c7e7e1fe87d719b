"""Tests that scores say how their answers were decoded, and that only a bundle's own search is
published."""

import json
from pathlib import Path

import pytest

from linnet_model.config import ConfigError
from linnet_model.evaluation import decoding
from linnet_model.evaluation.decoding import choose_decoding
from linnet_model.evaluation.score import main

BUNDLE = Path(__file__).resolve().parents[3] / "model" / "bundles" / "en-de"
ECHO = """for line in sys.stdin:
    print(json.dumps({"hypotheses": [{"text": " ".join(sys.argv[3:]), "token_scores": [-1]}]}))
"""


@pytest.fixture
def echo(fake_decoder) -> Path:
    """A linnet-decode that answers with its flags."""
    return fake_decoder(ECHO)


def test_float32_is_asked_for_unless_another_type_is_named(echo: Path):
    for given, passed, name in (
        ([], "--compute=float32", "linnet-decode, float32"),
        (["--compute=int8"], "--compute=int8", "linnet-decode, int8"),
        (["--threads=2"], "--compute=float32 --threads=2", "linnet-decode, float32"),
    ):
        chosen = choose_decoding("command", echo, given, publish=True)
        assert chosen.answers(Path("b"), {}, ["text"]) == [passed]
        assert chosen.name == name


def test_name_has_every_flag_that_may_change_answers(echo: Path):
    given = ["--beam=1", "--shortlist", "--batch=4", "--device=cuda"]
    chosen = choose_decoding("auto", echo, given, publish=False)
    assert chosen.name == "linnet-decode, float32, --beam=1, --shortlist, --device=cuda"


def test_options_are_those_of_the_search_that_ran(echo: Path):
    manifest = {
        "default_options": {
            "beam_size": 4,
            "length_penalty": 1.4,
            "no_repeat_ngram_size": 0,
            "max_ngram_repeats": 2,
        }
    }
    for given, text in (
        ([], "beam 4, length penalty 1.4, no n-gram more than 2 times in a row"),
        (["--beam-size=5"], "beam 5, length penalty 1.4, no n-gram more than 2 times in a row"),
        (["--beam=5", "--max-ngram-repeats=0"], "beam 5, length penalty 1.4"),
        (
            ["--length-penalty=1", "--max-ngram-repeats=0", "--no-repeat-ngram-size=3"],
            "beam 4, length penalty 1, no 3-gram twice",
        ),
    ):
        chosen = choose_decoding("command", echo, given, publish=False)
        assert chosen.options(manifest) == text


def test_printed_scores_state_the_options_that_were_used(echo: Path, tmp_path: Path, capsys):
    (tmp_path / "en-de").mkdir()
    (tmp_path / "en-de/test.x.tsv").write_text("a cat\teine Katze\tx\n")
    given = ["--bundle", BUNDLE, "--data", tmp_path, "--decode", echo, "--decode-flag=--beam=5"]
    assert main([str(word) for word in given]) == 0
    printed = capsys.readouterr().out
    scores = json.loads(printed[printed.index("{") :])
    assert scores["options"].startswith("beam 5, length penalty 1.4")
    assert scores["engine"] == "linnet-decode, float32, --beam=5"


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--beam=1", "--decode-flag=--beam=1 changes the search, and --write publishes"),
        ("--shortlist", "--decode-flag=--shortlist changes the search"),
        ("--compute=auto", "does not say which type the written scores have, name it"),
        ("1", "--decode-flag=1 must be --NAME or --NAME=VALUE"),
    ],
)
def test_published_scores_refuse_other_searches(echo: Path, flag: str, message: str):
    with pytest.raises(ConfigError) as error:
        choose_decoding("auto", echo, [flag], publish=True)
    assert message in str(error.value)


def test_search_in_python_is_announced_and_has_no_flags(monkeypatch, capsys):
    monkeypatch.setattr(decoding, "find_decode", lambda named: None)
    assert choose_decoding("auto", None, [], publish=True).name.endswith("search), float32")
    assert "linnet-decode is not built, the search in Python" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="the search in Python has no flags"):
        choose_decoding("auto", None, ["--threads=2"], publish=False)
    with pytest.raises(ConfigError, match="is not built, build it with"):
        choose_decoding("command", None, [], publish=False)


@pytest.mark.parametrize("flag", ["--engine=python", "--decode=x", "--decode-flag=--threads=1"])
def test_run_refuses_flags_of_bundles(flag: str, capsys):
    with pytest.raises(SystemExit):
        main(["--run", "runs/lm-de", "--data", "DATA", flag])
    assert "are for --bundle" in capsys.readouterr().err
