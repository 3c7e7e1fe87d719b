"""The command `linnet` on a terminal: its shell and its progress bar."""

from __future__ import annotations

import os
import re
import signal
import stat
import time

from terminal import Terminal


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
    source.write_text("".join(f"{number} birds sing.\n" for number in range(200)))
    command = [linnet_binary, "translate", "--from", "en", "--to", "de", "--max-target-tokens", "6"]
    run = Terminal([*command, "--file", source, "-o", tmp_path / "out"], environment)
    run.expect(r"\d+% .*━.*─?.* lines, .*/s, .* left")
    run.expect(r"linnet: 200 lines in \d+:\d\d, ")
    assert run.wait() == 0
