"""Tests of linnet-score: scores, references and decoding."""

from pathlib import Path

import pytest

from linnet_model.config import ConfigError
from linnet_model.data_config import DataConfig
from linnet_model.evaluation.score import (
    keep_other_tests,
    length_ratio,
    main,
    measure,
    read_references,
    signatures,
    write_answers,
)
from linnet_model.evaluation.score_run import score_labels, score_parses, test_domains, test_rows
from linnet_model.text_files import DataError, Pair

# Functions of the package, not tests.
test_domains.__test__ = test_rows.__test__ = False


def test_equal_texts_score_full_and_unrelated_zero():
    texts = ["a small dog runs home", "the cat sat on the mat"]
    references = [[text] for text in texts]
    assert measure("translate", references, texts) == pytest.approx({"BLEU": 100, "chrF": 100})
    assert measure("summarize", references, ["x", "y"]) == {
        "ROUGE-1": 0.0,
        "ROUGE-2": 0.0,
        "ROUGE-L": 0.0,
    }


def test_best_of_several_references_counts():
    scores = measure("summarize", [["no word of it", "a dog runs"]], ["a dog runs"])
    assert scores["ROUGE-2"] == pytest.approx(100)


def test_reads_references_beside_test_file(tmp_path: Path):
    pairs = [Pair("s", "first", "x"), Pair("s", "second", "x")]
    (tmp_path / "test.x.tsv").write_text("s\tfirst\tx\ns\tsecond\tx\n")
    assert read_references(tmp_path, DataConfig(), "x", pairs) == [["first"], ["second"]]
    (tmp_path / "refs.x.tsv").write_text("first\tother\nsecond\n")
    assert read_references(tmp_path, DataConfig(), "x", pairs) == [["first", "other"], ["second"]]
    for lines in (1, 3):  # one more may stand anywhere, so that all below it belong to others
        (tmp_path / "refs.x.tsv").write_text("first\tother\n" * lines)
        for rows in (pairs, pairs[:1]):
            with pytest.raises(DataError, match=rf"has {lines} lines for 2 rows of test.x.tsv, "):
                read_references(tmp_path, DataConfig(), "x", rows)


@pytest.mark.parametrize("plain", [False, True])
def test_references_follow_rows_that_are_left_out(tmp_path: Path, plain: bool):
    sources, targets = ("s1", " ", "s3", "s4", "s5"), ("t1", "t2", "t3", "", "t5")
    config = DataConfig(empty_lines="drop")
    if plain:
        config.train_source, config.train_target = "train.en", "train.de"
        config.test_source, config.test_target = "test.en", "test.de"
        (tmp_path / "test.en").write_text("\n".join(sources) + "\n")
        (tmp_path / "test.de").write_text("\n".join(targets) + "\n")
    else:
        rows = zip(sources, targets, strict=True)
        (tmp_path / "test.text.tsv").write_text("".join(f"{s}\t{t}\ttext\n" for s, t in rows))
    others = "".join(f"t{n}\tother {n}\n" for n in range(1, 6))
    (tmp_path / "refs.text.tsv").write_text(others)
    with pytest.raises(ConfigError, match="there is no test set law" if plain else "no test.law"):
        test_rows(tmp_path, config, ["law"])
    pairs = test_rows(tmp_path, config, ["text"])["text"]
    assert [pair.source for pair in pairs] == ["s1", "s3", "s5"]
    wanted = [[f"t{n}", f"other {n}"] for n in (1, 3, 5)]
    assert read_references(tmp_path, config, "text", pairs) == wanted
    assert read_references(tmp_path, config, "text", pairs[:2]) == wanted[:2]
    (tmp_path / "refs.text.tsv").write_text("t1\nt2\nt3\nt4\n")
    with pytest.raises(DataError, match=r"refs.text.tsv has 4 lines for 5 rows of test"):
        read_references(tmp_path, config, "text", pairs)


def test_flags_that_cannot_be_used_are_refused(tmp_path: Path, capsys):
    (tmp_path / "file").touch()
    flags = ["--run", "run", "--data", "data"]
    with pytest.raises(SystemExit):
        main([*flags, "--answers", str(tmp_path / "file")])
    said = f"--answers is {tmp_path / 'file'}, which is a file: name a folder"
    assert said in capsys.readouterr().err


def test_parses_are_scored_by_test_set(tmp_path: Path):
    tests = {
        "same": [Pair("a", "f (a)", "x"), Pair("b", "f (b)", "x")],
        "new": [Pair("c", "", "x")],
    }
    rows = score_parses(
        lambda texts: [f"f ({text.replace('b', 'a')})" for text in texts], tests, tmp_path
    )
    assert [(row["domain"], row["model"]) for row in rows] == [
        ("same", {"exact_match": 50.0}),
        ("new", {"exact_match": 0.0}),
    ]
    assert (tmp_path / "new.tsv").read_text(encoding="utf-8") == "c\t\tf (c)\n"


def test_refuses_unknown_test_set_with_list(tmp_path: Path):
    (tmp_path / "test.news.tsv").write_text("a\tb\tnews\n")
    assert test_domains(tmp_path, []) == ["news"]
    with pytest.raises(ConfigError, match=r"no test.law.tsv in .*, there are news"):
        test_domains(tmp_path, ["law"])
    (tmp_path / "test.wmt.14.tsv").write_text("a\tb\twmt\n")
    assert test_domains(tmp_path, ["wmt.14"]) == ["wmt.14"]


def test_rows_with_labels_that_the_training_lacks_are_named(capsys):
    training = [Pair("a", "yes", "x"), Pair("b", "no", "x")]
    tests = {"x": [Pair("c", "yes", "x"), Pair("d", "maybe", "x")]}
    (row,) = score_labels(lambda texts: ["yes"] * len(texts), training, tests, None)
    assert (row["rows"], row["model"]["accuracy"]) == (1, 100.0)
    said = capsys.readouterr().err
    assert "linnet-score: 1 of 2 rows left out, the training has no maybe" in said


def test_keeps_other_scores_of_same_weights(capsys):
    def scores(sha256: str, **tests: int) -> dict:
        facts = dict.fromkeys(("engine", "options", "measures", "signatures"), "x")
        rows = [{"domain": domain, "rows": count} for domain, count in tests.items()]
        return {"model_sha256": sha256, **facts, "tests": rows}

    new = scores("a", b=9)
    keep_other_tests(new, scores("a", a=1, b=2, c=3))
    assert new == scores("a", a=1, b=9, c=3)
    other = scores("a", b=9)
    keep_other_tests(other, scores("older", a=1))
    assert "linnet-score: a left out, scored with another model_sha256" in capsys.readouterr().err
    keep_other_tests(other, {"tests": [{"domain": "a"}]})
    said = "a left out, scored with another model_sha256, engine, options, measures, signatures"
    assert said in capsys.readouterr().err
    keep_other_tests(other, None)
    assert other == scores("a", b=9)
    faster = scores("a", b=9) | {"engine": "linnet-decode, int8"}
    keep_other_tests(faster, scores("a", a=1))
    assert [test["domain"] for test in faster["tests"]] == ["b"]


def test_length_ratio_counts_words_of_first_references():
    assert length_ratio([["a b c"], ["d", "x y z"]], ["a b", "c"]) == 3 / 4
    assert length_ratio([["a"]], [""]) == 0
    assert length_ratio([["\u4eca\u5929 \u597d"]], ["\u4eca\u5929"], "zh") == 2 / 3


@pytest.mark.parametrize(
    ("language", "tokenizer"), [("zh-Hant", "zh"), ("ja", "char"), ("de", "13a")]
)
def test_bleu_of_unspaced_languages_counts_characters(language: str, tokenizer: str):
    references = [
        ["\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002"],
        ["\u6211\u559c\u6b22\u8bfb\u4e66\u3002"],
    ]
    answers = ["\u4eca\u5929\u5929\u6c14\u5f88\u7cdf\u3002", "\u6211\u559c\u6b22\u770b\u4e66\u3002"]
    assert (measure("translate", references, answers, language)["BLEU"] > 40) == (language != "de")
    assert f"tok:{tokenizer}" in signatures("translate", language)["BLEU"]


def test_an_answer_is_one_line_and_one_column(tmp_path: Path):
    answers = ["a\nb\tc\r\n", "d\u2028e"]
    write_answers(tmp_path / "few" / "even.tsv", ["x", "y"], [["X"], ["Y"]], answers)
    wanted = "x\tX\ta b c  \ny\tY\td\u2028e\n"
    assert (tmp_path / "few" / "even.tsv").read_bytes().decode() == wanted
