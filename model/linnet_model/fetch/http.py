"""Downloads by HTTP: resumed after a cut, bounded in size, compared with a sha256.

What has arrived lies in NAME.part, and NAME.part.json says of what it is a part. A download that
was cut goes on from there, in this run or in a later one.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import requests
import urllib3
from tqdm import tqdm

from linnet_model.config import ConfigError
from linnet_model.fetch.plan import check_sha256

ATTEMPTS = 5  # in succession that bring nothing
TIMEOUT = (10, 60)  # seconds to connect, and without a byte
CHUNK = 1 << 16
MAX_BYTES = 1 << 33
RETRIED = (408, 429, 500, 502, 503, 504)
OK, PARTIAL, BEYOND = 200, 206, 416


class Cut(Exception):
    """An attempt that may go better the next time."""


def public(url: str) -> str:
    """Returns a URL without its secrets: user, password and query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def check_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url} is no URL that is fetched: http://… or https://…")
    return url


class Downloads:
    """Fetches files into one folder, over connections that are kept open."""

    def __init__(
        self, *, limit: int = MAX_BYTES, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._session = requests.Session()
        self._limit = limit
        self._pause = pause

    def text(self, url: str, limit: int) -> str:
        """Returns a small document."""
        for left in reversed(range(ATTEMPTS)):
            try:
                with self._get(url, {}) as response:
                    self._check_status(url, response, (OK,))
                    content = response.raw.read(limit + 1, decode_content=True)
                if len(content) > limit:
                    raise ConfigError(f"{public(url)} has more than {limit} bytes, the limit")
                return str(content.decode("utf-8"))
            except UnicodeDecodeError:
                raise ConfigError(f"{public(url)} is no text in UTF-8") from None
            except (Cut, urllib3.exceptions.HTTPError) as error:
                self._again(url, error, left, None)
        raise AssertionError

    def json(self, url: str, limit: int) -> Any:
        """Returns a small document of JSON."""
        try:
            return json.loads(self.text(url, limit))
        except ValueError:
            raise ConfigError(f"{public(url)} is no JSON") from None

    def file(self, url: str, target: Path, sha256: str = "") -> str:
        """Writes the file and returns its sha256."""
        part = target.with_name(f"{target.name}.part")
        resumed = part.exists()
        self._fetch(url, part, pinned=bool(sha256))
        try:
            found = check_sha256(part, sha256, public(url))
        except ConfigError:
            if not resumed:
                raise
            self._fetch(url, part, pinned=True)  # what was there before may have been of another
            found = check_sha256(part, sha256, public(url))
        part.replace(target)
        self._state(part).unlink(missing_ok=True)
        return found

    def _fetch(self, url: str, part: Path, *, pinned: bool) -> None:
        self._forget_other(url, part, pinned=pinned)
        left = ATTEMPTS
        while True:
            before = part.stat().st_size if part.exists() else 0
            try:
                if self._attempt(url, part):
                    return
            except (Cut, urllib3.exceptions.HTTPError) as error:
                grown = (part.stat().st_size if part.exists() else 0) > before
                left = ATTEMPTS if grown else left - 1
                self._again(url, error, left, part)

    def _again(self, url: str, error: Exception, left: int, part: Path | None) -> None:
        """Waits before the next attempt, or raises ConfigError if there is none."""
        if left:
            self._pause(0.5 * 2 ** (ATTEMPTS - left))
            return
        kept = ""
        if part is not None and part.exists():
            kept = (
                f"; {part.stat().st_size} bytes are in {part}, and the same command goes on there"
            )
        raise ConfigError(
            f"{public(url)} cannot be fetched: {error}; check the network, and the proxy in "
            f"https_proxy if there is one{kept}"
        ) from None

    def _attempt(self, url: str, part: Path) -> bool:
        """Fetches what is missing. Returns whether that was all."""
        have = part.stat().st_size if part.exists() else 0
        headers = {}
        if have:
            headers["Range"] = f"bytes={have}-"
            tag = self._read_state(part).get("etag")
            if tag:
                headers["If-Range"] = tag
        with self._get(url, headers) as response:
            if response.status_code == BEYOND and have:
                whole = response.headers.get("Content-Range", "").rpartition("/")[2] == str(have)
                if not whole:
                    part.unlink()
                return whole
            self._check_status(url, response, (OK, PARTIAL))
            if response.status_code == PARTIAL:
                start = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
                if start is None or int(start[1]) != have:
                    part.unlink(missing_ok=True)
                    raise Cut("the server sent another part than was requested")
            else:
                have = 0
            self._write_state(part, url, response.headers.get("ETag", ""))
            self._receive(url, response, part, have)
        return True

    def _receive(self, url: str, response: requests.Response, part: Path, have: int) -> None:
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if length.isdecimal() else None
        self._check_size(url, total or 0)
        # The bytes as they are sent: a range counts these, and so does the sha256.
        chunks = response.raw.stream(CHUNK, decode_content=False)
        with (
            part.open("ab" if have else "wb") as out,
            tqdm(
                total=total,
                initial=have,
                unit="B",
                unit_scale=True,
                desc=part.name.removesuffix(".part"),
                disable=None,  # where standard error is no terminal
            ) as bar,
        ):
            for chunk in chunks:
                have += len(chunk)
                self._check_size(url, have)
                out.write(chunk)
                bar.update(len(chunk))

    def _check_size(self, url: str, count: int) -> None:
        if count > self._limit:
            raise ConfigError(f"{public(url)} has more than {self._limit} bytes, the limit")

    def _get(self, url: str, headers: dict[str, str]) -> requests.Response:
        check_url(url)
        try:
            response = self._session.get(
                url, headers=headers | {"Accept-Encoding": "identity"}, stream=True, timeout=TIMEOUT
            )
        except requests.exceptions.SSLError as error:
            raise ConfigError(
                f"{public(url)} cannot be trusted: {error}; REQUESTS_CA_BUNDLE names a file with "
                "other certificates"
            ) from None
        except (requests.ConnectionError, requests.Timeout) as error:
            raise Cut(reason_of(error)) from None
        except requests.RequestException as error:
            raise ConfigError(f"{public(url)} cannot be fetched: {error}") from None
        schemes = [urlsplit(it.url).scheme for it in (*response.history, response)]
        if "https" in schemes and "http" in schemes[schemes.index("https") :]:
            response.close()
            raise ConfigError(f"{public(url)} is redirected from https to http, which is refused")
        return response

    def _check_status(
        self, url: str, response: requests.Response, expected: tuple[int, ...]
    ) -> None:
        status = response.status_code
        if status in RETRIED:
            raise Cut(f"HTTP {status} {response.reason}")
        if status not in expected:
            there = "" if response.url == url else f" at {public(response.url)}"
            raise ConfigError(
                f"{public(url)} cannot be fetched: HTTP {status} {response.reason}{there}"
            )

    # --- What a part is of

    def _state(self, part: Path) -> Path:
        return part.with_name(f"{part.name}.json")

    def _read_state(self, part: Path) -> dict[str, Any]:
        try:
            state = json.loads(self._state(part).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return state if isinstance(state, dict) else {}

    def _write_state(self, part: Path, url: str, etag: str) -> None:
        strong = "" if etag.startswith("W/") else etag
        self._state(part).write_text(json.dumps({"url": url, "etag": strong}), encoding="utf-8")

    def _forget_other(self, url: str, part: Path, *, pinned: bool) -> None:
        """Removes a part of which nothing says that the rest would fit to it."""
        state = self._read_state(part)
        if state.get("url") != url or not (pinned or state.get("etag")):
            part.unlink(missing_ok=True)


def reason_of(error: BaseException) -> str:
    """Returns the innermost reason: requests and urllib3 wrap it several times."""
    while True:
        inner = getattr(error, "reason", None) or next(
            (it for it in error.args if isinstance(it, BaseException)), None
        )
        if not isinstance(inner, BaseException):
            return re.sub(r"^<[^>]*>: |^.*object at 0x\w+>: ", "", str(error))
        error = inner
