"""Concurrent callers that translate repeatedly, with the service configs of deploy/balancers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field

import grpc
from messages import Messages
from programs import ROOT

DEADLINE_SECONDS = 30  # of a call with its retries
TEXT = "Where is the train station?"


@dataclass
class Call:
    begin: float
    seconds: float
    code: str
    said: str = field(default="", repr=True)


class ConcurrentCalls:
    """A number of concurrent callers, each with one call after another, until stop()."""

    def __init__(self, target: str, service_config: str, count: int):
        messages = Messages()
        request = messages["linnet.v1.TranslateRequest"]
        response = messages["linnet.v1.TranslateResponse"]
        self.request = request(
            contents=[TEXT], source_language_code="en", target_language_code="de"
        )
        config = (ROOT / "deploy/balancers" / service_config).read_text()
        options = [("grpc.service_config", config), ("grpc.enable_retries", 1)]
        self.channel = grpc.insecure_channel(target, options=options)
        self.translate = self.channel.unary_unary(
            "/linnet.v1.TextService/Translate",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )
        self.calls: list[Call] = []
        self.going = True
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self) -> None:
        while self.going:
            begin = time.monotonic()
            code, said = "OK", ""
            try:
                answer = self.translate(self.request, timeout=DEADLINE_SECONDS)
                said = answer.translations[0].text
            except grpc.RpcError as error:
                code, said = error.code().name, error.details()
            self.calls.append(Call(begin, time.monotonic() - begin, code, said))

    def wait_for_calls(self, count: int, seconds: float = 120) -> None:
        """Waits until this many more calls have ended."""
        wanted, end = len(self.calls) + count, time.monotonic() + seconds
        while len(self.calls) < wanted:
            assert time.monotonic() < end, f"{len(self.calls)} of {wanted} after {seconds} s"
            assert all(thread.is_alive() for thread in self.threads), "a caller has died"
            time.sleep(0.05)

    def stop(self) -> list[Call]:
        self.going = False
        for thread in self.threads:
            thread.join(DEADLINE_SECONDS + 10)
        self.channel.close()
        return self.calls


def failures(calls: list[Call]) -> Counter:
    return Counter((call.code, call.said) for call in calls if call.code != "OK")


def percentile(calls: list[Call], share: float) -> float:
    """Seconds within which this share of the calls ended."""
    ordered = sorted(call.seconds for call in calls)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
