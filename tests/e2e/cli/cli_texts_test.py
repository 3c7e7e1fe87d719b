"""The command `linnet` with byte order marks, long documents, glossaries and other languages."""

from __future__ import annotations

import json
import subprocess

import pytest

SENTENCES = ("a bird sings.", "two dogs run.", "the garden is old.")


@pytest.fixture
def run(linnet_binary, server, tmp_path):
    def call(*arguments: str, text: str | bytes = b"", status: int = 0) -> tuple[str, str]:
        done = subprocess.run(
            [linnet_binary, *arguments],
            input=text.encode() if isinstance(text, str) else text,
            env={"LINNET_SERVER": server.grpc, "HOME": str(tmp_path), "PATH": ""},
            capture_output=True,
            timeout=120,
        )
        assert done.returncode == status, done.stderr.decode()
        return done.stdout.decode(), done.stderr.decode()

    return call


def test_byte_order_mark_is_skipped(run, server):
    lines = "".join(f"{text}\r\n" for text in SENTENCES)
    plain, _ = run("translate", "--to", "de", text=lines)
    marked, _ = run("translate", "--to", "de", text="\ufeff" + lines)
    assert marked == plain
    answer = server.translate("\ufeff" + SENTENCES[0]).translations[0]
    assert answer.text == "\ufeff" + server.translate(SENTENCES[0]).translations[0].text
    summary = server.summarize("\ufeff" + SENTENCES[0]).summaries[0]
    assert summary.text == server.summarize(SENTENCES[0]).summaries[0].text


def test_white_space_of_unicode_is_its_own_answer(run):
    """Without a table of the property, a line of it ends a run: the server refuses it as EMPTY."""
    blank = [c for c in map(chr, range(0x110000)) if c.isspace() and c not in "\n\x1c\x1d\x1e\x1f"]
    lines = [SENTENCES[0], *blank, "\ufeff\u3000", SENTENCES[1]]
    said, _ = run("translate", "--to", "de", text="".join(f"{line}\n" for line in lines))
    answers = [run("translate", "--to", "de", text)[0].removesuffix("\n") for text in SENTENCES[:2]]
    assert said.split("\n") == [answers[0], *blank, "\ufeff\u3000", answers[1], ""]


def test_source_language_defaults_to_the_only_one(run, server):
    short, _ = run("translate", "--to", "de", "Hello.")
    assert short == run("translate", "--from", "en", "--to", "de", "Hello.")[0]
    _, said = run("translate", "--to", "tlh", "Hello.", status=64 + 5)
    assert "translates to tlh" in said


def test_document_in_parts_equals_a_single_call(run):
    """1,400 lines are two parts of 64 KiB; each line is translated as if it were alone."""
    lines = [f"{SENTENCES[number % 3]} number {number % 7}" + " " * 30 for number in range(1400)]
    flags = ("--beam", "1", "--max-target-tokens", "6", "--from", "en", "--to", "de")
    text = "".join(f"{line}\n" for line in lines)
    assert len(text) > 65536
    whole, _ = run("translate", *flags, "--document", text=text)
    distinct = sorted(set(lines))
    alone, _ = run("translate", *flags, text="".join(f"{line}\n" for line in distinct))
    answers = dict(zip(distinct, alone.splitlines(), strict=True))
    assert whole.splitlines() == [answers[line] for line in lines]


def test_glossary_file_is_applied(run, tmp_path):
    terms = tmp_path / "terms.tsv"
    terms.write_text("\ufeffbird\tFink\ngarden\n")
    said, _ = run(
        *("translate", "--to", "de", "--from", "en", "--glossary", str(terms), "--beam", "4"),
        *("--json", "the bird in the garden."),
    )
    met = json.loads(said)["translations"][0]["segments"][0]["glossary_terms"]
    assert [term["entry"] for term in met] == [0, 1]
    assert all(term["met"] for term in met)


def test_error_names_the_flag(run):
    _, said = run("translate", "--to", "de", "--beam", "9999", "Hello.", status=64 + 3)
    assert "--beam: " in said
    assert "beam_size" not in said


def test_text_in_another_language_gets_a_warning(run, server):
    arabic = "ذهب الأولاد إلى المدرسة في الصباح الباكر."
    flags = ("--from", "en", "--to", "de", "--max-target-tokens", "6")
    _, said = run("translate", *flags, text=f"{SENTENCES[0]}\n{arabic}\n")
    first, second = said.splitlines()  # a random model writes up to the limit
    assert "reads" not in first
    assert 'line 2 of standard input: text seems to be in "ar", model "en-de" reads "en"' in second
    answer, _ = run("translate", *flags, "--json", arabic)
    (warning,) = json.loads(answer)["translations"][0]["warnings"]
    assert warning["reason"] == "LANGUAGE_MISMATCH"
    assert warning["metadata"]["detectedLanguage"] == "ar"


def test_server_can_reject_text_in_another_language(start, linnet_binary):
    strict = start("--language-check", "refuse")
    command = [linnet_binary, "translate", "--from", "en", "--to", "de"]
    german = "Die Kinder gehen früh am Morgen zur Schule."
    done = subprocess.run(
        [*command, german], env={"LINNET_SERVER": strict.grpc}, capture_output=True, text=True
    )
    assert done.returncode == 64 + 3
    assert 'text seems to be in "de", model "en-de" reads "en"' in done.stderr
