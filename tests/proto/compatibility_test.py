"""The current API is compatible with the recorded one, and the check detects breaking changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import compatibility
import pytest
from google.protobuf import descriptor_pb2
from messages import compile_protos

Field = descriptor_pb2.FieldDescriptorProto


@pytest.fixture(scope="module")
def now() -> compatibility.FileSet:
    return compile_protos(compatibility.PROTOS)


@pytest.fixture
def changed(now) -> compatibility.FileSet:
    return compatibility.FileSet.FromString(now.SerializeToString())


def test_published_api_is_unchanged(now):
    assert compatibility.breaking_changes(compatibility.read_record(), now) == []


def test_every_addition_is_recorded(now):
    assert now == compatibility.read_record(), (
        "run .venv/bin/python tests/proto/compatibility.py --record"
    )


def of(each: Any, name: str) -> Any:
    """Returns the element of that name."""
    return next(one for one in each if one.name == name)


def text_service(files) -> Any:
    return of(files.file, "linnet/v1/text_service.proto")


def request(files) -> Any:
    return of(text_service(files).message_type, "TranslateRequest")


def without(each: Any, name: str) -> None:
    each.remove(of(each, name))


def renumber(field: Any) -> None:
    field.number = 99


# Each breaking change with its message.
BREAKS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a file": (lambda f: f.file.pop(), "file linnet/v1/admin_service.proto is gone"),
    "a package": (lambda f: setattr(text_service(f), "package", "linnet.v2"), "package linnet.v1"),
    "a message": (lambda f: without(text_service(f).message_type, "Word"), "message Word is gone"),
    "a field": (lambda f: without(request(f).field, "model"), "field model is gone"),
    "a field's number": (lambda f: renumber(of(request(f).field, "model")), "field model is gone"),
    "a field's name": (
        lambda f: setattr(of(request(f).field, "model"), "name", "engine"),
        "number 4 became engine",
    ),
    "a field's type": (
        lambda f: setattr(of(request(f).field, "model"), "type", Field.TYPE_BYTES),
        "TYPE_STRING became TYPE_BYTES",
    ),
    "a field's message": (
        lambda f: setattr(of(request(f).field, "options"), "type_name", ".linnet.v1.Word"),
        ".linnet.v1.DecodingOptions became .linnet.v1.Word",
    ),
    "repeated": (
        lambda f: setattr(of(request(f).field, "contents"), "label", Field.LABEL_OPTIONAL),
        "repeated became singular",
    ),
    "optional": (
        lambda f: setattr(
            of(of(text_service(f).message_type, "DecodingOptions").field, "seed"),
            "proto3_optional",
            False,
        ),
        "optional became singular",
    ),
    "a oneof": (
        lambda f: of(
            of(text_service(f).message_type, "StreamTranslateResponse").field, "part"
        ).ClearField("oneof_index"),
        "moved from oneof event to None",
    ),
    "an enum": (lambda f: without(text_service(f).enum_type, "LongInput"), "enum LongInput is"),
    "a value": (
        lambda f: of(text_service(f).enum_type, "LongInput").value.pop(),
        "value LONG_INPUT_TRUNCATE is gone",
    ),
    "a value's name": (
        lambda f: setattr(
            of(text_service(f).enum_type, "LongInput").value[1], "name", "LONG_INPUT_REFUSE"
        ),
        "value 1 LONG_INPUT_REJECT became LONG_INPUT_REFUSE",
    ),
    "a service": (lambda f: text_service(f).service.pop(), "service TextService is gone"),
    "a method": (
        lambda f: without(text_service(f).service[0].method, "GetModel"),
        "method GetModel is gone",
    ),
    "a method's request": (
        lambda f: setattr(
            of(text_service(f).service[0].method, "GetModel"), "input_type", ".linnet.v1.Word"
        ),
        "input_type .linnet.v1.GetModelRequest became .linnet.v1.Word",
    ),
    "a method's stream": (
        lambda f: setattr(
            of(text_service(f).service[0].method, "StreamTranslate"), "server_streaming", False
        ),
        "server_streaming True became False",
    ),
}


def reserve(message: Any, name: str) -> None:
    field = of(message.field, name)
    message.reserved_range.add(start=field.number, end=field.number + 1)
    message.reserved_name.append(name)
    message.field.remove(field)


def test_field_may_be_removed_if_number_and_name_are_reserved(now, changed):
    reserve(request(changed), "glossary")
    assert compatibility.breaking_changes(now, changed) == []
    without(text_service(changed).message_type, "Glossary")
    assert compatibility.breaking_changes(now, changed) == []
    del request(changed).reserved_name[-1]
    (line,) = compatibility.breaking_changes(now, changed)
    assert "field glossary is gone: reserve its number, alone, and its name" in line


def test_number_and_name_of_a_removed_field_stay_reserved(changed):
    reserve(request(changed), "glossary")
    later = compatibility.FileSet.FromString(changed.SerializeToString())
    del request(later).reserved_range[-1]
    del request(later).reserved_name[-1]
    found = "\n".join(compatibility.breaking_changes(changed, later))
    assert "number 11 of a removed field is no longer reserved" in found
    assert "name glossary of a removed field is no longer reserved" in found


@pytest.mark.parametrize("what", BREAKS)
def test_refuses_breaking_changes(now, changed, what):
    change, said = BREAKS[what]
    change(changed)
    assert any(said in line for line in compatibility.breaking_changes(now, changed))


def test_accepts_additions(now, changed):
    request(changed).field.add(
        name="formality", number=15, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL
    )
    service = text_service(changed)
    service.message_type.add(name="New")
    service.enum_type[0].value.add(name="NEW", number=99)
    service.service[0].method.add(
        name="New", input_type=".linnet.v1.Word", output_type=".linnet.v1.Word"
    )
    changed.file.add(name="linnet/v1/new.proto", package="linnet.v1")
    assert compatibility.breaking_changes(now, changed) == []
