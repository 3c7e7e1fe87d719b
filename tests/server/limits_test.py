"""docs/LIMITS.md agrees with the settings and the sources."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/LIMITS.md").read_text()


def rows(heading: str) -> list[list[str]]:
    (section,) = re.findall(rf"^## {heading}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    table = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)
    return [[cell.strip() for cell in line.split(" | ")] for line in table[1:]]


def in_source(value: str) -> str:
    """A value of the page as the sources write it."""
    number, _, unit = value.partition(" ")
    return {"": "%s", "s": "absl::Seconds(%s)", "KiB": "%s << 10", "MiB": "%s << 20"}[unit] % number


def settings() -> dict[str, str]:
    page = (ROOT / "docs/SETTINGS.md").read_text()
    return dict(re.findall(r"^\| `([\w-]+)` \| `?([^`|]*?)`? \|", page, re.MULTILINE))


def test_lists_every_limit_with_its_default():
    defaults = settings()
    listed = {setting.strip("`"): default.strip("`") for _, default, setting, _ in rows("Server")}
    for setting, default in listed.items():
        assert defaults[setting] == default, setting
    limits = {name for name in defaults if name.startswith("max-")}
    assert limits <= set(listed)


def test_fixed_limits_equal_sources():
    found = rows("Fixed")
    assert len(found) > 4
    for limit, value, where, _ in found:
        number = in_source(re.search(r"`([^`]+)`", value)[1])
        source = (ROOT / where.strip("`")).read_text()
        assert re.search(rf"^ *[\w:]+ [^=\n]*= {re.escape(number)};", source, re.MULTILINE), limit


def test_client_limits_equal_sources():
    client = (ROOT / "client/library/client.h").read_text()
    values = {
        limit: [in_source(value) for value in re.findall(r"`([^`]+)`", default)]
        for limit, default, _ in rows("Clients")
    }
    assert "timeout = absl::Seconds(60);" in client
    assert values["seconds of a call, its retries included"] == ["60"]
    assert f"max_attempts = {values['attempts of a call'][0]};" in client
    assert f"max_reply_bytes = {values['bytes of an answer'][0]};" in client
    source = (ROOT / "client/command/text/text_source.h").read_text()
    assert (
        f"kMaxTextBytes = {values['bytes of one line or text that `linnet` reads'][0]};" in source
    )
    runner = (ROOT / "client/cli/batch_runner.h").read_text()
    texts, size = values["texts and bytes that `linnet` sends in one call"]
    assert f"kMaxTexts = {texts};" in (ROOT / "client/cli/request_window.h").read_text()
    assert f"kBytesPerRequest = {size};" in runner


def test_reasons_are_in_table_of_errors():
    table = (ROOT / "docs/ERRORS.md").read_text()
    known = set(re.findall(r"^\| ([A-Z_]+) \|", table, re.MULTILINE))
    # Status codes of gRPC, of the clients, and of responses; a warning.
    known |= {
        "UNREAD_TEXT",
        "RESOURCE_EXHAUSTED",
        "MESSAGE_TOO_LARGE",
        "CANCELLED",
        "FINISH_REASON_LENGTH",
    }
    for name in set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", PAGE)):
        assert name in known, name


def test_model_limits_are_manifest_fields():
    manifest = (ROOT / "proto/linnet/v1/bundle.proto").read_text()
    for field in re.findall(r"`limits\.(\w+)`", PAGE):
        assert field in manifest
