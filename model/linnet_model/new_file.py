"""Files that appear, or replace the one before, only when they are whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linnet_model.network.model_config import ConfigError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raises ConfigError, which names the file or folder, if it cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error if error.filename else error.strerror or error
        raise ConfigError(f"{path} cannot be written: {reason}") from None


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yields a path beside `path` to write to, and renames that file at the end: who stops this, or
    has no room left on the disk, keeps the one before."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        with writing(path):
            yield partial
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
