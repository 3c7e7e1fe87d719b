"""DOCX, PPTX, XLSX, ODT and EPUB, against the libraries that write them; and hostile archives."""

from __future__ import annotations

import io
import re
import zipfile

import docx
import odfdo
import openpyxl
import pptx
import pytest
from file_samples import SAMPLES, answers_of, epub_file, odt_file, shouted
from linnet_files import FileError, read
from linnet_files import package as packages

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def with_member(data: bytes, name: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            new.writestr(info, content if info.filename == name else old.read(info))
    return out.getvalue()


def word(body: str) -> bytes:
    xml = f"<w:document {W}><w:body>{body}</w:body></w:document>"
    return with_member(SAMPLES["text.docx"], "word/document.xml", xml.encode())


def texts(body: str) -> list[str]:
    return [it.text for it in read("a.docx", word(body)).fragments][:-1]  # without the header


def body_of(data: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        xml = archive.read("word/document.xml").decode()
    return xml[xml.index("<w:body>") + 8 : xml.index("</w:body>")]


@pytest.mark.parametrize("name", [name for name in SAMPLES if SAMPLES[name].startswith(b"PK")])
def test_members_without_text_are_copied_as_they_are_packed(name: str):
    out = shouted(name, SAMPLES[name])
    with zipfile.ZipFile(io.BytesIO(SAMPLES[name])) as old, zipfile.ZipFile(io.BytesIO(out)) as new:
        assert new.testzip() is None
        assert new.namelist() == old.namelist()
        changed = [it for it in old.namelist() if old.read(it) != new.read(it)]
        assert 1 <= len(changed) <= 3
        for info in old.infolist():
            other = new.getinfo(info.filename)
            assert (other.compress_type, other.date_time) == (info.compress_type, info.date_time)
            if info.filename not in changed:
                assert other.compress_size == info.compress_size


def test_word_shows_the_translation_with_its_runs():
    document = docx.Document(io.BytesIO(shouted("a.docx", SAMPLES["text.docx"])))
    assert document.paragraphs[0].text == "THE HEADING"
    runs = [(it.text, it.bold) for it in document.paragraphs[1].runs]
    assert runs == [
        ("HELLO ", None),
        ("BOLD", True),
        (" WORLD.", None),
        ("\n", None),
        ("AFTER", None),
    ]
    assert document.tables[0].cell(0, 1).text == "A CELL"
    header = document.sections[0].header
    assert header.paragraphs[0].text == "A HEADER"
    assert document.sections[0].first_page_header.is_linked_to_previous


def run(text: str, properties: str = "") -> str:
    return f"<w:r>{properties}<w:t>{text}</w:t></w:r>"


@pytest.mark.parametrize(
    ("paragraph", "found"),
    [
        # What python-docx does not show in the text of a paragraph.
        (f"<w:ins w:id='1'>{run('new')}</w:ins>", ["new"]),
        (f"<w:sdt><w:sdtPr/><w:sdtContent>{run('control')}</w:sdtContent></w:sdt>", ["control"]),
        (f"<w:smartTag>{run('smart')}</w:smartTag>", ["smart"]),
        (f"{run('a')}<w:moveTo>{run('moved')}</w:moveTo>", ["amoved"]),
        (f"{run('a')}<w:r><w:ruby><w:rubyBase>{run('b')}</w:rubyBase></w:ruby></w:r>", ["a"]),
        # What is no text.
        ("<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>" + run("left"), ["left"]),
        (f"<w:fldSimple w:instr='PAGE'>{run('page')}</w:fldSimple>", []),
        ("<w:pPr><w:rPr><w:b/></w:rPr></w:pPr>" + run("x y") + "<w:proofErr/>", ["x y"]),
        # Blanks at the ends that Word does not show.
        (run(" a ") + run("b"), ["ab"]),
        (
            "<w:r><w:t xml:space='preserve'>a </w:t><w:noBreakHyphen/><w:t>b</w:t></w:r>",
            ["a\u2011b"],
        ),
        (run("one") + "<w:r><w:tab/></w:r>" + run("two"), ["one", "two"]),
        (
            run("one") + "<w:bookmarkStart/>" + run("two", "<w:rPr><w:lang w:val='x'/></w:rPr>"),
            ["onetwo"],
        ),
    ],
)
def test_the_text_of_a_paragraph_is_what_the_page_shows(paragraph: str, found: list[str]):
    assert texts(f"<w:p>{paragraph}</w:p>") == found


def test_a_text_box_and_its_copy_are_translated_in_place():
    box = f"<w:txbxContent><w:p>{run('in a box')}</w:p></w:txbxContent>"
    body = f"<w:p>{run('before')}<w:r><w:pict>{box}</w:pict></w:r>{run('after')}</w:p>"
    assert texts(body) == ["beforeafter", "in a box"]
    out = body_of(shouted("a.docx", word(body)))
    assert out.index("BEFORE") < out.index("IN A BOX") < out.index("AFTER")
    assert out.count("<w:pict>") == 1


def test_a_field_is_one_code_and_a_link_is_a_pair():
    def field(instruction: str) -> str:
        char = "<w:r><w:fldChar w:fldCharType='{}'/></w:r>".replace("'", '"')
        code = f"<w:r><w:instrText> {instruction} </w:instrText></w:r>"
        return (
            char.format("begin")
            + code
            + char.format("separate")
            + run("shown")
            + char.format("end")
        )

    (page,) = read("a.docx", word(f"<w:p>{run('on page')}{field('PAGE')}</w:p>")).fragments[:-1]
    assert page.text == "on page"
    assert [it.kind for it in page.codes] == [0]
    (link,) = read("a.docx", word(f"<w:p>{run('see')}{field('HYPERLINK x')}</w:p>")).fragments[:-1]
    assert link.text == "seeshown"
    assert [it.kind for it in link.codes] == [1, -1]


@pytest.mark.parametrize(
    "properties",
    ['<w:rPr><w:b/><w:vertAlign w:val="superscript"/></w:rPr>', '<w:rPr baseline="-25000"/>'],
)
def test_a_superscript_without_letters_is_copied_with_its_word(properties: str):
    note = run("1,2", properties)
    document = read("a.docx", word(f"<w:p>{run('results')}{note}{run(': good.')}</w:p>"))
    fragment = document.fragments[0]
    assert fragment.text == "results: good."
    (code,) = fragment.codes
    assert code.is_word
    out = body_of(document.write([("Gute Ergebnisse", code, "."), None]))
    assert note in out
    assert re.sub("<[^>]*>", "", out) == "Gute Ergebnisse1,2."
    assert texts(f"<w:p>{run('20 m')}{run('2', properties)}</w:p>") == ["20 m"]
    assert texts(f"<w:p>{run('20 m')}{run('2', '<w:rPr><w:b/></w:rPr>')}</w:p>") == ["20 m2"]
    assert texts(f"<w:p>{run('the 5')}{run('th', properties)}</w:p>") == ["the 5th"]


def test_answers_may_move_runs():
    bold = "<w:rPr><w:b/></w:rPr>"
    document = read("a.docx", word(f"<w:p>{run('The dog ')}{run('barks', bold)}</w:p>"))
    fragment = document.fragments[0]
    assert fragment.parts[0] == "The dog" or fragment.text == "The dogbarks"
    opening, closing = fragment.codes
    out = body_of(document.write([(opening, "Bellen", closing, " tut < der"), None]))
    assert out == (
        f'<w:p><w:r>{bold}<w:t xml:space="preserve">Bellen</w:t></w:r>'
        '<w:r><w:t xml:space="preserve"> tut &lt; der</w:t></w:r></w:p>'
    )


def test_powerpoint_shows_titles_lines_and_notes():
    slide = pptx.Presentation(io.BytesIO(shouted("a.pptx", SAMPLES["show.pptx"]))).slides[0]
    assert [it.text for it in slide.shapes] == ["THE TITLE HERE", "FIRST\nSECOND"]
    assert slide.shapes.title.text_frame.paragraphs[0].runs[1].font.italic
    assert slide.notes_slide.notes_text_frame.text == "SOME NOTES"


def test_excel_keeps_formulas_numbers_and_the_headings_of_tables():
    book = openpyxl.load_workbook(io.BytesIO(shouted("a.xlsx", SAMPLES["sheet.xlsx"])))
    assert list(book.active.values) == [("Name", "Count"), ("A DOG", 3), (None, "=SUM(B2:B2)")]
    assert read("a.xlsx", SAMPLES["sheet.xlsx"]).notes == [
        "2 headings of tables are left as they are"
    ]


def test_writer_shows_paragraphs_spans_and_the_footnote_once():
    fragments = read("a.odt", SAMPLES["text.odt"]).fragments
    assert [it.text for it in fragments] == ["Head line", "Hello big world and more", "A foot note"]
    document = odfdo.Document(io.BytesIO(shouted("a.odt", SAMPLES["text.odt"])))
    assert document.body.get_span(0).text == "BIG"
    assert document.body.get_notes()[0].note_body.strip() == "A FOOT NOTE"


def test_deleted_text_comments_and_ruby_are_no_text():
    data = odt_file()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        xml = archive.read("content.xml").decode()
    start = xml.index("<text:h ")
    more = (
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        "<text:p>seen<office:annotation><text:p>comment</text:p></office:annotation>"
        "<text:s/>twice <text:page-number>7</text:page-number>"
        "<text:line-break/><text:a xlink:href='x'>next</text:a> link</text:p>"
    )
    data = with_member(data, "content.xml", (xml[:start] + more + xml[start:]).encode())
    found = read("a.odt", data)
    assert [it.text for it in found.fragments][:2] == ["seentwice ", "next link"]
    assert found.notes == ["comments are left as they are"]


def test_an_epub_has_its_pages_and_contents_translated():
    out = shouted("a.epub", SAMPLES["book.epub"])
    with zipfile.ZipFile(io.BytesIO(out)) as archive:
        assert archive.infolist()[0].filename == "mimetype"
        assert "ONE \u00c9T\u00c9 <em>TWO</em><br/>THREE" in archive.read("OPS/a b.xhtml").decode()
        assert b"<text>CHAPTER <tt>ONE</tt> TWO</text>" in archive.read("OPS/toc.ncx")


def test_a_page_of_an_epub_that_is_not_well_formed_is_read_as_html():
    data = epub_file("<html><body><p>Cats & dogs<br>and <b>mice</b></p></body></html>")
    document = read("a.epub", data)
    assert [it.text for it in document.fragments][:2] == ["Cats & dogs", "and mice"]
    (note,) = document.notes
    assert note.startswith("OPS/a b.xhtml is read as HTML: line 1, column ")


def archive_of(*names: str, **flags: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, b"<a/>")
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PK no archive", "the archive cannot be read"),
        (archive_of("../../etc/x"), "a member outside of it: '../../etc/x'"),
        (archive_of("/etc/x"), "a member outside of it"),
        (archive_of("C:\\x"), "a member outside of it"),
        (SAMPLES["text.docx"][:-400], "the archive cannot be read"),
    ],
)
def test_an_archive_that_is_none_or_leaves_its_folder_is_refused(data: bytes, message: str):
    with pytest.raises(FileError, match=re.escape(message)):
        read("a.docx", data)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.docx", "no word/document"),
        ("a.pptx", "no ppt/presentation"),
        ("a.xlsx", "no xl/workbook"),
        ("a.odt", "no content.xml"),
        ("a.epub", "no pages of an EPUB"),
    ],
)
def test_an_archive_of_another_format_is_refused(name: str, message: str):
    with pytest.raises(FileError, match=message):
        read(name, archive_of("mimetype"))


def test_a_member_that_is_there_twice_is_refused():
    with pytest.warns(UserWarning, match="Duplicate"):
        data = archive_of("a", "a")
    with pytest.raises(FileError, match="'a' twice"):
        read("a.docx", data)


def test_archives_that_unpack_to_too_much_are_refused(monkeypatch):
    monkeypatch.setattr(packages, "MAX_UNPACKED", 1000)
    with pytest.raises(FileError, match=r"unpacks to .* at most 1000 are read"):
        read("a.docx", SAMPLES["text.docx"])
    monkeypatch.setattr(packages, "MAX_UNPACKED", 1 << 30)
    monkeypatch.setattr(packages, "MAX_READ", 1000)
    with pytest.raises(FileError, match=r"document\.xml has more than 1000 bytes"):
        read("a.docx", SAMPLES["text.docx"])
    monkeypatch.setattr(packages, "MAX_MEMBERS", 3)
    with pytest.raises(FileError, match="at most 3 are read"):
        read("a.docx", SAMPLES["text.docx"])


def test_a_damaged_member_is_named_with_its_place():
    data = word("<w:p>")
    with pytest.raises(FileError, match=r"word/document.xml: line 1, column \d+: mismatched tag"):
        read("a.docx", data)
    bomb = '<!DOCTYPE html [<!ENTITY a "b">]><html><body>&a;</body></html>'
    with pytest.raises(FileError, match=r"OPS/a b\.xhtml: line 1: the file defines entities"):
        read("a.epub", epub_file(bomb))


def test_a_changed_byte_in_a_member_is_found():
    data = bytearray(SAMPLES["text.docx"])
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        data[archive.getinfo("word/document.xml").header_offset + 100] ^= 0xFF
    with pytest.raises(FileError, match=r"word/document\.xml: the member is damaged"):
        read("a.docx", bytes(data))


def test_codes_of_all_office_samples_survive():
    for name, data in SAMPLES.items():
        if data.startswith(b"PK"):
            assert answers_of(read(name, data))


@pytest.mark.parametrize(
    ("inside", "shown"),
    [
        ("<w:t>one</w:t><w:br/><w:t>two</w:t>", "ONE\nTWO"),
        ("<w:tab/><w:t>one</w:t>", "\tONE"),
        ("<w:t>one</w:t><w:tab/>", "ONE\t"),
        ("<w:t>one</w:t><w:br/><w:t>5</w:t><w:br/><w:t>two</w:t>", "ONE\n5\nTWO"),
        ("<w:drawing/><w:t>one</w:t><w:drawing/>", "ONE"),
    ],
)
def test_a_run_is_cut_at_breaks_and_drawings(inside: str, shown: str):
    out = shouted("a.docx", word(f"<w:p><w:r><w:rPr><w:b/></w:rPr>{inside}</w:r></w:p>"))
    (paragraph,) = docx.Document(io.BytesIO(out)).paragraphs
    assert paragraph.text == shown
    assert all(run.bold for run in paragraph.runs)
    assert body_of(out).count("<w:drawing/>") == inside.count("<w:drawing/>")


def test_runs_of_an_indented_file_keep_their_properties():
    body = "<w:p>\n <w:r>\n  <w:rPr>\n   <w:b/>\n  </w:rPr>\n  <w:t>one</w:t>\n </w:r>\n</w:p>"
    out = shouted("a.docx", word(body))
    (run,) = docx.Document(io.BytesIO(out)).paragraphs[0].runs
    assert (run.text, run.bold) == ("ONE", True)


def test_marks_of_the_spelling_checker_do_not_split_a_run():
    bold = "<w:rPr><w:b/></w:rPr>"
    parts = [run("see "), run("fo", bold), "<w:proofErr/>", run("ot", bold), run(" now")]
    (fragment,) = read("a.docx", word(f"<w:p>{''.join(parts)}</w:p>")).fragments[:-1]
    assert [it.kind for it in fragment.codes] == [1, -1]


def test_comments_stay_and_are_named():
    """They are remarks of authors to each other, unlike those of cells, which explain a sheet."""
    for name, member in {
        "text.docx": "word/comments.xml",
        "show.pptx": "ppt/comments/comment1.xml",
    }.items():
        data = io.BytesIO(SAMPLES[name])
        with zipfile.ZipFile(data, "a") as archive:
            archive.writestr(member, f"<w:comments {W}><w:p>{run('why?')}</w:p></w:comments>")
        document = read(name, data.getvalue())
        assert document.notes == ["comments are left as they are"]
        assert "why?" not in [it.text for it in document.fragments]
        with zipfile.ZipFile(io.BytesIO(shouted(name, data.getvalue()))) as archive:
            assert b"why?" in archive.read(member)
