"""Tests of the verdicts on everyday sentences, and of the card's part about them."""

import json
import shutil
from pathlib import Path

import pytest

from linnet_model.config import ConfigError
from linnet_model.export.card import JUDGEMENTS, judged_part
from linnet_research.evaluation.everyday import check, judged, main
from linnet_research.texts import everyday_sentences

BUNDLES = Path(__file__).resolve().parents[3] / "model" / "bundles"
PROGRAM = """for line in sys.stdin:
    print(json.dumps({"hypotheses": [{"text": json.loads(line)["text"].upper()}]}))
"""


def row(text: str, answer: str, verdict: str = "", reason: str = "") -> dict[str, str]:
    return {"text": text, "answer": answer, "verdict": verdict, "reason": reason}


def test_both_languages_have_a_hundred_sentences_none_twice():
    for language in ("en", "de"):
        assert len(set(everyday_sentences(language))) == 100


def test_verdict_stays_with_same_answer_only():
    before = [row("a", "x", "kept"), row("b", "y", "fact lost", "the date")]
    assert judged(["b", "a", "c"], ["y", "z", "x"], before) == [
        row("b", "y", "fact lost", "the date"),
        row("a", "z"),
        row("c", "x"),
    ]


@pytest.mark.parametrize(
    ("verdict", "message"),
    [("good", 'verdict 2 is "good", it must be one of kept'), ("fact lost", "add its reason")],
)
def test_refuses_unknown_verdict_and_loss_without_reason(verdict: str, message: str):
    with pytest.raises(ConfigError, match=message):
        check([row("a", "x", "kept"), row("b", "y", verdict)])


def test_card_counts_verdicts_and_says_that_goal_is_missed():
    judgements = {"goal": 2, "rubric": "R", "engine": "E", "options": "beam 4"}
    rows = [row("a|b", "x", "kept"), row("b", "y", "fact lost", "the date")]
    page = "\n".join(judged_part(judgements | {"judged": rows}))
    assert "1 answers keep meaning and facts. The goal is 2: 1 too few." in page
    assert "| b | y | fact lost: the date |" in page
    assert "| a\\|b |" not in page, "only lost answers are shown"
    page = "\n".join(judged_part(judgements | {"judged": [*rows, row("c", "z")]}))
    assert "1 answers keep meaning and facts, 1 are not judged yet. The goal is 2." in page


@pytest.mark.parametrize(
    ("name", "third"),
    [("en-de", "The soup needs more salt."), ("de-en", "In der Suppe fehlt Salz.")],
)
def test_command_writes_answers_to_judge_and_the_card(
    name: str, third: str, fake_decoder, tmp_path: Path, capsys
):
    bundle, program = tmp_path / name, fake_decoder(PROGRAM)
    shutil.copytree(BUNDLES / name, bundle)
    assert main(["--bundle", str(bundle), "--decode", str(program)]) == 0
    assert "0 of 100 answers keep meaning and facts, 100 are not" in capsys.readouterr().out
    rows = json.loads((bundle / JUDGEMENTS).read_text(encoding="utf-8"))["judged"]
    assert rows[2] == row(third, third.upper())
    card = (bundle / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "0 answers keep meaning and facts, 100 are not judged yet" in card


def test_refuses_summariser_and_bundle_without_card(tmp_path: Path, capsys):
    imported = shutil.copytree(BUNDLES / "en-de", tmp_path / "imported")
    (imported / "training.json").unlink()
    assert main(["--bundle", str(imported)]) != 0
    assert "has no training.json, without which it has no card" in capsys.readouterr().err
    assert main(["--bundle", str(BUNDLES / "en-summary")]) != 0
    assert "the sentences are for translators from en or de" in capsys.readouterr().err
