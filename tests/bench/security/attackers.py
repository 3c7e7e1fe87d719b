"""Clients that attack the memory of a server. Each kind is a process that runs until it is killed:

    python attackers.py KIND HOST:PORT TOKEN SEED

They encode their requests by hand, so that these can be invalid.
"""

from __future__ import annotations

import os
import random
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "e2e/security"))
import contextlib

from http2 import RawClient

SENTENCE = "The dog runs through the garden of the old castle. "
MAX = 4 << 20  # max bytes of a message that gRPC accepts
AT_ONCE = 8


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number: int, value: bytes | str | int) -> bytes:
    """A field of a message, with its number in text_service.proto."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


class Fields:
    """The numbers of the used fields, read from the proto."""

    def __init__(self) -> None:
        proto = Path(__file__).resolve().parents[3] / "proto/linnet/v1/text_service.proto"
        message = ""
        self.numbers: dict[str, int] = {}
        for line in proto.read_text().splitlines():
            words = line.split()
            if words[:1] == ["message"]:
                message = words[1]
            elif message and "=" in words and line.rstrip().endswith(";"):
                name = words[words.index("=") - 1]
                number = words[words.index("=") + 1].rstrip(";")
                if number.isdigit():
                    self.numbers[f"{message}.{name}"] = int(number)

    def __call__(self, message: str, /, **values: bytes | str | int | list) -> bytes:
        out = b""
        for name, value in values.items():
            for one in value if isinstance(value, list) else [value]:
                out += field(self.numbers[f"{message}.{name}"], one)
        return out


F = Fields()


def request(*contents: str, **more: bytes | str | int) -> bytes:
    return F(
        "TranslateRequest",
        contents=list(contents),
        source_language_code="en",
        target_language_code="de",
        **more,
    )


def options(**values: int) -> bytes:
    return F("DecodingOptions", **values)


class Attacker:
    def __init__(self, address: str, token: str, seed: int):
        self.address = address
        self.authorization = f"Bearer {token}"
        self.random = random.Random(seed)
        self.client = f"attacker-{seed}"
        self.channel = grpc.insecure_channel(
            address,
            options=[
                ("grpc.enable_retries", 0),
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.max_receive_message_length", -1),
            ],
        )

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata of a call; some calls use one of many client names."""
        other = self.random.random() < 0.3
        name = f"{self.client}-{self.random.randrange(1000)}" if other else self.client
        return (
            ("authorization", self.authorization),
            ("x-client-id", name),
            ("x-priority", "interactive"),
        )

    def calls(self, method: str, messages: list[bytes], seconds: float = 20) -> None:
        """Sends concurrent calls and cancels some of them before their answers."""
        call = self.channel.unary_unary(f"/linnet.v1.TextService/{method}")
        futures = [call.future(m, timeout=seconds, metadata=self.metadata()) for m in messages]
        for future in futures:
            if self.random.random() < 0.2:
                future.cancel()
                continue
            future.exception()

    # One round of each kind.

    def segments(self) -> None:
        """Texts whose every second byte is a newline, just above and just below the limit."""
        texts = ["a\n" * 500_000, "a\n" * 16_000, "a\n" * 8_000, "a. " * 16_000]
        self.calls("Translate", [request(self.random.choice(texts)) for _ in range(AT_ONCE)])

    def long_texts(self) -> None:
        words = ["dog " * 250_000, "dog" * 300_000, SENTENCE * 20_000, "\U0001f415" * 250_000]
        self.calls("Translate", [request(self.random.choice(words)) for _ in range(AT_ONCE)])

    def tiny_fields(self) -> None:
        """Two bytes each: empty texts, unknown numbers and groups, empty entries of a glossary."""
        texts = F.numbers["TranslateRequest.contents"] << 3 | 2
        wires = [
            bytes([texts, 0]) * (MAX // 2 - 8),
            b"\xf8\x07\x01" * (MAX // 3 - 8),
            b"\xfb\x07" + b"\x08\x01" * (MAX // 2 - 8) + b"\xfc\x07",
            request("dog", glossary=b"\x0a\x00" * (MAX // 2 - 64)),
            request("dog") + field(F.numbers["TranslateRequest.labels"], b"") * (MAX // 3 - 64),
        ]
        self.calls("Translate", [self.random.choice(wires) for _ in range(AT_ONCE)])

    def alignments(self) -> None:
        text = ("the dog and the bird, " * 40 + ". ") * self.random.choice([4, 40, 400])
        wish = request(text, alignments=1, word_scores=1, options=options(beam_size=1))
        self.calls("Translate", [wish] * AT_ONCE)

    def n_best(self) -> None:
        wish = request(
            SENTENCE * self.random.choice([10, 100, 1000]),
            word_scores=1,
            options=options(beam_size=32, n_best=32, max_target_tokens=320, min_target_tokens=300),
        )
        self.calls("Translate", [wish] * AT_ONCE)

    def glossary(self) -> None:
        entry = F("GlossaryEntry", source_text="a", target_text="The dog runs through the garden")
        wish = request(
            "a b a b. " * self.random.choice([100, 10_000, 100_000]),
            glossary=F("Glossary", entries=entry),
        )
        self.calls("Translate", [wish] * AT_ONCE)

    def languages(self) -> None:
        wire = b"".join(field(1, "the") for _ in range(16_000))
        self.calls("DetectLanguage", [wire] * AT_ONCE)

    def documents(self) -> None:
        """Many documents with messages of the maximum size, without reading any result."""
        call = self.channel.stream_stream("/linnet.v1.TextService/TranslateDocument")
        settings = F("TranslateDocumentRequest", settings=request())
        kinds = [
            F("TranslateDocumentRequest", lines=F("DocumentLine", text=SENTENCE)) * 16_000,
            F("TranslateDocumentRequest", lines=F("DocumentLine", text=" " * 250_000)) * 16,
            F("TranslateDocumentRequest", lines=F("DocumentLine", text=SENTENCE * 5000)) * 16,
            F("TranslateDocumentRequest", lines=b"") * (MAX // 2 - 8),
        ]

        def messages(kind: bytes) -> Iterator[bytes]:
            yield settings
            for _ in range(50):
                yield kind

        open_calls = [
            call(messages(self.random.choice(kinds)), timeout=20, metadata=self.metadata())
            for _ in range(4 * AT_ONCE)
        ]
        time.sleep(self.random.uniform(1, 8))
        for one in open_calls:
            one.cancel()

    def slow_readers(self) -> None:
        """Large answers to a client whose window is one byte for each."""
        wishes = [
            request(SENTENCE * 20, word_scores=1, options=options(beam_size=8, n_best=8)),
            request(*["dog"] * 500),
        ]
        clients = [RawClient(self.address, window=1) for _ in range(4)]
        for client in clients:
            for _ in range(20):
                wish = self.random.choice(wishes)
                client.call("Translate", wish, authorization=self.authorization)
        time.sleep(self.random.uniform(5, 15))
        for client in clients:
            client.close()

    def streams(self) -> None:
        """Streamed answers to a client that reads only the first part."""
        call = self.channel.unary_stream("/linnet.v1.TextService/StreamTranslate")
        wish = F("StreamTranslateRequest", request=request(SENTENCE * 50, word_scores=1))
        open_calls = [call(wish, timeout=20, metadata=self.metadata()) for _ in range(2 * AT_ONCE)]
        time.sleep(self.random.uniform(1, 8))
        for one in open_calls:
            one.cancel()

    def idle_calls(self) -> None:
        """Documents that are begun but never continued."""
        call = self.channel.stream_stream("/linnet.v1.TextService/TranslateDocument")
        end = time.monotonic() + self.random.uniform(5, 10)

        def messages() -> Iterator[bytes]:
            yield F("TranslateDocumentRequest", settings=request())
            time.sleep(max(0.0, end - time.monotonic()))

        open_calls = [
            call(messages(), timeout=20, metadata=self.metadata()) for _ in range(4 * AT_ONCE)
        ]
        for one in open_calls:
            with contextlib.suppress(grpc.RpcError):
                one.code()


KINDS: dict[str, Callable[[Attacker], None]] = {
    "segments": Attacker.segments,
    "long_texts": Attacker.long_texts,
    "tiny_fields": Attacker.tiny_fields,
    "alignments": Attacker.alignments,
    "n_best": Attacker.n_best,
    "glossary": Attacker.glossary,
    "languages": Attacker.languages,
    "documents": Attacker.documents,
    "slow_readers": Attacker.slow_readers,
    "streams": Attacker.streams,
    "idle_calls": Attacker.idle_calls,
}


def main() -> None:
    kind, address, token, seed = sys.argv[1:]
    os.nice(5)  # they share the machine with the server
    attacker = Attacker(address, token, int(seed))
    rounds = 0
    while True:
        try:
            KINDS[kind](attacker)
        except (grpc.RpcError, OSError, struct.error):
            time.sleep(0.2)
        rounds += 1
        sys.stdout.write(f"{rounds}\n")
        sys.stdout.flush()
        time.sleep(0.05)


if __name__ == "__main__":
    main()
