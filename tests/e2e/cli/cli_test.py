"""The command `linnet` against the real server: its output agrees with the API."""

from __future__ import annotations

import functools
import json
import os
import pty
import re
import subprocess

import pytest

LONG = "The bird sings in the garden.  " * 300  # the tiny summariser reads 1024 tokens


@pytest.fixture
def linnet(run_linnet, server):
    return functools.partial(run_linnet, server)


def test_score_command_equals_the_api(linnet, server):
    pairs = [("A bird sings.", "Ein Vogel singt."), ("A bird sings.", "Das Haus.")]
    done = linnet("score", "--to", "de", stdin="".join(f"{s}\t{t}\n" for s, t in pairs))
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [target for _, target in lines] == [target for _, target in pairs]
    together = linnet("score", "--to", "de", "A bird sings.", *(target for _, target in pairs))
    assert together.stdout == done.stdout
    for (score, _), (source, target) in zip(lines, pairs, strict=True):
        request = server.api.ScoreRequest(
            pairs=[{"source_text": source, "target_text": target}],
            source_language_code="en",
            target_language_code="de",
        )
        said = server.method("Score")(request, timeout=60).scores[0].score
        assert float(score) == pytest.approx(said, abs=6e-5)  # four digits are shown


def test_detect_command_works_line_by_line(linnet):
    lines = ["The dog runs across the street.", "Der Hund läuft über die Straße.", "12345"]
    done = linnet("detect", "--lines", stdin="".join(f"{line}\n" for line in lines))
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == ["en", "de", "und"]
    assert [row[2] for row in rows] == lines


def test_models_command_shows_checksum_and_defaults(linnet, server):
    model = server.method("GetModel")(server.api.GetModelRequest(name="en-de"), timeout=10).model
    done = linnet("models", "en-de")
    assert done.returncode == 0, done.stderr
    assert f"sha256          {model.sha256}\n" in done.stdout
    assert f"  beam_size             {model.default_options.beam_size}\n" in done.stdout
    shown = json.loads(linnet("models", "--json", "en-de").stdout)
    assert shown["sha256"] == model.sha256


def test_word_scores_follow_their_answer(linnet, server):
    text = "A bird sings."
    answer = server.translate(text, word_scores=True).translations[0]
    done = linnet("translate", "--to", "de", "--word-scores", text)
    assert done.returncode == 0, done.stderr
    said, words = done.stdout.rstrip("\n").rsplit("\n", 1)
    assert said == answer.text
    assert words.count("%") >= len(answer.segments[0].words) > 0


def test_long_input_flag_is_obeyed(linnet):
    limit = ("--max-target-tokens", "9")
    refused = linnet("summarize", *limit, stdin=LONG)
    assert refused.returncode == 64 + 3
    assert "reason TEXT_TOO_LONG" in refused.stderr
    in_chunks = linnet("summarize", *limit, "--long-input", "chunk", "--json", stdin=LONG)
    assert in_chunks.returncode == 0, in_chunks.stderr
    assert len(json.loads(in_chunks.stdout)["summaries"][0]["segments"]) > 1
    cut = linnet("summarize", *limit, "--long-input", "truncate", stdin=LONG)
    assert cut.returncode == 0
    assert re.search(r"standard input: .*only the first \d+ bytes were read", cut.stderr)


def test_wished_length_is_obeyed(linnet):
    text = "The dog runs across the street and barks at a cat."
    done = linnet("summarize", "--summary-words", "3", stdin=text)
    assert done.returncode == 0, done.stderr
    assert 0 < len(done.stdout.split()) <= 3
    refused = linnet("summarize", "--summary-words", "0", stdin=text)
    assert refused.returncode == 64 + 3
    assert "--summary-words: is 0, it must be from 1 to" in refused.stderr
    both = linnet("summarize", "--summary-words", "3", "--summary-sentences", "1", stdin=text)
    assert both.returncode != 0
    assert "--summary-words" in both.stderr


def test_request_id_and_labels_are_logged(linnet, server):
    flags = ("--request-id", "cli-test-17", "--label", "team=news", "--priority", "batch")
    assert linnet("translate", "--to", "de", *flags, "A bird sings.").returncode == 0
    lines = [line for line in server.log.read_text().splitlines() if "cli-test-17" in line]
    assert any("news" in line for line in lines), lines
    refused = linnet("translate", "--from", "en", "--to", "tlh", *flags, "A bird sings.")
    assert refused.returncode == 64 + 5
    assert "\n  request cli-test-17\n" in refused.stderr


def on_a_terminal(command: list[str], server: str) -> tuple[int, str]:
    """Exit status and screen of a command whose output is a terminal."""
    try:
        ours, terminal = pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal can be had here ({error}): is /dev/pts mounted?")
    process = subprocess.Popen(
        command,
        env={**os.environ, "LINNET_SERVER": server},
        stdin=subprocess.DEVNULL,
        stdout=terminal,
    )
    os.close(terminal)
    screen = b""
    while True:
        try:
            read = os.read(ours, 1 << 16)
        except OSError:  # Linux's error when the other side is closed
            read = b""
        if not read:
            break
        screen += read
    os.close(ours)
    return process.wait(60), screen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("command", [["translate", "--to", "de"], ["summarize"]])
def test_final_terminal_output_equals_pipe_output(linnet, linnet_binary, server, command):
    texts = ["A bird sings.  Two dogs run.", "The last line."]
    limit = ["--max-target-tokens", "20"]
    piped = linnet(*command, *limit, *texts)
    assert piped.returncode == 0, piped.stderr
    status, screen = on_a_terminal([str(linnet_binary), *command, *limit, *texts], server.grpc)
    assert status == 0
    assert screen == piped.stdout


def test_alignments_flag_shows_aligned_words(linnet, server):
    text = "A bird sings."
    answer = server.translate(text, alignments=True).translations[0]
    done = linnet("translate", "--to", "de", "--alignments", text)
    assert done.returncode == 0, done.stderr
    said, *lines = done.stdout.splitlines()
    assert said == answer.text
    words = answer.segments[0].word_alignments
    assert len(lines) == len({word.target_begin for word in words}) > 0
    first = words[0]
    target = answer.text.encode()[first.target_begin : first.target_end].decode()
    source = text[first.source_begin : first.source_end]
    assert lines[0].split("  ")[1] == target
    assert f"  {source} {100 * first.weight:.0f}%" in lines[0]
