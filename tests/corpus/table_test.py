"""translate_table: columns, order, equal rows, bad rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from linnet_corpus import SCHEMA, Columns, CorpusError, Memory, translate_table
from shouting import Shouting

TEXTS = ["one", "a bad one", "two words", "one", "", " ", None, "the longest of them all"]


def test_adds_the_columns_of_answers_in_order():
    table = pa.table({"id": range(len(TEXTS)), "text": TEXTS})
    done = translate_table(table, Shouting())
    assert done.schema == pa.schema([*table.schema, *SCHEMA])
    assert done.select(["id", "text"]) == table
    assert done["translation"].to_pylist() == [
        it if it is None else None if "bad" in it else it.upper() for it in TEXTS
    ]
    assert done["error"].to_pylist() == [
        "the text or its target is null"
        if it is None
        else "INVALID_ARGUMENT: bad"
        if "bad" in it
        else None
        for it in TEXTS
    ]
    assert set(done["bundle"].to_pylist()) == {"a" * 64}
    assert set(done["compute"].to_pylist()) == {"int8"}


def test_equal_rows_are_decoded_once_also_in_later_tables():
    backend, memory = Shouting(), Memory()
    table = pa.table({"text": ["b", "a", "b"]})
    first = translate_table(table, backend, memory=memory)
    second = translate_table(table, backend, memory=memory)
    assert first == second
    assert sorted(row.text for row in backend.asked) == ["a", "b"]


def test_memory_forgets_the_oldest_and_answers_stay_equal():
    backend, memory = Shouting(), Memory(max_rows=1)
    for _ in range(2):
        for text in ("a", "b"):
            done = translate_table(pa.table({"text": [text]}), backend, memory=memory)
            assert done["translation"].to_pylist() == [text.upper()]
    assert len(backend.asked) == 4


def test_rows_of_about_one_length_are_sent_together_longest_first():
    backend = Shouting()
    translate_table(pa.table({"text": ["b", "aaaa", "cc", "dddddd"]}), backend)
    assert [len(row.text) for row in backend.asked] == [6, 4, 2, 1]


@pytest.mark.parametrize("cut", range(len(TEXTS) + 1))
def test_a_table_is_translated_as_its_parts_are(cut: int):
    table = pa.table({"text": pa.array(TEXTS)})
    parts = [translate_table(part, Shouting()) for part in (table.slice(0, cut), table.slice(cut))]
    assert pa.concat_tables(parts) == translate_table(table, Shouting())


def test_several_texts_have_answers_of_their_own():
    table = pa.table({"title": ["t"], "body": ["b"]})
    done = translate_table(table, Shouting(), Columns(texts=("title", "body")))
    assert done["translation_title"].to_pylist() == ["T"]
    assert done["translation_body"].to_pylist() == ["B"]
    assert len(done.column_names) == 2 + 2 * len(SCHEMA)


def test_each_row_has_a_seed_that_depends_on_seed_and_text():
    def seeds(seed: int, texts: list[str]) -> list[int | None]:
        rows = Columns(seed=seed).rows(pa.table({"text": texts}), "text")
        return [row.seed for row in rows if row]

    assert seeds(1, ["a", "b"]) == seeds(1, ["b", "a"])[::-1]
    assert len({*seeds(1, ["a", "b"]), *seeds(2, ["a", "b"])}) == 4


def test_language_and_target_are_of_the_row():
    backend = Shouting()
    table = pa.table({"text": ["a", "a"], "target": ["A", None], "lang": ["en", "fr"]})
    done = translate_table(table, backend, Columns(target="target", language="lang"))
    (row,) = backend.asked
    assert (row.target, row.language) == ("A", "en")
    assert done["error"].to_pylist() == [None, "the text or its target is null"]


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        ({"a": ["x"]}, Columns(), "there is no column 'text', the columns are a"),
        ({"text": [1]}, Columns(), "the column 'text' has the type int64, it must be string"),
        ({"text": ["x"], "score": [1]}, Columns(), "the columns score are there already"),
        ({"text": ["x"]}, Columns(language="l"), "there is no column 'l'"),
    ],
)
def test_columns_that_do_not_fit_are_refused(table, columns, message):
    with pytest.raises(CorpusError, match=message):
        translate_table(pa.table(table), Shouting(), columns)


def test_text_may_have_each_of_arrows_forms():
    """pandas stores categories as a dictionary, and others write views."""
    texts, languages = ["one", None, "one"], ["en", "de", None]
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        table = pa.table({"text": texts, "l": languages})
        table = table.cast(pa.schema([("text", kind), ("l", kind)]))
        done = translate_table(table, Shouting(), Columns(language="l"))
        assert done["translation"].to_pylist() == ["ONE", None, "ONE"]
        assert done.schema.field("text").type == kind


def test_what_a_schema_says_passes():
    """pandas keeps there what Arrow does not know: indexes, nullable integers, categories."""
    said = {b"pandas": b"{}", b"huggingface": b"{}"}
    spark = {b"org.apache.spark.sql.parquet.row.metadata": b"{}"}  # hides other columns from Spark
    schema = pa.schema([("text", pa.string())], metadata=said | spark)
    done = translate_table(pa.table({"text": ["a"]}, schema=schema), Shouting())
    assert done.schema.metadata == said


def test_columns_that_cannot_be_told_apart_are_refused():
    table = pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    with pytest.raises(CorpusError, match="there are 2 columns 'text': rename all but one"):
        translate_table(table, Shouting())
    with pytest.raises(CorpusError, match="named twice: a, a"):
        Columns(texts=("a", "a"))
    with pytest.raises(CorpusError, match=r"write texts=\('text',\)"):
        Columns(texts="text")  # type: ignore[arg-type]


def test_text_in_another_language_than_expected_is_an_error():
    texts = [
        "Das ist ein kurzer deutscher Satz.",
        "This is a short English sentence.",
        "12:30",
        " ",
    ]
    table = pa.table({"text": texts * 2, "language": [""] * 4 + ["de-AT"] * 4})
    backend = Shouting()
    done = translate_table(table, backend, Columns(language="language", expect="en"))
    said = ["LANGUAGE_MISMATCH: the text is in de, not in en", None, None, None]
    other = [None, "LANGUAGE_MISMATCH: the text is in en, not in de-AT", None, None]
    assert done["error"].to_pylist() == said + other
    assert {row.text for row in backend.asked if not row.language} == {texts[1], texts[2]}
