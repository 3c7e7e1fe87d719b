"""The catalogue of models, catalog.toml."""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from linnet_model.config import ConfigError
from linnet_model.fetch.plan import SHA256, Plan, Wheel
from linnet_model.languages import check_language_code

CATALOG = Path(__file__).with_name("catalog.toml")
MODEL_KEYS = {
    *("what", "source-language", "target-language", "package", "sha256", "platform", "license"),
    *("folder", "files"),
}
INDEX_KEYS = {"what", "url", "license"}


@dataclass(frozen=True)
class Index:
    """An index of models, which lists files of many language pairs (index.py)."""

    url: str
    license: str
    what: str


@dataclass(frozen=True)
class Catalog:
    models: dict[str, Plan]
    indexes: dict[str, Index]


def read_catalog(file: Path = CATALOG) -> Catalog:
    """Reads a catalogue. Raises ConfigError if a fetch could not use it."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file} is no catalogue: {error}") from None
    unknown = set(table) - {"model", "index"}
    if unknown:
        raise ConfigError(f"{file} has the unknown tables {', '.join(sorted(unknown))}")
    models = {
        name: model_of(f"{file}: model.{name}", name, entry)
        for name, entry in table.get("model", {}).items()
    }
    indexes = {}
    for name, entry in table.get("index", {}).items():
        check_keys(f"{file}: index.{name}", entry, INDEX_KEYS)
        indexes[name] = Index(entry["url"], entry["license"], entry["what"])
    return Catalog(models, indexes)


def check_keys(where: str, entry: dict[str, Any], keys: set[str]) -> None:
    wrong = sorted(keys ^ set(entry))
    if wrong:
        raise ConfigError(
            f"{where} must have the keys {', '.join(sorted(keys))}: "
            f"{', '.join(wrong)} is missing or unknown"
        )
    empty = sorted(key for key, value in entry.items() if not value)
    if empty:
        raise ConfigError(f"{where} has no value for {', '.join(empty)}")


def model_of(where: str, name: str, entry: dict[str, Any]) -> Plan:
    check_keys(where, entry, MODEL_KEYS)
    package, folder, files = entry["package"], entry["folder"], entry["files"]
    if not re.fullmatch(r"[\w.-]+==[\w.+!-]+", package):
        raise ConfigError(f"{where} has the package {package!r}, expected NAME==VERSION")
    for digest in (entry["sha256"], *files.values()):
        if not SHA256.fullmatch(digest):
            raise ConfigError(f"{where} has the sha256 {digest!r}, expected 64 hexadecimal digits")
    for path in (folder, *files):
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise ConfigError(f"{where} names {path!r}, which is outside of the package")
    for side in ("source", "target"):
        check_language_code(f"{where}: {side}-language", entry[f"{side}-language"])
    return Plan(
        name=name,
        source_language=entry["source-language"],
        target_language=entry["target-language"],
        license=entry["license"],
        origin=f"the package {package} of PyPI, wheel with the sha256 {entry['sha256']}, folder "
        f"{folder}",
        what=entry["what"],
        wheel=Wheel(package, entry["sha256"], entry["platform"]),
        folder=folder,
        files=files,
    )


def model_named(catalog: Catalog, name: str) -> Plan:
    """Returns a model of the catalogue, or raises ConfigError with names that are near."""
    plan = catalog.models.get(name.lower())
    if plan is not None:
        return plan
    near = difflib.get_close_matches(name.lower(), catalog.models, cutoff=0.5)
    meant = f"did you mean {' or '.join(near)}" if near else f"it has {', '.join(catalog.models)}"
    raise ConfigError(
        f"no model {name!r} in the catalogue: {meant}; --list shows all, --index "
        f"{'|'.join(catalog.indexes)} has further pairs, and a URL with --license is any other "
        "model of Marian"
    )
