"""Author, licence and attribution of each domain of the data, from sources.toml and the recipe."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from linnet_model.config import ConfigError

SOURCES = Path(__file__).with_name("sources.toml")
TERMS = ("what", "author", "licence", "attribution")  # said of every domain


def sources_of(
    domains: Iterable[str], own: dict[str, dict[str, str]] | None = None
) -> dict[str, dict[str, Any]]:
    """What sources.toml, or the recipe's own data.terms, says of some domains; a domain of which
    neither says all of TERMS is an error."""
    known = tomllib.loads(SOURCES.read_text(encoding="utf-8")) | (own or {})
    missing = [domain for domain in domains if not known.get(domain, {}).keys() >= {*TERMS}]
    if missing:
        raise ConfigError(
            f"nothing says whose texts {', '.join(missing)} are, add [data.terms.{missing[0]}] to "
            f"the recipe with {', '.join(TERMS)}"
        )
    return {domain: known[domain] for domain in domains}
