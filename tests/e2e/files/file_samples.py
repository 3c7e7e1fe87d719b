"""Two small files of each format, and a translator that shouts."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable

import docx
import linnet
import odfdo
import openpyxl
import pptx
from linnet_files import File, Options, read
from linnet_files.fragment import Part, from_xml, to_xml
from openpyxl.worksheet.table import Table

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
MARKDOWN = """---
title: Hello
---

# The *big* title #

A paragraph with `code`, a [link](http://x.y/a_b "T") and ![an image](a.png)
that wraps **over lines** at <https://a.b> and [ref] or [text][ref].\x20\x20
A hard break & an entity &amp; esc \\* star snake_case[^1].

> A quote
> goes on.

- item one
- [ ] item two
  more

```sh
echo code
```

| a head | b \\| c |
|--------|--------|
| cell `x` | two |

<p align="center">HTML text</p>

[ref]: http://x.y
[^1]: A foot note with words.
"""
TEXT = """\ufeffThe Title

  A paragraph that somebody has wrapped at a width of sixty
  columns. It has two sentences, and the second goes on in the
  third line.

Shopping:
- milk
- a loaf of bread that is described in so many words that it
  goes on in a second line
\t- nested\x20\x20

    Mary Smith
    12 High Street
"""
TEXT_CRLF = "one line\r\n\r\n\r\n42\r\nlast line without an end"
MARKDOWN_CRLF = "Title\r\n=====\r\n\r\n1. one\r\n2. two  \r\n   three\r\n\r\n    code\r\n"
JSON = """{"a": {"title": "Hello {{name}}", "n": 3, "url": "https://x.y/z",
        "a.b": ["one two", "x.y"]},
 "item_one": "{{count}} item",
 "item_other": "{{count}} items", "icu": "{n, plural, one {# x} other {# y}}", "s": "Caf\\u00e9"}
"""
YAML = """# a comment
en:
  title: &t Hello world   # end comment
  alt: *t
  quoted: 'it''s %{name}'
  double: "tab\\tcaf\\u00e9"
  number: 3
  literal: |
    First line here.
    Second line.

  # comment after
  folded: >-
    folded text
    goes on
  list: [one two, "three: four"]
  long: a plain text that
    goes on
"""
ANDROID = r"""<?xml version="1.0" encoding="utf-8"?>
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
  <string name="a">Don\'t <b>do</b> %1$s &amp; <xliff:g id="x">Foo</xliff:g></string>
  <string name="b" translatable="false">no</string>
  <string name="h"><![CDATA[<p>Hi %s</p>]]></string>
  <plurals name="p">
    <item quantity="one">%d dog</item>
    <item quantity="other">%d dogs</item>
  </plurals>
  <string-array name="arr"><item>one</item><item>two words</item></string-array>
</resources>
"""
XLIFF = """<?xml version='1.0'?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
 <file source-language="en" datatype="plaintext" original="x"><body>
   <trans-unit id="1">
     <source>Hello <g id="1">big <x id="2"/></g> <ph id="3">%s</ph> world</source>
     <note>a note</note>
   </trans-unit>
   <trans-unit id="2"><source>A <bpt id="1">[</bpt>b<ept id="1">]</ept></source>
     <target state="new">A</target></trans-unit>
   <trans-unit id="3"><source>B</source><target>done</target></trans-unit>
   <trans-unit id="4" translate="no"><source>C</source></trans-unit>
   <trans-unit id="5"><source>word</source><target/></trans-unit>
 </body></file>
</xliff>
"""
XLIFF_2 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
<file id="f"><unit id="u"><notes><note>n</note></notes><segment state="initial">
<source>See <pc id="1">the <mrk id="m" translate="no">Foo</mrk></pc> at <ph id="2"/>\
<![CDATA[ & now]]>.</source></segment></unit>
<unit id="v" translate="no"><segment><source>kept</source></segment></unit></file></xliff>
"""


def _saved(document) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def docx_file(heading: str = "The heading") -> bytes:
    document = docx.Document()
    document.add_heading(heading, 1)
    paragraph = document.add_paragraph("Hello ")
    paragraph.add_run("bold").bold = True
    paragraph.add_run(" world.")
    paragraph.add_run().add_break()
    paragraph.add_run("after")
    document.add_table(1, 2).cell(0, 1).text = "a cell"
    document.sections[0].header.paragraphs[0].text = "A header"
    return _saved(document)


def pptx_file(title: str = "The title") -> bytes:
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[0])
    slide.shapes.title.text = title
    run = slide.shapes.title.text_frame.paragraphs[0].add_run()
    run.text, run.font.italic = " here", True
    slide.placeholders[1].text = "First\nsecond"
    slide.notes_slide.notes_text_frame.text = "some notes"
    return _saved(show)


def xlsx_file(rows: tuple[tuple[object, ...], ...] = (("Name", "Count"), ("a dog", 3))) -> bytes:
    book = openpyxl.Workbook()
    for row in (*rows, (None, "=SUM(B2:B2)")):
        book.active.append(row)
    book.active.add_table(Table(displayName="T", ref="A1:B2"))
    return _saved(book)


def odt_file(text: str = "Hello big world and more") -> bytes:
    document = odfdo.Document("text")
    document.body.clear()
    document.body.append(odfdo.Header(1, "Head line"))
    paragraph = odfdo.Paragraph(text)
    paragraph.set_span("Emphasis", regex="big")
    document.body.append(paragraph)
    paragraph.insert_note(after="world", note_id="n1", citation="1", body="A foot note")
    return _saved(document)


def epub_file(page: str = XHTML.replace("ISO-8859-1", "UTF-8")) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        root = "<container><rootfiles><rootfile full-path='OPS/a.opf'/></rootfiles></container>"
        archive.writestr("META-INF/container.xml", root)
        item = "<item href='a%20b.xhtml' media-type='application/xhtml+xml'/>"
        archive.writestr("OPS/a.opf", f"<package><manifest>{item}</manifest></package>")
        archive.writestr("OPS/a b.xhtml", page)
        archive.writestr("OPS/toc.ncx", "<ncx><text>Chapter <tt>one</tt> two</text></ncx>")
        archive.writestr("OPS/image.png", b"\x89PNG")
    return out.getvalue()


SAMPLES: dict[str, bytes] = {
    "cues.srt": SRT.encode(),
    "crlf.srt": SRT_CRLF.encode(),
    "cues.vtt": VTT.encode(),
    "words.vtt": VTT_WORDS.encode(),
    "messages.po": PO.encode(),
    "template.pot": POT.encode(),
    "version1.xlf": XLIFF.encode(),
    "version2.xliff": XLIFF_2.encode(),
    "page.html": HTML.encode(),
    "page.xhtml": XHTML.encode("latin-1"),
    "text.txt": TEXT.encode(),
    "crlf.txt": TEXT_CRLF.encode(),
    "page.md": MARKDOWN.encode(),
    "crlf.markdown": MARKDOWN_CRLF.encode(),
    "text.docx": docx_file(),
    "short.docx": docx_file("Short"),
    "show.pptx": pptx_file(),
    "short.pptx": pptx_file("Short"),
    "sheet.xlsx": xlsx_file(),
    "short.xlsx": xlsx_file((("A", "B"), ("one", "two"))),
    "text.odt": odt_file(),
    "short.odt": odt_file("big world"),
    "book.epub": epub_file(),
    "short.epub": epub_file("<html><body>Short</body></html>"),
    "values.json": JSON.encode(),
    "one.json": b'"one value"',
    "values.yaml": YAML.encode(),
    "list.yml": b"- one: two words\n- |-\n  three\n- 'x'\n",
    "strings.xml": ANDROID.encode(),
    "one.xml": b"<resources><string name='a'>one</string></resources>",
}


def shout(text: str) -> str:
    return re.sub(r"<[^>]*>|&\w+;|([^<&]+)", lambda it: it[1].upper() if it[1] else it[0], text)


def answers_of(document: File, said: Callable[[str], str] = shout) -> list[tuple[Part, ...]]:
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
