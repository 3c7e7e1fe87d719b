"""With any bytes from a peer, the server survives, serves others and frees the peer's resources.

Fuzzes the transport of the real server, a separate process, with inputs derived from
tests/fuzz/corpus/transport: the bytes that a client sends on a connection, mutated at random by
frames and by bytes, up to 1 MB. Inputs that cause a failure are kept in build/fuzz-found/transport.
Set LINNET_TRANSPORT_SECONDS=600 for a long run and LINNET_TRANSPORT_SEED=7 for other inputs.
"""

from __future__ import annotations

import json
import os
import random
import selectors
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import http2
import pytest
from http2 import PREFACE, Frame, frame
from resources import resident_kib

ROOT = Path(__file__).resolve().parents[3]
CORPUS = ROOT / "tests/fuzz/corpus/transport"
FOUND = ROOT / "build/fuzz-found/transport"
SEED = int(os.environ.get("LINNET_TRANSPORT_SEED", "1"))
SECONDS = float(os.environ.get("LINNET_TRANSPORT_SECONDS", "0"))  # 0: INPUTS inputs
INPUTS = 600
AT_ONCE = 20
MAX_BYTES = 1_000_000
# Seconds after which this side closes a connection.
MAX_TIME = 0.3
# The allocator keeps the memory of concurrent inputs of 1 MB; a leak grows with the inputs.
MAX_GROWTH_KIB = 65536
MAX_MESSAGE = 400  # characters of a library's message in the log


def frames_of(data: bytes) -> Iterator[Frame]:
    """The frames after the preface; the last one contains the rest."""
    at = len(PREFACE) if data.startswith(PREFACE) else 0
    while at + 9 <= len(data):
        length = int.from_bytes(data[at : at + 3], "big")
        kind, flags, stream = struct.unpack(">BBI", data[at + 3 : at + 9])
        yield Frame(kind, flags, stream, data[at + 9 : at + 9 + length])
        at += 9 + length


def mutate_frame(one: Frame, rng: random.Random) -> bytes:
    """Mutates kind, flags, stream, length or payload."""
    kind, flags, stream, payload = one
    choice = rng.randrange(7)
    if choice == 0:
        kind = rng.choice([*range(10), rng.randrange(256)])
    elif choice == 1:
        flags ^= 1 << rng.randrange(8)
    elif choice == 2:
        stream = rng.choice([0, 1, 2, 3, stream + 2, 2**31 - 1, 2**31, rng.randrange(2**32)])
    elif choice == 3:
        payload = payload[: rng.randrange(len(payload) + 1)]
    elif choice == 4:
        payload = rng.choice([payload * 3, payload + rng.randbytes(rng.choice([1, 100, 16384]))])
    elif choice == 5:
        payload = mutate_bytes(payload, rng)
    sent = bytearray(frame(kind, flags, stream, payload[: 2**24 - 1]))
    if choice == 6:
        sent[:3] = rng.choice([b"\0\0\0", b"\0\x40\0", b"\xff\xff\xff", rng.randbytes(3)])
    return bytes(sent)


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 8)):
        if changed:
            value = rng.choice([0, 0x7F, 0x80, 0xFF, rng.randrange(256)])
            changed[rng.randrange(len(changed))] = value
    return bytes(changed)


def mutate(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """Changes, drops or repeats some frames, or takes them from another input."""
    pieces = [frame(*one) for one in frames_of(data)]
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        at = rng.randrange(len(pieces) + 1)
        known = list(frames_of(b"".join(pieces)))
        choice = rng.randrange(7)
        if choice <= 2 and known:
            at = rng.randrange(len(known))
            pieces = [frame(*one) for one in known]
            pieces[at] = mutate_frame(known[at], rng)
        elif choice == 3:
            pieces[at : at + 1] = []
        elif choice == 4:
            pieces[at:at] = pieces[at : at + 2] * rng.choice([1, 2, 100])
        elif choice == 5:
            pieces[at:at] = [frame(*one) for one in frames_of(rng.choice(others))]
        else:
            rng.shuffle(pieces)
    sent = (PREFACE if data.startswith(PREFACE) else b"") + b"".join(pieces)
    if rng.random() < 0.1:
        sent = mutate_bytes(sent, rng)
    if rng.random() < 0.05:
        much = [rng.randbytes(4096), b"\0" * MAX_BYTES, frame(0, 0, 1, b"a" * 16384) * 60]
        sent += rng.choice(much)
    return sent[:MAX_BYTES]


def send(address: str, inputs: list[bytes], rng: random.Random) -> None:
    """Sends all inputs at once, each on its own connection; some connections are reset, some
    closed, and some stay open until the time is over. Reads and drops the server's answers."""
    with selectors.DefaultSelector() as selector:
        for data in inputs:
            peer = http2.connect(address)
            peer.setblocking(False)
            if rng.random() < 0.3:  # closing it sends a reset
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            events = selectors.EVENT_READ | selectors.EVENT_WRITE
            stays = rng.random() < 0.5
            selector.register(peer, events, [memoryview(data), stays])
        end = time.monotonic() + MAX_TIME
        while selector.get_map() and time.monotonic() < end:
            for key, ready in selector.select(0.05):
                try:
                    open_still = advance(key, ready)
                except OSError:  # reset, or closed by the server
                    open_still = False
                if open_still:
                    if not key.data[0]:
                        selector.modify(key.fileobj, selectors.EVENT_READ, key.data)
                else:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
        for key in list(selector.get_map().values()):
            key.fileobj.close()


def advance(key: selectors.SelectorKey, ready: int) -> bool:
    """True if the connection is to stay open."""
    peer, (rest, stays) = key.fileobj, key.data
    if ready & selectors.EVENT_READ and not peer.recv(65536):
        return False
    if ready & selectors.EVENT_WRITE and rest:
        key.data[0] = rest[peer.send(rest[:65536]) :]
    return bool(key.data[0]) or stays


def batches(rng: random.Random) -> Iterator[list[bytes]]:
    corpus = [path.read_bytes() for path in sorted(CORPUS.iterdir())]
    yield corpus  # unchanged, first
    end = time.monotonic() + SECONDS
    count = 0
    while count < INPUTS or time.monotonic() < end:
        yield [mutate(rng.choice(corpus), corpus, rng) for _ in range(AT_ONCE)]
        count += AT_ONCE


def keep(inputs: list[bytes]) -> None:
    FOUND.mkdir(parents=True, exist_ok=True)
    for i, data in enumerate(inputs):
        (FOUND / f"seed-{SEED}-{i}").write_bytes(data)


@dataclass
class Fuzzed:
    inputs: int
    log: str
    growth_kib: int  # of resident memory, after the first inputs
    status: int


@pytest.fixture(scope="module")
def fuzzed(start) -> Fuzzed:
    """Sends all inputs, checks after each twenty that the server answers another client, and stops
    the server."""
    server = start()
    assert server.translate("A bird.").translations
    rng = random.Random(SEED)
    sent, early = 0, None
    for inputs in batches(rng):
        try:
            send(server.grpc, inputs, rng)
            assert server.process.poll() is None, f"the server ended with {server.process.poll()}"
            assert server.translate("A bird.").translations
        except BaseException:
            keep(inputs)
            print(f"LINNET_TRANSPORT_SEED={SEED}, after {sent} inputs: {FOUND}")
            raise
        sent += len(inputs)
        if early is None and sent >= INPUTS / 3:
            early = resident_kib(server.process.pid)
    server.wait_for("linnet_connections", lambda connections: connections <= 1)  # its own channel
    server.wait_for("linnet_admitted_bytes", lambda held: held == 0)
    server.wait_for("linnet_admitted_tokens", lambda held: held == 0)
    growth = resident_kib(server.process.pid) - early
    print(f"{sent} inputs, {growth} KiB more resident memory than after {INPUTS // 3}")
    status = server.stop()
    return Fuzzed(sent, server.log.read_text(encoding="utf-8"), growth, status)


def test_serves_others_despite_any_input_of_a_peer(fuzzed, record_property):
    record_property("inputs", fuzzed.inputs)
    assert fuzzed.status == 0
    assert " stopped " in fuzzed.log


def test_library_messages_about_peers_are_bounded_text(fuzzed):
    lines = [line for line in fuzzed.log.splitlines() if " library " in line]
    quoted = [line.partition(" message=")[2] for line in lines]
    told = [json.loads(it) if it.startswith('"') else it for it in quoted]
    assert 0 < max(map(len, told)) <= MAX_MESSAGE


@pytest.mark.memory
def test_memory_does_not_grow_with_peer_input(fuzzed):
    assert fuzzed.growth_kib <= MAX_GROWTH_KIB
