"""Tests of shortlists: learning a dictionary, limits, and writing to a bundle."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from linnet_model.bundle import (
    BundleFacts,
    add_shortlist,
    new_bundle,
    read_manifest,
    write_bundle,
)
from linnet_model.config import BundleConfig, ConfigError
from linnet_model.export.random_bundle import main as random_bundle
from linnet_model.export.shortlist import candidates, encoders, frequent, model_one
from linnet_model.export.shortlist import main as shortlist
from linnet_model.network.encoder_decoder import EncoderDecoder
from linnet_model.network.ensemble import Ensemble
from linnet_model.network.presets import preset
from linnet_model.shortlist_file import MAGIC, Shortlist, read_shortlist, write_shortlist
from linnet_model.tokenizer import load_tokenizer

ROOT = Path(__file__).resolve().parents[2]
WORDS = 30


def made_up_pairs(count: int) -> list[tuple[list[int], list[int]]]:
    """Word w becomes 2 w, word 0 becomes 1 and 3, in random order; every target contains 5."""
    draw = random.Random(4)
    pairs = []
    for _ in range(count):
        source = [draw.randrange(WORDS) for _ in range(draw.randint(1, 8))]
        target = [5, *[word for s in source for word in ([1, 3] if s == 0 else [2 * s])]]
        draw.shuffle(target)
        pairs.append((source, target))
    return pairs


def test_model_one_learns_dictionary():
    table = model_one(made_up_pairs(2000), targets=2 * WORDS, rounds=8)
    sources, _, probabilities = table
    assert np.bincount(sources, weights=probabilities) == pytest.approx(np.ones(WORDS))
    found = candidates(table, maximum=2, min_probability=0.2)
    assert sorted(found[0]) == [1, 3]
    for word in range(1, WORDS):
        assert found[word][0] == 2 * word


def test_round_equals_worked_example_of_paper():
    """Brown et al. 1993, written out for two pairs: the house, the book | das Haus, das Buch."""
    pairs = [([0, 1], [0, 1]), ([0, 2], [0, 2])]
    sources, targets, table = model_one(pairs, targets=3, rounds=1)
    got = {(s, t): p for s, t, p in zip(sources.tolist(), targets.tolist(), table, strict=True)}
    assert got == pytest.approx(
        {(0, 0): 1 / 2, (0, 1): 1 / 4, (0, 2): 1 / 4, (1, 0): 1 / 2, (1, 1): 1 / 2, (2, 0): 1 / 2,
         (2, 2): 1 / 2}
    )  # fmt: skip


def test_candidates_are_most_likely_within_limits():
    table = (
        np.array([4, 4, 4, 4, 7]),
        np.array([9, 2, 5, 6, 1]),
        np.array([0.2, 0.3, 0.2, 0.01, 0.02]),
    )
    assert candidates(table, maximum=2, min_probability=0.0) == {4: [2, 5], 7: [1]}
    assert candidates(table, maximum=9, min_probability=0.05) == {4: [2, 5, 9]}


def test_frequent_returns_most_frequent_tokens():
    targets = [[3, 3, 1], [1, 4], [1, 5]]
    assert frequent(targets, 2, vocabulary=8) == [1, 3]
    assert frequent(targets, 3, vocabulary=8) == [1, 3, 4]  # equal counts: lower id
    assert frequent(targets, 8, vocabulary=8) == [1, 3, 4, 5]


def test_manifest_lists_shortlist_with_sum(tmp_path):
    out = tmp_path / "bundle"
    assert random_bundle(["--out", str(out), "--preset", "tiny", "--vocab", "40"]) == 0
    before = read_manifest(out)
    for chosen in ({3: [7, 8], 39: [1]}, {0: [4]}):
        add_shortlist(out, [5, 6], chosen)
        manifest = read_manifest(out)  # checks sizes and sums
        assert manifest["shortlist_file"] == "shortlist.bin"
        assert [e["name"] for e in manifest["files"]].count("shortlist.bin") == 1
        assert manifest["vocabulary"] == before["vocabulary"]
        content = read_shortlist(out / "shortlist.bin")
        assert content.always.tolist() == [5, 6]
        assert [content.row(i) for i in range(40)] == [chosen.get(i, []) for i in range(40)]


def test_random_bundle_can_have_random_shortlist(tmp_path):
    words = ["--out", str(tmp_path), "--preset", "tiny", "--vocab", "40", "--shortlist", "3"]
    assert random_bundle(words) == 0
    read_manifest(tmp_path)
    content = read_shortlist(tmp_path / "shortlist.bin")
    assert np.diff(content.offsets).tolist() == [3] * 40
    assert len(set(content.always.tolist())) == 12
    assert set(content.candidates.tolist()) <= set(range(40))


@pytest.mark.parametrize(("targets", "width"), [(65_536, 2), (65_537, 4)])
def test_file_has_the_layout_that_the_engine_reads(tmp_path, targets, width):
    """Also at the limit of ids of 2 bytes. The bytes are those of shortlist.h, written out."""
    file = tmp_path / "shortlist.bin"
    written = Shortlist.of_rows([7], [[], [targets - 1, 3], [5]])
    write_shortlist(file, written, targets)
    numbers = [3, targets, 1, 3, *[0, 0, 2, 3]]
    ids = [7, targets - 1, 3, 5]
    assert file.read_bytes() == b"".join(
        [b"LNSHORT1", *[n.to_bytes(4, "little") for n in numbers],
         *[i.to_bytes(width, "little") for i in ids]]
    )  # fmt: skip
    read = read_shortlist(file)
    assert read.always.tolist() == [7]
    assert [read.row(i) for i in range(3)] == [[], [targets - 1, 3], [5]]


def test_refuses_damaged_files_and_ids(tmp_path):
    file = tmp_path / "shortlist.bin"
    with pytest.raises(ConfigError, match=r"cannot have the target token \[9\], there are 9"):
        write_shortlist(file, Shortlist.of_rows([], [[9]]), 9)
    write_shortlist(file, Shortlist.of_rows([], [[8]]), 9)
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(ConfigError, match="has 33 bytes, its header stands for 34: it is damaged"):
        read_shortlist(file)
    file.write_bytes(MAGIC)
    with pytest.raises(ConfigError, match="has 8 bytes, its header needs 24"):
        read_shortlist(file)


def test_default_of_the_manifest_is_kept_or_set(tmp_path):
    assert random_bundle(["--out", str(tmp_path), "--preset", "tiny", "--vocab", "40"]) == 0
    wanted = {None: None, True: True, False: False}
    for by_default, found in wanted.items():
        manifest = add_shortlist(tmp_path, [4], {}, by_default=by_default)
        assert manifest.get("shortlist_by_default") == found
        again = add_shortlist(tmp_path, [4], {})
        assert again.get("shortlist_by_default") == found
        assert read_manifest(tmp_path) == again


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shortlist", "41"], "--shortlist is 41 and the vocabulary has 40 tokens, lower it"),
        (["--languages", "en,de,en"], "--languages names one twice: en, de, en"),
    ],
)
def test_random_bundle_refuses_what_it_cannot_draw(tmp_path, capsys, words, message):
    flags = ["--out", str(tmp_path / "b"), "--preset", "tiny", "--vocab", "40"]
    assert random_bundle([*flags, *words]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    "flag",
    [
        "--sentences=-3",
        "--tokens=0",
        "--rounds=0",
        "--candidates=-1",
        "--frequent=-5",
        "--probability=nan",
        "--probability=2",
    ],
)
def test_numbers_that_make_no_shortlist_are_refused(tmp_path, capsys, flag):
    with pytest.raises(SystemExit) as ended:
        shortlist(["--bundle", str(tmp_path), "--pairs", "pairs.tsv", flag])
    assert ended.value.code == 2
    name, value = flag.split("=")
    assert f"argument {name}: {value} is " in capsys.readouterr().err


def test_second_column_is_the_source_of_a_model_trained_in_reverse(tmp_path):
    bundle, pairs = tmp_path / "de-en", tmp_path / "pairs.tsv"
    shutil.copytree(ROOT / "model/bundles/de-en", bundle)
    pairs.write_text("dogs\tHunde\tx\n", encoding="utf-8")
    encode = load_tokenizer(bundle / "source.spm", "").encode
    dogs, hunde = encode("dogs"), encode("Hunde")
    flags = ["--bundle", str(bundle), "--pairs", str(pairs), "--frequent", "0"]

    def candidates_of(token: int, *more: str) -> list[int]:
        assert shortlist([*flags, *more]) == 0
        return read_shortlist(bundle / "shortlist.bin").row(token)

    assert set(dogs) <= set(candidates_of(hunde[0]))
    assert not set(dogs) & set(candidates_of(hunde[0], "--no-reverse"))


def test_refuses_other_tokenizers(tmp_path):
    with pytest.raises(ConfigError, match="has no tokenizer"):
        encoders(tmp_path, {})
    with pytest.raises(ConfigError, match="has a word_tokenizer, shortlists need"):
        encoders(
            tmp_path,
            {"source_tokenizer_file": "source.codes", "word_tokenizer": "WORD_TOKENIZER_MOSES"},
        )


def test_refuses_an_ensemble(tmp_path, capsys, tokenizer_file):
    sizes = preset("tiny", 400, None)
    members = [EncoderDecoder(sizes).eval() for _ in range(2)]
    config = BundleConfig(name="two", max_source_tokens=64, max_target_tokens=64)
    facts = BundleFacts(version="1", description="two", license="none")
    out, pairs = tmp_path / "two", tmp_path / "pairs.tsv"
    with new_bundle(out) as partial:
        write_bundle(partial, Ensemble(members), sizes, config, tokenizer_file, "float32", facts)
    pairs.write_text("dogs\tHunde\tx\n", encoding="utf-8")
    before = read_manifest(out)
    assert shortlist(["--bundle", str(out), "--pairs", str(pairs)]) == 1
    assert f"{out} is an ensemble, which has no shortlists" in capsys.readouterr().err
    assert read_manifest(out) == before


def test_shortlist_of_all_tokens_changes_no_answer(program, tmp_path):
    """Also inside a character that is spelled in bytes, where a search asks for all tokens."""
    bundle = tmp_path / "en-de"
    shutil.copytree(ROOT / "model/bundles/en-de", bundle)
    add_shortlist(bundle, range(read_manifest(bundle)["vocabulary"]["size"]), {})
    texts = ["I like \U0001f370 and \u4e2d.", "Hello \u65e5\u672c\u8a9e world.", "A dog runs."]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    command = [program("linnet-decode"), "--bundle", bundle, "--compute", "float32"]

    def ids(*flags: str) -> list[list[int]]:
        done = subprocess.run(
            [*command, *flags], input=lines, capture_output=True, text=True, check=True
        )
        return [json.loads(line)["hypotheses"][0]["ids"] for line in done.stdout.splitlines()]

    answers = ids()
    assert len(answers) == len(texts)
    assert ids("--shortlist") == answers
