"""The installed package `linnet` (client/python): complete, typed, and its answers."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from concurrent import futures

import grpc
import pytest
from python_package import PACKAGE, ROOT, english, wait_until
from security_test import SEARCH, Authority


def slow(linnet):
    """A call that takes many steps."""
    options = linnet.DecodingOptions(beam_size=5, min_target_tokens=1000, max_target_tokens=1024)
    return english(linnet, *["one two three"] * 8, options=options)


def cancelled(server) -> float:
    name = re.compile(r'linnet_requests_total\{.*code="CANCELLED".*\} (\d+)')
    return sum(float(count) for count in name.findall(server.scrape()))


# ---- the package


def test_build_requirements_equal_the_tests_versions():
    """With equal versions, a wheel built elsewhere has the same stubs."""
    wanted = (PACKAGE / "pyproject.toml").read_text()
    pins = dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "deps/versions.txt").read_text(), re.M))
    (requires,) = re.findall(r"^requires = \[(.*)\]", wanted, re.M)
    for name, version in re.findall(r'"([\w-]+)==([^"]+)"', requires):
        assert pins[name] == version


def test_package_is_fully_typed(site):
    """Checks the package, and a program that uses it wrongly."""
    program = site.parent / "program.py"
    program.write_text(
        "from linnet import Client, TranslateRequest\n"
        "length: int = Client().translate(TranslateRequest(contents=['a'])).translations[0].text\n"
        "Client().translate(TranslateRequest(content=['a']))\n"
    )
    mypy = [sys.executable, "-m", "mypy", "--config-file", str(PACKAGE / "pyproject.toml")]
    cache = ["--cache-dir", str(site.parent / "mypy")]
    for what, wrong in ((["-p", "linnet"], []), ([str(program)], ["program.py:2", "program.py:3"])):
        done = subprocess.run(
            [*mypy, *cache, *what],
            cwd=site.parent,
            env={"MYPYPATH": str(site), "PATH": ""},
            capture_output=True,
            text=True,
        )
        found = [line.split(": error")[0] for line in done.stdout.splitlines() if "error: " in line]
        assert [place.rpartition("/")[2] for place in found] == wrong, done.stdout + done.stderr


def test_both_clients_have_every_method(linnet):
    from linnet.v1 import text_service_pb2

    service = text_service_pb2.DESCRIPTOR.services_by_name["TextService"]
    for method in service.methods:
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", method.name).lower()
        assert hasattr(linnet.Client, name)
        assert hasattr(linnet.AsyncClient, name)


def test_examples_of_the_page_run(site, start):
    server = start(models=ROOT / "model/bundles")
    page = (PACKAGE / "README.md").read_text()
    programs = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(programs) == 4
    for program in programs:
        done = subprocess.run(
            [sys.executable, "-c", program.replace("127.0.0.1:50051", server.grpc)],
            env={"PYTHONPATH": str(site), "LINNET_SERVER": server.grpc},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


# ---- against the real server


def test_answers_equal_those_of_the_server(linnet, client, server):
    text = "The dog runs. A bird sings."
    whole = server.translate(text).translations[0]
    answer = client.translate(english(linnet, text)).translations[0]
    assert answer.SerializeToString() == whole.SerializeToString()
    stream = client.stream_translate(english(linnet, text))
    assert "".join(part.text for part in stream) == whole.text
    assert stream.response().translations[0].text == whole.text
    assert client.stream_translate(english(linnet, text)).response().translations[0] == answer
    best = english(linnet, text, options=linnet.DecodingOptions(beam_size=3, n_best=3))
    assert len(client.translate(best).translations[0].segments[0].hypotheses) == 3
    summary = client.summarize(linnet.SummarizeRequest(contents=[text], language_code="en"))
    assert summary.summaries[0].text == server.summarize(text).summaries[0].text
    pair = linnet.ScorePair(source_text=text, target_text=whole.text)
    score = client.score(linnet.ScoreRequest(pairs=[pair], model="en-de"))
    assert score.scores[0].score < 0
    found = client.detect_language(linnet.DetectLanguageRequest(contents=["Der Hund läuft weg."]))
    assert found.detections[0].languages[0].language_code == "de"
    assert [model.name for model in client.list_models().models] == ["en-de", "en-summary"]
    assert client.get_model("en-de").model.name == "en-de"
    assert client.is_serving()
    assert client.is_serving("linnet.v1.TextService")


def test_document_is_answered_line_by_line(linnet, client, server):
    lines = ["one two", "", "three", "four five six"] * 5
    settings = english(linnet)
    results = list(client.translate_document(settings, iter(lines)))
    assert [number for number, _ in results] == list(range(20))
    whole = {text: server.translate(text).translations[0].text for text in set(lines) if text}
    assert [r.translations[0].text for _, r in results] == [whole.get(text, "") for text in lines]
    unordered = dict(client.translate_document(settings, lines, keep_order=False))
    assert {n: r.translations[0].text for n, r in unordered.items()} == {
        n: whole.get(text, "") for n, text in enumerate(lines)
    }
    too_long = "a " * 500_000
    failed = dict(client.translate_document(settings, ["one two", too_long, "three"]))
    assert isinstance(failed[1], linnet.LinnetError)
    assert failed[1].code == grpc.StatusCode.INVALID_ARGUMENT
    assert failed[2].translations[0].text == whole["three"]


def test_leaving_a_document_cancels_it(linnet, client, server):
    taken = 0

    def lines():
        nonlocal taken
        while True:
            taken += 1
            yield "one two three"

    before = cancelled(server)
    for number, _ in client.translate_document(english(linnet), lines()):
        if number == 3:
            # While no result is read, flow control bounds the number of lines taken.
            counts = [0]
            while counts[-1] != taken:
                counts.append(taken)
                assert taken < 1_000_000, "flow control does not bound the lines"
                time.sleep(0.3)
            break
    wait_until(lambda: cancelled(server) == before + 1)


def test_errors_have_details(linnet, client):
    with pytest.raises(linnet.LinnetError) as raised:
        client.translate(english(linnet, "a", " "), request_id="my-call")
    error = raised.value
    assert error.code == grpc.StatusCode.INVALID_ARGUMENT
    assert error.field == "contents[1]"
    assert error.request_id == "my-call"
    assert error.reason
    assert error.message in str(error)
    with pytest.raises(linnet.LinnetError) as raised:
        client.translate(english(linnet, "a", target_language_code="tlh"))
    assert raised.value.reason == "MODEL_NOT_FOUND"
    assert raised.value.metadata
    with pytest.raises(linnet.LinnetError) as raised:
        client.translate(slow(linnet), timeout=0.05)
    assert raised.value.code == grpc.StatusCode.DEADLINE_EXCEEDED
    with pytest.raises(linnet.LinnetError) as raised:
        linnet.Client("127.0.0.1:1").translate(english(linnet, "a"))
    assert raised.value.code == grpc.StatusCode.UNAVAILABLE


def test_cancel_ends_calls_in_other_threads(linnet, server):
    before = cancelled(server)
    with linnet.Client(server.grpc) as client, futures.ThreadPoolExecutor() as pool:
        calls = [pool.submit(client.translate, slow(linnet)) for _ in range(4)]
        server.wait_for_calls(4)
        client.cancel()
        codes = {call.exception(60).code for call in calls}
        assert codes == {grpc.StatusCode.CANCELLED}
        with pytest.raises(linnet.LinnetError, match="CANCELLED"):
            client.translate(english(linnet, "a"))
    wait_until(lambda: cancelled(server) >= before + 4)


def test_asyncio_has_many_calls_in_flight(linnet, server):
    texts = [f"one two number {number}" for number in range(200)]

    async def run() -> list[str]:
        async with linnet.AsyncClient(server.grpc) as client:
            calls = [client.translate(english(linnet, text)) for text in texts]
            return [answer.translations[0].text for answer in await asyncio.gather(*calls)]

    answers = asyncio.run(run())
    for number in (0, 77, 199):
        assert answers[number] == server.translate(texts[number]).translations[0].text


def test_cancelling_a_task_frees_its_rows(linnet, server):
    before = cancelled(server)

    async def run() -> str:
        async with linnet.AsyncClient(server.grpc) as client:
            tasks = [asyncio.create_task(client.translate(slow(linnet))) for _ in range(3)]
            await asyncio.to_thread(server.wait_for_calls, 3)
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ended), ended
            answer = await client.translate(english(linnet, "one two"))
            return answer.translations[0].text

    assert asyncio.run(run()) == server.translate("one two").translations[0].text
    wait_until(lambda: cancelled(server) == before + 3)


def test_asyncio_streams_and_documents_agree(linnet, server):
    text = "The dog runs. A bird sings."

    async def run() -> None:
        async with linnet.AsyncClient(server.grpc) as client:
            stream = client.stream_translate(english(linnet, text))
            parts = "".join([part.text async for part in stream])
            assert parts == (await stream.response()).translations[0].text
            assert parts == server.translate(text).translations[0].text

            async def lines():
                for line in ("one", "two three"):
                    yield line

            results = [
                result async for result in client.translate_document(english(linnet), lines())
            ]
            assert [number for number, _ in results] == [0, 1]
            texts = [server.translate(t).translations[0].text for t in ("one", "two three")]
            assert [result.translations[0].text for _, result in results] == texts
            with pytest.raises(linnet.LinnetError) as raised:
                await client.translate(english(linnet, " "))
            assert raised.value.field == "contents[0]"
            assert await client.is_serving()
            assert len((await client.list_models()).models) == 2

    asyncio.run(run())


def test_sends_certificates_and_tokens(linnet, start, tmp_path):
    authority = Authority(tmp_path)
    for name in ("server", "client"):
        authority.sign(name)
    token = tmp_path / "token"
    token.write_text(f"{SEARCH}\n")
    (tmp_path / "tokens").write_text(f"{SEARCH} search inference\n")
    server = start(
        *("--tls-cert", str(tmp_path / "server.pem"), "--tls-key", str(tmp_path / "server.key")),
        *("--tls-client-ca", str(tmp_path / "ca.pem"), "--tokens", str(tmp_path / "tokens")),
    )

    def code(asynchronous: bool = False, **options):
        tls = {"ca_file": tmp_path / "ca.pem", "server_name": "localhost", **options.pop("tls", {})}
        options = linnet.Options(
            server.grpc, tls=linnet.Tls(**tls), retry=linnet.Retry(max_attempts=1), **options
        )

        async def ask():
            async with linnet.AsyncClient(options) as client:
                await client.translate(english(linnet, "a"))

        try:
            if asynchronous:
                asyncio.run(ask())
            else:
                linnet.Client(options).translate(english(linnet, "a"))
        except linnet.LinnetError as error:
            return error.code.name
        return "OK"

    mine = {"certificate_file": tmp_path / "client.pem", "key_file": tmp_path / "client.key"}
    for asynchronous in (False, True):
        assert code(asynchronous) == "UNAVAILABLE", "without a certificate"
        assert code(asynchronous, tls=mine) == "UNAUTHENTICATED"
        assert code(asynchronous, tls=mine, token_file=token) == "OK"
    with pytest.raises(linnet.LinnetError, match="in plain text"):
        linnet.Options("example.org:1", token_file=token)
    assert server.stop() == 0
