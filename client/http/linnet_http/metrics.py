"""Prometheus metrics of the front end, of all its processes together."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import tempfile
from dataclasses import dataclass

# prometheus_client reads this when it is imported: the processes share their samples there.
_FOLDER = tempfile.mkdtemp(prefix="linnet-http-")
os.environ["PROMETHEUS_MULTIPROC_DIR"] = _FOLDER

from prometheus_client import (  # noqa: E402
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import (  # noqa: E402
    MultiProcessCollector,
    mark_process_dead,
)

log = logging.getLogger("linnet_http")
RECORD_SECONDS = 0.1

_REGISTRY = CollectorRegistry()
MultiProcessCollector(_REGISTRY)  # type: ignore[no-untyped-call]

REQUESTS = Counter(
    "linnet_http_requests_total",
    "Requests that ended, by face and HTTP status.",
    ["face", "status"],
)
SECONDS = Histogram(
    "linnet_http_request_duration_seconds",
    "Time from the head of a request to the end of its response, by face.",
    ["face"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
IN_FLIGHT = Gauge(
    "linnet_http_requests_in_flight",
    "Requests that are being answered.",
    multiprocess_mode="livesum",
)


@dataclass(frozen=True)
class Ended:
    """A request that ended, as it is logged."""

    method: str
    path: str  # the route: paths may hold texts
    face: str
    status: int
    seconds: float


class Recorder:
    """Counts and logs the requests of this process, a tenth of a second after they began or ended:
    the processor time for that, a seventh of a request's, is not one that its client waits for.
    Belongs to one event loop."""

    def __init__(self) -> None:
        self._in_flight = 0
        self._ended: list[Ended] = []
        self._timer: asyncio.TimerHandle | None = None

    def began(self) -> None:
        self._in_flight += 1
        self._start()

    def ended(self, request: Ended) -> None:
        self._in_flight -= 1
        self._ended.append(request)
        self._start()

    def _start(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(RECORD_SECONDS, self.write)

    def write(self) -> None:
        """Writes what has not been written yet."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        IN_FLIGHT.set(self._in_flight)
        ended, self._ended = self._ended, []
        for one in ended:
            REQUESTS.labels(one.face, str(one.status)).inc()
            SECONDS.labels(one.face).observe(one.seconds)
            fields = {**vars(one), "seconds": round(one.seconds, 4)}
            log.info("request", extra={"fields": fields})


RECORDER = Recorder()


def page() -> tuple[bytes, str]:
    """The page that Prometheus reads, and its content type."""
    RECORDER.write()
    return generate_latest(_REGISTRY), CONTENT_TYPE_LATEST


def forget(process: int) -> None:
    """Takes a process that has ended out of the requests in flight."""
    mark_process_dead(process)  # type: ignore[no-untyped-call]


def remove_folder() -> None:
    shutil.rmtree(_FOLDER, ignore_errors=True)
