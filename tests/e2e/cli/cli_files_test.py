"""The command `linnet` with files, and with pipes that end at the wrong moment."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time

import pytest
from resources import has_open

TRANSLATE = ("translate", "--from", "en", "--to", "de", "--max-target-tokens", "6", "--beam", "1")
WORDS = (
    "a",
    "bird",
    "sings",
    "in",
    "the",
    "garden",
    "two",
    "dogs",
    "run",
    "over",
    "an",
    "old",
    "bridge",
)


def sentences(count: int) -> str:
    """Different lines, some of them blank."""
    lines = [
        "" if i % 17 == 5 else f"{WORDS[i % 13]} {WORDS[i * 7 % 13]} {WORDS[i * 5 % 11]}."
        for i in range(count)
    ]
    return "".join(f"{line}\n" for line in lines)


def complaints(stderr: str) -> str:
    """Drops the notes about answers: a random model rarely ends an answer before its limit."""
    return re.sub(
        r"^linnet: (.*: the answer was cut at the limit of target tokens"
        r"|\d+ of \d+ notes about answers are listed)\n",
        "",
        stderr,
        flags=re.M,
    )


def test_killed_and_resumed_runs_write_the_same_file(linnet_binary, environment, tmp_path):
    source, whole, torn = (tmp_path / name for name in ("source", "whole", "torn"))
    source.write_text(sentences(1500))
    command = [linnet_binary, *TRANSLATE, "--file", source, "-o"]
    subprocess.run([*command, whole], env=environment, check=True, timeout=120)
    wanted = whole.read_bytes()
    assert wanted.count(b"\n") == 1500
    kills = 0
    for _ in range(50):
        process = subprocess.Popen([*command, torn, "--resume"], env=environment)
        before = torn.stat().st_size if torn.exists() else 0
        goal = min(len(wanted), before + len(wanted) // 4)
        while process.poll() is None:
            if torn.exists() and torn.stat().st_size >= goal and kills < 4:
                process.kill()
                kills += 1
                break
            time.sleep(0.001)
        if process.wait() == 0:
            break
        with torn.open("ab") as file:  # and the system had written half a line
            file.write(b"half of a li")
    else:
        pytest.fail("not through after 50 attempts")
    assert kills >= 2
    assert torn.read_bytes() == wanted


def test_refused_line_keeps_its_place(linnet_binary, environment, tmp_path):
    texts = ["A bird sings.", "The bird sings. " * 600, "Two dogs run.", "", "In the garden."]
    lines = [json.dumps({"id": i, "text": text}) for i, text in enumerate(texts)]
    lines.insert(2, "no object")
    source, out = tmp_path / "source.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(f"{line}\n" for line in lines))
    command = [linnet_binary, "summarize", "--language", "en", "--max-target-tokens", "6"]

    def run(*flags: str) -> tuple[int, str]:
        done = subprocess.run(
            [*command, "--file", source, "-o", out, *flags],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.returncode, complaints(done.stderr)

    status, said = run("--jsonl")
    assert status == 3, said
    assert said.startswith(f"linnet: line 2 of {source}: text has ")
    assert said.endswith('2 of 5 texts were refused: there is an "error" in place of each answer\n')
    whole = out.read_bytes()
    records = [json.loads(line) for line in whole.splitlines()]
    assert [record.get("id") for record in records] == [0, 1, None, 2, 3, 4]
    assert [("error" in record, "summary" in record) for record in records] == [
        (i in (1, 2), i not in (1, 2)) for i in range(6)
    ]
    error = records[1]["error"]
    assert (error["code"], error["reason"]) == ("INVALID_ARGUMENT", "TEXT_TOO_LONG")
    assert error["message"].startswith("text has ")

    out.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]) + b'{"id": 2')
    assert run("--jsonl", "--resume")[0] == 1, "no record says from which input it was made"
    assert run("--jsonl", "--resume", "--force")[0] == 0, "an error counts as answered"
    assert out.read_bytes() == whole
    status, said = run("--jsonl", "--on-error", "stop")
    assert status == 64 + 3
    assert "\n  the same command with --resume --on-error skip continues after it\n" in said
    assert out.read_bytes().count(b"\n") == 1


def test_closed_pipe_ends_the_command_quietly(linnet_binary, environment):
    command = f"yes 'A bird sings.' | '{linnet_binary}' {' '.join(TRANSLATE)} | head -n 1"
    done = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.count("\n") == 1
    assert complaints(done.stderr) == ""


def test_full_disk_is_reported(linnet_binary, environment):
    done = subprocess.run(
        [linnet_binary, *TRANSLATE, "-o", "/dev/full", "A bird sings."],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert complaints(done.stderr) == "linnet: cannot write the output: No space left on device\n"


def test_line_of_a_pipe_with_a_name_is_answered_at_once(linnet_binary, environment, tmp_path):
    lines, out = tmp_path / "lines", tmp_path / "out"
    os.mkfifo(lines)
    process = subprocess.Popen(
        [linnet_binary, *TRANSLATE, "--file", lines, "-o", out], env=environment
    )
    with lines.open("w") as pipe:
        pipe.write("A bird sings.\n")
        pipe.flush()
        end = time.monotonic() + 60
        while not out.exists() or not out.read_text():
            assert time.monotonic() < end, "the writer may wait for the answer"
            time.sleep(0.01)
    assert process.wait(60) == 0


def test_interrupt_reports_progress_and_how_to_resume(linnet_binary, environment, tmp_path):
    out = tmp_path / "out"
    process = subprocess.Popen(
        [linnet_binary, *TRANSLATE, "-o", out],
        env=environment,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write("A bird sings.\n")
    process.stdin.flush()
    end = time.monotonic() + 60
    while not out.exists() or not out.read_text():
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 64 + 1
    assert complaints(process.stderr.read()) == (
        "linnet: CANCELLED: cancelled\n"
        "  1 text was answered before\n"
        "  the same command with --resume continues from there\n"
    )


@pytest.mark.parametrize(
    ("flags", "note"),
    [
        ((), ""),
        (("-o", "out"), ""),  # nothing is answered yet
        (("-o", "out", "--resume", "--force"), ""),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_waiting_for_a_pipe_that_nobody_writes_to(
    linnet_binary, environment, tmp_path, flags, note, number
):
    lines, out = tmp_path / "lines", tmp_path / "out"
    os.mkfifo(lines)
    if "--resume" in flags:
        out.write_text("Ein Vogel singt.\n")  # the wait is for the line that has this answer
    process = subprocess.Popen(
        [linnet_binary, *TRANSLATE, "--file", lines, *flags],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while not has_open(process.pid, lines):
        assert time.monotonic() < end, "the pipe is not opened"
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait(60) == 64 + 1
    assert complaints(process.stderr.read()) == f"linnet: CANCELLED: cancelled\n{note}"
    assert not out.exists() or out.read_text() in ("", "Ein Vogel singt.\n")
