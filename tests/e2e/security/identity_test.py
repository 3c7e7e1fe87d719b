"""Two callers on one connection: each call has the identity of its own token."""

from __future__ import annotations

import re

import grpc
import pytest
from resources import cpu_seconds

ALICE = "alice-0123456789abcdef"
BOB = "bob-0123456789abcdef"
CONNECTIONS = "linnet_connections"
MEMORY = "process_resident_memory_bytes"
CALLS = 20_000
WARM_UP = 5_000
MAX_GROWTH = 10 << 20  # a name kept for each call would be twice that
SLICE = 5_000
# A cost that grows with the calls made would be four times as high in the last slice, which begins
# after four times as many as the first. The CPU time of a slice varies by a factor of two with the
# threads that wake up and with what else uses the cores; that of its cheapest calls by a quarter.
MAX_SLOWDOWN = 2


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"{ALICE} alice inference,admin\n{BOB} bob inference,admin\n")
    return path


class TokenHolder:
    """Makes calls in the name of a token, on the channel of the server."""

    def __init__(self, server, token: str, name: str):
        self.server, self.token, self.name = server, token, name
        self.made = 0

    def headers(self) -> list[tuple[str, str]]:
        self.made += 1
        request_id = f"{self.name}-{self.made}"
        return [("authorization", f"Bearer {self.token}"), ("x-request-id", request_id)]

    def request(self, texts: int = 1, tokens: int = 4):
        return self.server.api.TranslateRequest(
            contents=["one two three"] * texts,
            source_language_code="en",
            target_language_code="de",
            options={"beam_size": 5, "min_target_tokens": tokens, "max_target_tokens": tokens},
        )

    def translate(self, **size):
        return self.server.method("Translate").future(
            self.request(**size), timeout=120, metadata=self.headers()
        )

    def stream(self) -> None:
        message = self.server.api.StreamTranslateRequest(request=self.request())
        call = self.server.method("StreamTranslate", "unary_stream")
        assert list(call(message, timeout=60, metadata=self.headers()))

    def document(self) -> None:
        settings = self.request()
        del settings.contents[:]
        kind = self.server.api.TranslateDocumentRequest
        messages = [kind(settings=settings), kind(lines=[{"sequence_id": 1, "text": "one"}])]
        call = self.server.method("TranslateDocument", "stream_stream")
        assert len(list(call(iter(messages), timeout=60, metadata=self.headers()))) == 1

    def batch(self):
        call = self.server.channel.unary_unary(
            "/linnet.v1.AdminService/GetBatch",
            request_serializer=self.server.api.GetBatchRequest.SerializeToString,
            response_deserializer=self.server.api.GetBatchResponse.FromString,
        )
        request = self.server.api.GetBatchRequest(model="en-de")
        return call(request, timeout=60, metadata=self.headers()).models[0]


def test_each_call_is_logged_under_its_own_token(start, tokens):
    server = start("--tokens", str(tokens), "--log-level", "debug")
    callers = [TokenHolder(server, ALICE, "alice"), TokenHolder(server, BOB, "bob")]
    for _ in range(3):
        for caller in callers:
            assert caller.translate().result().model == "en-de"
            caller.stream()
            caller.document()
            caller.batch()
    server.wait_for(CONNECTIONS, lambda connections: connections == 1)
    assert server.stop() == 0
    calls = re.findall(
        r" call method=(\w+) .*client=(\S+) request_id=(\w+)-\d+", server.log.read_text()
    )
    assert len(calls) == 24
    assert {method for method, _, _ in calls} == {
        *("Translate", "StreamTranslate", "TranslateDocument", "GetBatch")
    }
    assert {(client, name) for _, client, name in calls} == {
        ("subject:alice", "alice"),
        ("subject:bob", "bob"),
    }


def test_callers_of_one_connection_have_separate_shares(start, tokens):
    server = start(
        "--tokens", str(tokens), "--max-batch-rows", "5", "--max-admitted-tokens", "41000"
    )
    alice, bob = TokenHolder(server, ALICE, "alice"), TokenHolder(server, BOB, "bob")
    held = [alice.translate(tokens=1000) for _ in range(6)]  # 5,000 tokens of work each
    server.wait_for("linnet_admitted_tokens", lambda admitted: admitted >= 30_000)
    refused = alice.translate(tokens=1000).exception(timeout=60)
    assert refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert server.api.details(refused)["ErrorInfo"].reason == "SHARE_USED"
    held.append(bob.translate(tokens=1000))  # on the same connection, but with a share of its own
    server.wait_for("linnet_admitted_tokens", lambda admitted: admitted >= 35_000)
    seen = {(each.client, each.request_id.split("-")[0]) for each in bob.batch().sequences}
    assert seen == {("subject:alice", "alice"), ("subject:bob", "bob")}
    for call in held:
        call.cancel()
    server.wait_for("linnet_admitted_tokens", lambda admitted: admitted == 0)
    server.wait_for(CONNECTIONS, lambda connections: connections == 1)
    assert server.stop() == 0


def test_batch_snapshot_names_caller_and_request_id(start, tokens):
    server = start("--tokens", str(tokens), "--max-batch-rows", "5")
    alice, bob = TokenHolder(server, ALICE, "alice"), TokenHolder(server, BOB, "bob")
    first = bob.translate()  # the connection was first used by bob
    assert first.result().model == "en-de"
    settings = alice.request(tokens=1000)
    del settings.contents[:]
    kind = server.api.TranslateDocumentRequest
    lines = [{"sequence_id": number, "text": "one two"} for number in range(4)]
    call = server.method("TranslateDocument", "stream_stream")(
        iter([kind(settings=settings), kind(lines=lines)]), timeout=60, metadata=alice.headers()
    )
    server.wait_for('linnet_sequences{model="en-de",state="waiting"}', lambda waiting: waiting > 0)
    batch = bob.batch().sequences
    assert {(each.client, each.request_id) for each in batch} == {("subject:alice", "alice-1")}
    call.cancel()
    assert server.stop() == 0


@pytest.mark.memory
def test_many_calls_of_a_connection_cost_the_same_each(start, tokens):
    long = "x" * 1000  # names that would be visible in the memory size
    tokens.write_text(f"{ALICE} alice-{long} inference\n{BOB} bob-{long} inference\n")
    server = start("--tokens", str(tokens))
    models = server.method("ListModels")
    request = server.api.ListModelsRequest()
    headers = [[("authorization", f"Bearer {token}")] for token in (ALICE, BOB)]

    def call(count: int) -> float:
        """The server's CPU time of the cheapest hundred of these calls."""
        costs = []
        for _ in range(count // 100):
            before = cpu_seconds(server.process.pid)
            in_flight = [
                models.future(request, timeout=60, metadata=headers[number % 2])
                for number in range(100)
            ]
            assert all(each.result().models for each in in_flight)
            costs.append(cpu_seconds(server.process.pid) - before)
        return min(costs)

    call(WARM_UP)
    before = server.metric(MEMORY)
    first = call(SLICE)
    call(CALLS - 2 * SLICE)
    last = call(SLICE)
    assert server.metric(MEMORY) - before < MAX_GROWTH
    assert last <= MAX_SLOWDOWN * first
    server.wait_for(CONNECTIONS, lambda connections: connections == 1)
    assert server.metric('linnet_requests_total{code="OK",method="ListModels"}') == WARM_UP + CALLS
    assert server.stop() == 0
