"""HTML and XHTML: which text is found, and that everything else stays."""

from __future__ import annotations

import re

import pytest
from file_samples import HTML, answers_of, shouted
from linnet_files import FileError, read


def texts(page: str, name: str = "a.html") -> list[str]:
    return [it.text for it in read(name, page.encode()).fragments]


def test_the_text_of_a_page_is_found_once():
    assert texts(HTML) == [
        *("A & B", "All about it", "Hello big world, see this page.", "The link"),
        *("Next  line\xa0here .", "A dog", "All link"),
        *("Broken", "bold", "next", "end <tag> 5 < 6"),
    ]


def test_bytes_outside_of_the_text_stay():
    out = shouted("a.html", HTML.encode()).decode()
    tags = re.compile(r"<[a-zA-Z/!][^>]*>")
    old = [it for it in tags.findall(HTML) if "title=" not in it and "alt=" not in it]
    new = [it for it in tags.findall(out) if "title=" not in it and "alt=" not in it]
    assert [it for it in new if "content=" not in it] == [it for it in old if "content=" not in it]
    assert "<a href=\"x?a=1&b=2\" title='THE LINK'>THIS PAGE</a>.<br>NEXT <code>x = 1</code>" in out
    assert '<script>if (a<b) "</p>";</script>' in out
    assert "<pre>\n\nkeep  this\n</pre>" in out
    assert "<li translate=no>Not this</ul>" in out


def test_nested_inline_elements_are_one_sentence():
    """LibreTranslate translates each text node alone."""
    (fragment,) = read("a.html", b"<p>The <b>very <i>big</i></b> dog</p>").fragments
    assert fragment.text == "The very big dog"
    assert len(fragment.codes) == 4


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("<p>a &copy; b&#8203;c</p>", ["a \xa9 b\u200bc"]),
        ("<template><p>inside</p></template>", ["inside"]),
        ("<p translate=no>a <b>b</b></p><p>c</p>", ["c"]),
        ("<p translate=no>a<p>c", ["c"]),
        ("<p>call <span class='x notranslate'>Ann</span> now</p>", ["call  now"]),
        ("<button>Save</button> <input placeholder='Your name'>", ["Save", "Your name"]),
        ("<style>p {}</style><textarea>x</textarea><svg><text>y</text></svg>z", ["z"]),
        ("<title>a <b></title>", ["a <b>"]),
        ("<p title=one>1</p>", ["one", "1"]),
        ("<p>open <a href='x>never closed", ["open"]),
        ("<!-- <p>no</p> --><p>yes<!-- no --></p>", ["yes"]),
        ("", []),
    ],
)
def test_what_is_text(page: str, found: list[str]):
    assert texts(page) == found


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("<p>{% if a < 5 && b %}One{% else %}two{% endif %} go", ["One", "two go"]),
        ("<p>One {{ a && b }} two {{{ c }}}{{& d }}.", ["One  two ."]),
        ("<p>One <%= a > 1 %>two<% if b %> three<% end %>", ["One two three"]),
        ("<p>One <?php echo $a->b; ?> two", ["One  two"]),
        ("<p>One{% endif %}Two {{ open", ["One", "Two {{ open"]),
    ],
)
def test_tags_of_templates_stay_as_they_are(page: str, said: list[str]):
    assert texts(page) == said
    tag = re.compile(r"(\{\{\{?[^}]*\}+|\{%.*?%\}|<%.*?%>|<.*?>)")
    wanted = [it if tag.fullmatch(it) else it.upper() for it in tag.split(page)]
    if "php" not in page:
        assert shouted("a.html", page.encode()).decode() == "".join(wanted)
    else:
        assert b"<?php echo $a->b; ?>" in shouted("a.html", page.encode())


def test_attributes_are_escaped():
    document = read("a.html", b"""<img alt=dog><img alt=' a dog'><img alt="a cat">""")
    assert document.write([('1 > "0"',), ("it's",), ("it's",)]) == (
        b'<img alt="1 &gt; &quot;0&quot;"><img alt=\' it&#x27;s\'><img alt="it\'s">'
    )


def test_an_end_of_a_pair_stays_between_its_neighbours():
    page = "<div><b>one <p>two</b> three</p></div>"
    document = read("a.html", page.encode())
    assert [it.text for it in document.fragments] == ["one", "two", "three"]
    assert document.write(answers_of(document)).decode() == (
        "<div><b>ONE <p>TWO</b> THREE</p></div>"
    )


def test_no_breaking_space_at_the_ends_is_text():
    assert shouted("a.html", b"<p> &nbsp;a&nbsp; </p>") == b"<p> &#160;A&#160; </p>"


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("<?xml version='1.0'?>\n<p>a<b></p>", r"line 2, column 9: mismatched tag"),
        ('<?xml version="1.0"?><!DOCTYPE p [\n<!ENTITY a "b">]><p>&a;</p>', "line 2: .* entities"),
        ('<?xml version="1.0"?><!DOCTYPE p [<!ENTITY a SYSTEM "x">]><p>&a;</p>', "line 1: .* ent"),
    ],
)
def test_damaged_xhtml_and_entities_are_refused(page: str, message: str):
    with pytest.raises(FileError, match=message):
        read("a.xhtml", page.encode())


def test_xhtml_with_a_document_type_has_its_entities():
    page = (
        '<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" '
        '"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd"><p>a&nbsp;b</p>'
    )
    assert texts(page, "a.xhtml") == ["a\xa0b"]


@pytest.mark.parametrize("note", ["<sup>1,2</sup>", "<sub>2</sub>", "<SUP><a href=x>[1]</a></SUP>"])
def test_a_superscript_without_letters_is_copied(note: str):
    page = f"<p>water{note} and the 5<sup>th</sup> day."
    (fragment,) = read("a.html", page.encode()).fragments
    assert fragment.text == "water and the 5th day."
    assert [it.raw for it in fragment.codes] == [note, "<sup>", "</sup>"]
    assert shouted("a.html", page.encode()).decode() == (
        f"<p>WATER{note} AND THE 5<sup>TH</sup> DAY."
    )
