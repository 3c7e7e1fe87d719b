"""Two small files of each format, and a translator that shouts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable

import linnet
from linnet_files import Document, Options, read
from linnet_files.fragment import Part, from_xml, to_xml

SRT = """1
00:00:16,700 --> 00:00:18,000
<i>When I first saw</i>

2
00:00:18,100 --> 00:00:21,000
<i>the house by the long and winding river,</i>
I {sic} knew that I would stay.

4
00:00:22,000 --> 00:00:23,000 X1:10
- Open C:\\new\\home!
- Why a <b and c> d?
"""
SRT_CRLF = "\ufeff7\r\n00:00:01.5 --> 00:00:02,000\r\n{\\an8}Two lines\r\nof text.\r\n\r\n\r\n"
VTT = """WEBVTT - A title
X-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000

NOTE
a comment

REGION
id:left

STYLE
::cue { color: red }

intro
00:01.000 --> 00:03.000 align:start
<v Mary>Fish &amp; chips</v> are
<c.loud>very <i>good</i></c> for

00:03.000 --> 00:05.000
you and me.

NOTE the end
"""
VTT_WORDS = "WEBVTT\n\n1\n01:00:00.000 --> 01:00:02.000\nOne <01:00:01.000>two &lt;three&gt;\n"
PO = r"""# Translators: nobody
msgid ""
msgstr ""
"PO-Revision-Date: 2026-01-01 00:00+0000\n"
"Project-Id-Version: x\n"
"Language: de\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#: a file.c:1
#, c-format
msgid "Cannot open %s: %d errors 100%%"
msgstr ""

#, c-format
msgid "One file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgctxt "menu"
msgid "_Save As"
msgstr ""

msgid "Ring\a the bell"
msgstr ""

#, fuzzy
#| msgid "old"
msgid "A long <b>text</b> that\n"
"wraps over lines.\n"
"\n"
"  -h, --help   show {name} this help\n"
msgstr ""

msgid "done"
msgstr "fertig"

#~| msgid "older"
#~ msgid "gone"
#~ msgstr "weg"
# the end
"""
POT = r"""#, fuzzy
msgid ""
msgstr ""
"Content-Type: text/plain; charset=CHARSET\n"
"Language: \n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"

#, python-brace-format
msgid "{count} day"
msgid_plural "{count} days"
msgstr[0] ""
msgstr[1] ""
"""
HTML = """<!DOCTYPE html>
<html lang=en><head><title>A &amp; B</title><meta name=description content="All about it">
<script>if (a<b) "</p>";</script></head>
<body class='x'><!-- a comment -->
<p>Hello <b>big <i>world</i></b>, see <a href="x?a=1&b=2" title='The link'>this
  page</a>.<br>Next <code>x = 1</code> line&nbsp;here <img src=a.png alt="A dog">.
<pre>

keep  this
</pre><ul><li><a href=y>All link</a><li translate=no>Not this</ul>
<p>Broken <b>bold <p>next</b> end &lt;tag&gt; 5 < 6
"""
XHTML = """<?xml version='1.0' encoding='ISO-8859-1'?>
<html xmlns="http://www.w3.org/1999/xhtml"><head><title>Title</title></head>
<body><p>One &#233;t\u00e9 <em>two</em><br/>three</p><p class="notranslate">four</p></body></html>
"""
SAMPLES: dict[str, bytes] = {
    "cues.srt": SRT.encode(),
    "crlf.srt": SRT_CRLF.encode(),
    "cues.vtt": VTT.encode(),
    "words.vtt": VTT_WORDS.encode(),
    "messages.po": PO.encode(),
    "template.pot": POT.encode(),
    "page.html": HTML.encode(),
    "page.xhtml": XHTML.encode("latin-1"),
}


def shout(text: str) -> str:
    return re.sub(r"<[^>]*>|&\w+;|([^<&]+)", lambda it: it[1].upper() if it[1] else it[0], text)


def answers_of(document: Document, said: Callable[[str], str] = shout) -> list[tuple[Part, ...]]:
    """Answers to the fragments in their form as XML; fails if a code is lost."""
    answers = []
    for fragment in document.fragments:
        text, codes = to_xml(fragment.parts)
        parts = from_xml(said(text), codes)
        assert parts is not None
        answers.append(parts)
    return answers


def shouted(name: str, data: bytes, options: Options = Options()) -> bytes:  # noqa: B008
    document = read(name, data, options)
    return document.write(answers_of(document))


class Shouter:
    """A client whose server shouts; counts what it was asked."""

    def __init__(self, refuse: Callable[[str], linnet.LinnetError | None] = lambda _: None):
        self.asked: list[str] = []
        self._refuse = refuse

    async def translate_document(
        self, settings: linnet.TranslateRequest, lines: Iterable[str]
    ) -> AsyncIterator[tuple[int, linnet.TranslateResponse | linnet.LinnetError]]:
        for number, line in enumerate(lines):
            self.asked.append(line)
            if error := self._refuse(line):
                yield number, error
            else:
                reply = linnet.TranslateResponse()
                is_xml = getattr(settings, "mime_type", "") == "application/xml"
                reply.translations.add().text = shout(line) if is_xml else line.upper()
                yield number, reply

    async def detect_language(self, text: str) -> linnet.LanguageDetection:
        found = linnet.LanguageDetection()
        found.languages.add().language_code = "en"
        return found
