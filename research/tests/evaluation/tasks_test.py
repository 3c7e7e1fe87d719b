"""Tests of the tasks for pre-training: rows, labels, and pairs of sentences."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from linnet_model.text_files import DataError, Pair, read_pairs
from linnet_research.evaluation import tasks


def write(path: Path, rows: list[tuple[str, ...]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def cogs_folder(folder: Path) -> Path:
    for name in ("train", "dev", "test"):
        write(folder / f"{name}.tsv", [(f"{name} .", f"{name} ( x _ 1 )", "in_distribution")])
    cases = ["prim_to_subj_common", "cp_recursion", "pp_recursion", "active_to_passive"]
    write(folder / "gen.tsv", [(f"{case} .", case, case) for case in cases])
    return folder


def trec_folder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"LOC:city Where is city {i} ?\n" for i in range(6)]
    lines += ["HUM:ind Who wrote  Andr\u00e9 ?\n", "NUM:date When was it ?\n"]
    (folder / "train_5500.label").write_bytes("".join(lines).encode("latin-1"))
    (folder / "TREC_10.label").write_text("ABBR:exp What is EU ?\nNUM:date When Was It ?\n")
    return folder


def data_folder(folder: Path) -> Path:
    rows = [
        (f"{domain} row {i}", f"{domain} Zeile {i}", domain)
        for i in range(6)
        for domain in (*tasks.DOMAINS, "mdn")
    ]
    for i in range(4):  # two sentences with one translation in each language
        rows.append((f"tatoeba other {i}", f"tatoeba Zeile {i}", "tatoeba"))
        rows.append((f"tatoeba row {i}", f"tatoeba andere Zeile {i}", "tatoeba"))
    text = "".join("\t".join(row) + "\n" for row in rows).encode()
    (folder / "en-de").mkdir(parents=True)
    for split in ("train", "valid"):
        (folder / "en-de" / f"{split}.tsv.xz").write_bytes(lzma.compress(text))
    for domain in tasks.DOMAINS:
        write(folder / "en-de" / f"test.{domain}.tsv", [row for row in rows if row[2] == domain])
    return folder


def test_generalisation_set_of_cogs_is_in_two_parts(tmp_path: Path):
    splits = tasks.cogs(cogs_folder(tmp_path))
    assert splits["train"] == [Pair("train .", "train (x_1)", "in_distribution")]
    assert [pair.target for pair in splits["test.structural"]] == ["cp_recursion", "pp_recursion"]
    assert len(splits["test.lexical"]) == 2
    assert [splits[name][0].source for name in ("train", "valid", "test.same")] == [
        "train .",
        "dev .",
        "test .",
    ]


def test_logical_forms_have_fewer_blanks():
    form = "* cake ( x _ 12 ) ; eat . agent ( x _ 1 , Emma ) AND eat . theme ( x _ 1 , x _ 12 )"
    shorter = "* cake (x_12) ; eat . agent (x_1, Emma) AND eat . theme (x_1, x_12)"
    assert tasks.with_fewer_blanks(form) == shorter


def test_questions_of_the_test_set_are_in_no_other(tmp_path: Path):
    splits = tasks.trec(trec_folder(tmp_path))
    rows = splits["train"] + splits["valid"]
    assert len(rows) == 7
    assert {pair.target for pair in rows} == {"location", "human"}
    assert Pair("Who wrote Andr\u00e9 ?", "human", "trec") in rows
    assert [pair.target for pair in splits["test.trec"]] == ["abbreviation", "number"]


@pytest.mark.parametrize("line", ["WHO:ind Who is it ?", "HUM:ind", "no label"])
def test_refuses_lines_that_are_no_questions(tmp_path: Path, line: str):
    (tmp_path / "TREC_10.label").write_text(f"LOC:city Where ?\n{line}\n")
    with pytest.raises(DataError, match=r"TREC_10.label:2 begins with .*, expected one of ABBR"):
        tasks.questions(tmp_path / "TREC_10.label")


def test_domains_have_a_limit_and_none_is_share_alike(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(tasks, "DOMAIN_ROWS", {"train": 2, "valid": 1, "test": 3})
    splits = tasks.domain(data_folder(tmp_path) / "en-de")
    assert sorted(pair.target for pair in splits["train"]) == sorted(tasks.DOMAINS * 2)
    assert sorted(pair.target for pair in splits["test.domain"]) == sorted(tasks.DOMAINS * 3)
    assert all(pair.source.startswith(pair.target) for pair in splits["valid"])


def test_two_texts_of_one_translation_are_paraphrases():
    pairs = [("Hi.", "Hallo."), ("Hello.", "Hallo."), ("Hi.", "Hallo."), ("Bye.", "Tschüss.")]
    assert tasks.paraphrases(pairs) == [("Hi.", "Hello.")]
    pairs += [("Hey.", "Hallo."), ("Hello.", "Servus."), ("Good day.", "Servus.")]
    assert tasks.paraphrases(pairs) == [("Hi.", "Hello.")]  # "Hello." is in one pair already


def test_difference_is_the_words_of_the_second_sentence_alone(tmp_path: Path):
    assert tasks.words_lacking("Tom isn't here.", "Tom is not here, Tom.") == ["is", "not"]
    splits = tasks.difference(data_folder(tmp_path) / "en-de")
    rows = [row for split in splits.values() for row in split]
    assert len(rows) == 8
    for row in rows:
        first, second = row.source.split(tasks.BETWEEN)
        assert ("Zeile" in first) == ("Zeile" in second)  # one language
        assert [word for word in second.split() if word not in first.split()] == [row.target]


def test_writes_a_folder_for_each_task(tmp_path: Path, capsys):
    out = tmp_path / "out"
    texts = ["--cogs", str(cogs_folder(tmp_path / "c")), "--trec", str(trec_folder(tmp_path / "t"))]
    texts += ["--data", str(data_folder(tmp_path / "d")), "--out", str(out)]
    assert tasks.main(texts) == 0
    assert "trec: train 4, valid 3, test.trec 2" in capsys.readouterr().out
    for name in ("cogs", "trec", "domain", "difference"):
        for file in (out / name).iterdir():
            assert {pair.domain for pair in read_pairs(file)} == {name}
    assert sorted(file.name for file in (out / "cogs").iterdir()) == [
        "test.lexical.tsv",
        "test.same.tsv",
        "test.structural.tsv",
        "train.tsv",
        "valid.tsv",
    ]


def test_refuses_no_texts_and_missing_ones(tmp_path: Path, capsys):
    assert tasks.main(["--out", str(tmp_path / "out")]) == 1
    assert "name the texts of at least one task" in capsys.readouterr().err
    assert tasks.main(["--trec", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    assert "TREC_10.label cannot be read: No such file" in capsys.readouterr().err
