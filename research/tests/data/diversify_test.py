"""Tests of linnet-diversify: which side is translated, what is left out, and the card's terms."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests/data"))

import tiny_marian

from linnet_model.bundle import read_manifest, trained_in_reverse, write_manifest
from linnet_model.importers.huggingface_marian.import_huggingface_marian import main as import_opus
from linnet_model.sources import licences_of, sources_of
from linnet_model.text_files import Pair, read_pairs
from linnet_research.data.diversify import main, sentences_of, translated_rows

ROOT = Path(__file__).resolve().parents[3]
PAIRS = [Pair("a dog", "ein Hund", "chat"), Pair("a cat", "eine Katze", "law")]


def test_translation_replaces_one_side():
    rows, left_out = translated_rows(PAIRS, ["ein  Dackel", "eine\tKatze"], reverse=False)
    assert rows == [Pair("a dog", "ein Dackel", "chat_forward")]
    assert left_out == {"equal to the other side": 1}
    rows, left_out = translated_rows(PAIRS, ["one dog", " "], reverse=True)
    assert rows == [Pair("one dog", "ein Hund", "chat_backward")]
    assert left_out == {"empty": 1}


def test_looping_translation_is_left_out():
    rows, left_out = translated_rows(PAIRS[:1], ["ein Hund ein Hund ein Hund"], reverse=False)
    assert (rows, left_out) == ([], {"looping": 1})


def test_translation_that_lacks_words_is_left_out():
    pair = [Pair("a dog barks at night", "ein Hund bellt nachts", "chat")]
    rows, left_out = translated_rows(pair, ["ein Hund bellt"], reverse=False, ratios=(0.8, 9))
    assert (rows, left_out) == ([], {"too short": 1})
    assert translated_rows(pair, ["a dog at night"], reverse=True, ratios=(0.8, 9))[0]


def test_translation_with_far_more_words_is_left_out():
    pair = [Pair("a dog barks at night", "ein Hund bellt nachts", "chat")]
    rows, left_out = translated_rows(pair, ["a dog barks at night"], reverse=True, ratios=(0, 1.2))
    assert (rows, left_out) == ([], {"too long for its text": 1})
    assert translated_rows(pair, ["a dog barks"], reverse=True, ratios=(0, 1.2))[0]


def test_translation_that_a_test_has_is_left_out():
    rows, left_out = translated_rows(PAIRS[:1], ["Ein Dackel!"], False, banned={"eindackel"})
    assert (rows, left_out) == ([], {"in a test": 1})
    assert translated_rows(PAIRS[:1], ["Ein Dackel"], False, banned={"adog"})[0]
    rows, left_out = translated_rows(PAIRS[:1], ["Ein Dackel"], False, banned={"adog"}, new=True)
    assert (rows, left_out) == ([], {"in a test": 1})


def test_sentences_are_whole_and_occur_once():
    post = (
        "Anna: A dog came along today. It barked. 3 cats left the room. See https://a.example now."
    )
    pairs = [Pair(post, "Title", "posts"), Pair("A dog came along today. Not a cat.", "T", "posts")]
    dog, who = "A dog came along today.", "Who is that there?"
    assert sentences_of(pairs, None) == [Pair(dog, dog, "posts")]
    more = [*pairs, Pair("Here is one more dog.", "T", "posts"), Pair(who, "T", "mail")]
    assert sentences_of(more, 1) == [Pair(dog, dog, "posts"), Pair(who, who, "mail")]


def test_command_writes_rows_that_a_recipe_reads(fake_decoder, tmp_path, capsys):
    """The decoder answers every text with its flags and the text itself."""
    decoder = fake_decoder(
        "for line in sys.stdin:\n"
        "    text = ' '.join(sys.argv[3:]) + ' ' + json.loads(line)['text']\n"
        "    print(json.dumps({'hypotheses': [{'text': text}]}))\n"
    )
    rows = ["a dog\tein Hund\ttatoeba", "x\ty\tlaw", f"{'long ' * 90}\tlang\ttatoeba"]
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    out = tmp_path / "forward.tsv"
    words = ["--bundle", str(ROOT / "model/bundles/en-de"), "--data", str(tmp_path), "--decode"]
    words += [str(decoder), "--domains", "tatoeba", "--out", str(out)]
    assert main([*words, "--beam", "2", "--tokens", "30"]) == 0
    flags = "--device cpu --batch 64 --beam 2"
    assert read_pairs(out) == [Pair("a dog", f"{flags} a dog", "tatoeba_forward")]
    assert capsys.readouterr().out == f"{out}: 1 rows; left out: 1 too long\n"
    assert main([*words, "--reverse", "--tokens", "30"]) == 0
    assert [row.domain for row in read_pairs(out)] == ["tatoeba_backward"] * 2


def test_an_imported_translator_makes_rows(fake_decoder, tmp_path, capsys):
    """OPUS-MT, whose SentencePiece model has other special ids than ours."""
    tiny = tiny_marian.make_tiny_marian(tmp_path / "opus")
    languages = ["--source-language", "en", "--target-language", "de"]
    words = ["--model", tiny.folder, "--out", tmp_path / "bundle", *languages]
    assert import_opus([str(word) for word in words]) == 0
    decoder = fake_decoder(
        "for line in map(json.loads, sys.stdin):\n"
        "    print(json.dumps({'hypotheses': [{'text': 'ein ' + line['text']}]}))\n"
    )
    rows = ["dog\tein Hund\ttatoeba", f"{'long ' * 90}\tlang\ttatoeba"]
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    words = ["--data", tmp_path, "--decode", decoder, "--out", tmp_path / "forward.tsv"]
    words = [str(word) for word in ["--bundle", tmp_path / "bundle", *words]]
    assert main(words) == 0
    assert read_pairs(tmp_path / "forward.tsv") == [Pair("dog", "ein dog", "tatoeba_forward")]
    manifest = read_manifest(tmp_path / "bundle") | {"subword_kind": "SUBWORD_KIND_BPE_CODES"}
    write_manifest(tmp_path / "bundle", manifest)
    assert main(words) == 1
    assert "has a subword_kind, whose tokens are not counted here" in capsys.readouterr().err


def test_out_replaces_neither_what_is_read_nor_what_measures(fake_decoder, tmp_path, capsys):
    decoder, bundle = fake_decoder("sys.exit(9)"), ROOT / "model/bundles/en-de"
    train = tmp_path / "train.tsv"
    train.write_text("a dog\tein Hund\ttatoeba\n", encoding="utf-8")
    (tmp_path / "link.tsv").symlink_to(train)
    words = ["--bundle", bundle, "--data", tmp_path, "--decode", decoder, "--out"]
    for name, message in (
        ("train.tsv", "whose rows are translated and would be lost: choose another name"),
        ("link.tsv", "whose rows are translated and would be lost"),
        ("valid.tsv", "names that begin with valid.tsv, test., refs. are those of the validation"),
        ("test.news.tsv", "choose another name, for data.files of a recipe"),
        ("refs.news.tsv", "choose another name, for data.files of a recipe"),
    ):
        assert main([str(word) for word in [*words, tmp_path / name]]) == 1
        said = capsys.readouterr().err
        assert said.startswith(f"linnet-diversify: --out is {tmp_path / name}, ")
        assert message in said
    assert train.read_text(encoding="utf-8") == "a dog\tein Hund\ttatoeba\n"


def test_references_that_are_not_utf_8_are_named(fake_decoder, tmp_path, capsys):
    (tmp_path / "train.tsv").write_text("a dog\tein Hund\ttatoeba\n", encoding="utf-8")
    (tmp_path / "test.news.tsv").write_text("a cat\teine Katze\tnews\n", encoding="utf-8")
    (tmp_path / "refs.news.tsv").write_bytes("ein Kätzchen\n".encode("latin-1"))
    words = ["--bundle", ROOT / "model/bundles/en-de", "--data", tmp_path]
    words += ["--decode", fake_decoder("sys.exit(9)"), "--out", tmp_path / "rows.tsv"]
    assert main([str(word) for word in words]) == 1
    assert f"{tmp_path / 'refs.news.tsv'}:1 is not UTF-8: byte 0xe4" in capsys.readouterr().err


def test_command_takes_the_translations_that_the_other_direction_chooses(
    fake_decoder, tmp_path, capsys
):
    """The search finds two translations; the sentence is probable given the second one only."""
    decoder = fake_decoder(
        "for line in map(json.loads, sys.stdin):\n"
        "    if 'target' in line:\n"
        "        score = -1.0 if line['text'].endswith('ganz.') else -9.0\n"
        "        found = [{'text': line['target'], 'token_scores': [score]}]\n"
        "    else:\n"
        "        texts = ('halb.', 'Das sagt es ganz.')\n"
        "        found = [{'text': text, 'token_scores': [-0.1]} for text in texts]\n"
        "    print(json.dumps({'hypotheses': found}))\n"
    )
    row = "All of this is said. It is said again. And not said.\tTitle\tposts\n"
    (tmp_path / "train.tsv").write_text(row, encoding="utf-8")
    out, bundles = tmp_path / "reranked.tsv", ROOT / "model/bundles"
    words = ["--bundle", bundles / "en-de", "--channel", bundles / "de-en", "--data", tmp_path]
    words += ["--decode", decoder, "--sentences", "--per-domain", 1, "--out", out]
    assert main([str(word) for word in words]) == 0
    assert read_pairs(out) == [Pair("All of this is said.", "Das sagt es ganz.", "posts_forward")]
    assert main([str(word) for word in [*words, "--channel-min-score", -0.5]]) == 1
    said = "linnet-diversify: none of 1 rows could be translated; left out: 1 empty\n"
    assert capsys.readouterr().err == said
    for flag, message in (("--beam", "leave out --beam"), ("--reverse", "leave out --reverse")):
        assert main([str(word) for word in [*words, flag, *(["2"] * (flag == "--beam"))]]) == 1
        assert message in capsys.readouterr().err


def test_direction_is_that_of_the_training():
    assert trained_in_reverse(ROOT / "model/bundles/de-en")
    assert not trained_in_reverse(ROOT / "model/bundles/en-de")


def test_command_names_what_is_missing(tmp_path, capsys):
    bundle = str(ROOT / "model/bundles/en-summary")
    words = ["--bundle", bundle, "--data", str(tmp_path), "--decode", str(Path(__file__))]
    assert main([*words, "--out", str(tmp_path / "rows.txt")]) == 1
    assert "must be a .tsv in a folder that exists" in capsys.readouterr().err
    assert main([*words, "--out", str(tmp_path / "rows.tsv")]) == 1
    assert "is no translator with a tokenizer" in capsys.readouterr().err


def test_flags_that_would_do_nothing_or_leave_no_row_are_refused(fake_decoder, tmp_path, capsys):
    (tmp_path / "train.tsv").write_text("a dog\tein Hund\ttatoeba\n", encoding="utf-8")
    words = ["--bundle", ROOT / "model/bundles/en-de", "--data", tmp_path]
    words += ["--decode", fake_decoder("sys.exit(9)"), "--out", tmp_path / "rows.tsv"]
    for more, message in (
        (["--channel-min-score", -1], "--channel-min-score is -1.0 and no --channel is given"),
        (["--hypotheses", 4], "name one, or leave the flag out"),
        (["--min-ratio", 2, "--max-ratio", 1], "--min-ratio is 2.0 and --max-ratio 1.0, no trans"),
    ):
        assert main([str(word) for word in [*words, *more]]) == 1
        assert message in capsys.readouterr().err


def test_translated_domain_has_the_terms_of_its_texts():
    known = sources_of(["tatoeba", "tatoeba_backward"])
    assert known["tatoeba_backward"]["licence"] == known["tatoeba"]["licence"]
    assert known["tatoeba_backward"]["what"].endswith(", sources translated by a model")
    own = {"law": {"what": "statutes", "author": "A", "licence": "CC0", "attribution": "A"}}
    assert licences_of(["law_forward"], own) == {"CC0"}
    assert json.dumps(sources_of(["law_forward"], own)).count("targets translated") == 1
