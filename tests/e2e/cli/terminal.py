"""A terminal, which a test types on and reads."""

from __future__ import annotations

import os
import pty
import re
import select
import time

import pytest


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
