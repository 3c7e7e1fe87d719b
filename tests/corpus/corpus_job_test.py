"""linnet-corpus run, verify and merge: any shards and any end give the same bytes."""

from __future__ import annotations

import base64
import json
import re
import shutil
import sys
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from linnet_corpus import Columns, CorpusError, Embedded
from linnet_corpus.files import Place
from linnet_corpus.job import Chunk, Output, Worker, answer_digests
from shouting import write_bundle

LINES = [f"line {number % 40}" for number in range(95)]


@pytest.fixture
def corpus(tmp_path):
    """Two inputs, whose chunks of ten rows lie across their border."""
    (tmp_path / "a.txt").write_text("".join(f"{line}\n" for line in LINES[:33]))
    (tmp_path / "b.txt").write_text("".join(f"{line}\n" for line in LINES[33:]))
    return f"{tmp_path}/?.txt"


@pytest.fixture
def job(run, corpus, bundle, tmp_path):
    """job(output, flags…) runs the job, which must succeed, and returns its files."""

    def job(name="out", *flags, status=0):
        out = tmp_path / name
        done = run("run", corpus, "-o", out, "--bundle", bundle, "--chunk-rows", 10, *flags)
        assert done[0] == status, done
        return files_of(out) if status == 0 else done[2]

    return job


def files_of(folder) -> dict[str, bytes]:
    return {
        it.name: it.read_bytes() for it in folder.iterdir() if not it.name.startswith("summary")
    }


def test_output_has_all_rows_in_order_and_a_manifest_for_each_chunk(job, run, tmp_path):
    files = job()
    assert len(files) == 1 + 2 * 10
    assert run("merge", tmp_path / "out", "-o", tmp_path / "all.txt")[0] == 0
    assert (tmp_path / "all.txt").read_text().splitlines() == [line.upper() for line in LINES]
    manifest = json.loads(files["000000000090-000000000095.json"])
    assert manifest["rows"] == [90, 95]
    assert (manifest["bundle"], manifest["compute"], manifest["backend"]) == (
        "a" * 64,
        "int8",
        "embedded",
    )
    assert len(base64.b64decode(manifest["answers"])) == 5 * 8


@pytest.mark.parametrize("shards", [2, 3, 7, 30])
def test_any_number_of_shards_gives_the_same_files(job, shards):
    whole = job("whole")
    for shard in reversed(range(shards)):
        files = job("out", "--shard", f"{shard}/{shards}", "--children", 2)
    assert files == whole


def test_rerun_makes_what_is_missing_and_nothing_else(job, tmp_path):
    files = job()
    for name in ("000000000010-000000000020.json", "000000000050-000000000060.json"):
        (tmp_path / "out" / name).unlink()
    (tmp_path / "out/000000000050-000000000060.parquet").write_bytes(b"torn")
    kept = tmp_path / "out/000000000030-000000000040.parquet"
    before = kept.stat().st_mtime_ns
    assert job() == files
    assert kept.stat().st_mtime_ns == before
    summary = json.loads((tmp_path / "out/summary-0-of-1.json").read_text())
    assert (summary["chunks"], summary["already_done"], summary["rows"]) == (2, 8, 20)


def test_finished_job_starts_no_process(job, decode):
    files = job()
    decode.write_text("#!/bin/sh\nexit 2\n")
    assert job() == files


def test_worker_with_another_bundle_than_its_job_is_refused(job, tmp_path):
    job()
    other = write_bundle(tmp_path / "other", "b" * 64)
    with pytest.raises(CorpusError, match=r"needs the bundle a{64} in int8, this worker has"):
        Worker(str(tmp_path / "out"), partial(Embedded, other), "", str(tmp_path))


def test_engine_that_is_not_installed_is_named(job, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    said = job("out", "--engine", "ray", status=1)
    assert re.search(r"--engine ray: .*; python -m pip install 'linnet-corpus\[ray\]'", said)


def test_full_disk_ends_the_run_and_the_next_goes_on(job, small_files, tmp_path):
    whole = job("whole")
    small_files(1000)  # job.json fits, a chunk does not
    assert "cannot write" in job(status=1)
    small_files(1 << 30)
    assert not list((tmp_path / "out").glob(".*"))
    assert job() == whole


def test_files_of_killed_writers_are_removed_when_their_chunk_is_done(job, run, tmp_path):
    files = job()
    out, key = tmp_path / "out", "0" * 32
    done, open_ = "000000000010-000000000020", "000000000030-000000000040"
    for name in (f"{done}.parquet", f"{done}.json", "job.json", f"{open_}.parquet"):
        (out / f".{name}.{key}").write_bytes(b"torn")
    (out / f".{done}.parquet.mine").write_bytes(b"not ours")
    (out / f"{open_}.json").unlink()  # has a file and no manifest: its writer may live
    Output(str(out)).remove_unfinished()
    assert sorted(it.name for it in out.glob(".*")) == [
        f".{done}.parquet.mine",
        f".{open_}.parquet.{key}",
    ]
    (out / f".{done}.parquet.mine").unlink()
    assert job() == files  # also without hidden files


def test_writer_whose_file_was_removed_finds_that_it_is_there(tmp_path):
    place = Place.of(tmp_path / "a")
    place.write(b"done")
    with place.writing():
        (unfinished,) = tmp_path.glob(".a.*")
        unfinished.unlink()
    assert place.read() == b"done"
    with pytest.raises(CorpusError, match="cannot write"), Place.of(tmp_path / "b").writing():
        next(tmp_path.glob(".b.*")).unlink()


def test_another_job_in_the_folder_is_refused(job, tmp_path):
    job()
    assert "its chunk_rows is 10, not 11" in job("out", "--chunk-rows", 11, status=1)
    assert "its compute is int8, not float32" in job("out", "--compute", "float32", status=1)
    assert "its options is" in job("out", "--option", "seed=1", status=1)
    (tmp_path / "b.txt").write_text("cut")
    assert "b.txt has 3 bytes, it had" in job(status=1)


def test_poisoned_row_is_an_error_value(job, corpus, tmp_path, run):
    (tmp_path / "b.txt").write_text("good\npoison\ngood\n")
    job()
    status, _, _ = run("merge", tmp_path / "out", "-o", tmp_path / "all.parquet")
    assert status == 0
    table = pq.read_table(tmp_path / "all.parquet")
    assert [row for row, error in enumerate(table["error"].to_pylist()) if error] == [34]
    assert re.search(r"INTERNAL: .*\(request [0-9a-f]{12}\)", table["error"][34].as_py())


def test_summary_counts_rows_errors_and_repeats(job, run, tmp_path, bundle):
    job()
    summary = json.loads((tmp_path / "out/summary-0-of-1.json").read_text())
    assert (summary["rows"], summary["decoded"], summary["tokens"]) == (95, 40, 120)
    assert (summary["errors"], summary["kept"]) == ({}, 0)
    (tmp_path / "c.txt").write_text("too long\n")
    _, said, _ = run("run", tmp_path / "c.txt", "-o", tmp_path / "c", "--bundle", bundle)
    assert re.search(r"^errors +INVALID_ARGUMENT 1$", said, re.MULTILINE)


def test_plots_are_written(job, tmp_path):
    job("out", "--plots", tmp_path / "plots")
    assert sorted(it.name for it in (tmp_path / "plots").iterdir()) == ["lengths.svg", "scores.svg"]


# --- Only what changed ---------------------------------------------------------------------------


def test_only_changed_rows_are_decoded_by_a_new_bundle(job, tmp_path, run, corpus):
    job("old")
    with (tmp_path / "b.txt").open("a") as file:
        file.write("new line\n")
    bundle = write_bundle(tmp_path / "newer", "b" * 64)
    out = tmp_path / "new"
    flags = ["-o", out, "--bundle", bundle, "--only-changed", tmp_path / "old"]
    status, said, _ = run("run", corpus, *flags)
    assert status == 0
    assert re.search(r"^kept +95 rows of an earlier bundle$", said, re.MULTILINE)
    table = Output(str(out)).table(Chunk(0, 96))
    assert table["bundle"].to_pylist() == ["a" * 64] * 95 + ["b" * 64]
    assert table["translation"].to_pylist() == [*map(str.upper, LINES), "NEW LINE"]
    assert run("verify", out, "--bundle", bundle, "--sample", 1)[1].startswith(
        "96 rows in 1 chunks checked, 1 decoded again, 0 faults"
    )


def test_other_options_keep_nothing(job, tmp_path, run, corpus, bundle):
    job("old")
    flags = ["-o", tmp_path / "new", "--bundle", bundle, "--only-changed", tmp_path / "old"]
    said = run("run", corpus, *flags, "--option", "length_penalty=1.5")[1]
    assert re.search(r"^kept +0 rows", said, re.MULTILINE)


# --- Proofs --------------------------------------------------------------------------------------


@pytest.fixture
def checked(job, run, bundle, tmp_path):
    """checked() verifies the output with every row decoded again: (status, output, errors)."""
    job()
    return lambda: run("verify", tmp_path / "out", "--bundle", bundle, "--sample", 1)


def test_sound_output_has_no_faults(checked):
    assert checked() == (0, "95 rows in 10 chunks checked, 95 decoded again, 0 faults\n", "")


def test_changed_missing_and_foreign_chunks_are_faults(checked, tmp_path):
    out = tmp_path / "out"
    (out / "000000000010-000000000020.json").unlink()
    shutil.copy(out / "000000000000-000000000010.json", out / "000000000000-000000000020.json")
    shutil.copy(
        out / "000000000030-000000000040.parquet", out / "000000000020-000000000030.parquet"
    )
    (out / "000000000050-000000000060.parquet").write_bytes(b"PAR1")
    status, _, said = checked()
    assert status == 1
    assert "fault: 000000000010-000000000020: missing" in said
    assert "fault: 000000000000-000000000020: no chunk of this job" in said
    assert "fault: 000000000020-000000000030: sha256, source, answers of the manifest" in said
    assert "fault: 000000000050-000000000060: cannot be read" in said


def test_forged_row_with_a_fitting_manifest_is_found_by_decoding(checked, tmp_path):
    output = Output(str(tmp_path / "out"))
    chunk = Chunk(20, 30)
    table = output.table(chunk)
    forged = table["translation"].to_pylist()
    forged[3] = "forged"
    position = table.column_names.index("translation")
    table = table.set_column(position, "translation", pa.array(forged))
    processor = output.manifest(chunk)["processor"]
    output.commit(output.job(), chunk, table, processor)
    status, _, said = checked()
    assert (status, said) == (1, "fault: row 23: translation differ when decoded again\n")


def test_rows_of_another_processor_are_not_compared(checked, other_processor):
    other_processor()
    status, said, notes = checked()
    assert (status, said.split(", ")[1]) == (0, "0 decoded again")
    assert notes.count("not decoded again: they come from a processor with") == 10


def test_another_bundle_is_refused(job, run, tmp_path):
    job()
    other = write_bundle(tmp_path / "other", "b" * 64)
    status, _, said = run("verify", tmp_path / "out", "--bundle", other)
    assert status == 1
    assert f"the job was done with the bundle {'a' * 64} in int8, this is" in said


def test_texts_that_are_not_those_of_the_input_are_a_fault(checked, tmp_path):
    text = (tmp_path / "a.txt").read_text()
    (tmp_path / "a.txt").write_text(text.replace("line 5", "line 6", 1))
    assert "fault: 000000000000-000000000010: its texts are not" in checked()[2]


def test_merge_takes_equal_chunks_once_and_refuses_gaps_and_differences(job, run, tmp_path):
    job("one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    merge = ["merge", tmp_path / "one", tmp_path / "two", "-o", tmp_path / "all.parquet"]
    assert run(*merge)[0] == 0
    assert pq.read_table(tmp_path / "all.parquet").num_rows == 95
    for name in ("one", "two"):
        (tmp_path / name / "000000000010-000000000020.json").unlink()
    assert "1 chunks are missing or do not belong there" in run(*merge)[2]
    manifest = tmp_path / "two/000000000020-000000000030.json"
    manifest.write_text(manifest.read_text().replace('"answers": "', '"answers": "A'))
    assert "with different answers" in run(*merge)[2]


def test_merge_can_leave_out_rows_that_ask_the_same(job, run, tmp_path):
    job()
    status, said, _ = run("merge", tmp_path / "out", "-o", tmp_path / "all.txt", "--distinct")
    assert (status, said) == (0, f"40 rows in {tmp_path / 'all.txt'}\n")
    assert (tmp_path / "all.txt").read_text().splitlines() == [it.upper() for it in LINES[:40]]


# --- Other commands ------------------------------------------------------------------------------


def test_score_scores_pairs(run, tmp_path, bundle):
    (tmp_path / "pairs.tsv").write_text("a\tAA\nb\tBBBB\n")
    flags = ["--text", "c1", "--target", "c2", "--bundle", bundle, "-o", tmp_path / "out"]
    assert run("score", tmp_path / "pairs.tsv", *flags)[0] == 0
    table = Output(str(tmp_path / "out")).table(Chunk(0, 2))
    assert table["score"].to_pylist() == [-2 / 32, -4 / 32]
    assert table["translation"].to_pylist() == [None, None]


def test_backtranslate_samples_each_row_by_its_own_seed(run, tmp_path, bundle):
    (tmp_path / "mono.txt").write_text("a\nb\na\n")

    def sampled(name: str, seed: int) -> list[str]:
        flags = ["-o", tmp_path / name, "--bundle", bundle, "--seed", seed]
        assert run("backtranslate", tmp_path / "mono.txt", *flags)[0] == 0
        return Output(str(tmp_path / name)).table(Chunk(0, 3))["translation"].to_pylist()

    first = sampled("one", 1)
    assert first == sampled("again", 1)
    assert first[0] == first[2] != first[1]
    assert len({*first, *sampled("two", 2)}) == 4


def test_refused_languages_are_errors_which_verify_finds_again(run, tmp_path, bundle):
    (tmp_path / "in.txt").write_text(
        "This is a short English sentence.\nEin deutscher Satz ist das.\n"
    )
    flags = ["-o", tmp_path / "out", "--bundle", bundle, "--expect"]
    assert run("run", tmp_path / "in.txt", *flags, "en")[0] == 0
    assert "is the output of another job" in run("run", tmp_path / "in.txt", *flags, "de")[2]
    assert "'xx' is no known language" in run("run", tmp_path / "in.txt", *flags, "xx")[2]
    summary = json.loads((tmp_path / "out/summary-0-of-1.json").read_text())
    assert summary["errors"] == {"LANGUAGE_MISMATCH": 1}
    assert run("verify", tmp_path / "out", "--bundle", bundle, "--sample", 1)[0] == 0


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_columns_of_parquet_pass_as_they_are(run, tmp_path, bundle, kind):
    said = {b"pandas": b"{}"}
    fields = [("text", kind), ("id", pa.int64()), ("m", pa.struct([("a", pa.string())]))]
    table = pa.table(
        {"text": ["one", None, "two"] * 4, "id": [2**60 + 1, None, 0] * 4, "m": [None] * 12}
    ).cast(pa.schema(fields, metadata=said))
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=5)
    flags = ["-o", tmp_path / "out", "--bundle", bundle, "--chunk-rows", 4]
    assert run("run", tmp_path / "a.parquet", *flags)[0] == 0
    assert run("verify", tmp_path / "out")[0] == 0
    assert run("merge", tmp_path / "out", "-o", tmp_path / "b.parquet")[0] == 0
    done = pq.read_table(tmp_path / "b.parquet")
    wanted = pq.read_table(tmp_path / "a.parquet")
    assert done.select(["text", "id", "m"]) == wanted
    assert done["translation"].to_pylist() == ["ONE", None, "TWO"] * 4
    assert done.schema.metadata == said


def test_columns_of_one_name_are_refused(run, tmp_path, bundle):
    table = pa.table([pa.array(["a"])] * 3, names=["text", "x", "x"])
    pq.write_table(table, tmp_path / "a.parquet")
    flags = ["-o", tmp_path / "out", "--bundle", bundle]
    done = run("run", tmp_path / "a.parquet", *flags)
    assert (done[0], done[2]) == (1, "error: there are several columns 'x': rename all but one\n")


def test_columns_that_are_not_kept_are_left_out(run, tmp_path, bundle):
    (tmp_path / "a.tsv").write_text("1\ta\tx\n")
    flags = ["--text", "c2", "--keep", "c2", "-o", tmp_path / "out", "--bundle", bundle]
    assert run("run", tmp_path / "a.tsv", *flags)[0] == 0
    assert Output(str(tmp_path / "out")).table(Chunk(0, 1)).column_names[:2] == [
        "c2",
        "translation",
    ]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--shard", "2/2"], "'2/2' is no I/N with I from 0 to N-1"),
        (["--chunk-rows", "0"], "'0' is no whole number above 0"),
        (["--option", "beams=5"], "there is no option 'beams', there are beam_size"),
        (["--option", "beam_size=x"], "'x' is no value of beam_size"),
    ],
)
def test_wrong_flags_are_refused(run, tmp_path, bundle, flags, message):
    status, _, said = run("run", "a.txt", "-o", tmp_path, "--bundle", bundle, *flags)
    assert status == 2
    assert message in said


@pytest.mark.parametrize(("data", "said"), [(None, "No such file"), (b"caf\xe9\tx", "utf-8")])
def test_glossaries_that_cannot_be_read_are_named(run, tmp_path, data, said):
    path = tmp_path / "terms.tsv"
    if data is not None:
        path.write_bytes(data)
    flags = ["-o", tmp_path, "--server", "127.0.0.1:1", "--to", "de", "--glossary", path]
    done = run("run", "a.txt", *flags)
    assert done[0] == 1
    assert done[2].startswith(f"error: {path} cannot be read: ")
    assert said in done[2]


def test_answers_are_digested_row_by_row():
    table = pa.table(
        {"text": ["a", "b"], **{it.name: pa.nulls(2, it.type) for it in Columns().answer_fields()}}
    )
    one, two = answer_digests(Columns(), table)
    assert one == two
    assert len(one) == 8
