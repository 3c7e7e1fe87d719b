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
    assert (
        TAGS.sub("", said.text.replace("<br/>", ""))
        == server.translate("onetwo").translations[0].text
    )


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


def test_python_clients_keep_tags(server, linnet, answer):
    flags = {"to": "de", "source": "en", "mime_type": "text/html"}
    assert linnet.translate(FRAGMENT, **flags, server=server.grpc) == answer
    assert linnet.translate([FRAGMENT, ""], **flags, server=server.grpc) == [answer, ""]

    async def ask() -> str:
        async with linnet.AsyncClient(server.grpc) as client:
            return await client.translate(FRAGMENT, **flags)

    assert asyncio.run(ask()) == answer
