"""The answer cache: replies are those of a server without one, byte for byte, and tenants."""

from __future__ import annotations

import random
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

WORDS = ["one", "two", "bird", "dog"]
HITS = 'linnet_answer_cache_hits_total{model="en-de"}'
MISSES = 'linnet_answer_cache_misses_total{model="en-de"}'
COALESCED = 'linnet_coalesced_sequences_total{model="en-de"}'
ALICE = "alice-0123456789abcdef"
BOB = "bob-0123456789abcdef"


@pytest.fixture(scope="module")
def cached(start):
    """A server whose cache holds some of the answers, so that it evicts others."""
    return start("--answer-cache-bytes", "60000", "--cache-tenant", "shared")


def random_text(source: random.Random) -> str:
    sentences = [
        " ".join(source.choices(WORDS[: source.randint(1, 4)], k=source.randint(1, 2))) + "."
        for _ in range(source.randint(1, 3))
    ]
    return source.choice(["", " "]) + " ".join(sentences)


def random_call(seed: int) -> dict:
    """The kind of a call and its fields: few texts and few options, so that many are the same."""
    source = random.Random(seed)
    options = {"beam_size": source.choice([1, 2]), "max_target_tokens": source.choice([8, 20])}
    if source.random() < 0.2:
        options |= {"seed": source.randint(1, 2), "top_k": 5}
    fields = {"options": options}
    if source.random() < 0.3:
        fields["alignments"] = True
    if source.random() < 0.3:
        fields["use_cache"] = source.random() < 0.7
    texts = [random_text(source) for _ in range(source.randint(1, 2))]
    return {"kind": source.choice(["unary", "stream", "document"]), "texts": texts} | fields


def reply_to(server, call: dict) -> list:
    """The reply without its timings; the parts of a stream, merged by segment, because a client
    that reads slowly gets fewer and longer ones."""
    fields = {key: value for key, value in call.items() if key not in ("kind", "texts")}
    if call["kind"] == "unary":
        responses = [server.translate(*call["texts"], **fields)]
        parts = []
    elif call["kind"] == "document":
        lines = list(enumerate(call["texts"]))
        results = sorted(server.document(lines, **fields), key=lambda result: result.sequence_id)
        responses, parts = [result.response for result in results], []
    else:
        *messages, last = server.stream_translate(*call["texts"], **fields)
        responses = [last.response]
        merged: dict[tuple[int, int], list] = {}
        for message in messages:
            part = message.part
            segment = merged.setdefault((part.content_index, part.segment_index), ["", b""])
            segment[0] += part.text
            segment[1] += part.segment.SerializeToString(deterministic=True)
        parts = list(merged.items())
    for response in responses:
        response.ClearField("timings")
    return [response.SerializeToString(deterministic=True) for response in responses] + parts


def test_replies_of_a_random_load_are_those_without_a_cache(server, cached):
    stop = threading.Event()

    def leave_calls():
        """Other callers of the same texts, who cancel or miss their deadlines."""
        source = random.Random(1)
        while not stop.is_set():
            future = cached.method("Translate").future(
                cached.api.TranslateRequest(
                    contents=[random_text(source)],
                    source_language_code="en",
                    target_language_code="de",
                    options={"beam_size": 2, "max_target_tokens": 20},
                ),
                timeout=source.choice([0.002, 0.02, 5]),
            )
            stop.wait(source.random() * 0.02)
            future.cancel()

    leaving = threading.Thread(target=leave_calls)
    leaving.start()
    try:
        with ThreadPoolExecutor(8) as pool:
            seeds = [seed % 150 for seed in range(300)]
            replies = pool.map(lambda seed: reply_to(cached, random_call(seed)), seeds)
            expected = pool.map(lambda seed: reply_to(server, random_call(seed)), range(150))
            plain = list(expected)
            for seed, reply in zip(seeds, replies, strict=True):
                assert reply == plain[seed], random_call(seed)
    finally:
        stop.set()
        leaving.join()
    assert cached.metric(HITS) > 10  # of 300 calls: it holds few of their answers
    assert cached.metric(COALESCED) > 0
    assert 0 < cached.metric("linnet_answer_cache_bytes") <= 60000
    assert server.metric(HITS) == server.metric(COALESCED) == 0


def test_tokens_do_not_share_answers_by_default(start, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{ALICE} alice inference\n{BOB} bob inference\n")
    server = start("--answer-cache-bytes", "1000000", "--tokens", str(tokens))
    request = server.api.TranslateRequest(
        contents=["one two three"], source_language_code="en", target_language_code="de"
    )
    texts = [
        server.method("Translate")(
            request, timeout=60, metadata=[("authorization", f"Bearer {token}")]
        )
        .translations[0]
        .text
        for token in (ALICE, BOB, ALICE)
    ]
    assert texts[0] == texts[1] == texts[2]
    assert (server.metric(MISSES), server.metric(HITS)) == (2, 1)


def test_command_line_can_leave_the_cache_out(start, linnet_binary):
    server = start("--answer-cache-bytes", "1000000")

    def answer(*flags: str) -> str:
        command = [str(linnet_binary), "translate", "--server", server.grpc, "--to", "de", *flags]
        done = subprocess.run(
            [*command, "one two three"], capture_output=True, text=True, timeout=120, check=True
        )
        return done.stdout

    first = answer("--use-cache", "false")
    assert answer("--use-cache", "false") == first
    assert server.metric(HITS) == server.metric(MISSES) == 0
    assert answer() == answer("--use-cache", "true") == first
    assert (server.metric(MISSES), server.metric(HITS)) == (1, 1)


@pytest.mark.bfloat16_gemm
def test_a_type_that_is_not_batch_invariant_is_refused(run_server, bundles):
    flags = ("--models", str(bundles), "--compute", "bfloat16", "--metrics-listen", "127.0.0.1:0")
    status, _, error = run_server(*flags, "--answer-cache-bytes", "1000000")
    assert status == 1
    assert "answers of an engine on cpu in bfloat16 depend on what else is in the batch" in error
    assert "batch-invariant" in error


@pytest.mark.bfloat16_gemm
def test_any_type_may_be_cached_in_the_batch_invariant_mode(start):
    server = start(
        "--compute", "bfloat16", "--batch-invariant", "true", "--answer-cache-bytes", "1000000"
    )
    text = server.translate("one two").translations[0].text
    assert server.translate("one two").translations[0].text == text
    assert server.metric(HITS) == 1


def test_an_unknown_tenant_is_refused(run_server, bundles):
    status, _, error = run_server("--models", str(bundles), "--cache-tenant", "everyone")
    assert status == 2
    assert "token" in error
    assert "shared" in error
