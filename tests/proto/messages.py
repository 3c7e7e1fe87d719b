"""The messages of the API in tests, made from the .proto files at run time, so that the tree
contains no generated Python code."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ("linnet/v1/admin_service.proto", "linnet/v1/text_service.proto")
ERRORS = ("google/rpc/error_details.proto", "google/rpc/status.proto")


def compile_protos(
    protos: Iterable[str], imports: bool = False
) -> descriptor_pb2.FileDescriptorSet:
    """Returns the files as protoc reads them, without comments; with `imports` also the files that
    they import."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "set"
        flags = [f"-I{ROOT / 'proto'}", f"--descriptor_set_out={out}"]
        flags += ["--include_imports"] if imports else []
        subprocess.run(["protoc", *flags, *protos], check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())


class Messages:
    """All message classes by their full names: messages["linnet.v1.TranslateRequest"].

    All are made at the start and kept. A class that is made for each use is garbage afterwards, and
    protobuf 7.36 may use it while another thread collects it, which crashed the process.
    """

    def __init__(self) -> None:
        pool = descriptor_pool.DescriptorPool()
        files = compile_protos((*SERVICES, *ERRORS), imports=True).file
        for file in files:
            pool.Add(file)
        self._classes: dict[str, Any] = {}
        for file in files:
            self._add(pool.FindFileByName(file.name).message_types_by_name.values())

    def _add(self, messages: Iterable[Any]) -> None:
        for message in messages:
            self._classes[message.full_name] = message_factory.GetMessageClass(message)
            self._add(message.nested_types)

    def __getitem__(self, full_name: str) -> Any:
        return self._classes[full_name]
