"""Reads the configuration inside a model of Marian, the item special:model.yml.

It is YAML of a few forms: `key: value` lines, and lists of values. Other YAML is refused.
"""

from __future__ import annotations

import json
from typing import Any

from linnet_model.network.model_config import ConfigError, require

MAX_BYTES = 1 << 16
NAMED: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "[]": [], "": None}
SPECIAL = "[{&*!|>%@`"  # they begin YAML that is more than a value


def read_settings(where: str, content: bytes) -> dict[str, Any]:
    """Returns the keys with values of type bool, int, float, str, None or list of these. `where`
    names the file in messages."""
    require(len(content) <= MAX_BYTES, f"{where} has {len(content)} bytes, at most {MAX_BYTES}")
    try:
        lines = content.rstrip(b"\0").decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where} is not UTF-8: {error}") from None
    settings: dict[str, Any] = {}
    open_key = None  # of a list that may follow
    for number, line in enumerate(lines, 1):
        here, text = f"{where}, line {number}", line.strip()
        if not text or text.startswith("#"):
            continue
        if line[0] in " -" and open_key is not None:
            add_value(here, settings, open_key, text)
            continue
        key, colon, text = line.partition(":")
        require(
            bool(colon) and key.replace("-", "").replace("_", "").isalnum(),
            f"{here} is {line!r}, it must be a key, a colon and a value",
        )
        require(key not in settings, f"{here} has {key} a second time")
        settings[key] = value_of(here, text.strip())
        open_key = key if settings[key] is None else None
    return settings


def add_value(here: str, settings: dict[str, Any], key: str, text: str) -> None:
    """Reads a line below `key:`, an element or an empty list."""
    if text == "[]" and settings[key] is None:
        settings[key] = []
        return
    require(
        text.startswith("- ") and settings[key] != [],
        f"{here} is {text!r} below {key}, it must be an element of a list",
    )
    settings[key] = [*(settings[key] or []), value_of(here, text[2:].strip())]


def value_of(here: str, text: str) -> Any:
    if text in NAMED:
        return NAMED[text]
    if text.startswith('"'):
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise ConfigError(f"{here} has {text!r}, which is no quoted text: {error}") from None
    if text.startswith("'"):
        require(len(text) > 1 and text.endswith("'"), f"{here} has {text!r} without its end")
        return text[1:-1].replace("''", "'")
    require(text[0] not in SPECIAL, f"{here} has {text!r}, this form of YAML is not read")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
