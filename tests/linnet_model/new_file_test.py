"""Tests of files that appear only when they are whole."""

import errno
from pathlib import Path

import pytest

from linnet_model.config import ConfigError
from linnet_model.new_file import new_file


def test_replaces_the_file_at_the_end(tmp_path: Path):
    path = tmp_path / "rows.tsv"
    path.write_text("old")
    with new_file(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("before", [None, "old"])
def test_failure_keeps_what_was_there(tmp_path: Path, before: str | None):
    path = tmp_path / "rows.tsv"
    if before is not None:
        path.write_text(before)

    def write() -> None:
        with new_file(path) as partial:
            partial.write_text("half")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(ConfigError, match=r"rows.tsv cannot be written: No space left on device"):
        write()
    assert [file.read_text() for file in tmp_path.iterdir()] == ([] if before is None else [before])
