"""The command `linnet` on a terminal: its progress bar."""

from __future__ import annotations

from terminal import Terminal


def test_progress_bar_is_shown_and_cleared_on_a_terminal(linnet_binary, environment, tmp_path):
    source = tmp_path / "source"
    source.write_text("".join(f"{number} birds sing.\n" for number in range(200)))
    command = [linnet_binary, "translate", "--from", "en", "--to", "de", "--max-target-tokens", "6"]
    run = Terminal([*command, "--file", source, "-o", tmp_path / "out"], environment)
    run.expect(r"\d+% .*━.*─?.* lines, .*/s, .* left")
    run.expect(r"linnet: 200 lines in \d+:\d\d, ")
    assert run.wait() == 0
