"""Files of each format, read in ranges and written."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from linnet_corpus import CorpusError
from linnet_corpus.files import Input, Reader, find_inputs, format_of, write_tables

ROWS = [{"id": 2**53 + number, "text": f"text {number} ä"} for number in range(25)]


def write(path, rows=ROWS):
    """A file of the rows in the format of the path."""
    stem = path.name.removesuffix(".zst")
    if stem.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=4)
        return path
    lines = {
        "jsonl": lambda row: json.dumps(row),
        "tsv": lambda row: f"{row['id']}\t{row['text']}",
        "txt": lambda row: row["text"],
    }[stem.rpartition(".")[2]]
    data = "".join(lines(row) + "\n" for row in rows).encode()
    path.write_bytes(zstandard.compress(data) if path.suffix == ".zst" else data)
    return path


NAMES = ["a.parquet", "a.jsonl", "a.jsonl.zst", "a.tsv", "a.tsv.zst", "a.txt", "a.txt.zst"]


def read(source: Input, begin: int, end: int, reader=None) -> tuple[list[dict], dict[int, str]]:
    reader = reader or Reader(source)
    table, errors = reader.read(begin, end, source.schema(), all_keys=True)
    return table.to_pylist(), errors


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stride", [1, 7, 100])
def test_ranges_are_the_rows_of_the_file(tmp_path, name, stride):
    source = Input.count(str(write(tmp_path / name)), stride)
    assert source.rows == len(ROWS)
    whole, _ = read(source, 0, len(ROWS))
    assert [list(row.values())[-1] for row in whole] == [row["text"] for row in ROWS]
    reader = Reader(source)
    for begin, end in [(0, 3), (3, 10), (12, 25), (5, 6), (6, 7), (24, 25)]:
        assert read(source, begin, end, reader) == (whole[begin:end], {})


@pytest.mark.parametrize("name", NAMES)
def test_written_file_is_read_as_it_was(tmp_path, name):
    table = pa.table({"id": ["1", "2"], "translation": ["one", "two"]})
    path = tmp_path / name
    write_tables(iter([table.slice(0, 1), table.slice(1)]), table.schema, path)
    source = Input.count(str(path), 10)
    rows, _ = read(source, 0, 2)
    wanted = [list(row.values()) for row in table.to_pylist()]
    assert [list(row.values()) for row in rows] == (
        [[it[1]] for it in wanted] if "txt" in name else wanted
    )


def test_lines_that_cannot_be_read_are_errors_of_their_rows(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = [b'{"id": 1, "text": "a"}', b"{", b"[]", b'"\xff"', b'{"id": "x", "text": "b"}']
    lines += [b'{"text": "\\ud800"}', b'{"id": 1, "text": "c"}']
    path.write_bytes(b'{"id": 0, "text": "z"}\n' * 1000 + b"\n".join(lines))
    source = Input.count(str(path), 100)
    rows, errors = read(source, 1000, 1007)
    assert [row["text"] for row in rows] == ["a", None, None, None, "b", None, "c"]
    assert [row["id"] for row in rows] == [1, None, None, None, None, None, 1]
    assert [errors.get(number, "").partition(":")[0] for number in range(7)] == [
        "",
        "the line is not JSON",
        "the line is not a JSON object",
        "the line is not UTF-8",
        "the value of id has another type than in most lines",
        "the line is not JSON",
        "",
    ]


def test_no_value_of_json_is_changed_or_dropped(tmp_path):
    """Arrow makes integers of 1.5 and floats of true, and drops keys that its struct lacks."""
    path = tmp_path / "a.jsonl"
    first = {"text": "a", "n": 1, "x": 1.5, "m": {"a": [{"b": 1}]}}
    others = [
        first | {"n": 1.5},
        first | {"x": True},
        first | {"m": {"a": [], "c": 2}},
        first | {"m": {"a": [{"b": 1, "c": 2}]}},
        first | {"n": 2**70},
        {"text": "b", "n": 2, "x": 3, "m": {"a": [{}]}},
        {"text": "c"},
    ]
    lines = [json.dumps(row) for row in [first] * 1000 + others]
    path.write_text("\n".join([*lines, '{"text": "c", "text": "d"}', "[" * 100_000]))
    rows, errors = read(Input.count(str(path), 100), 1000, 1009)
    wrong = [name and f"the value of {name} has another type" for name in "nxmmn"]
    assert [errors.get(it, "").partition(" than")[0] for it in range(7)] == [*wrong, "", ""]
    assert "a name occurs twice among text, text" in errors[7]
    assert errors[8].startswith("the line is not JSON")
    assert rows[0] == first | {"n": None}
    assert rows[3] == first | {"m": None}
    assert rows[5] == {"text": "b", "n": 2, "x": 3.0, "m": {"a": [{"b": None}]}}
    assert rows[6] == {"text": "c", "n": None, "x": None, "m": None}


def test_a_column_of_numbers_that_do_not_fit_has_errors(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "a", "n": {2**70}}}\n{{"text": "b"}}\n')
    rows, errors = read(Input.count(str(path), 10), 0, 2)
    assert rows == [{"text": "a", "n": None}, {"text": "b", "n": None}]
    assert list(errors) == [0]


@pytest.mark.parametrize("name", [it for it in NAMES if "parquet" not in it])
def test_byte_order_mark_is_no_text(tmp_path, name):
    plain = write(tmp_path / name.removesuffix(".zst"))
    data = b"\xef\xbb\xbf" + plain.read_bytes()
    (tmp_path / name).write_bytes(zstandard.compress(data) if ".zst" in name else data)
    rows, errors = read(Input.count(str(tmp_path / name), 10), 0, 25)
    assert [list(row.values())[-1] for row in rows] == [row["text"] for row in ROWS]
    assert errors == {}


def test_key_that_is_no_column_is_an_error_unless_columns_are_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n' * 1000 + '{"text": "b", "other": 1}\n')
    source = Input.count(str(path), 100)
    rows, errors = read(source, 1000, 1001)
    assert errors == {0: "the first 1000 lines have no other: see --keep"}
    assert rows == [{"text": "b"}]
    table, errors = Reader(source).read(1000, 1001, source.schema(), all_keys=False)
    assert (table.to_pylist(), errors) == ([{"text": "b"}], {})


def test_types_are_those_of_most_lines_and_columns_those_of_all(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": 42}\n{"text": "a", "id": 1}\n{"text": "b", "id": "two"}\n{"id": 3}\n')
    source = Input.count(str(path), 100)
    assert source.schema() == pa.schema([("text", pa.string()), ("id", pa.int64())])
    rows, errors = read(source, 0, 4)
    assert [tuple(row.values()) for row in rows] == [(None, None), ("a", 1), ("b", None), (None, 3)]
    assert errors == {
        0: "the value of text has another type than in most lines: see --keep",
        2: "the value of id has another type than in most lines: see --keep",
    }


def test_line_of_another_number_of_columns_is_an_error(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\nc\n")
    assert read(Input.count(str(path), 10), 0, 2)[1] == {
        1: "the line has 1 columns, the first line has 2"
    }


def test_changed_file_is_refused(tmp_path):
    path = write(tmp_path / "a.txt")
    source = Input.count(str(path), 10)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CorpusError, match=r"a.txt has \d+ bytes, it had \d+ when the job began"):
        read(source, 0, 1)


def test_globs_are_sorted_and_must_match(tmp_path):
    for name in ("b.txt", "a.txt"):
        write(tmp_path / name)
    assert [it[-5:] for it in find_inputs([f"{tmp_path}/*.txt"])] == ["a.txt", "b.txt"]
    with pytest.raises(CorpusError, match="no file matches"):
        find_inputs([f"{tmp_path}/*.tsv"])


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl.zst", "a.tsv.zst", "a.txt.zst"])
@pytest.mark.parametrize("kept", [0, -1, 12])
def test_files_that_are_cut_or_damaged_are_refused(tmp_path, name, kept):
    """zstandard reads a file that is cut as one with fewer rows."""
    path = write(tmp_path / name)
    data = path.read_bytes()
    path.write_bytes(data[:kept] if kept else b"damaged")
    with pytest.raises(CorpusError, match=f"{name} cannot be read: "):
        Input.count(str(path), 10).schema()


def test_query_of_an_address_is_no_ending():
    assert format_of("s3://bucket/a.jsonl.zst?region=eu") == ("jsonl", True)
    with pytest.raises(CorpusError):
        format_of("a.txt?b")


@pytest.mark.parametrize("name", ["a.csv", "a.parquet.zst", "a"])
def test_unknown_endings_are_refused(tmp_path, name):
    (tmp_path / name).write_text("")
    with pytest.raises(CorpusError, match="has an unknown ending: there are"):
        Input.count(str(tmp_path / name), 10)


@pytest.mark.parametrize("name", ["a.jsonl", "a.tsv.zst"])
@pytest.mark.parametrize("kind", [pa.binary(), pa.struct([("b", pa.list_(pa.binary(3)))])])
def test_bytes_are_no_text(tmp_path, name, kind):
    """An image of a dataset was written as Python shows it."""
    table = pa.table({"i": pa.nulls(1, kind), "translation": ["x"]})
    with pytest.raises(CorpusError, match=r"the column 'i' has the type .* write a \.parquet"):
        write_tables(iter([table]), table.schema, tmp_path / name)
    assert not (tmp_path / name).exists()


def test_failed_write_leaves_the_file_as_it_was(tmp_path, small_files):
    path = tmp_path / "a.txt"
    table = pa.table({"translation": ["x" * 100_000]})
    path.write_text("before")
    small_files(10_000)
    with pytest.raises(CorpusError, match="cannot write"):
        write_tables(iter([table]), table.schema, path)
    assert path.read_text() == "before"
    assert [it.name for it in tmp_path.iterdir()] == ["a.txt"]
