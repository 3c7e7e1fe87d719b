"""JSON files that a command writes, and a later one reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from linnet_model.config import ConfigError
from linnet_model.new_file import new_file


def read_json(path: Path) -> Any:
    """Returns the content of a file, None if there is none. Raises ConfigError if it is not
    JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except ValueError as error:  # also of UTF-8
        raise ConfigError(f"{path} is not JSON: {error}") from None


def write_json(path: Path, values: Any, indent: int = 2) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=False)
    with new_file(path) as partial:
        partial.write_text(text + "\n", encoding="utf-8")
