"""The package `linnet` with plain strings, and its installation."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys

import pytest
from python_package import PACKAGE, ROOT, english


def one(server, text: str) -> str:
    return server.translate(text).translations[0].text


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
