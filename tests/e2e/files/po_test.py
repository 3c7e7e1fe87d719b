"""PO and POT, against msgfmt and polib."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import polib
import pytest
from file_samples import PO, POT, answers_of, shouted
from linnet_files import FileError, Options, read
from linnet_files.formats.plurals import numbers, rule_of

HEADER = PO[: PO.index("#: a file.c")]


def msgfmt(data: bytes, path: Path) -> str:
    """What msgfmt -c complains about. Skips the test if there is no msgfmt."""
    program = shutil.which("msgfmt")
    if program is None:
        pytest.skip("msgfmt is not installed (Debian: gettext)")
    path.write_bytes(data)
    command = [program, "-c", "-o", "/dev/null", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def entry(text: str, **options: str) -> polib.POEntry:
    document = read("a.po", (HEADER + text).encode(), Options(**options))
    return polib.pofile(document.write(answers_of(document)).decode())[0]


def test_only_empty_entries_change():
    out = shouted("a.po", PO.encode()).decode()
    old, new = polib.pofile(PO), polib.pofile(out)
    assert [it.flags for it in new] == [it.flags for it in old]
    assert out.startswith(HEADER)
    assert new.find("done").msgstr == "fertig"
    assert out.endswith('#~| msgid "older"\n#~ msgid "gone"\n#~ msgstr "weg"\n# the end\n')
    assert 'msgstr "CANNOT OPEN %s: %d ERRORS 100%%"' in out
    assert 'msgstr "_SAVE AS"' in out
    assert r'msgstr "RING\a THE BELL"' in out
    assert r'"  -h, --help   SHOW {name} THIS HELP\n"' in out


def test_all_entries_on_request():
    document = read("a.po", PO.encode(), Options(all_entries=True))
    assert polib.pofile(document.write(answers_of(document)).decode()).find("done").msgstr == "DONE"


@pytest.mark.parametrize("language", ["de", "ru", "ar", "fr", "ja", "sl", "cs", "pl", "xx"])
def test_plurals_follow_the_rule_of_the_target(language: str, tmp_path: Path):
    text = POT.replace("{count} day", "{count} day")
    out = shouted("a.pot", text.encode(), Options(target=language))
    assert not msgfmt(out, tmp_path / "a.po")
    (found,) = polib.pofile(out.decode())
    forms = numbers(rule_of(language))
    assert len(found.msgstr_plural) == len(forms)
    for number, counted in enumerate(forms):
        assert found.msgstr_plural[number] == ("{count} DAY" if 1 in counted else "{count} DAYS")


def test_a_form_for_several_numbers_keeps_its_number(tmp_path: Path):
    """msgfmt -c refuses a Russian form 0 without the number: it stands for 21 as well."""
    text = PO.replace("nplurals=2; plural=(n != 1);", rule_of("ru"))
    out = shouted("a.po", text.encode())
    assert not msgfmt(out, tmp_path / "a.po")
    found = polib.pofile(out.decode()).find("One file")
    assert found.msgstr_plural == {0: "%d FILES", 1: "%d FILES", 2: "%d FILES"}
    german = polib.pofile(shouted("a.po", PO.encode()).decode()).find("One file")
    assert german.msgstr_plural == {0: "ONE FILE", 1: "%d FILES"}


def swapped(text: str, flags: str) -> str:
    document = read("a.po", f'{HEADER}\n#, {flags}\nmsgid "{text}"\nmsgstr ""\n'.encode())
    (fragment,) = document.fragments
    codes = fragment.codes
    answer = (codes[1], " in ", codes[0])
    return polib.pofile(document.write([answer]).decode())[0].msgstr


def test_variables_in_another_order_get_numbers_or_the_old_order():
    assert swapped("%s has %d", "c-format") == "%2$d in %1$s"
    assert swapped("%(a)s has %(b)d", "python-format") == "%(b)d in %(a)s"
    assert swapped("%(a)r has %(b)5.2f", "python-format") == "%(b)5.2f in %(a)r"
    assert swapped("{a} has {b}", "python-brace-format") == "{b} in {a}"
    assert swapped("%s has %d", "python-format").count("%s") == 1
    assert swapped("%s has %d", "python-format").index("%s") < swapped(
        "%s has %d", "python-format"
    ).index("%d")


def test_a_percent_sign_that_the_answer_adds_is_doubled_in_formats(tmp_path: Path):
    text = f'{HEADER}\n#, c-format\nmsgid "%d percent"\nmsgstr ""\n'
    document = read("a.po", text.encode())
    out = document.write([(*document.fragments[0].codes, " %")])
    assert polib.pofile(out.decode())[0].msgstr == "%d %%"
    assert not msgfmt(out, tmp_path / "a.po")


def test_the_header_of_a_template_is_filled(tmp_path: Path):
    out = shouted("a.pot", POT.encode(), Options(target="pt-BR"))
    assert polib.pofile(out.decode()).metadata["Language"] == "pt_BR"
    assert b"charset=UTF-8" in out
    assert b"CHARSET" not in out


def test_the_charset_changes_with_the_bytes():
    text = HEADER.replace("UTF-8", "ISO-8859-1") + 'msgid "name"\nmsgstr ""\n'
    document = read("a.po", text.encode("latin-1"))
    out = document.write([("\u0438\u043c\u044f",)])
    assert b"charset=UTF-8" in out
    assert polib.pofile(out.decode())[0].msgstr == "\u0438\u043c\u044f"


def test_wrapped_sentences_are_joined_and_lists_are_not():
    text = 'msgid "a line that\\n"\n"goes on\\n"\n"- first\\n"\n"- second\\n"\nmsgstr ""\n'
    document = read("a.po", (HEADER + text).encode())
    assert [it.text for it in document.fragments] == ["a line that goes on", "- first", "- second"]
    assert entry(text).msgstr == "A LINE THAT GOES ON\n- FIRST\n- SECOND\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('msgid "a\nmsgstr ""\n', "line 1: .* is not a string in double quotes"),
        ('msgid "a"\nwhat\n', "line 2: 'what' is neither a keyword, a string nor #"),
        ('msgid "a"\nmsgid "b"\nmsgstr ""\n', "line 1: the entry has no msgid or no msgstr"),
        ('msgid "a"\nmsgstr ""\nmsgstr "c"\n', "line 3: the entry has msgstr twice"),
    ],
)
def test_a_damaged_catalogue_is_refused_with_its_line(text: str, message: str):
    with pytest.raises(FileError, match=message):
        read("a.po", text.encode())
