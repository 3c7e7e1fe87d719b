"""Reads the indexes in which Mozilla lists the models of Firefox Translations.

Two forms are read. The registry of mozilla/translations, db/models.json: `baseUrl`, and in `models`
for each pair a list of variants, with `architecture`, `releaseStatus` and `files`: model, vocab or
srcVocab and trgVocab, lexicalShortlist, each with a `path` below baseUrl and some with an
`uncompressedHash`. And the collection of Remote Settings that Firefox itself reads, `data`: a
record for each file, with `fileType`, `version`, `decompressedHash` and `attachment`.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from linnet_model.config import ConfigError
from linnet_model.fetch.plan import SHA256, Download
from linnet_model.fetch.unpack import without_packing
from linnet_model.languages import LANGUAGE_CODE

MAX_INDEX_BYTES = 1 << 26
RELEASED = "Release"  # begins the status of what Firefox ships: Release, Release Desktop, …
ARCHITECTURES = ("base", "base-memory", "tiny")  # the largest first
REGISTRY_FILES = ("model", "vocab", "srcVocab", "trgVocab", "lexicalShortlist")
RECORD_FILES = {"model", "vocab", "srcvocab", "trgvocab", "lex"}


@dataclass(frozen=True)
class Variant:
    """One of the models of a pair."""

    source: str
    target: str
    architecture: str
    status: str
    version: str
    files: tuple[Download, ...]

    @property
    def pair(self) -> str:
        return f"{self.source}-{self.target}".lower()

    def rank(self) -> tuple[Any, ...]:
        """The smallest is the best: released, then large, then new."""
        known = self.architecture in ARCHITECTURES
        size = ARCHITECTURES.index(self.architecture) if known else len(ARCHITECTURES)
        newest = [-int(part) if part.isdecimal() else 0 for part in self.version.split(".")]
        return not self.released, size, newest

    @property
    def released(self) -> bool:
        return self.status.startswith(RELEASED)

    def told(self) -> str:
        return f"{self.architecture or 'no architecture'} ({self.status or 'no status'})"


def language_of(code: str) -> str:
    """Returns the BCP-47 code: zh_hant is zh-Hant here."""
    first, *rest = code.replace("_", "-").split("-")
    return "-".join([first.lower(), *(it.title() if len(it) == 4 else it.upper() for it in rest)])


def read_index(text: str, where: str, base: str, server_base: Callable[[], str]) -> list[Variant]:
    """Returns the variants of an index. `base`: where its paths begin, if it is known;
    `server_base` asks the server of Remote Settings for that."""
    try:
        table = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{where} is no JSON: {error}") from None
    if isinstance(table, dict) and isinstance(table.get("models"), dict):
        base = base or str(table.get("baseUrl", ""))
        found = registry_variants(table["models"], where, base)
    elif isinstance(table, dict) and isinstance(table.get("data"), list):
        found = record_variants(table["data"], where, base or server_base())
    else:
        raise ConfigError(
            f"{where} is no index of models: it has neither models, as db/models.json of Mozilla's "
            "registry, nor data, as the records of Remote Settings"
        )
    if not base and found and not found[0].files[0].url.startswith(("http://", "https://")):
        raise ConfigError(
            f"{where} does not say where its files are (baseUrl): name the URL with --files-at"
        )
    return found


def address(where: str, base: str, path: Any) -> str:
    """Returns the URL of a file, which must be below the base."""
    text = str(path)
    parts = PurePosixPath(text).parts
    if not isinstance(path, str) or not parts or parts[0] == "/" or ".." in parts:
        raise ConfigError(f"{where} names the file {text!r}, which is not below its base URL")
    if re.search(r"[\s?#\\:]", text):
        raise ConfigError(f"{where} names the file {text!r}, which is no plain path")
    return f"{base.rstrip('/')}/{text}"


def digest_of(where: str, value: Any) -> str:
    """Returns a sha256, or nothing where there is none."""
    text = str(value or "").lower()
    if text and not SHA256.fullmatch(text):
        raise ConfigError(f"{where} has the sha256 {value!r}, expected 64 hexadecimal digits")
    return text


def is_complete(kinds: Iterable[str]) -> bool:
    names = {kind.lower() for kind in kinds}
    return "model" in names and ("vocab" in names or {"srcvocab", "trgvocab"} <= names)


def is_pair(entry: dict[str, Any]) -> bool:
    codes = [entry.get(f"{side}Language") for side in ("source", "target")]
    return all(isinstance(it, str) and LANGUAGE_CODE.fullmatch(language_of(it)) for it in codes)


def registry_variants(models: dict[str, Any], where: str, base: str) -> list[Variant]:
    found = []
    for pair, entries in models.items():
        for entry in entries if isinstance(entries, list) else []:
            files = entry.get("files") if isinstance(entry, dict) else None
            if not isinstance(files, dict) or not is_complete(files) or not is_pair(entry):
                continue  # a model without its vocabulary is of no use to anybody
            downloads = []
            for kind in REGISTRY_FILES:
                file = files.get(kind)
                if not file:
                    continue
                url = address(f"{where}: {pair}", base, file.get("path"))
                downloads.append(
                    Download(
                        url,
                        without_packing(PurePosixPath(file["path"]).name),
                        content_sha256=digest_of(f"{where}: {pair}", file.get("uncompressedHash")),
                    )
                )
            found.append(variant_of(entry, str(entry.get("releaseStatus") or ""), downloads))
    return found


def record_variants(records: list[Any], where: str, base: str) -> list[Variant]:
    """Groups the records of one variant; what Remote Settings has is released."""
    groups: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for record in records:
        if not isinstance(record, dict) or record.get("fileType") not in RECORD_FILES:
            continue
        if not isinstance(record.get("attachment"), dict) or not is_pair(record):
            continue
        keys = ("sourceLanguage", "targetLanguage", "architecture", "version")
        group = groups.setdefault(tuple(str(record.get(key) or "") for key in keys), {})
        group[record["fileType"]] = record
    found = []
    for group in groups.values():
        if not is_complete(group):
            continue
        downloads = []
        for record in group.values():
            name, attachment = str(record.get("name")), record["attachment"]
            if PurePosixPath(name).name != name:
                raise ConfigError(f"{where} has the record {name!r}, which is no name of a file")
            downloads.append(
                Download(
                    address(f"{where}: {name}", base, attachment.get("location")),
                    name,
                    sha256=digest_of(f"{where}: {name}", attachment.get("hash")),
                    content_sha256=digest_of(f"{where}: {name}", record.get("decompressedHash")),
                )
            )
        found.append(variant_of(group["model"], RELEASED, downloads))
    return found


def variant_of(entry: dict[str, Any], status: str, downloads: list[Download]) -> Variant:
    return Variant(
        source=language_of(entry["sourceLanguage"]),
        target=language_of(entry["targetLanguage"]),
        architecture=str(entry.get("architecture") or ""),
        status=status,
        version=str(entry.get("version") or ""),
        files=tuple(downloads),
    )


def choose(variants: list[Variant], pair: str, architecture: str, where: str) -> Variant:
    """Returns the variant of a pair: of the released ones the largest, of equal ones the newest;
    with an architecture the best of it, also if none of it is released."""
    wanted = pair.lower().replace("_", "-")
    found = sorted((it for it in variants if it.pair == wanted), key=Variant.rank)
    if not found:
        pairs = sorted({it.pair for it in variants})
        near = difflib.get_close_matches(wanted, pairs, n=6) or pairs[:6]
        raise ConfigError(
            f"no model {pair!r} among the {len(pairs)} pairs of {where}"
            f"{': near are ' + ', '.join(near) if near else ''}; --list --index shows all"
        )
    there = ", ".join(it.told() for it in found)
    if architecture:
        found = [it for it in found if it.architecture == architecture]
        if not found:
            raise ConfigError(f"{where} has no --variant {architecture} of {pair}, it has {there}")
    elif not found[0].released:
        raise ConfigError(
            f"{where} has no released model of {pair}, it has {there}; --variant NAME takes one"
        )
    return found[0]
