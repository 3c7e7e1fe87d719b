"""Resident memory and CPU time of a process, by the kernel of Linux."""

from __future__ import annotations

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
