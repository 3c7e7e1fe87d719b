"""Unpacks what was downloaded: regular files alone, inside of the folder, up to a size.

Archives are .whl, .zip, .tar, .tar.gz and .tar.zst. A file .gz or .zst has one content. Compression
is recognised by the first bytes: some servers decompress a file .gz while they send it.
"""

from __future__ import annotations

import gzip
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

import zstandard

from linnet_model.config import ConfigError

ARCHIVE = re.compile(r"\.(whl|zip|tar|tgz|tar\.gz|tar\.zst)$", re.IGNORECASE)
PACKED = (".gz", ".zst")
MAX_BYTES = 1 << 33  # of everything that is unpacked, the largest model that an importer reads
MAX_FILES = 10_000
# More than zstd's level 19 needs; a file that asks for more memory is refused.
MAX_WINDOW = 1 << 27
DAMAGED = (
    *(EOFError, gzip.BadGzipFile, tarfile.TarError, zipfile.BadZipFile, zlib.error),
    *(zstandard.ZstdError, NotImplementedError),
)


class Budget:
    """The bytes that may still be unpacked: counted as they come, since an archive may lie."""

    def __init__(self, archive: Path, limit: int = MAX_BYTES) -> None:
        self.archive, self.limit, self.left = archive, limit, limit

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise ConfigError(
                f"{self.archive.name} has more than {self.limit} bytes of content, the limit: no "
                "model that is known is so large"
            )


class Counted:
    """A stream that is read within a budget."""

    def __init__(self, stream: Any, budget: Budget) -> None:
        self.stream, self.budget = stream, budget

    def read(self, size: int) -> bytes:
        data: bytes = self.stream.read(size)
        self.budget.take(len(data))
        return data


@contextmanager
def content_of(file: Path, budget: Budget) -> Iterator[Counted]:
    """Opens the content of a file that may be compressed."""
    with file.open("rb") as opened:
        magic = opened.read(4)
        opened.seek(0)
        if magic[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=opened) as stream:
                yield Counted(stream, budget)
        elif magic == b"\x28\xb5\x2f\xfd":
            reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
            with reader.stream_reader(opened, read_across_frames=True) as stream:
                yield Counted(stream, budget)
        else:
            yield Counted(opened, budget)


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Raises ConfigError, which names the file, if it is damaged."""
    try:
        yield
    except DAMAGED as error:
        raise ConfigError(
            f"{file.name} is damaged or is no such archive: {error or 'it ends too early'}; "
            "remove it and fetch it again"
        ) from None


def without_packing(name: str) -> str:
    """Returns the name of the content of a file .gz or .zst."""
    return name.removesuffix(".gz").removesuffix(".zst")


def decompress(file: Path, target: Path, limit: int = MAX_BYTES) -> None:
    """Writes the content of a file that may be compressed, and removes that file."""
    with (
        naming(file),
        content_of(file, Budget(file, limit)) as stream,
        target.open("xb") as out,
    ):
        shutil.copyfileobj(cast(IO[bytes], stream), out, 1 << 20)
    file.unlink()


def place_of(archive: Path, folder: Path, name: str) -> Path:
    """Returns where a member of an archive is written, inside of the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or not path.parts:
        raise ConfigError(
            f"{archive.name} has the entry {name!r}, which is outside of its folder: nothing of "
            "it is used"
        )
    return folder.joinpath(*path.parts)


def refuse(archive: Path, name: str) -> ConfigError:
    return ConfigError(
        f"{archive.name} has the entry {name!r}, which is a link or a device: only files and "
        "folders are unpacked"
    )


def unpack(
    archive: Path,
    folder: Path,
    wanted: Callable[[str], bool] = lambda _: True,
    limit: int = MAX_BYTES,
) -> None:
    """Unpacks the files whose names are wanted into the new folder."""
    folder.mkdir()
    budget = Budget(archive, limit)
    with naming(archive):
        if re.search(r"\.(whl|zip)$", archive.name, re.IGNORECASE):
            unpack_zip(archive, folder, wanted, budget)
        else:
            with content_of(archive, budget) as stream:
                unpack_tar(archive, folder, wanted, cast(IO[bytes], stream))


def write_member(source: Any, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as out:  # two entries of one name are refused
        shutil.copyfileobj(source, out, 1 << 20)


def check_count(archive: Path, count: int) -> None:
    if count > MAX_FILES:
        raise ConfigError(f"{archive.name} has more than {MAX_FILES} entries, the limit")


def unpack_zip(archive: Path, folder: Path, wanted: Callable[[str], bool], budget: Budget) -> None:
    with zipfile.ZipFile(archive) as opened:
        check_count(archive, len(opened.infolist()))
        for entry in opened.infolist():
            target = place_of(archive, folder, entry.filename)
            mode = entry.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise refuse(archive, entry.filename)
            if entry.flag_bits & 1:
                raise ConfigError(f"{archive.name} is encrypted")
            if not entry.is_dir() and wanted(entry.filename):
                with opened.open(entry) as source:
                    write_member(Counted(source, budget), target)


def unpack_tar(
    archive: Path, folder: Path, wanted: Callable[[str], bool], stream: IO[bytes]
) -> None:
    with tarfile.open(fileobj=stream, mode="r|") as opened:
        for count, entry in enumerate(opened, 1):
            check_count(archive, count)
            target = place_of(archive, folder, entry.name) if entry.name != "." else folder
            if entry.isdir():
                continue
            if not entry.isreg():
                raise refuse(archive, entry.name)
            source = opened.extractfile(entry)
            if source is not None and wanted(entry.name):
                write_member(source, target)
