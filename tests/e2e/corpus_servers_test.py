"""linnet-corpus on a real server, which splits texts and warns."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq

# Sentences, lines, white space, capitals, protected parts, what the model cannot read, no letters,
# and another language.
TEXTS = [
    "Bado runa. Kelim 3? Dr. Mika tolo.",
    "\ufeffBado\n\n\truna\u3000Kelim.  \r\nMika ",
    "BADO RUNA! KELIM? Mika.",
    "Bado %s {count} https://example.com/a?b=c runa 🐱 µ.",
    "12:30 - 14:00",
    "Das hier ist ein ganz gewöhnlicher deutscher Satz, nicht wahr? Ja, das ist er.",
    "bado runa " * 1000,
    "Mika tolo.",
]


def test_children_answer_texts_as_a_server_does(server, bundles, program, tmp_path):
    with (tmp_path / "in.jsonl").open("w") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in TEXTS)

    def answered(name: str, *flags: str) -> pa.Table:
        command = [sys.executable, "-m", "linnet_corpus.command"]
        options = ["--option", "beam_size=2", "--option", "max_target_tokens=6"]
        run = [*command, "run", "in.jsonl", "-o", name, *flags, *options]
        subprocess.run(run, cwd=tmp_path, check=True)
        merge = [*command, "merge", name, "-o", f"{name}.parquet"]
        subprocess.run(merge, cwd=tmp_path, check=True)
        return pq.read_table(tmp_path / f"{name}.parquet")

    by_server = answered("fleet", "--server", server.grpc, "--from", "en", "--to", "de")
    (compute,) = set(by_server["compute"].to_pylist())
    decode = str(program("linnet-decode"))
    flags = ["--bundle", str(bundles / "en-de"), "--compute", compute, "--decode", decode]
    assert answered("embedded", *flags) == by_server
    assert by_server["error"].null_count == len(TEXTS)
    warned = set(by_server["warnings"].combine_chunks().flatten().to_pylist())
    assert {"LANGUAGE_MISMATCH", "SPAN_FORCED", "FACTS_DIFFER"} <= warned


def test_rows_are_translated_by_the_server_and_scored(server, linnet, tmp_path):
    texts = ["Bado runa. Kelim 3?", "", "Mika tolo.", "Bado runa. Kelim 3?"]
    (tmp_path / "mono.txt").write_text("".join(text + "\n" for text in texts))

    def run(*arguments: str) -> None:
        command = [sys.executable, "-m", "linnet_corpus.command", *arguments]
        subprocess.run(command, cwd=tmp_path, check=True)

    to = ["--server", server.grpc, "--from", "en", "--to", "de"]
    run("run", "mono.txt", "-o", "out", *to, "--option", "max_target_tokens=6")
    run("merge", "out", "-o", "all.parquet")
    table = pq.read_table(tmp_path / "all.parquet")
    settings = linnet.TranslateRequest(source_language_code="en", target_language_code="de")
    settings.options.max_target_tokens = 6
    with linnet.Client(server.grpc) as client:
        said = [
            answer.translations[0].text for _, answer in client.translate_document(settings, texts)
        ]
    assert table["translation"].to_pylist() == said
    assert table["error"].null_count == len(texts)
    assert table["finish_reason"].to_pylist()[2] == "LENGTH"  # random weights end no sentence
    run("merge", "out", "-o", "pairs.tsv")
    columns = ["--text", "c1", "--target", "c2", "--keep", "c1", "--keep", "c2"]
    run("score", "pairs.tsv", "-o", "scored", *to, *columns)
    run("merge", "scored", "-o", "scored.parquet")
    scored = pq.read_table(tmp_path / "scored.parquet")
    assert [error is None for error in scored["error"].to_pylist()] == [True, False, True, True]
    assert all(it < 0 for it in scored["score"].drop_null().to_pylist())
    run("verify", "scored")
