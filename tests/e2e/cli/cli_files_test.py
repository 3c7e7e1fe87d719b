"""The command `linnet` with files, with pipes that end at the wrong moment, and on a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

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


@pytest.fixture
def environment(server, tmp_path):
    """The environment with an empty home directory."""
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    return {**kept, "LINNET_SERVER": server.grpc, "HOME": str(home), "TERM": "xterm"}


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
        r"|and more answers like these)\n",
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


def test_interrupt_ends_waiting_for_a_pipe_that_nobody_writes_to(
    linnet_binary, environment, tmp_path
):
    lines = tmp_path / "lines"
    os.mkfifo(lines)
    process = subprocess.Popen(
        [linnet_binary, *TRANSLATE, "--file", lines],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while not any(os.path.samefile(file, lines) for file in open_files(process.pid)):
        assert time.monotonic() < end, "the pipe is not opened"
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 64 + 1
    assert complaints(process.stderr.read()) == "linnet: CANCELLED: cancelled\n"


def open_files(pid: int) -> list[str]:
    """The files of a process that have a name which still exists."""
    return [str(file) for file in Path(f"/proc/{pid}/fd").iterdir() if file.exists()]


class Terminal:
    """A command on a pseudo-terminal, with methods to type."""

    def __init__(self, command, environment, columns: int = 80):
        try:
            self.pid, self.ours = pty.fork()
        except OSError as error:
            pytest.skip(f"no pseudo-terminal can be had here ({error}): is /dev/pts mounted?")
        if self.pid == 0:
            os.execve(command[0], [str(part) for part in command], environment)
        self.screen = ""

    def read(self, wait: float) -> bool:
        """Reads output for that time; returns False at the end."""
        if not select.select([self.ours], [], [], wait)[0]:
            return True
        try:
            read = os.read(self.ours, 1 << 16)
        except OSError:  # Linux's error when the other side is closed
            read = b""
        self.screen += read.decode()
        return bool(read)

    def expect(self, pattern: str) -> re.Match:
        """Waits until the output since the last match contains the text."""
        end = time.monotonic() + 30
        while not (match := re.search(pattern, self.screen)):
            assert time.monotonic() < end, f"no {pattern!r}: {self.screen!r}"
            assert self.read(0.1), f"it ended without {pattern!r}: {self.screen!r}"
        self.screen = self.screen[match.end() :]
        return match

    def type(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def leave(self) -> int:
        self.type("\x04")
        return self.wait()

    def wait(self) -> int:
        end = time.monotonic() + 30
        while self.read(0.1):
            assert time.monotonic() < end, f"it does not end: {self.screen!r}"
        os.close(self.ours)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_shell_answers_edits_and_keeps_history(linnet_binary, environment, server, tmp_path):
    said = server.translate("A bird sings.").translations[0].text
    command = [linnet_binary, "shell", "--from", "en", "--to", "de"]
    shell = Terminal(command, environment)
    shell.expect("en-de> ")
    shell.type("A birt sings.")
    shell.type("\x1b[D" * 8 + "\x7f" + "x\x7f")  # moves left and corrects mistakes
    shell.type("\x05\x15A bird sings.\n")  # moves to the end, deletes the line and types another
    shell.expect(re.escape(said))
    shell.expect("en-de> ")
    shell.type("\x1b[A\n")  # the previous line
    shell.expect(re.escape(said))
    shell.expect("en-de> ")
    shell.type("Grüße\x7f\x7fße\x03")  # whole characters, and Ctrl-C forgets the line
    shell.expect("en-de> ")
    shell.type(":to tlh\n")
    shell.expect("en-tlh> ")
    shell.type("One.\n")
    shell.expect("NOT_FOUND")
    shell.expect("en-tlh> ")
    assert shell.leave() == 0

    history = tmp_path / "home/.local/state/linnet/history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    shell = Terminal(command, environment)
    shell.expect("en-de> ")
    shell.type("\x1b[A\x1b[A\x1b[A")  # over "One." and ":to tlh"
    shell.expect("A bird sings")
    shell.type("\n")
    shell.expect(re.escape(said))
    shell.expect("en-de> ")
    assert shell.leave() == 0
    kept = history.read_bytes()
    shell = Terminal([*command, "--no-history"], environment)
    shell.expect("en-de> ")
    shell.type("Two dogs.\n")
    shell.expect("\nen-de> ")
    assert shell.leave() == 0
    assert history.read_bytes() == kept


def test_shell_keeps_keys_typed_during_an_answer(linnet_binary, environment, server):
    said = server.translate("A bird sings.").translations[0].text
    run = f"stty -g && '{linnet_binary}' shell --from en --to de && stty -g"
    shell = Terminal(["/bin/sh", "-c", run], environment)
    settings = shell.expect(r"([0-9a-f:]+)\r\n").group(1)
    shell.expect("en-de> ")
    busy = [server.translate_slowly(3) for _ in range(4)]
    shell.type("A bird sings.\n")
    server.wait_for_calls(5)  # the shell waits for its answer now
    shell.type(":to tlh\n\x04")
    for call in busy:
        call.cancel()
    shell.expect(re.escape(said))
    shell.expect("en-tlh> ")
    assert shell.expect(r"([0-9a-f:]{40,})\r\n").group(1) == settings
    assert shell.wait() == 0


def test_interrupt_ends_an_answer_and_sigterm_the_shell(linnet_binary, environment, server):
    shell = Terminal([linnet_binary, "shell", "--from", "en", "--to", "de"], environment)
    shell.expect("en-de> ")
    busy = [server.translate_slowly(3) for _ in range(4)]  # so that an answer takes a while
    shell.type(" ".join(["A bird sings."] * 20) + "\n")
    server.wait_for_calls(5)
    shell.type("\x03")
    shell.expect("CANCELLED")
    for call in busy:
        call.cancel()
    shell.expect("en-de> ")
    time.sleep(0.5)  # the shell waits for a key now
    os.kill(shell.pid, signal.SIGTERM)
    assert shell.wait() == 64 + 1


def test_progress_bar_is_shown_and_cleared_on_a_terminal(linnet_binary, environment, tmp_path):
    source = tmp_path / "source"
    source.write_text(sentences(200))
    run = Terminal(
        [linnet_binary, *TRANSLATE, "--file", source, "-o", tmp_path / "out"], environment
    )
    run.expect(r"\d+% .*━.*─?.* lines, .*/s, .* left")
    run.expect(r"linnet: 200 lines in \d+:\d\d, ")
    assert run.wait() == 0


def complete(script: str, line: str, folder) -> list[str]:
    """The completions that bash offers for the last word of `line`."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    probe = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _linnet; "
    probe += 'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", f'source "$1"; {probe}', "bash", script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.stderr == ""
    return sorted(filter(None, done.stdout.splitlines()))


def test_bash_completes_commands_flags_files_and_choices(linnet_binary, environment, tmp_path):
    script = tmp_path / "completion"
    run = [linnet_binary, "completion", "bash"]
    script.write_bytes(subprocess.run(run, env=environment, capture_output=True).stdout)
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("my letter.txt", "mine.txt", "other"):
        (folder / name).touch()

    assert complete(script, "linnet s", folder) == ["score", "shell", "summarize"]
    assert complete(script, "linnet translate --res", folder) == ["--resume"]
    assert complete(script, "linnet summarize --long", folder) == ["--long-input"]
    assert complete(script, "linnet translate --long", folder) == []
    assert complete(script, "linnet translate --file m", folder) == ["mine.txt", "my letter.txt"]
    assert complete(script, "linnet translate -o o", folder) == ["other"]
    assert complete(script, "linnet translate --priority ", folder) == [
        "batch",
        "interactive",
        "normal",
    ]
    assert complete(script, "linnet summarize --long-input = ch", folder) == ["chunk"]
    # One word if = is not in COMP_WORDBREAKS.
    assert complete(script, "linnet summarize --long-input=ch", folder) == ["--long-input=chunk"]
    assert complete(script, "linnet translate --file=mi", folder) == ["--file=mine.txt"]
    assert complete(script, "linnet translate --to ", folder) == []
    assert complete(script, "linnet translate text", folder) == []
    assert complete(script, "linnet completion b", folder) == ["bash"]
    for command in ("translate", "bench", "reload", "shell"):
        offered = set(complete(script, f"linnet {command} --", folder))
        shown = subprocess.run([linnet_binary, command, "--help"], capture_output=True, text=True)
        rows = re.findall(r"^ +((?:--?[\w-]+,)*--[\w-]+)", shown.stdout, re.MULTILINE)
        assert offered == {flag for row in rows for flag in re.findall(r"--[\w-]+", row)}


def completion_of(shell: str, linnet_binary, environment, tmp_path):
    """The shell and its completion script; skips the test without the shell."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    script = tmp_path / f"linnet.{shell}"
    run = [linnet_binary, "completion", shell]
    script.write_bytes(subprocess.run(run, env=environment, capture_output=True).stdout)
    for name in ("my letter.txt", "mine.txt", "other"):
        (tmp_path / name).touch()
    return program, script


def test_fish_completes_commands_flags_files_and_choices(linnet_binary, environment, tmp_path):
    fish, script = completion_of("fish", linnet_binary, environment, tmp_path)

    def offered(line: str) -> list[str]:
        done = subprocess.run(
            [fish, "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, line],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=20,
        )
        assert done.stderr == ""
        return sorted(row.split("\t")[0] for row in done.stdout.splitlines())

    assert offered("linnet s") == ["score", "shell", "summarize"]
    assert offered("linnet translate --res") == ["--resume"]
    assert offered("linnet translate --long") == []
    assert offered("linnet translate --file m") == ["mine.txt", "my letter.txt"]
    assert offered("linnet translate -o o") == ["other"]
    assert offered("linnet translate --priority ") == ["batch", "interactive", "normal"]
    assert offered("linnet summarize --long-input=ch") == ["--long-input=chunk"]
    assert offered("linnet translate --to ") == []
    assert offered("linnet completion b") == ["bash"]


def test_zsh_completes_commands_flags_files_and_choices(linnet_binary, environment, tmp_path):
    zsh, script = completion_of("zsh", linnet_binary, environment, tmp_path)
    (tmp_path / ".zshrc").write_text(f"PROMPT='ready: '\ncd '{tmp_path}'\nsource '{script}'\n")
    shell = Terminal([zsh, "-d", "-i"], {**environment, "ZDOTDIR": str(tmp_path)})
    shell.expect("ready: ")
    for typed, completed in {
        "linnet tr": "translate ",
        "linnet translate --res": "--resume ",
        "linnet translate -o o": "other ",
        "linnet translate --priority b": "batch ",
        "linnet summarize --long-input=ch": "--long-input=chunk ",
        "linnet completion z": "zsh ",
    }.items():
        shell.type(f"{typed}\tX\x0c")  # Ctrl-L redraws the whole line
        shell.expect(re.escape(completed) + ".?X")
        shell.type("\x15")
    shell.type("exit\n")
    assert shell.wait() == 0


def test_man_page_renders(linnet_binary, environment, tmp_path):
    page = tmp_path / "linnet.1"
    run = [linnet_binary, "man-page"]
    page.write_bytes(subprocess.run(run, env=environment, capture_output=True, check=True).stdout)
    try:
        done = subprocess.run(
            ["groff", "-k", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True
        )
    except FileNotFoundError:
        pytest.skip("no groff here to read it with")
    assert done.returncode == 0
    assert done.stderr == "", "warnings of troff"
