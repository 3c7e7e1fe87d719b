"""JSON files are replaced at once, and what is not JSON is named."""

from __future__ import annotations

import pytest

from linnet_model.config import ConfigError
from linnet_model.json_files import read_json, write_json


def test_returns_what_was_written(tmp_path):
    path = tmp_path / "file.json"
    assert read_json(path) is None
    for values in ({"a": [1.5, None, "ü"]}, {}):
        write_json(path, values)
        assert read_json(path) == values
    assert [it.name for it in tmp_path.iterdir()] == ["file.json"]


@pytest.mark.parametrize("content", [b'{"a": 1,}', b"", b"\xff"])
def test_names_a_file_that_is_not_json(content, tmp_path):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"file\.json is not JSON: "):
        read_json(path)


def test_keeps_the_file_if_the_new_one_cannot_be_written(tmp_path):
    path = tmp_path / "file.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert read_json(path) == {"a": 1}
