"""Fixtures with the real linnet-server and linnet on tiny bundles with random weights."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import grpc
import pytest
from messages import Messages
from python_package import install_package
from random_bundles import random_bundle

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 120  # loading a bundle on a busy machine
GOOGLE_RPC = {
    "BadRequest",
    "ErrorInfo",
    "QuotaFailure",
    "RequestInfo",
    "ResourceInfo",
    "RetryInfo",
    "Status",
}


@pytest.fixture(scope="session")
def server_binary(program) -> Path:
    return program("linnet-server")


@pytest.fixture(scope="session")
def grpc_patches(server_binary) -> int:
    """The number of the last patch of deps/grpc in the gRPC that the server loads; 0: Debian's."""
    libraries = subprocess.run(["ldd", str(server_binary)], capture_output=True, text=True).stdout
    (path,) = [line.split()[2] for line in libraries.splitlines() if "libgrpc.so" in line]
    if ".deps/grpc" not in path:
        return 0
    # In a process of its own: this one has the gRPC of Python.
    read = "import ctypes, sys; patches = ctypes.CDLL(sys.argv[1]).linnet_grpc_patches;"
    read += "patches.restype = ctypes.c_char_p; print(int(patches()))"
    done = subprocess.run(
        [sys.executable, "-c", read, path], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.fixture(scope="session")
def on_patched_grpc(grpc_patches) -> None:
    if not grpc_patches:
        pytest.skip("Debian's gRPC has the defects: ./start.sh --patched-grpc builds one without")
    if grpc_patches < len(list((ROOT / "deps/grpc").glob("*.patch"))):
        pytest.skip("gRPC has older patches than these: run ./start.sh --patched-grpc again")


@pytest.fixture(scope="session")
def linnet_binary(program) -> Path:
    return program("linnet")


@pytest.fixture
def run_linnet(linnet_binary):
    """Runs linnet: run_linnet(server, "translate", …, stdin="") returns the finished process."""

    def run(server, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess:
        return subprocess.run(
            [str(linnet_binary), *arguments],
            env={**os.environ, "LINNET_SERVER": server.grpc},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


@pytest.fixture(scope="session")
def bundles(tmp_path_factory) -> Path:
    """A translator en-de and a summariser en-summary, tiny, with random weights."""
    folder = tmp_path_factory.mktemp("bundles")
    for name, task in {"en-de": "translate", "en-summary": "summarize"}.items():
        random_bundle(folder / name, "--seed", "7", "--task", task)
    return folder


class Api:
    """Message classes of linnet.v1 and google.rpc by their short names: api.TranslateRequest."""

    def __init__(self, messages: Messages):
        self._messages = messages

    def __getattr__(self, name: str):
        package = "google.rpc" if name in GOOGLE_RPC else "linnet.v1"
        return self._messages[f"{package}.{name}"]

    def details(self, error: grpc.RpcError) -> dict:
        """The details of an error by the name of their message."""
        trailers = dict(error.trailing_metadata() or ())
        found = {}
        for detail in self.Status.FromString(trailers.get("grpc-status-details-bin", b"")).details:
            name = detail.type_url.rsplit(".", 1)[-1]
            assert name not in found, f"two details {name}"
            found[name] = getattr(self, name).FromString(detail.value)
        return found

    def check_error(self, error: grpc.RpcError) -> dict:
        """Checks that code, details and trailers are those of the reason in docs/ERRORS.md."""
        rows = [
            [cell.strip() for cell in line.strip("|\n").split("|")]
            for line in (ROOT / "docs/ERRORS.md").read_text().splitlines()
            if line.startswith("| ") and not line.startswith("| reason")
        ]
        table = {name: (code, set(filter(None, said.split(", ")))) for name, code, said, _ in rows}
        details = self.details(error)
        code, said = table[details["ErrorInfo"].reason]
        assert error.code().name == code
        assert set(details) == {"ErrorInfo", "RequestInfo"} | said
        trailers = dict(error.trailing_metadata())
        assert ("grpc-retry-pushback-ms" in trailers) == ("RetryInfo" in said)
        return details


@pytest.fixture(scope="session")
def api() -> Api:
    return Api(Messages())


def poll(read, wanted, name: str, seconds: float) -> None:
    """Calls read() until wanted(its value)."""
    end = time.monotonic() + seconds
    while not wanted(value := read()):
        assert time.monotonic() < end, f"{name} stays at {value}"
        time.sleep(0.02)


class Running:
    """A running server, with methods to call it, to read its metrics and to stop it."""

    def __init__(self, process: subprocess.Popen, ready: str, api: Api):
        match = re.fullmatch(
            r"ready grpc=(\S+:\d+) metrics=(\S+:\d+)(?: admin=(\S+:\d+))?"
            r"(?: missing=(\S+))?\n",
            ready,
        )
        assert match, f"not the line that scripts wait for: {ready!r}"
        self.grpc, self.metrics, self.admin, missing = match.groups()
        self.missing = missing.split(",") if missing else []
        self.process = process
        self.api = api
        self.channel = grpc.insecure_channel(self.grpc, options=[("grpc.enable_retries", 0)])

    def method(self, name: str, kind: str = "unary_unary"):
        request = getattr(self.api, f"{name}Request")
        response = getattr(self.api, f"{name}Response")
        return getattr(self.channel, kind)(
            f"/linnet.v1.TextService/{name}",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )

    def translate(self, *contents: str, timeout: float = 60, **fields):
        fields = {"source_language_code": "en", "target_language_code": "de", **fields}
        return self.method("Translate")(
            self.api.TranslateRequest(contents=contents, **fields), timeout=timeout
        )

    def translate_slowly(self, seconds_or_more: int = 1, **fields):
        """A call that takes many steps; returns its future."""
        fields = {"source_language_code": "en", "target_language_code": "de", **fields}
        request = self.api.TranslateRequest(
            contents=["one two three"] * 8 * seconds_or_more,
            options={"beam_size": 5, "min_target_tokens": 1000, "max_target_tokens": 1024},
            **fields,
        )
        return self.method("Translate").future(request, timeout=120)

    def stream_translate(self, *contents: str, timeout: float = 60, **fields):
        """Returns the call; iterate over its messages."""
        fields = {"source_language_code": "en", "target_language_code": "de", **fields}
        request = self.api.TranslateRequest(contents=contents, **fields)
        return self.method("StreamTranslate", "unary_stream")(
            self.api.StreamTranslateRequest(request=request), timeout=timeout
        )

    def document(self, lines, keep_order: bool = False, timeout: float = 120, **settings):
        """Starts a document of (sequence id, text), with each line in a message of its own."""
        settings = {"source_language_code": "en", "target_language_code": "de", **settings}

        def messages():
            yield self.api.TranslateDocumentRequest(settings=settings, keep_order=keep_order)
            for sequence_id, text in lines:
                line = {"sequence_id": sequence_id, "text": text}
                yield self.api.TranslateDocumentRequest(lines=[line])

        return self.method("TranslateDocument", "stream_stream")(messages(), timeout=timeout)

    def summarize(self, *contents: str, **fields):
        fields = {"language_code": "en", **fields}
        return self.method("Summarize")(
            self.api.SummarizeRequest(contents=contents, **fields), timeout=60
        )

    def scrape(self) -> str:
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=10) as page:
            return page.read().decode()

    def metric(self, line: str) -> float:
        """The value of a sample, named as on the page: name{labels}."""
        for sample in self.scrape().splitlines():
            if sample.startswith(line + " "):
                return float(sample.rsplit(" ", 1)[1])
        raise AssertionError(f"no {line} on the page")

    def calls(self) -> int:
        """The number of calls on the server, of all methods."""
        sample = re.compile(r"^linnet_requests_in_flight\{.*\} (\d+)$", re.MULTILINE)
        return sum(map(int, sample.findall(self.scrape())))

    def wait_for(self, line: str, wanted, seconds: float = 30) -> None:
        """Polls the metrics page until wanted(value): no other interface shows the state inside."""
        poll(lambda: self.metric(line), wanted, line, seconds)

    def wait_for_calls(self, count: int) -> None:
        """Polls the metrics page until `count` calls, of any methods, are on the server."""
        poll(self.calls, lambda calls: calls >= count, "the number of calls on the server", 30)

    def health(self, service: str) -> int:
        """1 SERVING, 2 NOT_SERVING; the messages of grpc.health.v1 are encoded by hand."""
        check = self.channel.unary_unary("/grpc.health.v1.Health/Check")
        request = b"\x0a" + bytes([len(service)]) + service.encode() if service else b""
        response = check(request, timeout=10)
        return response[1] if response else 0

    def stop(self, how: int = signal.SIGTERM, seconds: float = 60) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(seconds)
        self.channel.close()
        return status


@pytest.fixture(scope="session")
def start(server_binary, bundles, api, tmp_path_factory):
    """start("--max-batch-rows", "8") → Running, on free ports. Killed at the end."""
    processes = []

    def start_server(
        *flags: str,
        models: Path = bundles,
        log: Path | None = None,
        binary: Path = server_binary,
    ) -> Running:
        log = log or tmp_path_factory.mktemp("log") / "stderr"
        command = [str(binary), "--models", str(models), "--threads", "1", *flags]
        for address in ("--listen", "--metrics-listen"):
            if address not in flags:
                command += [address, "127.0.0.1:0"]
        with log.open("w") as stderr:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
        processes.append(process)
        end = time.monotonic() + START_SECONDS
        ready = process.stdout.readline()
        assert time.monotonic() < end
        if not ready:
            raise AssertionError(f"the server ended with {process.wait()}: {log.read_text()}")
        running = Running(process, ready, api)
        running.log = log
        return running

    yield start_server
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def server(start) -> Running:
    """One server for all tests that do not change its state."""
    # Slow builds, such as those with sanitizers, must not shed the calls of tests.
    return start("--log-level", "debug", "--overload-max-queue-delay", "60")


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """A folder with the package `linnet` of client/python, installed."""
    return install_package(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="session")
def linnet(site):
    sys.path.insert(0, str(site))
    for name in [it for it in sys.modules if it.partition(".")[0] == "linnet"]:
        del sys.modules[name]  # of linnet_files, which has the one of the environment
    import linnet

    assert Path(linnet.__file__).is_relative_to(site)
    return linnet


@pytest.fixture
def run_server(server_binary):
    """Runs a server that must exit by itself: (exit status, standard output, standard error)."""

    def run(*flags: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [str(server_binary), *flags],
            capture_output=True,
            errors="replace",
            timeout=START_SECONDS,
        )
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def copied_bundle(bundles, tmp_path) -> Path:
    """A folder with a copy of en-de that a test may damage."""
    shutil.copytree(bundles / "en-de", tmp_path / "models" / "en-de")
    return tmp_path / "models" / "en-de"
