"""HTML and XML from the server, the command line and both Python clients."""

from __future__ import annotations

import asyncio
import html
import re

import pytest

FRAGMENT = "<h1>A <b>bird</b> sings.</h1>\n<p>Two <i>big <b>dogs</b></i> &amp; a <br>cat.</p>\n"
SEGMENTS = ("A bird sings.", "Two big dogs & a", "cat.")
TAGS = re.compile("</?[a-z0-9]+>")


@pytest.fixture(scope="module")
def answer(server) -> str:
    return server.translate(FRAGMENT, mime_type="text/html").translations[0].text


def test_tags_leave_the_translation_as_it_is(server, answer):
    said = [server.translate(text).translations[0].text for text in SEGMENTS]
    assert html.unescape(TAGS.sub("", answer)) == f"{said[0]}\n{said[1]} {said[2]}\n"
    assert sorted(TAGS.findall(answer)) == sorted(TAGS.findall(FRAGMENT))


def test_xml_has_no_elements_of_html(server):
    said = server.translate("<a>one<br/>two</a>", mime_type="application/xml").translations[0]
    assert len(said.segments) == 1
    text = TAGS.sub("", said.text.replace("<br/>", " "))
    assert text.split() == server.translate("one two").translations[0].text.split()


def test_stream_has_the_tags(server, answer):
    messages = list(server.stream_translate(FRAGMENT, mime_type="text/html"))
    assert "".join(message.part.text for message in messages[:-1]) == answer
    assert messages[-1].response.translations[0].text == answer


def test_command_line_keeps_tags(server, run_linnet, answer, tmp_path):
    command = ("translate", "--to", "de", "--mime-type", "text/html")
    assert run_linnet(server, *command, stdin=FRAGMENT).stdout == answer
    page, written = tmp_path / "page.html", tmp_path / "seite.html"
    page.write_text(FRAGMENT)
    done = run_linnet(server, *command, "--file", str(page), "-o", str(written))
    assert done.returncode == 0, done.stderr
    assert written.read_text() == answer


OWN = '<x>A bird.</x><p title="A cat.">Two <b>big Acme-dogs</b></p>'
OPTIONS = {"ignore_tags": ["X"], "splitting_tags": ["b"], "attributes": True}


@pytest.fixture(scope="module")
def own_answer(server) -> str:
    def said(text: str) -> str:
        patterns = {"protected_patterns": ["Acme"]}
        return html.escape(server.translate(text, **patterns).translations[0].text, quote=False)

    two, dogs, cat = said("Two"), said("big Acme-dogs"), said("A cat.")
    assert "Acme" in dogs
    return f'<x>A bird.</x><p title="{cat}">{two} <b>{dogs}</b></p>'


def test_options_say_what_is_translated(server, run_linnet, linnet, own_answer):
    given = {"mime_type": "text/html", "protected_patterns": ["Acme"]}
    assert server.translate(OWN, markup=OPTIONS, **given).translations[0].text == own_answer
    flags = {"to": "de", "source": "en", "markup": linnet.MarkupOptions(**OPTIONS), **given}
    assert linnet.translate(OWN, **flags, server=server.grpc) == own_answer
    command = ("translate", "--to", "de", "--mime-type", "text/html", "--ignore-tag", "X")
    more = ("--splitting-tag", "b", "--attributes", "--protected-pattern", "Acme")
    assert run_linnet(server, *command, *more, stdin=OWN).stdout.rstrip("\n") == own_answer
    undone = run_linnet(server, *command, *more, "--non-splitting-tag", "b", stdin=OWN).stdout
    assert undone.count("<b>") == 1
    assert undone != own_answer


def test_errors_name_the_pattern(server, run_linnet, linnet):
    command = ("translate", "--to", "de", "--protected-pattern", "a", "--protected-pattern", "[")
    done = run_linnet(server, *command, stdin="A dog runs.")
    assert done.returncode != 0
    assert "--protected-pattern[1]: is no regular expression of RE2: missing ]: [" in done.stderr
    with pytest.raises(linnet.LinnetError, match="protected_patterns is a str"):
        linnet.translate("A dog.", to="de", protected_patterns="a", server=server.grpc)
    with pytest.raises(linnet.LinnetError, match="protected_patterns is given beside a request"):
        linnet.Client(server.grpc).translate(linnet.TranslateRequest(), protected_patterns=["a"])


def test_python_clients_keep_tags(server, linnet, answer):
    flags = {"to": "de", "source": "en", "mime_type": "text/html"}
    assert linnet.translate(FRAGMENT, **flags, server=server.grpc) == answer
    assert linnet.translate([FRAGMENT, ""], **flags, server=server.grpc) == [answer, ""]

    async def ask() -> str:
        async with linnet.AsyncClient(server.grpc) as client:
            return await client.translate(FRAGMENT, **flags)

    assert asyncio.run(ask()) == answer
