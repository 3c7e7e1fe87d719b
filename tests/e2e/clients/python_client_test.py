"""Stock clients: stubs generated as docs/API.md shows, health probes and reflection."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/API.md"
SERVICE = "linnet.v1.TextService"


def block(kind: str) -> str:
    """The only code block of that kind on the page."""
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return found


def test_program_of_the_page_runs_with_its_own_stubs(server, tmp_path):
    (tmp_path / "proto").symlink_to(ROOT / "proto")
    # Replace `python` by the interpreter that has grpcio-tools.
    generate = block("sh").replace("python ", f"{sys.executable} ")
    subprocess.run(generate, shell=True, cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, "-c", block("python")],
        cwd=tmp_path,
        env={**os.environ, "LINNET_SERVER": server.grpc},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    whole = server.translate("The dog runs. A bird sings.").translations[0].text
    lines = [
        server.translate(text).translations[0].text for text in ("The dog runs.", "A bird sings.")
    ]
    options = {"markup": {"ignore_tags": ["b"]}, "protected_patterns": ["run."]}
    html = "<p>The <b>dog</b> runs.</p>"
    page = server.translate(html, mime_type="text/html", **options).translations[0]
    assert re.findall("<.*?>", page.text) == ["<p>", "<b>", "</b>", "</p>"]
    said = done.stdout
    for expected in (
        whole + "\n",
        whole + "\n",
        page.text + "\n",
        f"0 {lines[0]}\n",
        f"1 {lines[1]}\n",
    ):
        assert said.startswith(expected)
        said = said.removeprefix(expected)
    assert re.fullmatch(
        r"NOT_FOUND no model translates en to tlh.*\nlinnet MODEL_NOT_FOUND\n", said
    )


def test_answers_a_health_probe(server):
    """Sends the call of grpc_health_probe and of Kubernetes' grpc probes."""
    with grpc.insecure_channel(server.grpc) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for service in ("", SERVICE):
            request = health_pb2.HealthCheckRequest(service=service)
            answer = health.Check(request, timeout=10)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        watch = health.Watch(health_pb2.HealthCheckRequest(service=SERVICE), timeout=10)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        watch.cancel()
        with pytest.raises(grpc.RpcError) as raised:
            health.Check(health_pb2.HealthCheckRequest(service="linnet.v1.Nothing"), timeout=10)
        assert raised.value.code() == grpc.StatusCode.NOT_FOUND


def test_reflection_suffices_for_a_client_without_proto(server):
    """Does the same as grpcurl."""
    with grpc.insecure_channel(server.grpc) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        assert SERVICE in database.get_services()
        pool = descriptor_pool.DescriptorPool(database)
        method = pool.FindServiceByName(SERVICE).FindMethodByName("Translate")
        request = message_factory.GetMessageClass(method.input_type)(
            contents=["A bird sings."], source_language_code="EN", target_language_code="de"
        )
        answer = channel.unary_unary(
            f"/{SERVICE}/{method.name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
        )(request, timeout=60)
    assert answer.translations[0].text == server.translate("A bird sings.").translations[0].text
