"""What this process has allocated with malloc: objects of C and C++, and large ones of Python."""

from __future__ import annotations

import ctypes
import gc


class _Mallinfo(ctypes.Structure):
    """struct mallinfo2 of glibc."""

    _fields_ = [(f"_{number}", ctypes.c_size_t) for number in range(7)]
    _fields_ += [("uordblks", ctypes.c_size_t), ("fordblks", ctypes.c_size_t)]
    _fields_ += [("keepcost", ctypes.c_size_t)]


def used_bytes() -> int:
    """The bytes that are in use after a garbage collection."""
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _Mallinfo
    gc.collect()
    return int(libc.mallinfo2().uordblks)
