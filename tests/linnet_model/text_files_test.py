"""Tests of reading text files and of their error messages."""

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from linnet_model.data_config import DataConfig
from linnet_model.text_files import (
    MOJIBAKE,
    DataError,
    Pair,
    Reading,
    read_lines,
    read_pairs,
    read_plain,
    read_split,
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"one\tzwei\n", "rows.tsv:1 has 2 columns, expected source, target and domain"),
        (b"a\tb\tc\td\n", "rows.tsv:1 has 4 columns"),
        (b"a\tb\tx\n\n", "rows.tsv:2 has 1 columns"),
        (b"a\t \tx\n", "rows.tsv:1 has an empty target, data.empty_lines"),
        (b"a\tb\t\n", "rows.tsv:1 has an empty domain"),
        ("a\tfÃ¼r dich\tx\n".encode(), "rows.tsv:1 has 'Ã¼' in its target"),
        ("a\ufffd\tb\tx\n".encode(), "in its source, text decoded with the wrong encoding"),
        (b"a\tb\tx\nc \xff\td\tx\n", "rows.tsv:2 is not UTF-8: byte 0xff after 2 bytes"),
    ],
)
def test_names_bad_line_and_error(tmp_path: Path, content: bytes, message: str):
    (tmp_path / "rows.tsv").write_bytes(content)
    with pytest.raises(DataError) as error:
        read_pairs(tmp_path / "rows.tsv")
    assert message in str(error.value)


def test_names_missing_and_truncated_files_and_domains(tmp_path: Path):
    with pytest.raises(DataError, match="no file"):
        read_pairs(tmp_path / "train.tsv.xz")
    for suffix, compress in ((".xz", lzma.compress), (".gz", gzip.compress)):
        whole = compress(bytes(range(32, 127)) + b"a\tb\tx\n" * 1000)
        (tmp_path / f"cut{suffix}").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(DataError, match=f"is not a whole {suffix[1:]} file"):
            list(read_lines(tmp_path / f"cut{suffix}"))
        (tmp_path / f"no{suffix}").write_bytes(b"plain text\n" * 9)
        with pytest.raises(DataError, match=f"is not a whole {suffix[1:]} file"):
            list(read_lines(tmp_path / f"no{suffix}"))
    (tmp_path / "rows.tsv").write_text("a\tb\tx\n")
    with pytest.raises(DataError, match="has no rows of news"):
        read_pairs(tmp_path / "rows.tsv", ["x", "news"])


def test_line_separators_inside_text_do_not_end_row(tmp_path: Path):
    (tmp_path / "rows.tsv").write_text("a\u2028b\tc\x0bd\tx\n", encoding="utf-8", newline="\n")
    assert read_pairs(tmp_path / "rows.tsv") == [Pair("a\u2028b", "c\x0bd", "x")]


def test_reads_compressed_crlf_and_byte_order_mark(tmp_path: Path):
    content = "\ufeffeins\r\nzwei\n".encode()
    for suffix, compress in (
        ("", bytes),
        (".xz", lzma.compress),
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
    ):
        (tmp_path / f"a{suffix}").write_bytes(compress(content))
        assert list(read_lines(tmp_path / f"a{suffix}")) == ["eins", "zwei"]


@pytest.mark.parametrize("text", ["für", "“Über”", "naïve café – 5 °C", "€ 3,50 … • ™", "日本 🙂"])
def test_finds_mojibake_but_not_original_text(text: str):
    assert MOJIBAKE.search(text) is None
    # Windows-1252 leaves five bytes undefined: readers map them to control characters.
    wrong = "".join(
        bytes([b]).decode("cp1252", errors="ignore") or chr(b) for b in text.encode("utf-8")
    )
    if not text.startswith("日"):  # first bytes E3 and above are letters of correct texts
        assert MOJIBAKE.search(wrong) is not None
    else:
        assert MOJIBAKE.search(wrong).group().startswith("ð")
    assert MOJIBAKE.search(text.encode("utf-8").decode("latin-1")) is not None


def test_capital_accents_and_quotes_are_not_mojibake():
    for text in ("NÃO, SÃO PAULO", "Ân", "« Âge »", "DÉJÀ “É”", "MENÜ»", "câ€"[:2]):
        assert MOJIBAKE.search(text) is None, text


def test_counts_drops_or_refuses_mojibake(tmp_path: Path):
    path = tmp_path / "rows.tsv"
    path.write_text("a\tb\tx\nfÃ¼r\tdich\tx\nc\tâ€œd\tx\n", encoding="utf-8")
    reading = Reading()
    assert len(read_pairs(path, mojibake="warn", reading=reading)) == 3
    assert reading.mojibake == 2
    warning = reading.warnings("warn")
    assert len(warning) == 1
    assert "2 rows look like text decoded with the wrong encoding" in warning[0]
    assert f"{path}:2 has 'Ã¼' in its source" in warning[0]
    reading = Reading()
    assert read_pairs(path, mojibake="drop", reading=reading) == [Pair("a", "b", "x")]
    assert "were left out" in reading.warnings("drop")[0]
    with pytest.raises(DataError, match=r"rows.tsv:2 has"):
        read_pairs(path, mojibake="refuse")
    assert Reading().warnings("warn") == []


def test_pairs_plain_files_line_by_line(tmp_path: Path):
    (tmp_path / "train.en").write_text("one\ntwo\n")
    (tmp_path / "train.de").write_text("eins\nzwei\n")
    config = DataConfig(
        folder="x",
        train_source="train.en",
        train_target="train.de",
        valid_source="train.en",
        valid_target="train.de",
    )
    config.check()
    assert config.domains == {"text": 1.0}
    found = read_split(tmp_path, config, "train", config.domains, Reading())
    assert found == [Pair("one", "eins", "text"), Pair("two", "zwei", "text")]


def test_reverse_turns_rows_of_both_kinds_of_files(tmp_path: Path):
    (tmp_path / "train.tsv").write_text("one\teins\tx\n")
    config = DataConfig(folder="x", domains={"x": 1.0}, reverse=True)
    config.check()
    found = read_split(tmp_path, config, "train", config.domains, Reading())
    assert found == [Pair("eins", "one", "x")]
    (tmp_path / "en").write_text("two\n")
    (tmp_path / "de").write_text("zwei\n")
    config.train_source, config.train_target = "en", "de"
    found = read_split(tmp_path, config, "train", config.domains, Reading())
    assert found == [Pair("zwei", "two", "text")]


def test_training_rows_come_from_all_named_files(tmp_path: Path):
    (tmp_path / "train.tsv").write_text("one\teins\tx\n")
    (tmp_path / "more.tsv.xz").write_bytes(lzma.compress(b"two\tzwei\ty\nno\tnein\tz\n"))
    config = DataConfig(folder="x", files=["train", "more"], domains={"x": 1.0, "y": 1.0})
    config.check()
    found = read_split(tmp_path, config, "train", config.domains, Reading())
    assert found == [Pair("one", "eins", "x"), Pair("two", "zwei", "y")]
    with pytest.raises(DataError, match=r"train.tsv and .*more.tsv.xz have no rows of news"):
        read_split(tmp_path, config, "train", ["x", "news"], Reading())
    (tmp_path / "more.tsv.xz").write_bytes(lzma.compress(b"two\tzwei\n"))
    with pytest.raises(DataError, match=r"more.tsv.xz:1 has 2 columns"):
        read_split(tmp_path, config, "train", config.domains, Reading())
    config.files = ["train", "other"]
    with pytest.raises(DataError, match=r"no file .*other.tsv.xz"):
        read_split(tmp_path, config, "train", config.domains, Reading())


def test_refuses_plain_files_of_unequal_length(tmp_path: Path):
    (tmp_path / "en").write_text("one\ntwo\nthree\n")
    (tmp_path / "de").write_text("eins\n")
    for source, target in (("en", "de"), ("de", "en")):
        with pytest.raises(DataError) as error:
            read_plain(tmp_path / source, tmp_path / target)
        assert f"{tmp_path / 'de'} has 1 lines and {tmp_path / 'en'} has 3" in str(error.value)


def test_empty_line_is_error_or_drops_pair(tmp_path: Path):
    (tmp_path / "en").write_text("one\n\nthree\n")
    (tmp_path / "de").write_text("eins\nzwei\ndrei\n")
    with pytest.raises(DataError, match=r"line 2 of .*en and .*de has an empty source"):
        read_plain(tmp_path / "en", tmp_path / "de")
    reading = Reading()
    found = read_plain(tmp_path / "en", tmp_path / "de", empty="drop", reading=reading)
    assert [pair.target for pair in found] == ["eins", "drei"]
    assert reading.warnings("warn") == ["1 rows with an empty side were left out"]


def test_single_plain_file_is_both_sides(tmp_path: Path):
    (tmp_path / "de").write_text("eins\nzwei\n")
    assert read_plain(None, tmp_path / "de") == [
        Pair("eins", "eins", "text"),
        Pair("zwei", "zwei", "text"),
    ]
    (tmp_path / "none").write_text("")
    with pytest.raises(DataError, match="has no lines that can be used"):
        read_plain(tmp_path / "none", None)
