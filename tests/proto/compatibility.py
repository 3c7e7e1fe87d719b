"""Lists changes that would break clients of linnet.v1: the current API against the recorded one.

    .venv/bin/python tests/proto/compatibility.py            lists breaking and unrecorded changes
    .venv/bin/python tests/proto/compatibility.py --record   records additions if nothing is broken

proto/linnet.v1.binpb is the record: a google.protobuf.FileDescriptorSet without comments. The rules
are those of `buf breaking` for its category FILE, which covers the wire format and generated
code: no published element may change its number, name, type or cardinality. A field may be removed
if its number and its name are reserved, so that servers refuse it and nothing else takes its place
(`FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED`); the messages that only such fields had may go with it.
A number that is reserved alone, as those of removed fields are, stays reserved; one of a range of
several may become a field.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2
from messages import compile_protos

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "proto/linnet.v1.binpb"
PROTOS = (
    "linnet/v1/admin_service.proto",
    "linnet/v1/bundle.proto",
    "linnet/v1/text_service.proto",
)

FileSet = descriptor_pb2.FileDescriptorSet
Field = descriptor_pb2.FieldDescriptorProto


def read_record() -> FileSet:
    return FileSet.FromString(RECORD.read_bytes())


def breaking_changes(old: FileSet, new: FileSet) -> list[str]:
    """The changes from `old` to `new` that break clients, one line each."""
    return list(_files(old, new))


def _pairs(
    what: str, old: Iterable[Any], new: Iterable[Any], key: Callable[[Any], Any]
) -> Iterator[tuple[Any, Any | None, str]]:
    """Each old element with its new one, or None with a message."""
    by_key = {key(each): each for each in new}
    for each in old:
        yield each, by_key.get(key(each)), f"{what} {each.name} is gone"


def _name(each: Any) -> str:
    return each.name


def _number(each: Any) -> int:
    return each.number


def _files(old: FileSet, new: FileSet) -> Iterator[str]:
    for was, now, gone in _pairs("file", old.file, new.file, _name):
        if now is None:
            yield gone
            continue
        if was.package != now.package:
            yield f"{was.name}: package {was.package} became {now.package}"
        if was.syntax != now.syntax:
            yield f"{was.name}: syntax {was.syntax} became {now.syntax}"
        yield from _messages(was.package, was.message_type, now.message_type, _unused(old, now))
        yield from _enums(was.package, was.enum_type, now.enum_type)
        yield from _services(was.package, was.service, now.service)


def _messages(
    scope: str, old: Iterable[Any], new: Iterable[Any], unused: Set[str] = frozenset()
) -> Iterator[str]:
    for was, now, gone in _pairs("message", old, new, _name):
        path = f"{scope}.{was.name}"
        if now is None:
            if path not in unused:
                yield f"{scope}: {gone}"
            continue
        if was.options.map_entry != now.options.map_entry:
            yield f"{path}: is a map's entry in one of the two alone"
        yield from _fields(path, was, now)
        yield from _reserved(path, was, now)
        for oneof, same, lost in _pairs("oneof", was.oneof_decl, now.oneof_decl, _name):
            # The synthetic oneof of an optional field has no name in the API.
            if same is None and not oneof.name.startswith("_"):
                yield f"{path}: {lost}"
        yield from _messages(path, was.nested_type, now.nested_type)
        yield from _enums(path, was.enum_type, now.enum_type)


def _fields(path: str, old: Any, new: Any) -> Iterator[str]:
    for was, now, gone in _pairs("field", old.field, new.field, _number):
        if now is None:
            if was.number not in removed(new) or was.name not in new.reserved_name:
                yield f"{path}: {gone}: reserve its number, alone, and its name"
            continue
        where = f"{path}.{was.name}"
        if was.name != now.name or was.json_name != now.json_name:
            yield f"{where}: number {was.number} became {now.name}"
        if (was.type, was.type_name) != (now.type, now.type_name):
            yield f"{where}: {_type(was)} became {_type(now)}"
        if was.label != now.label or was.proto3_optional != now.proto3_optional:
            yield f"{where}: {_cardinality(was)} became {_cardinality(now)}"
        if _oneof(old, was) != _oneof(new, now):
            yield f"{where}: moved from oneof {_oneof(old, was)} to {_oneof(new, now)}"


def removed(message: Any) -> set[int]:
    """The numbers of the fields that were removed: each is reserved alone."""
    return {each.start for each in message.reserved_range if each.end == each.start + 1}


def _reserved(path: str, old: Any, new: Any) -> Iterator[str]:
    for number in sorted(removed(old) - removed(new)):
        yield f"{path}: number {number} of a removed field is no longer reserved"
    for name in sorted(set(old.reserved_name) - set(new.reserved_name)):
        yield f"{path}: name {name} of a removed field is no longer reserved"


def _unused(old: FileSet, now: Any) -> set[str]:
    """The messages that fields had which were removed from a file, and no method or field has."""
    before = {
        f".{file.package}.{each.name}": each for file in old.file for each in file.message_type
    }
    current = {f".{now.package}.{each.name}": each for each in now.message_type}
    gone = {
        field.type_name
        for name, message in before.items()
        if name in current
        for field in message.field
        if field.number in removed(current[name])
    }
    return {name.removeprefix(".") for name in gone - current.keys()}


def _type(field: Any) -> str:
    return field.type_name or Field.Type.Name(field.type)


def _cardinality(field: Any) -> str:
    if field.label == Field.LABEL_REPEATED:
        return "repeated"
    return "optional" if field.proto3_optional else "singular"


def _oneof(message: Any, field: Any) -> str | None:
    if not field.HasField("oneof_index") or field.proto3_optional:
        return None
    return message.oneof_decl[field.oneof_index].name


def _enums(scope: str, old: Iterable[Any], new: Iterable[Any]) -> Iterator[str]:
    for was, now, gone in _pairs("enum", old, new, _name):
        if now is None:
            yield f"{scope}: {gone}"
            continue
        for value, same, lost in _pairs("value", was.value, now.value, _number):
            if same is None:
                yield f"{scope}.{was.name}: {lost}"
            elif value.name != same.name:
                yield f"{scope}.{was.name}: value {value.number} {value.name} became {same.name}"


def _services(scope: str, old: Iterable[Any], new: Iterable[Any]) -> Iterator[str]:
    for was, now, gone in _pairs("service", old, new, _name):
        path = f"{scope}.{was.name}"
        if now is None:
            yield f"{scope}: {gone}"
            continue
        for method, same, lost in _pairs("method", was.method, now.method, _name):
            if same is None:
                yield f"{path}: {lost}"
                continue
            for part in ("input_type", "output_type", "client_streaming", "server_streaming"):
                before, after = getattr(method, part), getattr(same, part)
                if before != after:
                    yield f"{path}.{method.name}: {part} {before} became {after}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write what was added to the record")
    options = parser.parse_args(arguments)
    now = compile_protos(PROTOS)
    broken = breaking_changes(read_record(), now) if RECORD.exists() else []
    for change in broken:
        print(change, file=sys.stderr)
    if broken:
        return 1
    if options.record:
        RECORD.write_bytes(now.SerializeToString(deterministic=True))
    elif now != read_record():
        print("additions are not recorded: run with --record", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
