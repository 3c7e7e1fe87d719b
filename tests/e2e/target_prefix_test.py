"""The given start of a translation, from the server, the command line and the Python client."""

from __future__ import annotations

import asyncio

import grpc
import pytest

TEXT = "A bird sings. The dog runs."
PREFIX = "Ein Vogel!  Und der Hu"


@pytest.fixture(scope="module")
def answer(server) -> str:
    answer = server.translate(TEXT, target_prefix=PREFIX).translations[0].text
    assert answer.startswith(PREFIX)
    return answer


def test_whole_sentence_has_the_score_of_its_pair(server):
    said = server.translate(TEXT, target_prefix="Ein Vogel! Und", word_scores=True)
    pair = {"source_text": "A bird sings.", "target_text": "Ein Vogel!"}
    request = server.api.ScoreRequest(
        pairs=[pair], source_language_code="en", target_language_code="de"
    )
    score = server.method("Score")(request, timeout=60).scores[0].score
    assert said.translations[0].segments[0].score == pytest.approx(score, rel=1e-5)


def test_stream_begins_with_it(server, answer):
    messages = list(server.stream_translate(TEXT, target_prefix=PREFIX))
    assert "".join(message.part.text for message in messages[:-1]) == answer


def test_command_line(server, run_linnet, answer):
    command = ("translate", "--to", "de", "--from", "en", "--target-prefix", PREFIX)
    assert run_linnet(server, *command, TEXT).stdout == answer + "\n"
    assert run_linnet(server, *command, stdin=TEXT).stdout.startswith(answer)
    for more in ("--lines", "--jsonl"):
        done = run_linnet(server, *command, more, stdin=TEXT)
        assert done.returncode == 2
        assert "--target-prefix begins the translation of one text" in done.stderr
    assert run_linnet(server, *command, TEXT, TEXT).returncode == 2
    done = run_linnet(server, *command[:-1], "x" * 16385, TEXT)
    assert "--target-prefix: has 16385 bytes, at most 16384 are taken" in done.stderr


def test_python_clients(server, linnet, answer):
    given = {"to": "de", "source": "en", "target_prefix": PREFIX}
    assert linnet.translate(TEXT, **given, server=server.grpc) == answer

    async def run() -> str:
        async with linnet.AsyncClient(server.grpc) as client:
            return await client.translate(TEXT, **given)

    assert asyncio.run(run()) == answer
    with pytest.raises(linnet.LinnetError, match="begins the translation of one text"):
        linnet.Client(server.grpc).translate([TEXT], **given)


def test_document_refuses_it(server):
    with pytest.raises(grpc.RpcError) as caught:
        list(server.document([(1, TEXT)], target_prefix=PREFIX))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "settings.target_prefix" in caught.value.details()
