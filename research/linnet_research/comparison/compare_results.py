"""Keeps the results of a comparison in files, each with the settings on which it depends."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from linnet_model.bundle import sha256
from linnet_model.config import Recipe, to_tables
from linnet_model.json_files import read_json, write_json
from linnet_model.network.model_config import require


def kept(path: Path, settings: dict[str, Any], make: Callable[[], Any]) -> Any:
    """Returns the result stored in `path`, else stores and returns that of `make`."""
    if not path.exists():
        write_json(path, {"settings": settings, "result": make()}, indent=1)
    return read_json(path)["result"]


def refuse_changed(path: Path, settings: dict[str, Any]) -> None:
    """Refuses a result in `path` that was made with other settings."""
    if not path.exists():
        return
    made_with = with_defaults(read_json(path).get("settings", {}))
    changed = [key for key in settings | made_with if settings.get(key) != made_with.get(key)]
    require(
        not changed,
        f"{path} was made with another {', '.join(changed)}: remove it to make it again, or choose "
        "another --out",
    )


def with_defaults(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns settings of an older version, in whose recipes later keys had their defaults."""
    result, defaults = dict(settings), to_tables(Recipe())
    if "recipe" in settings:
        result["recipe"] = {k: defaults[k] | settings["recipe"].get(k, {}) for k in defaults}
    if "pretraining" in settings:
        result["pretraining"] = with_defaults(settings["pretraining"])
    return result


def inputs(recipe: Recipe, options: argparse.Namespace) -> dict[str, Any]:
    """Returns the settings on which all trainings of a recipe depend."""
    folder = options.data / recipe.data.folder
    return {
        "recipe": to_tables(recipe),
        "data": {
            str(file.relative_to(folder)): sha256(file)
            for file in sorted(folder.rglob("*"))
            if file.is_file()
        },
        "device": options.device,
    }
