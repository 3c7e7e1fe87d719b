"""Tests of the decorator of commands: an error is one line, never a traceback."""

import errno

import pytest

from linnet_model.command_line import command
from linnet_model.config import ConfigError


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ConfigError("x is 1, must be 2"), "x is 1, must be 2"),
        (
            PermissionError(errno.EACCES, "Permission denied", "rows.tsv"),
            "rows.tsv cannot be read or written: Permission denied",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "a file cannot be read or written: No space left on device",
        ),
    ],
)
def test_error_becomes_one_line_and_status_1(error: Exception, message: str, capsys):
    @command
    def main(_: list[str] | None) -> None:
        raise error

    assert main([]) == 1
    assert capsys.readouterr().err.endswith(f": {message}\n")


def test_ctrl_c_becomes_one_line(capsys):
    @command
    def main(_: list[str] | None) -> None:
        raise KeyboardInterrupt

    assert main([]) == 130
    assert capsys.readouterr().err.endswith(": stopped\n")
