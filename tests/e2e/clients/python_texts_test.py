"""The package `linnet` with plain strings, and its errors."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import re
import subprocess
import sys
import threading

import grpc
import pytest
from python_package import PACKAGE, ROOT, english


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


@pytest.fixture
def client(linnet, server):
    with linnet.Client(server.grpc) as client:
        yield client


def one(server, text: str) -> str:
    return server.translate(text).translations[0].text


# ---- texts


def test_three_lines_are_a_program(site, server):
    program = 'import linnet\n\nprint(linnet.translate("one two", to="de", source="en"))\n'
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(site), "LINNET_SERVER": server.grpc},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, one(server, "one two") + "\n"), done.stderr


def test_string_gives_string_and_list_gives_list(linnet, client, server):
    texts = ["one two", "", "  \n", "three", "four five six"]
    wanted = [one(server, text) if text.strip() else text for text in texts]
    say = {"to": "de", "source": "en"}
    assert client.translate("one two", **say) == wanted[0]
    assert client.translate(texts, **say) == wanted
    assert client.translate(iter(texts), **say) == wanted
    assert client.translate([], **say) == []
    assert client.translate(" ", **say) == " "
    summary = server.summarize("one two three").summaries[0].text
    assert client.summarize("one two three", language="en") == summary
    assert client.summarize(["one two three"], model="en-summary") == [summary]

    async def run() -> None:
        async with linnet.AsyncClient(server.grpc) as client:
            assert await client.translate("one two", **say) == wanted[0]
            assert await client.translate(texts, **say) == wanted
            assert await client.summarize("one two three", language="en") == summary

    asyncio.run(run())


def test_white_space_of_unicode_is_its_own_answer(linnet, client, server):
    blank = [c for c in map(chr, range(0x110000)) if c.isspace() and c not in "\x1c\x1d\x1e\x1f"]
    blank += ["\ufeff", "\ufeff\u3000 ", ""]
    texts = [*blank, "one two", "\ufeff" + "three"]
    wanted = [*blank, one(server, "one two"), one(server, "\ufeff" + "three")]
    assert client.translate(texts, to="de", source="en") == wanted
    assert client.summarize(blank, language="en") == blank

    async def run() -> None:
        async with linnet.AsyncClient(server.grpc) as client:
            assert await client.translate(texts, to="de", source="en") == wanted

    asyncio.run(run())


def test_list_of_any_length_is_answered_in_order(linnet, client, server):
    texts = [f"number {number % 40}" for number in range(1500)]
    wanted = {text: one(server, text) for text in set(texts)}
    say = {"to": "de", "source": "en", "options": linnet.DecodingOptions(beam_size=1)}
    greedy = dict(zip(wanted, client.translate(list(wanted), **say), strict=True))
    assert client.translate(texts, **say) == [greedy[text] for text in texts]

    async def run() -> list[str]:
        async with linnet.AsyncClient(server.grpc) as client:
            return await client.translate(texts, **say)

    assert asyncio.run(run()) == [greedy[text] for text in texts]


def test_long_text_is_split_between_lines(site, linnet):
    from linnet import texts

    text = "".join(f"line {n}\x0b\u2028 of more\r\n" for n in range(900)) + "the end"
    for maximum in (1, 20, 21, 1000, 1 << 20):
        parts = list(texts.split_at_lines(text, maximum))
        assert "".join(parts) == text
        assert all(part.endswith("\n") for part in parts[:-1])
        assert all(len(part.encode()) <= maximum or part.count("\n") <= 1 for part in parts)
    assert list(texts.split_at_lines("")) == []
    plan = texts.Plan.of([text, " \n", "short"])
    for call in plan.calls():
        upper = [part.content.upper() for part in call]
        plan.answer(call, [texts.api.Translation(text=text) for text in upper])
    assert plan.answers() == [text.upper(), " \n", "SHORT"]


def test_glossary_is_a_dict(linnet, client, server):
    terms = {"two": "zwei", "dog": None}
    entries = [
        linnet.GlossaryEntry(source_text="two", target_text="zwei"),
        linnet.GlossaryEntry(source_text="dog"),
    ]
    options = linnet.DecodingOptions(beam_size=4)
    whole = linnet.Glossary(entries=entries)
    request = english(linnet, "one two dog", glossary=whole, options=options)
    wanted = client.translate(request).translations[0].text
    say = {"to": "de", "source": "en", "options": options}
    assert client.translate("one two dog", glossary=terms, **say) == wanted
    assert client.translate("one two dog", glossary=whole, **say) == wanted
    assert client.translate("one two dog", **say) != wanted


def test_summary_takes_a_wished_length(linnet, client):
    text = "The dog runs across the street and barks at a cat."
    for words in (1, 4):
        assert len(client.summarize(text, words=words).split()) <= words
    assert len(client.summarize([text, text], words=2)) == 2
    with pytest.raises(linnet.LinnetError, match="words and sentences are both given"):
        client.summarize(text, words=2, sentences=1)


def test_summary_takes_a_style(linnet, client):
    with pytest.raises(
        linnet.LinnetError, match="style is 'poem', known are title, sentence, paragraph"
    ):
        client.summarize("The dog runs.", style="poem")
    with pytest.raises(linnet.LinnetError, match="has no styles") as raised:
        client.summarize("The dog runs.", style="title")
    assert raised.value.field == "style"
    request = linnet.SummarizeRequest(contents=["The dog runs."])
    with pytest.raises(linnet.LinnetError, match="style is given beside a request"):
        client.summarize(request, style="title")


def test_error_names_the_index_of_the_text(linnet, client):
    texts = ["one"] * 130 + ["e" + "\u0301" * 9000] + ["two"]
    with pytest.raises(linnet.LinnetError) as raised:
        client.translate(texts, to="de", source="en")
    assert raised.value.field == "contents[130]"
    assert "contents[130]" in str(raised.value)


# ---- errors


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
            assert await client.translate("one", to="de", source="en") == one(server, "one")

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


def test_warning_points_to_the_callers_line(linnet, client, server):
    texts = ["one two", "Die Kinder gehen früh am Morgen zur Schule."]
    with pytest.warns(linnet.LinnetWarning, match=r"contents\[1\]: .* \"de\"") as caught:
        answers = client.translate(texts, to="de", source="en")
    assert answers == [one(server, text) for text in texts]
    assert {warning.filename for warning in caught} == {__file__}

    async def run():
        async with linnet.AsyncClient(server.grpc) as asynchronous:
            return await asynchronous.translate(texts, to="de", source="en")

    with pytest.warns(linnet.LinnetWarning) as caught:
        assert asyncio.run(run()) == answers
    assert {warning.filename for warning in caught} == {__file__}


# ---- the package


def test_version_equals_the_projects(linnet):
    (version,) = re.findall(
        r"^project\(linnet VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M
    )
    assert linnet.__version__ == version


def test_installation_leaves_no_files_in_the_tree(tmp_path):
    """Builds in the folder itself, as `pip install ./client/python` does."""
    before = {path for path in PACKAGE.rglob("*") if "__pycache__" not in path.parts}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", tmp_path, PACKAGE],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert len(list(tmp_path.glob("linnet-*.whl"))) == 1
    after = {path for path in PACKAGE.rglob("*") if "__pycache__" not in path.parts}
    assert after == before


WRAPPED = (
    "one two three one two three one two three one two\n"
    "one two. three two one three two one three two one\n"
    "end.\n\nthree\n"
)


def test_lines_of_paragraphs_are_joined(linnet, client, server):
    joined = WRAPPED.replace("\none two. ", " one two. ").replace("\nend.", " end.")
    say = {"to": "de", "source": "en"}
    wanted = one(server, joined)
    assert client.translate(WRAPPED, line_breaks="join_paragraphs", **say) == wanted
    assert linnet.translate(
        [WRAPPED], line_breaks="join_paragraphs", server=server.grpc, **say
    ) == [wanted]
    for keep in ("", "keep"):
        assert client.translate(WRAPPED, line_breaks=keep, **say) == one(server, WRAPPED)

    async def run() -> str:
        async with linnet.AsyncClient(server.grpc) as client:
            return await client.translate(WRAPPED, line_breaks="join_paragraphs", **say)

    assert asyncio.run(run()) == wanted
    with pytest.raises(linnet.LinnetError, match="known are keep, join_paragraphs"):
        client.translate("one", line_breaks="wrap", **say)
    with pytest.raises(linnet.LinnetError, match="line_breaks is given beside a request"):
        client.translate(linnet.TranslateRequest(), line_breaks="keep")


def test_parts_of_joined_text_end_at_blank_lines(site, linnet):
    from linnet import texts

    text = "one\ntwo\n\nthree\nfour\n \nfive\nsix\nseven\n"
    for maximum in range(10, len(text)):
        parts = list(texts.split_at_lines(text, maximum, joins=True))
        assert "".join(parts) == text
        assert all(len(part) <= maximum for part in parts)
        if maximum >= 20:
            assert all(part.endswith(("\n\n", "\n \n")) for part in parts[:-1]), parts
