"""Author, licence and attribution of each domain of the data, from sources.toml and the recipe."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from linnet_model.config import ConfigError

SOURCES = Path(__file__).with_name("sources.toml")
TERMS = ("what", "author", "licence", "attribution")  # required for every domain


# Endings of a domain that linnet-diversify writes: the domain of its texts, one side translated.
FORWARD, BACKWARD = "_forward", "_backward"
TRANSLATED = {FORWARD: "targets", BACKWARD: "sources"}
TRAINED_ON = "trained on texts under "  # begins the licence of a bundle that linnet-export makes


def known_sources(own: dict[str, dict[str, str]] | None) -> dict[str, dict[str, Any]]:
    """Returns the terms of each domain, also of those that linnet-diversify makes of them."""
    known = tomllib.loads(SOURCES.read_text(encoding="utf-8")) | (own or {})
    translated = {
        domain + ending: terms | {"what": f"{terms['what']}, {sides} translated by a model"}
        for domain, terms in known.items()
        if "what" in terms
        for ending, sides in TRANSLATED.items()
    }
    return translated | known


def licences_of(domains: Iterable[str], own: dict[str, dict[str, str]] | None = None) -> set[str]:
    """Returns the licences of some domains; one without is named as unknown."""
    known = known_sources(own)
    return {known.get(name, {}).get("licence", f"unknown ({name})") for name in domains}


def sources_of(
    domains: Iterable[str], own: dict[str, dict[str, str]] | None = None
) -> dict[str, dict[str, Any]]:
    """Returns the entries of some domains from sources.toml or `own`, the recipe's data.terms. A
    domain without all of TERMS is an error."""
    known = known_sources(own)
    missing = [domain for domain in domains if not known.get(domain, {}).keys() >= {*TERMS}]
    if missing:
        raise ConfigError(
            f"author and licence of {', '.join(missing)} are unknown, add "
            f"[data.terms.{missing[0]}] to the recipe with {', '.join(TERMS)}"
        )
    return {domain: known[domain] for domain in domains}
