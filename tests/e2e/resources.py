"""Resident memory, CPU time and open files of a process, by the kernel of Linux."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path


def resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def peak_kib(pid: int) -> int:
    """The most resident memory that the process has had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads, in nanoseconds: /proc counts in ticks of 10 ms."""
    return time.clock_gettime((~pid << 3) | 2)  # CPUCLOCK_SCHED


def has_open(pid: int, path: Path) -> bool:
    """True where a process has `path` open; it may close others while they are looked at."""
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if descriptor.samefile(path):
                return True
    return False
