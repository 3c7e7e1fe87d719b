"""Markdown, XLIFF, JSON, YAML and Android: keys, code, states and variables stay."""

from __future__ import annotations

import json

import pytest
import yaml
from file_samples import JSON, MARKDOWN, SAMPLES, XLIFF, answers_of, shouted
from linnet_files import FileError, Options, read
from lxml import etree
from markdown_it import MarkdownIt

RUSSIAN = Options(target="ru")


def test_markdown_keeps_all_but_the_text():
    out = shouted("a.md", MARKDOWN.encode()).decode()
    lines = out.splitlines()
    for kept in (
        *MARKDOWN.splitlines()[:4],
        "```sh",
        "echo code",
        "|--------|--------|",
        "[ref]: http://x.y",
    ):
        assert kept in lines
    assert "# THE *BIG* TITLE #" in lines
    assert (
        'A PARAGRAPH WITH `code`, A [LINK](http://x.y/a_b "T") AND ![AN IMAGE](a.png) THAT WRAPS '
        "**OVER LINES** AT <https://a.b> AND [REF][ref] OR [TEXT][ref].  "
    ) in lines
    assert r"A HARD BREAK & AN ENTITY & ESC \* STAR SNAKE_CASE[^1]." in lines
    assert "> A QUOTE GOES ON." in lines
    assert "- [ ] ITEM TWO MORE" in lines
    assert r"| A HEAD | B \| C |" in lines
    assert "| CELL `x` | TWO |" in lines
    assert '<p align="center">HTML TEXT</p>' in lines
    assert "[^1]: A FOOT NOTE WITH WORDS." in lines


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["[!NOTE]", "[!caution]", "[!WARNING]  ", "[!tip]-"])
def test_the_line_of_an_alert_stays(mark: str, ending: str):
    lines = [f"> {mark}", "> Useful *words*", "> to know.", "", f"- > {mark}", "  > Another one."]
    out = shouted("a.md", ending.join(lines).encode()).decode()
    wanted = [f"> {mark}", "> USEFUL *WORDS* TO KNOW.", "", f"- > {mark}", "  > ANOTHER ONE."]
    assert out == ending.join(wanted)
    titled = shouted("a.md", f"> {mark.strip()} A title\n> with text\n".encode()).decode()
    assert titled == f"> {mark.strip()} A TITLE\n> WITH TEXT\n"
    alone = f"> {mark}\n>\n> text\n"
    assert shouted("a.md", alone.encode()).decode() == alone.replace("text", "TEXT")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (":::note\nSome\ntext\n:::", ":::note\nSOME TEXT\n:::"),
        ("::: tip A title\ntext\n:::", "::: tip A TITLE\nTEXT\n:::"),
        ('!!! note "Title"\n    some\n    text', '!!! note "TITLE"\n    SOME TEXT'),
        ("Term\n: Some\n  text\n: More", "TERM\n: SOME TEXT\n: MORE"),
        ("{% if a %}\nsome\ntext\n{% endif %}", "{% if a %}\nSOME TEXT\n{% endif %}"),
        ("{{< note >}}\nsome\n{{ name }}\n{{< /note >}}",
         "{{< note >}}\nSOME {{ name }}\n{{< /note >}}"),
        ("$$\n\\int x dx\n$$\n\ntext", "$$\n\\int x dx\n$$\n\nTEXT"),
        ("a note: it\nis :smile: text", "A NOTE: IT IS :smile: TEXT"),
    ],
)  # fmt: skip
def test_lines_of_dialects_of_markdown_stay_lines(text: str, wanted: str):
    assert shouted("a.md", text.encode()).decode() == wanted


def test_the_quotes_of_a_title_are_no_text():
    title, text = read("a.md", b'!!! note "The title"\n    some text\n').fragments
    assert (title.text, text.text) == ("The title", "some text")


@pytest.mark.parametrize("reference", ["&nbsp;", "&#160;", "&#xA0;"])
@pytest.mark.parametrize("said", [" ", "\xa0"])
def test_a_no_break_space_comes_back_as_it_was_written(reference: str, said: str):
    document = read("a.md", f"Run 10{reference}km & **see §{reference}5**. 10 kg\n".encode())
    answers = answers_of(document, lambda it: it.replace("Run", "Lauf").replace("\xa0", said))
    written = document.write(answers).decode()
    assert written == f"Lauf 10{reference}km & **see §{reference}5**. 10 kg\n"


def test_markdown_has_the_same_blocks_afterwards():
    def shape(text: str) -> list[str]:
        tokens = MarkdownIt("commonmark").enable("table").parse(text)
        kinds = [it.type for token in tokens for it in (token, *(token.children or []))]
        return [it for it in kinds if it not in ("text", "softbreak", "text_special")]

    assert shape(shouted("a.md", MARKDOWN.encode()).decode()) == shape(MARKDOWN)


@pytest.mark.parametrize(
    "text", ["1. x", "# x", "- x", "> x", "a *b* [c] `d`", "a <b>", "_a_ b_c", "x | y"]
)
def test_an_answer_that_looks_like_markdown_is_text(text: str):
    document = read("a.md", b"| a |\n|---|\n| word |\n\nword\n")
    out = document.write([None, (text,), (text,)]).decode()
    tokens = MarkdownIt("commonmark").enable("table").parse(out)
    shown = ["".join(it.content for it in token.children) for token in tokens if token.children]
    assert shown == ["a", text, text]


def test_json_keeps_keys_numbers_and_what_programs_read():
    out = json.loads(shouted("a.json", JSON.encode()))
    assert out["a"] == {
        "title": "HELLO {{name}}",
        "n": 3,
        "url": "https://x.y/z",
        "a.b": ["ONE TWO", "x.y"],
    }
    assert out["icu"] == "{n, plural, one {# x} other {# y}}"
    assert read("a.json", JSON.encode()).notes == [
        "icu: a message with plural or select is left as it is"
    ]


def test_plural_keys_of_the_target_are_added():
    out = json.loads(shouted("a.json", JSON.encode(), RUSSIAN))
    assert {it: out[it] for it in out if it.startswith("item_")} == {
        "item_one": "{{count}} ITEM", "item_other": "{{count}} ITEMS",
        "item_few": "{{count}} ITEMS", "item_many": "{{count}} ITEMS",
    }  # fmt: skip
    assert "item_few" not in json.loads(shouted("a.json", JSON.encode(), Options(target="de")))
    root = etree.fromstring(shouted("a.xml", SAMPLES["strings.xml"], RUSSIAN))
    items = {it.get("quantity"): it.text for it in root.iterfind("plurals/item")}
    assert items == {"one": "%d DOG", "other": "%d DOGS", "few": "%d DOGS", "many": "%d DOGS"}


@pytest.mark.parametrize(
    "value",
    [
        *("a_b", "x.y.z", "/usr/bin", "#ff0000", "12px", "camelCase", "2026-01-01"),
        *("%d %b %Y", "%-d.%m.", ":year", "rtl"),
    ],
)
def test_values_that_programs_read_are_no_text(value: str):
    assert not read("a.json", json.dumps([value]).encode()).fragments


def test_yaml_keeps_comments_anchors_quotes_and_blocks():
    data = SAMPLES["values.yaml"]
    out = shouted("a.yaml", data).decode()
    assert "title: &t HELLO WORLD   # end comment\n  alt: *t\n  quoted: 'IT''S %{name}'" in out
    assert "    SECOND LINE.\n\n  # comment after\n  folded: >-\n    FOLDED TEXT GOES ON\n" in out
    assert 'double: "TAB\\tCAF\u00c9"' in out
    old, new = yaml.safe_load(data)["en"], yaml.safe_load(out)["en"]
    assert new["alt"] == new["title"] == "HELLO WORLD"
    assert list(new) == list(old)
    assert new["list"] == ["ONE TWO", "THREE: FOUR"]
    assert new["literal"] == old["literal"].upper()
    assert new["folded"] == old["folded"].upper()
    assert new["number"] == 3


@pytest.mark.parametrize(
    "text", ["yes", "3", "a: b", "a # b", "- a", "[a", "null", "@a", "a, b", "", " a", "a:"]
)
@pytest.mark.parametrize(
    "style", ["k: word", "k: [word]", "k: 'word'", 'k: "word"', "k: |\n  word\n"]
)
def test_an_answer_that_looks_like_yaml_is_text(text: str, style: str):
    document = read("a.yaml", style.encode())
    value = yaml.safe_load(document.write([(text,)]))["k"]
    expected = text.strip() + "\n" if "|" in style and text else text
    assert (value[0] if isinstance(value, list) else value) == expected


def test_yaml_aliases_do_not_expand():
    """Nine levels of nine aliases stand for 387 million values."""
    lines = ["a0: &a0 [two words]"]
    lines += [f"a{it}: &a{it} [{', '.join([f'*a{it - 1}'] * 9)}]" for it in range(1, 10)]
    assert len(read("a.yaml", "\n".join(lines).encode()).fragments) == 1


def test_xliff_fills_targets_and_keeps_the_rest():
    out = shouted("a.xlf", XLIFF.encode(), Options(target="de"))
    root = etree.fromstring(out)
    space = {"x": root.nsmap[None]}
    units = {it.get("id"): it for it in root.iterfind(".//x:trans-unit", space)}
    targets = {name: it.find("x:target", space) for name, it in units.items()}
    assert root[0].get("target-language") == "de"
    assert b'<target>HELLO <g id="1">BIG <x id="2"/></g> <ph id="3">%s</ph> WORLD</target>' in out
    assert targets["2"].get("state") == "translated"
    assert b'<target state="translated">A <bpt id="1">[</bpt>B<ept id="1">]</ept></target>' in out
    assert targets["3"].text == "done"
    assert targets["4"] is None
    assert targets["5"].text == "WORD"
    assert units["1"].find("x:note", space).text == "a note"


def test_the_blank_between_two_inline_elements_stays():
    """lxml drops it when it removes blank text."""
    text = '<g id="1">a</g> <g id="2">b</g>'
    data = XLIFF.replace("word", text).encode()
    assert f"<target>{text.replace('a<', 'A<').replace('b<', 'B<')}</target>" in (
        shouted("a.xlf", data).decode()
    )


def test_xliff_2_fills_segments():
    out = shouted("a.xlf", SAMPLES["version2.xliff"], Options(target="de")).decode()
    assert 'srcLang="en" trgLang="de">' in out
    assert (
        '\n<target>SEE <pc id="1">THE <mrk id="m" translate="no">Foo</mrk></pc> AT <ph id="2"/>'
        " &amp; NOW.</target>"
    ) in out
    assert out.count("<target>") == 1


def test_a_target_that_equals_its_source_is_written():
    document = read("a.xlf", XLIFF.encode())
    assert b"<target>word</target>" in document.write([None, None, ("word",)])


def test_tags_in_a_text_of_xliff_are_codes():
    """Weblate and others keep the HTML of a page as text; Angular has a line break as <x>."""
    source = (
        "&lt;p&gt;a %@ &amp;amp; b&lt;/p&gt;&lt;br&gt;c   d<![CDATA[<i>e</i>]]>"
        '<x id="L" ctype="lb"/>'
    )
    text = (
        '<xliff version="1.2"><file source-language="en" target-language="de"><body>'
        f'<trans-unit id="1"><source>{source}</source></trans-unit></body></file></xliff>'
    )
    (fragment,) = read("a.xlf", text.encode()).fragments
    assert fragment.text == "a   bc   de"
    assert [it.raw for it in fragment.codes if it.is_break] == ["&lt;br&gt;"]
    out = shouted("a.xlf", text.encode()).decode()
    kept = text.replace("<source>", '<source xml:space="preserve">One %@\n two')
    (fragment,) = read("a.xlf", kept.encode()).fragments
    assert [it.raw for it in fragment.codes if it.is_break] == ["\n ", "&lt;br&gt;"]
    said = "&lt;p&gt;A %@ &amp;amp; B&lt;/p&gt;&lt;br&gt;C   D&lt;i&gt;E&lt;/i&gt;"
    assert f'<target>{said}<x id="L" ctype="lb"/></target>' in out


def test_messages_with_several_forms_stay_and_are_told():
    """Angular, Lingui and others keep ICU messages in catalogues."""
    message = "{n, plural, one {one dog} other {# dogs}}"
    files = {
        "a.po": f'msgid "{message}"\nmsgstr ""\n',
        "a.xml": f'<resources><string name="a">{message}</string></resources>',
        "a.xlf": '<xliff version="1.2"><file source-language="en" target-language="de"><body>'
        '<trans-unit id="1"><source>{VAR_PLURAL, plural, =1 {one} other {<x id="I"/> dogs}}'
        "</source></trans-unit></body></file></xliff>",
    }
    for name, text in files.items():
        document = read(name, text.encode(), Options(target="de"))
        assert document.fragments == []
        assert document.write([]).decode() == text
        assert [it.partition(": ")[2] for it in document.notes] == [
            "a message with plural or select is left as it is"
        ]


def test_a_line_end_that_is_written_out_is_no_part_of_a_word():
    (fragment,) = read("a.json", rb'{"a": "One\\nTwo\\tthree \\newline \\r\\nFour"}').fragments
    assert [it.raw for it in fragment.codes] == [r"\n", r"\tthree", r"\newline", r"\r", r"\n"]
    assert fragment.text == "OneTwo  Four"


def test_lines_and_characters_of_android_are_no_part_of_a_word():
    text = (
        r'<resources><string name="a">First <b>line</b>.\nSecond\tcaf\u00e9.\n\n\u0020end\u0020'
        r"</string><string name='b'><![CDATA[one\ntwo]]></string></resources>"
    )
    assert [it.text for it in read("a.xml", text.encode()).fragments] == [
        *("First line.", "Secondcaf\u00e9.", "", "end", "one", "two"),
    ]
    out = shouted("a.xml", text.encode()).decode()
    assert out == text.replace("First", "FIRST").replace("line<", "LINE<").replace(
        r"Second\tcaf\u00e9", "SECOND\\tCAF\u00c9"
    ).replace("end", "END").replace("one", "ONE").replace("two", "TWO")


def test_quotes_around_a_string_of_android_stay():
    text = '<resources><string name="a"> "  It\\\'s a  \\"dog\\" "</string></resources>'
    out = shouted("a.xml", text.encode()).decode()
    assert out == text.replace("It", "IT").replace("s a  ", "S A  ").replace("dog", "DOG")


def test_android_escapes_quotes_and_keeps_placeholders():
    document = read("a.xml", SAMPLES["strings.xml"])
    (first, *_) = document.fragments
    assert first.text == "Don't do  & "
    out = document.write([('it\'s "5 < 6" & @',), *[None] * (len(document.fragments) - 1)])
    assert rb"""<string name="a">it\'s \"5 &lt; 6\" &amp; @</string>""" in out
    assert b"<![CDATA[<p>HI %s</p>]]>" in shouted("a.xml", SAMPLES["strings.xml"])


def test_android_keeps_spaces_that_do_not_break():
    text = "<resources><string name='a'>Prix\u00a0:\n  10\u202f000</string></resources>"
    (fragment,) = read("a.xml", text.encode()).fragments
    assert fragment.text == "Prix\u00a0: 10\u202f000"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '{"a": "b",}', "line 1, column 11: Illegal trailing comma|line 1, column 11"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.yaml", "a: [b\nc: d", "line 2, column 2: "),
        ("a.yaml", "a: *b", "line 1, column 4: found undefined alias"),
        ("a.xlf", "<tmx/>", "the root element is not <xliff>"),
        ("a.xml", "<manifest/>", "the root element is not <resources>"),
        ("a.xml", "<resources>", "line 1, column 11: no element found"),
    ],
)
def test_damaged_values_are_refused_with_their_place(name: str, text: str, message: str):
    with pytest.raises(FileError, match=message):
        read(name, text.encode())


def test_every_sample_gives_codes_back():
    for name in ("page.md", "values.json", "values.yaml", "strings.xml", "version1.xlf"):
        assert answers_of(read(name, SAMPLES[name]))


def test_the_state_of_a_segment_is_that_of_its_target():
    out = shouted("a.xlf", SAMPLES["version2.xliff"]).decode()
    assert '<segment state="translated">\n<source>See ' in out
    head = '<xliff version="2.0" srcLang="en"><file id="f"><unit id="u"><segment state="initial">'
    text = f"{head}<source>a b</source><target>a b</target></segment></unit></file></xliff>"
    assert shouted("a.xlf", text.encode()).decode() == text.replace(
        "initial", "translated"
    ).replace("<target>a b", "<target>A B")


def test_notes_for_translators_are_no_text():
    """Of messages of web extensions, and of ARB."""
    message = {"message": "Open $FILE$", "description": "a menu", "placeholders": {}}
    text = json.dumps({"open": message, "quit": {"message": "Quit"}})
    assert [it.place for it in read("a.json", text.encode()).fragments] == [
        *("open.message", "quit.message"),
    ]
    assert len(read("a.json", text.replace("placeholders", "x").encode()).fragments) == 3
    arb = {"@@locale": "en", "title": "Title", "@title": {"description": "a heading"}}
    assert [it.place for it in read("a.arb", json.dumps(arb).encode()).fragments] == ["title"]


def test_a_word_with_a_hyphen_stays_whole_where_a_line_is_wrapped():
    text = "the lines of this text were wrapped so \nthat twenty-five of them make a page"
    said = json.loads(shouted("a.json", json.dumps(text).encode()))
    assert said == "THE LINES OF THIS TEXT WERE WRAPPED SO\nTHAT TWENTY-FIVE OF THEM MAKE A PAGE"
    narrow = "a text that is wrapped where it says voulez-vous\nand so on and on"
    said = json.loads(shouted("a.json", json.dumps(narrow).encode()))
    assert said.replace("\n", " ") == narrow.replace("\n", " ").upper()
