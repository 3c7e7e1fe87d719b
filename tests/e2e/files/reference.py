"""What a file and its translation have in common, as the reference library of a format sees it."""

from __future__ import annotations

import html
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable

import docx
import lxml.html
import odfdo
import openpyxl
import polib
import pptx
import pysubs2
import webvtt
import yaml
from file_samples import answers_of
from linnet_files import File, FileError, Options, find, read
from linnet_files.document import Source
from lxml import etree
from markdown_it import MarkdownIt

# Attributes of XLIFF that a translation sets.
_FILLED = {"state", "target-language", "trgLang"}
_VARIABLE = re.compile(r"%\(\w+\)[a-z]|%(?:\d\$)?[sdfu]\b|\{\{?\w*\}?\}|</?[a-z]+>|https?://\S+\b")
_NEXT = str.maketrans("aeiouAEIOU", "eiouaEIOUA")
_ANY = str.maketrans("eiouEIOU", "aaaaAAAA")


def check(name: str, data: bytes) -> bytes:
    """Translates a file with a translator that murmurs, and asserts what must hold. Returns the
    translation. Raises FileError if the file is damaged."""
    options = Options(target="de" if name.endswith(".pot") else "", all_entries=True)
    kind = find(name).name
    document = read(name, data, options)
    if not name.endswith(".pot"):  # its header is filled
        assert document.write([None] * len(document.fragments)) == data
    out = document.write(answers_of(document, murmured))
    try:
        again = read(name, out, options)
    except FileError as error:
        raise AssertionError("the translation is damaged") from error
    if kind in ("SubRip", "WebVTT"):  # a tag over several cues is closed and opened again
        assert not _codes(document) - _codes(again), ("codes", _codes(document) - _codes(again))
    else:
        for old, new in zip(document.fragments, again.fragments, strict=False):
            assert _text(old.text) == _text(new.text), ("text", old, new)
        assert len(again.fragments) == len(document.fragments)
        assert _codes(again) == _codes(document), (
            _codes(again) - _codes(document),
            _codes(document) - _codes(again),
        )
    if kind == "gettext":
        _check_catalogue(out)
    elif kind == "XLIFF":
        _check_targets(out)
    shown = SHOWN[kind]
    _same(shown(data), shown(out))
    return out


def murmured(text: str) -> str:
    """The text with other vowels, so that a word keeps its letter case and its length."""
    return re.sub(
        r"<[^>]*>|&#?\w+;|([^<&]+)", lambda it: it[1].translate(_NEXT) if it[1] else it[0], text
    )


def _same(before: object, after: object, path: str = "") -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        assert list(before) == list(after), path
        for key in before:
            _same(before[key], after[key], f"{path}/{key}")
    elif isinstance(before, (list, tuple)) and isinstance(after, (list, tuple)):
        for number, (old, new) in enumerate(zip(before, after, strict=False)):
            _same(old, new, f"{path}/{number}")
        assert len(before) == len(after), path
    else:
        assert before == after, (path, before, after)


def _codes(document: File) -> Counter[str]:
    """How often each code is in a file; the borders between cues are none."""
    codes = [
        html.unescape(code.raw).translate(_ANY) for it in document.fragments for code in it.codes
    ]
    return Counter(code for code in codes if " --> " not in code)


def _text(text: str | None) -> list[str]:
    """A text but for its vowels and white space."""
    return (text or "").translate(_ANY).split()


def _gettext(data: bytes) -> object:
    entries = polib.pofile(Source.of(data, _charset(data)).text)
    return [
        (it.msgctxt, it.msgid, sorted(it.flags), it.comment, it.occurrences, it.obsolete)
        for it in entries
    ]


def _charset(data: bytes) -> str:
    found = re.search(rb"charset=([\w-]+)", data)
    return found[1].decode() if found and found[1] != b"CHARSET" else "utf-8"


def _check_catalogue(data: bytes) -> None:
    """Every variable and tag of a text is in its translation; a plural form may lack its number."""
    for it in polib.pofile(Source.of(data, _charset(data)).text):
        if it.obsolete:
            continue
        one, many = _VARIABLE.findall(it.msgid), _VARIABLE.findall(it.msgid_plural)
        if not it.msgid_plural:
            assert sorted(_VARIABLE.findall(it.msgstr)) == sorted(one), it
        for text in it.msgstr_plural.values():
            assert sorted(_VARIABLE.findall(text)) in (sorted(one), sorted(many)), it


def _check_targets(data: bytes) -> None:
    """A target has the inline elements of its source."""
    for target in etree.fromstring(data).iter("{*}target"):
        unit = target.getparent()
        source = unit.find("{*}seg-source")
        source = unit.find("{*}source") if source is None else source
        found = [
            sorted((it.tag, sorted(it.items())) for it in side.iterdescendants())
            for side in (source, target)
        ]
        assert found[0] == found[1], etree.tostring(unit)


def _xliff(data: bytes) -> object:
    """All but the targets, their states and the target language."""
    root = etree.fromstring(data)
    return [
        (it.tag, {key: it.get(key) for key in it.attrib if key not in _FILLED}, _text(it.text))
        for it in root.iter(etree.Element)
        if not next(it.iterancestors("{*}target"), None) and not it.tag.endswith("}target")
    ]


def _html(data: bytes) -> object:
    declared = re.match(rb"""\s*<\?xml[^>]*?encoding=["']([\w-]+)""", data)
    text = Source.of(data, declared[1].decode() if declared else "").text
    page = lxml.html.document_fromstring(re.sub(r"^\s*<\?xml.*?\?>", "", text))
    return [(it.tag, sorted(it.attrib), _text(it.text), _text(it.tail)) for it in page.iter()]


def _markdown(data: bytes) -> object:
    tokens = MarkdownIt("commonmark").enable("table").parse(Source.of(data).text)
    kinds = [it for token in tokens for it in (token, *(token.children or []))]
    return [
        (
            it.type,
            _text(it.content) if it.type in ("code_inline", "fence", "code_block") else None,
            it.attrs.get("href"),
        )
        for it in kinds
        if it.type not in ("text", "softbreak", "text_special")
    ]


def _values(value: object) -> object:
    if isinstance(value, dict):
        return {key: _values(it) for key, it in value.items()}
    if isinstance(value, list):
        return [_values(it) for it in value]
    return _text(value) if isinstance(value, str) else value


def _word(data: bytes) -> object:
    document = docx.Document(io.BytesIO(data))
    return (
        [(_text(it.text), it.style.name) for it in document.paragraphs],
        [
            [_text(cell.text) for cell in row.cells]
            for table in document.tables
            for row in table.rows
        ],
    )


def _slides(data: bytes) -> object:
    def shapes(those):
        for shape in those:
            yield (
                shape.shape_type,
                shape.name,
                _text(shape.text_frame.text if shape.has_text_frame else ""),
            )
            if hasattr(shape, "shapes"):
                yield from shapes(shape.shapes)

    return [list(shapes(slide.shapes)) for slide in pptx.Presentation(io.BytesIO(data)).slides]


def _sheets(data: bytes) -> object:
    book = openpyxl.load_workbook(io.BytesIO(data))
    return {
        sheet.title: [[_values(it) for it in row] for row in sheet.values]
        for sheet in book.worksheets
    }


def _office(data: bytes) -> object:
    document = odfdo.Document(io.BytesIO(data))
    return [
        _text(it.text_recursive)
        for it in document.body.get_elements("descendant::text:p|descendant::text:h")
    ]


def _epub(data: bytes) -> object:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {
            it: _html(archive.read(it))
            if it.endswith("html")
            else len(archive.read(it))
            if not it.endswith(".ncx")
            else 0
            for it in archive.namelist()
        }


def _srt(data: bytes) -> object:
    return [(it.start, it.end) for it in pysubs2.SSAFile.from_string(Source.of(data).text, "srt")]


def _vtt(data: bytes) -> object:
    cues = webvtt.from_buffer(io.StringIO(Source.of(data).text))
    return [(it.start, it.end, it.identifier) for it in cues]


SHOWN: dict[str, Callable[[bytes], object]] = {
    "SubRip": _srt,
    "WebVTT": _vtt,
    "gettext": _gettext,
    "XLIFF": _xliff,
    "HTML": _html,
    "Markdown": _markdown,
    "Word": _word,
    "PowerPoint": _slides,
    "Excel": _sheets,
    "OpenDocument": _office,
    "EPUB": _epub,
    "JSON": lambda data: _values(json.loads(Source.of(data).text)),
    "YAML": lambda data: [_values(it) for it in yaml.safe_load_all(data)],
    "Android": lambda data: [
        (it.tag, dict(it.attrib), _text(it.text), _text(it.tail))
        for it in etree.fromstring(data).iter()
    ],
}
