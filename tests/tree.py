"""The files of the project, also where there is no git."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNTRACKED = {"build", "__pycache__"}


def tree() -> list[str]:
    """The files of the project by their paths from its root, without what is built or hidden."""
    found: list[str] = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if f[0] != "." and f not in UNTRACKED)
        found += (Path(folder, name).relative_to(ROOT).as_posix() for name in sorted(names))
    return found
