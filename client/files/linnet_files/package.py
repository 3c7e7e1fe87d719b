"""Files that are ZIP archives: their members are read within bounds, and those without a changed
answer are copied byte for byte."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from .document import Document, FileError
from .fragment import Fragment, Part

MAX_MEMBERS = 10_000
MAX_UNPACKED = 512 << 20  # bytes of all members
MAX_READ = 64 << 20  # bytes of a member that is read
COMMENTS_STAY = "comments are left as they are"
_LOCAL = struct.Struct("<4s5H3L2H")


@dataclass
class Package:
    """A file with several documents in it. Has the members and methods of a Document."""

    data: bytes
    documents: dict[str, Document]  # by the name of their member
    notes: list[str] = field(default_factory=list)

    @cached_property
    def fragments(self) -> list[Fragment]:
        return [it for document in self.documents.values() for it in document.fragments]

    def write(self, answers: Sequence[tuple[Part, ...] | None]) -> bytes:
        changed: dict[str, bytes] = {}
        begun = 0
        for name, document in self.documents.items():
            ended = begun + len(document.fragments)
            given = answers[begun:ended]
            begun = ended
            if any(
                it not in (None, fragment.parts)
                for it, fragment in zip(given, document.fragments, strict=True)
            ):
                changed[name] = document.write(given)
        return replaced(self.data, changed) if changed else self.data


def members(data: bytes) -> list[zipfile.ZipInfo]:
    """The members of an archive. Raises FileError if it is damaged, or not what an office program
    writes: too much when it is unpacked, encrypted, twice the same name, a path that leaves it."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = archive.infolist()
    except (zipfile.BadZipFile, ValueError, struct.error, EOFError) as error:
        raise FileError(f"the archive cannot be read: {error}") from None
    if len(found) > MAX_MEMBERS:
        raise FileError(f"the archive has {len(found)} members, at most {MAX_MEMBERS} are read")
    unpacked = sum(info.file_size for info in found)
    if unpacked > MAX_UNPACKED:
        raise FileError(f"the archive unpacks to {unpacked} bytes, at most {MAX_UNPACKED} are read")
    names: set[str] = set()
    for info in found:
        name = info.filename
        if (
            name.startswith(("/", "\\"))
            or ".." in name.replace("\\", "/").split("/")
            or ":" in name
        ):
            raise FileError(f"the archive has a member outside of it: {name[:80]!r}")
        if name in names:
            raise FileError(f"the archive has {name[:80]!r} twice")
        if info.flag_bits & 1:
            raise FileError(f"{name[:80]!r} is encrypted: remove the password first")
        if stat.S_ISLNK(info.external_attr >> 16):
            raise FileError(f"{name[:80]!r} is a symbolic link")
        names.add(name)
    return found


def read_member(data: bytes, info: zipfile.ZipInfo) -> bytes:
    """The bytes of a member. Raises FileError for more than it says, or than is allowed."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open(info) as member:
            found = member.read(MAX_READ + 1)
    except (zipfile.BadZipFile, NotImplementedError, OSError, EOFError, zlib.error) as error:
        raise FileError(f"{info.filename}: the member is damaged: {error}") from None
    if len(found) > MAX_READ:
        raise FileError(f"{info.filename} has more than {MAX_READ} bytes")
    return found


def package(
    data: bytes,
    read: Callable[[str, Callable[[str], bytes]], Document | None],
    root: str = "",
    comments: str = "",
) -> Package:
    """Reads an archive: `read` gives the document of a member, or None, from its name and a
    function that reads any member. A member whose name begins with `root` must be there; those
    whose names begin with `comments` are noted."""
    found = {info.filename: info for info in members(data)}
    if not any(name.startswith(root) for name in found):
        raise FileError(f"the archive has no {root}: its format is not that of its name")

    def bytes_of(name: str) -> bytes:
        if name not in found:
            raise FileError(f"the archive has no {name}")
        return read_member(data, found[name])

    documents = {}
    for name in found:
        try:
            document = read(name, bytes_of)
        except FileError as error:
            raise FileError(f"{name}: {error}") from None
        if document and document.fragments:
            documents[name] = document
    notes = [note for it in documents.values() for note in it.notes]
    if comments and any(name.startswith(comments) for name in found):
        notes.append(COMMENTS_STAY)
    return Package(data, documents, notes)


def replaced(data: bytes, changed: dict[str, bytes]) -> bytes:
    """The archive with other bytes in some members. All others are copied as they are packed, with
    their order, times and attributes."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as archive,
        zipfile.ZipFile(out, "w") as target,
    ):
        target.comment = archive.comment
        for info in archive.infolist():
            if info.filename in changed:
                copy = zipfile.ZipInfo(info.filename, info.date_time)
                copy.compress_type = info.compress_type
                copy.external_attr, copy.create_system = info.external_attr, info.create_system
                target.writestr(copy, changed[info.filename])
            else:
                _copy(data, info, out, target)
    return out.getvalue()


def _copy(data: bytes, info: zipfile.ZipInfo, out: io.BytesIO, target: zipfile.ZipFile) -> None:
    """Copies a member without unpacking it."""
    fields = _LOCAL.unpack_from(data, info.header_offset)
    start = info.header_offset + _LOCAL.size + fields[-2] + fields[-1]
    name = data[info.header_offset + _LOCAL.size :][: fields[-2]]
    flags = fields[2] & ~8  # the sizes stand in the header, not behind the data
    header = _LOCAL.pack(
        *(fields[0], fields[1], flags, *fields[3:6]),
        *(info.CRC, info.compress_size, info.file_size, len(name), 0),
    )
    out.seek(target.start_dir)
    info.header_offset = out.tell()
    info.flag_bits = flags
    out.write(header + name + data[start : start + info.compress_size])
    target.start_dir = out.tell()
    target.filelist.append(info)
    target.NameToInfo[info.filename] = info
    target._didModify = True  # type: ignore[attr-defined]
