"""The errors of the package `linnet`."""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
import threading

import grpc
import pytest
from python_package import english


def first_of(stream):
    """The first item of an iterator of Client, or an awaitable of that of AsyncClient."""
    return anext(stream) if hasattr(stream, "__anext__") else next(stream)


MISUSE = {
    "a text that is none": lambda c, m: c.translate([5], to="de", source="en"),
    "bytes": lambda c, m: c.translate(b"a dog", to="de", source="en"),
    "nothing at all": lambda c, m: c.translate(None, to="de", source="en"),
    "a lone surrogate": lambda c, m: c.translate("a \ud83d", to="de", source="en"),
    "no language": lambda c, m: c.translate("a", to=""),
    "a language beside a request": lambda c, m: c.translate(english(m, "a"), to="fr"),
    "terms beside a request": lambda c, m: c.translate(english(m, "a"), glossary={"a": "b"}),
    "a length beside a request": lambda c, m: c.summarize(
        m.SummarizeRequest(contents=["a"], language_code="en"), words=0
    ),
    "a request id of two words": lambda c, m: c.translate(english(m, "a"), request_id="a b"),
    "a long request id": lambda c, m: c.translate(english(m, "a"), request_id="x" * 500),
    "a timeout below 0": lambda c, m: c.translate(english(m, "a"), timeout=-1),
    "a timeout that is none": lambda c, m: c.translate(english(m, "a"), timeout="5"),
    "another message": lambda c, m: c.score(english(m, "a")),
    "pairs that are a string": lambda c, m: c.score("a"),
    "a pair that is a string": lambda c, m: c.score(["ab"]),
    "a pair of three": lambda c, m: c.score([("a", "b", "c")]),
    "a target that is none": lambda c, m: c.score([("a", None)]),
    "a model beside a request": lambda c, m: c.score(m.ScoreRequest(), model="en-de"),
    "an unknown style of a target": lambda c, m: c.score(("a", "b"), style="poem"),
    "texts that are bytes": lambda c, m: c.detect_language(b"a"),
    "a text to detect that is none": lambda c, m: c.detect_language(["a", 5]),
    "a string of lines": lambda c, m: first_of(c.translate_document(english(m), "a\nb")),
    "a language that is no string": lambda c, m: c.translate("a", to=5),
    "a source that is no string": lambda c, m: c.translate("a", to="de", source=5),
    "a language that is no UTF-8": lambda c, m: c.translate("a", to="\ud800"),
    "a model that is no string": lambda c, m: c.summarize("a", model=5),
    "options of another kind": lambda c, m: c.translate("a", to="de", options="beam"),
    "a choice that is no bool": lambda c, m: c.translate("a", to="de", direct_only="no"),
    "a glossary that is no mapping": lambda c, m: c.translate("a", to="de", glossary="a b"),
    "a term that is no string": lambda c, m: c.translate("a", to="de", glossary={5: "b"}),
    "a translation that is none": lambda c, m: c.translate("a", to="de", glossary={"a": 5}),
    "a translation that is zero": lambda c, m: c.translate("a", to="de", glossary={"a": 0}),
    "more words than int32 holds": lambda c, m: c.summarize("a", words=2**40),
    "words that are no number": lambda c, m: c.summarize("a", words="x"),
    "sentences in part": lambda c, m: c.summarize("a", sentences=1.5),
    "a style that is no string": lambda c, m: c.summarize("a", style=["title"]),
    "a request id that is no string": lambda c, m: c.translate(english(m, "a"), request_id=5),
    "a model's name that is none": lambda c, m: c.get_model(5),
    "a service that is none": lambda c, m: c.is_serving(5),
    "a stream of another message": lambda c, m: c.stream_translate(m.ScoreRequest()).response(),
    "a stream of a string": lambda c, m: c.stream_summarize("a").response(),
    "a stream of another": lambda c, m: c.stream_translate(english(m, "a"), timeout=0).response(),
}


@pytest.mark.parametrize("what", MISUSE)
def test_misuse_is_a_linnet_error(linnet, client, server, what):
    with pytest.raises(linnet.LinnetError) as raised:
        MISUSE[what](client, linnet)
    assert raised.value.code == grpc.StatusCode.INVALID_ARGUMENT
    message = raised.value.message
    assert message

    async def run() -> None:
        async with linnet.AsyncClient(server.grpc) as client:
            with pytest.raises(linnet.LinnetError) as raised:
                await MISUSE[what](client, linnet)
        assert (raised.value.code, raised.value.message) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            message,
        )

    asyncio.run(run())


def test_argument_beside_a_request_names_its_field(linnet, client):
    with pytest.raises(linnet.LinnetError, match="set target_language_code in the req") as raised:
        client.translate(english(linnet, "a"), to="fr")
    assert raised.value.field == "to"


def test_wrong_argument_is_named(linnet, client):
    for call, field in (
        (lambda: client.summarize("a", words=2**40), "words"),
        (lambda: client.translate("a", to="de", source=5), "source"),
        (
            lambda: client.translate("a", to="de", glossary={"a": "b", "c": 5}),
            "glossary.entries[1].target_text",
        ),
    ):
        with pytest.raises(linnet.LinnetError, match=f"^INVALID_ARGUMENT: {re.escape(field)} is"):
            call()


def test_misuse_of_documents_is_a_linnet_error(linnet, client, server):
    settings, lines = english(linnet), ["a"]
    summaries = linnet.SummarizeRequest(language_code="en")
    wrong = (
        lambda c: c.translate_document(summaries, lines),
        lambda c: c.translate_document(settings, 5),
        lambda c: c.translate_document(settings, lines, keep_order="x"),
        lambda c: c.translate_document(settings, lines, request_id=5),
        lambda c: c.summarize_document(settings, lines),
        lambda c: c.summarize_document(summaries, None),
    )
    for call in wrong:
        with pytest.raises(linnet.LinnetError) as raised:
            list(call(client))
        assert raised.value.code == grpc.StatusCode.INVALID_ARGUMENT

    async def run() -> None:
        async with linnet.AsyncClient(server.grpc) as client:
            for call in wrong:
                with pytest.raises(linnet.LinnetError) as raised:
                    async for _ in call(client):
                        pass
                assert raised.value.code == grpc.StatusCode.INVALID_ARGUMENT

    asyncio.run(run())


def test_closed_client_raises(linnet, server):
    client = linnet.Client(server.grpc)
    client.close()
    for call in (
        lambda: client.translate("a", to="de", source="en"),
        lambda: list(client.translate_document(english(linnet), ["a"])),
        lambda: client.stream_translate(english(linnet, "a")).response(),
    ):
        with pytest.raises(linnet.LinnetError):
            call()


def test_invalid_options_are_linnet_errors(linnet, tmp_path):
    empty = tmp_path / "empty"  # gRPC would end the process
    empty.touch()
    for make in (
        lambda: linnet.Options(timeout=0),
        lambda: linnet.Options(timeout="x"),
        lambda: linnet.Options(server=5),
        lambda: linnet.Options(wait="x"),
        lambda: linnet.Options(keepalive=float("inf")),
        lambda: linnet.Options(keepalive=0),
        lambda: linnet.Options(max_reply_bytes=0),
        lambda: linnet.Options(max_reply_bytes=2**31),
        lambda: linnet.Options(max_reply_bytes="x"),
        lambda: linnet.Options(retry=5),
        lambda: linnet.Options(retry=linnet.Retry(max_attempts="x")),
        lambda: linnet.Options(retry=linnet.Retry(initial_backoff="x")),
        lambda: linnet.Options(tls=True),
        lambda: linnet.Options(tls=linnet.Tls(ca_file=5)),
        lambda: linnet.Options(token_file=5),
        lambda: linnet.Client(5),
        lambda: linnet.translate("a", to="de", server=5),
        lambda: linnet.Client(linnet.Options(token_file=tmp_path / "none")),
        lambda: linnet.Client(linnet.Options(tls=linnet.Tls(ca_file=tmp_path / "none"))),
        lambda: linnet.Client(linnet.Options(tls=linnet.Tls(ca_file=empty))),
        lambda: linnet.Options(tls=linnet.Tls(certificate_file=empty)),
        lambda: linnet.Options(tls=linnet.Tls(key_file=empty)),
        lambda: linnet.Options(wait=1e12),
        lambda: linnet.Options(wait=-1),
        lambda: linnet.Options(retry=linnet.Retry(max_backoff=float("inf"))),
    ):
        with pytest.raises(linnet.LinnetError):
            make()


def test_error_of_the_callers_iterator_is_raised(linnet, client, server):
    class Mine(Exception):
        pass

    def lines():
        yield "one"
        raise Mine("of the caller")

    async def later():
        yield "one"
        raise Mine("of the caller")

    settings = english(linnet)
    with pytest.raises(Mine, match="of the caller"):
        list(client.translate_document(settings, lines()))
    with pytest.raises(linnet.LinnetError, match=r"line 1 .*surrogate U\+D800"):
        list(client.translate_document(settings, ["one", "\ud800"]))
    request = linnet.SummarizeRequest(language_code="en")
    with pytest.raises(Mine):
        list(client.summarize_document(request, lines()))

    async def run() -> None:
        async with linnet.AsyncClient(server.grpc) as client:
            for source in (lines(), later()):
                with pytest.raises(Mine, match="of the caller"):
                    async for _ in client.translate_document(settings, source):
                        pass
            with pytest.raises(linnet.LinnetError, match="line 0"):
                async for _ in client.summarize_document(request, [7]):
                    pass
            wanted = server.translate("one").translations[0].text
            assert await client.translate("one", to="de", source="en") == wanted

    asyncio.run(run())


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_iterator_that_ends_the_program_ends_the_call(linnet, client, kind):
    """gRPC iterates in a thread of its own, which such an error would end without a word."""

    def lines():
        yield "one"
        raise kind("of the caller")

    raised: list[BaseException] = []

    def call() -> None:
        try:
            list(client.translate_document(english(linnet), lines()))
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(30)
    assert [(type(error), str(error)) for error in raised] == [(kind, "of the caller")]


def test_too_large_message_has_a_reason(linnet, client):
    # Without its first complete request, a connection that holds so much may be closed instead: a
    # gRPC without our patches receives a message before it looks at its length.
    client.translate(english(linnet, "one two"))
    with pytest.raises(linnet.LinnetError) as raised:
        client.translate(english(linnet, "a " * (3 << 20)))
    assert raised.value.code == grpc.StatusCode.INVALID_ARGUMENT
    assert raised.value.reason == "MESSAGE_TOO_LARGE"
    assert raised.value.message.endswith(" in one message: send the rest in another")
    assert int(raised.value.metadata["bytes"]) > int(raised.value.metadata["maxBytes"])


def test_pickled_or_copied_error_keeps_its_details(linnet):
    """An executor of processes pickles the errors of its calls."""
    error = linnet.LinnetError.local(
        "busy", grpc.StatusCode.UNAVAILABLE, field="contents[1]", reason="BUSY", metadata={"n": "1"}
    )
    error.retry_delay, error.request_id = 0.5, "my-call"
    error.rename("contents[1]", "contents[130]")
    protocols = range(pickle.HIGHEST_PROTOCOL + 1)
    copies = [pickle.loads(pickle.dumps(error, protocol)) for protocol in protocols]
    for copied in [*copies, copy.copy(error), copy.deepcopy(error)]:
        assert type(copied) is linnet.LinnetError
        assert vars(copied) == vars(error)
        assert str(copied) == str(error) == "UNAVAILABLE: busy (BUSY)"
    assert (copied.code, copied.field) == (grpc.StatusCode.UNAVAILABLE, "contents[130]")
