"""Language pairs of a model that has several, with the ids that tell the model of them.

They are the field `languages` of a manifest (LanguageTokens in proto/linnet/v1/bundle.proto).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from linnet_model.network.model_config import require

# As in model/runtime/bundle/languages.cc.
MAX_PAIRS = 1 << 14
LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")


@dataclass(frozen=True)
class LanguageTokens:
    """A pair, BCP-47, and its ids: read before the text of a source and behind its end token, and
    forced at the start of every target. `style`: of a summariser, the style that they ask for."""

    source: str
    target: str
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    forced: tuple[int, ...] = ()
    style: str = ""

    def manifest(self) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "source_language_code": self.source,
            "target_language_code": self.target,
        }
        for name, ids in (
            ("before_source_ids", self.before),
            ("after_source_ids", self.after),
            ("forced_target_ids", self.forced),
        ):
            if ids:
                fields[name] = list(ids)
        if self.style:
            fields["style"] = f"SUMMARY_STYLE_{self.style.upper()}"
        return fields


def check_language_code(what: str, code: str) -> None:
    """Refuses a code that no server loads."""
    require(
        LANGUAGE_CODE.fullmatch(code) is not None,
        f"{what} is {code!r}, which is no BCP-47 code such as 'de' or 'pt-BR'",
    )


def is_unspaced(language: str) -> bool:
    """Returns whether the language, BCP-47, has no blanks between words, as in languages.cc."""
    return language.split("-")[0].lower() in ("zh", "yue", "ja", "th", "lo", "km", "my")


def max_forced(pairs: Sequence[LanguageTokens]) -> int:
    return max((len(pair.forced) for pair in pairs), default=0)


def check_pairs(pairs: Sequence[LanguageTokens], source: str, target: str) -> None:
    """Refuses pairs that no server loads; `source` and `target` are the manifest's own pair."""
    names = [(pair.source, pair.target) for pair in pairs]
    styled = [(*name, pair.style) for name, pair in zip(names, pairs, strict=True)]
    require(
        len(pairs) <= MAX_PAIRS,
        f"{len(pairs)} language pairs are more than the {MAX_PAIRS} that a server reads, leave out "
        "languages",
    )
    for pair in pairs:
        check_language_code("the source of a language pair", pair.source)
        check_language_code("the target of a language pair", pair.target)
    require(len(set(styled)) == len(styled), "a language pair is there twice")
    require(
        not pairs or (source, target) in names,
        f"the language pairs do not have the model's own, {source} to {target}",
    )


def named_tags(given: Sequence[str], flag: str) -> dict[str, str]:
    """Reads CODE=TAG, a language's BCP-47 code and its name in the model; CODE alone is both."""
    table: dict[str, str] = {}
    for entry in given:
        code, _, tag = entry.partition("=")
        require(bool(code) and (bool(tag) or "=" not in entry), f"{flag} {entry!r} is no CODE=TAG")
        require(
            LANGUAGE_CODE.fullmatch(code) is not None,
            f"{flag} {entry!r} begins with no BCP-47 code such as 'de' or 'pt-BR': the model's "
            f"name of a language stands behind its code, as in pt-BR={code}",
        )
        require(code not in table, f"{flag} names {code!r} twice")
        table[code] = tag or code
    return table
