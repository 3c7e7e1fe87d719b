"""A soak test: a server runs for a long time with clients of every kind, and nothing grows.

LINNET_SOAK_MINUTES sets the length (2 by default; 20 with ./test.sh --all, 120 with --long):

    LINNET_SOAK_MINUTES=600 .venv/bin/python -m pytest -m slow -s tests/e2e/soak_test.py

Clients translate, stream and send documents; they cancel, set deadlines that cannot be met, send
invalid requests, close their connections during calls and are killed. Meanwhile a label moves
between two versions of the model and the server reads its models again. The metrics page gives
memory, files and threads; they must not grow after the first third of the run. From 20 minutes on a
line is fitted to the resident memory of the last two thirds, which must not grow by more than 2 %
per hour: a run of two hours is judged by the line itself, a shorter one by the lower bound of its
confidence interval. LINNET_SOAK_RESULT names a folder for the figures: tests/bench/results.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import grpc
import pytest
from slope import fit

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))
import machine

pytestmark = pytest.mark.slow

MINUTES = float(os.environ.get("LINNET_SOAK_MINUTES", "2"))
RESULT = os.environ.get("LINNET_SOAK_RESULT")
MAX_GROWTH = 0.02  # of resident memory, in an hour
TOKEN = "soak-" + 32 * "t"
CLIENTS = 4
TEXTS = [
    "One two three.",
    "A bird sings. The dog runs through the garden.\nShe writes a letter.",
    "a",
    "Please open the window. " * 4,
]
# The only codes that calls may get: invalid requests, a full server and a version that is being
# removed cause the others besides OK.
MET = {"OK", "CANCELLED", "DEADLINE_EXCEEDED", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"}


class Client(threading.Thread):
    """Makes calls of every kind, one by one, until it is stopped."""

    def __init__(self, server, seed: int, stop: threading.Event):
        super().__init__(daemon=True)
        self.server = server
        self.random = random.Random(seed)
        self.stop = stop
        self.codes: Counter[str] = Counter()
        self.fault: BaseException | None = None

    def run(self) -> None:
        kinds = (
            self.plain,
            self.plain,
            self.hurried,
            self.cancelled,
            self.streamed,
            self.document,
            self.nonsense,
            self.cut_off,
        )
        try:
            while not self.stop.is_set():
                try:
                    self.random.choice(kinds)()
                    self.codes["OK"] += 1
                except grpc.RpcError as error:
                    self.codes[error.code().name] += 1
        except BaseException as fault:
            self.fault = fault

    def texts(self) -> list[str]:
        return [self.random.choice(TEXTS) for _ in range(self.random.randint(1, 3))]

    def options(self) -> dict:
        beam = self.random.choice((1, 2, 5))
        return {"options": {"beam_size": beam, "max_target_tokens": self.random.randint(1, 40)}}

    def plain(self) -> None:
        texts = self.texts()
        answer = self.server.translate(*texts, **self.options())
        assert len(answer.translations) == len(texts)

    def hurried(self) -> None:
        self.server.translate(*self.texts(), timeout=self.random.uniform(0.001, 0.05))

    def cancelled(self) -> None:
        call = self.server.translate_slowly()
        time.sleep(self.random.uniform(0, 0.05))
        call.cancel()

    def streamed(self) -> None:
        parts = self.server.stream_translate(*self.texts(), **self.options())
        read = self.random.randint(0, 10)
        for number, _ in enumerate(parts):
            if number == read:
                parts.cancel()

    def document(self) -> None:
        lines = [(number, self.random.choice(TEXTS)) for number in range(12)]
        results = self.server.document(lines, **self.options())
        read = self.random.choice((3, 100))
        for number, _ in enumerate(results):
            if number == read:
                results.cancel()

    def nonsense(self) -> None:
        with pytest.raises(grpc.RpcError) as error:
            self.server.translate(source_language_code="no language at all")
        raise error.value

    def cut_off(self) -> None:
        """Closes a connection while its call is in flight."""
        api = self.server.api
        request = api.TranslateRequest(
            contents=TEXTS,
            source_language_code="en",
            target_language_code="de",
            options={"beam_size": 5, "min_target_tokens": 200, "max_target_tokens": 200},
        )
        channel = grpc.insecure_channel(self.server.grpc, [("grpc.use_local_subchannel_pool", 1)])
        channel.unary_unary("/linnet.v1.TextService/Translate").future(
            request.SerializeToString(), metadata=[("authorization", f"Bearer {TOKEN}")]
        )
        time.sleep(self.random.uniform(0, 0.1))
        channel.close()


@pytest.fixture
def models(bundles, tmp_path) -> Path:
    """en-de in two versions with the same weights, the first one stable; and en-summary."""
    folder = tmp_path / "models"
    for version in ("1", "2"):
        copy = folder / "en-de" / version
        shutil.copytree(bundles / "en-de", copy)
        manifest = json.loads((copy / "manifest.json").read_text())
        manifest["version"] = version
        (copy / "manifest.json").write_text(json.dumps(manifest))
    (folder / "en-de" / "stable").symlink_to("1")
    shutil.copytree(bundles / "en-summary", folder / "en-summary")
    return folder


def move_label(models: Path, version: str) -> None:
    link = models / "en-de" / "next"
    link.symlink_to(version)
    link.replace(models / "en-de" / "stable")


WATCHED = ("process_resident_memory_bytes", "process_open_fds", "threads")


def page(server) -> dict[str, float]:
    lines = [line for line in server.scrape().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def quiet(samples: dict[str, float]) -> dict[str, float]:
    """The samples that must be 0 in an idle server but are not."""
    begins = ("linnet_admitted_tokens", "linnet_admitted_bytes", "linnet_requests_in_flight")
    begins += ("linnet_sequences{",)
    return {
        name: value
        for name, value in samples.items()
        if name.startswith(begins) and "_limit" not in name and value != 0
    }


class WithToken(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Sends a token with every call."""

    def intercept_unary_unary(self, proceed, details, request):
        return proceed(self.shown(details), request)

    intercept_unary_stream = intercept_stream_stream = intercept_unary_unary

    @staticmethod
    def shown(details):
        headers = [*(details.metadata or ()), ("authorization", f"Bearer {TOKEN}")]
        return details._replace(metadata=headers)


def memory_does_not_grow(times: list[float], memory: list[float]) -> None:
    slope = fit(times, memory)
    print(f"resident memory: {slope}")
    if RESULT:
        figures = {"minutes": MINUTES, "resident_bytes": memory[-1], **vars(slope)}
        figures["machine"] = machine.facts(sorted(os.sched_getaffinity(0)))
        path = Path(RESULT) / machine.slug(figures["machine"]) / "soak.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(figures, indent=1) + "\n")
    growth = slope.per_hour if MINUTES >= 120 else slope.low
    assert growth <= MAX_GROWTH, slope


def test_nothing_grows(start, models, program):
    if RESULT:
        machine.require_commit(Path(RESULT))
    tokens = models.parent / "tokens"
    tokens.write_text(f"{TOKEN} soak inference\n")
    server = start(
        *("--max-batch-rows", "20", "--lame-duck", "0", "--tokens", str(tokens)), models=models
    )
    server.channel = grpc.intercept_channel(server.channel, WithToken())
    stop = threading.Event()
    clients = [Client(server, seed, stop) for seed in range(CLIENTS)]
    for client in clients:
        client.start()
    load = [str(program("linnet-load")), "--server", server.grpc, "--concurrency", "4"]
    load += ["--from", "en", "--to", "de", "--beam", "2", "--duration", "1h"]
    token = models.parent / "token"
    token.write_text(TOKEN)
    load += ["--token-file", str(token)]
    begin = time.monotonic()
    end = begin + 60 * MINUTES
    samples: list[dict[str, float]] = []
    times: list[float] = []
    reloads = 0
    try:
        while time.monotonic() < end:
            killed = subprocess.Popen(load, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            reloads += 1
            move_label(models, str(1 + reloads % 2))
            # Reload the tokens, with a different one each time.
            tokens.write_text(f"{TOKEN} soak inference\n{reloads:032d} guest-{reloads} inference\n")
            server.process.send_signal(signal.SIGHUP)
            for _ in range(3):
                time.sleep(1)
                now = page(server)
                now["threads"] = len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))
                samples.append({name: now[name] for name in WATCHED})
                times.append(time.monotonic() - begin)
            killed.kill()
            killed.wait()
    finally:
        stop.set()
        for client in clients:
            client.join(60)
    codes: Counter[str] = sum((client.codes for client in clients), Counter())
    print(f"\n{sum(codes.values())} calls in {MINUTES} minutes, {reloads} reloads: {dict(codes)}")

    assert [client.fault for client in clients if client.fault] == []
    assert not any(client.is_alive() for client in clients), "a call does not end"
    assert set(codes) <= MET, codes
    assert codes["OK"] > 10 * MINUTES
    wait = time.monotonic() + 30
    while left := quiet(page(server)):
        assert time.monotonic() < wait, f"nobody calls, and yet: {left}"
        time.sleep(0.1)
    last = page(server)
    assert last['linnet_model_reloads_total{result="failed"}'] == 0
    assert last['linnet_model_reloads_total{result="ok"}'] > reloads / 2
    failed = [name for name in last if 'code="INTERNAL"' in name or 'code="UNKNOWN"' in name]
    assert [name for name in failed if last[name] != 0] == []

    third = len(samples) // 3
    assert third >= 5, "the run is too short"
    for name in WATCHED:
        values = [sample[name] for sample in samples]
        middle, final = (
            statistics.median(part) for part in (values[third:-third], values[-third:])
        )
        print(f"{name}: {min(values):.0f} to {max(values):.0f}, {middle:.0f} then {final:.0f}")
        # Within a twentieth: the number of connections and engines at a moment varies.
        slack = {"process_resident_memory_bytes": 16 << 20, "process_open_fds": 12}.get(name, 6)
        assert final <= 1.05 * middle + slack, f"{name} grows"
    if MINUTES >= 20:
        memory = [sample["process_resident_memory_bytes"] for sample in samples]
        memory_does_not_grow(times[third:], memory[third:])
    assert server.stop() == 0
