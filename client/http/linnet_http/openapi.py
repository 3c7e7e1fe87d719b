"""The OpenAPI document of the native API, made from the messages of the proto."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from linnet.v1 import text_service_pb2 as api

from .version import __version__

if TYPE_CHECKING:
    from .faces.native import Method

Schema = dict[str, Any]
_TEXT = {"type": "string"}
_INT64 = {"type": "string", "pattern": r"^-?[0-9]+$"}
# The JSON form of these messages: https://protobuf.dev/programming-guides/json.
_FLOAT = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
_MESSAGES = {"google.protobuf.Duration": {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?s$"}}
_SCALARS: dict[int, Schema] = {
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_STRING: _TEXT,
    FieldDescriptor.TYPE_BYTES: {"type": "string", "format": "byte"},
    FieldDescriptor.TYPE_INT32: {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    FieldDescriptor.TYPE_UINT32: {"type": "integer", "minimum": 0, "maximum": 2**32 - 1},
    FieldDescriptor.TYPE_INT64: _INT64,
    FieldDescriptor.TYPE_UINT64: _INT64,
    FieldDescriptor.TYPE_FLOAT: _FLOAT,
    FieldDescriptor.TYPE_DOUBLE: _FLOAT,
}
_PROBLEMS = {
    "400": "The request is wrong",
    "401": "The token is missing or unknown",
    "403": "The token does not allow this",
    "404": "No model for these languages, or none of this name",
    "408": "The body came too slowly",
    "413": "The body or the work is too large",
    "415": "The body has another type",
    "429": "The server is busy: retry after Retry-After seconds",
    "500": "The server or the front end failed",
    "503": "The server cannot be reached",
    "504": "The answer cannot be made in time",
}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "reason"],
            "properties": {
                "code": {"type": "integer"},
                "message": _TEXT,
                "reason": _TEXT,
                "field": _TEXT,
            },
        }
    },
}
_EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": ["part", "response", "line", "end", "error"]},
        "data": {"type": "string", "description": "JSON"},
    },
}
_ANSWER = {
    "type": "object",
    "required": ["text", "detected_language", "model"],
    "properties": {
        "text": _TEXT,
        "detected_language": _TEXT,
        "model": _TEXT,
        "warnings": {
            "type": "array",
            "items": {"type": "object", "properties": {"reason": _TEXT, "message": _TEXT}},
        },
    },
}


def document(methods: Iterable[Method]) -> Schema:
    schemas: dict[str, Schema] = {"Error": _ERROR, "Answer": _ANSWER}
    paths = {f"/v1/{it.path}": {"post": _operation(it, schemas)} for it in methods}
    listed = _message(api.ListModelsResponse, schemas)
    one = _message(api.GetModelResponse, schemas)
    paths["/v1/models"] = {"get": _get("list_models", listed, [])}
    paths["/v1/models/{name}"] = {"get": _get("get_model", one, [_parameter("name", "path")])}
    texts = [_parameter("q"), _parameter("target")]
    source, model = _parameter("source", required=False), _parameter("model", required=False)
    answer = _reference("Answer")
    paths["/v1/translate"]["get"] = _get("current_answer", answer, [*texts, source, model], "304")
    paths["/v1/answers/{digest}/translate"] = {
        "get": _get(
            "immutable_answer",
            answer,
            [_parameter("digest", "path"), *texts, _parameter("source")],
            "304",
        )
    }
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "Linnet",
            "version": __version__,
            "description": "The messages of proto/linnet/v1/text_service.proto as JSON, with their "
            "field names. A stream is server-sent events, the last of which is `response`, `end` "
            "or `error`.",
        },
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(method: Method, schemas: dict[str, Schema]) -> Schema:
    body = _message(method.request, schemas)
    answer = _message(method.response, schemas)
    if method.kind == "document":
        body = {
            "type": "object",
            "required": ["lines"],
            "additionalProperties": False,
            "properties": {
                "settings": body,
                "lines": {"type": "array", "items": _TEXT},
                "keep_order": {"type": "boolean"},
            },
        }
    kind, schema = "application/json", answer
    if method.kind != "unary":
        kind, schema = "text/event-stream", _EVENT
    return {
        "operationId": method.call,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": _responses(kind, schema),
    }


def _get(name: str, answer: Schema, parameters: list[Schema], *more: str) -> Schema:
    responses = _responses("application/json", answer)
    for status in more:
        responses[status] = {"description": "The client has this answer"}
    return {"operationId": name, "parameters": parameters, "responses": responses}


def _responses(kind: str, schema: Schema) -> Schema:
    error = {"application/json": {"schema": _reference("Error")}}
    return {
        "200": {"description": "The answer", "content": {kind: {"schema": schema}}},
        **{status: {"description": said, "content": error} for status, said in _PROBLEMS.items()},
    }


def _parameter(name: str, place: str = "query", required: bool = True) -> Schema:
    return {"name": name, "in": place, "required": required, "schema": _TEXT}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _message(kind: type[Message], schemas: dict[str, Schema]) -> Schema:
    descriptor: Any = kind.DESCRIPTOR  # one of protobuf's two classes of that name
    return _described(descriptor, schemas)


def _described(descriptor: Descriptor, schemas: dict[str, Schema]) -> Schema:
    """A reference to the schema of a message, which is added to `schemas` with all that it has."""
    if descriptor.name not in schemas:
        schemas[descriptor.name] = properties = {}
        for field in descriptor.fields:
            properties[field.name] = _field(field, schemas)
        schemas[descriptor.name] = {
            "type": "object",
            "additionalProperties": False,
            "properties": properties,
        }
    return _reference(descriptor.name)


def _field(field: FieldDescriptor, schemas: dict[str, Schema]) -> Schema:
    if field.message_type and field.message_type.GetOptions().map_entry:
        values = field.message_type.fields_by_name["value"]
        return {"type": "object", "additionalProperties": _field(values, schemas)}
    if field.message_type and field.message_type.full_name in _MESSAGES:
        one: Schema = _MESSAGES[field.message_type.full_name]
    elif field.message_type:
        one = _described(field.message_type, schemas)
    elif field.enum_type:
        one = {"type": "string", "enum": [it.name for it in field.enum_type.values]}
    else:
        one = _SCALARS[field.type]
    return {"type": "array", "items": one} if field.is_repeated else one
