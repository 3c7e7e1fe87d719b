"""linnet-corpus on a real server, which splits texts and warns."""

from __future__ import annotations

import subprocess
import sys

import pyarrow.parquet as pq


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
