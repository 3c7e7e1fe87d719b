"""Prometheus metrics of the front end, of all its processes together."""

from __future__ import annotations

import os
import shutil
import tempfile

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
from prometheus_client.multiprocess import MultiProcessCollector  # noqa: E402

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


def page() -> tuple[bytes, str]:
    """The page that Prometheus reads, and its content type."""
    return generate_latest(_REGISTRY), CONTENT_TYPE_LATEST


def remove_folder() -> None:
    shutil.rmtree(_FOLDER, ignore_errors=True)
