"""Completions of the command `linnet` in shells, and its page of the manual."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from terminal import Terminal


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

    assert complete(script, "linnet s", folder) == ["score", "summarize"]
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
    for command in ("translate", "bench", "reload"):
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

    assert offered("linnet s") == ["score", "summarize"]
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
