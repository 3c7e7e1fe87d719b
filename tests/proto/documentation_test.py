"""Every method, message, field, enum and value of the API has a comment."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import compatibility
from google.protobuf import descriptor_pb2

# These share the comment of the field above them, which covers both.
SHARED = {
    f"linnet.v1.{name}"
    for name in (
        "DecodingOptions.max_target_tokens",
        "GlossaryTerm.source_end",
        "GlossaryTerm.target_end",
        "Model.compute_type",
        "Model.description",
        "Model.target_language_code",
        "RequestLimits.max_text_bytes",
        "ScoreRequest.target_language_code",
        "ScoreResponse.model_version",
        "Segment.source_end",
        "Segment.target_begin",
        "Segment.target_end",
        "SummarizeRequest.max_summary_tokens",
        "SummarizeResponse.model_version",
        "TextPart.segment_index",
        "TranslateResponse.model_version",
        "Word.target_end",
        "WordAlignment.source_end",
        "WordAlignment.target_end",
    )
}


def undocumented(file: Any) -> Iterator[str]:
    comments = {
        tuple(location.path)
        for location in file.source_code_info.location
        if location.leading_comments.strip() or location.trailing_comments.strip()
    }

    def look(element: Any, path: tuple[int, ...], name: str) -> Iterator[str]:
        if path not in comments and name not in SHARED:
            yield name

    def message(element: Any, path: tuple[int, ...], scope: str) -> Iterator[str]:
        name = f"{scope}.{element.name}"
        if element.options.map_entry:
            return
        yield from look(element, path, name)
        for i, field in enumerate(element.field):
            yield from look(field, (*path, 2, i), f"{name}.{field.name}")
        for i, nested in enumerate(element.nested_type):
            yield from message(nested, (*path, 3, i), name)

    for i, element in enumerate(file.message_type):
        yield from message(element, (4, i), file.package)
    for i, enum in enumerate(file.enum_type):
        yield from look(enum, (5, i), f"{file.package}.{enum.name}")
        for j, value in enumerate(enum.value):
            yield from look(value, (5, i, 2, j), f"{file.package}.{enum.name}.{value.name}")
    for i, service in enumerate(file.service):
        yield from look(service, (6, i), f"{file.package}.{service.name}")
        for j, method in enumerate(service.method):
            yield from look(method, (6, i, 2, j), f"{file.package}.{service.name}.{method.name}")


def test_every_part_of_the_service_is_documented(tmp_path):
    out = tmp_path / "set"
    command = ["protoc", f"-I{compatibility.ROOT / 'proto'}", "--include_source_info"]
    protos = [name for name in compatibility.PROTOS if "bundle" not in name]
    subprocess.run([*command, f"--descriptor_set_out={out}", *protos], check=True)
    files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    assert [name for file in files for name in undocumented(file)] == []
