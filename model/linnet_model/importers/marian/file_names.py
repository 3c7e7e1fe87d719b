"""Guesses the languages of a Firefox model from the names of its files.

    model.enpt.intgemm.alphas.bin   lex.50.50.enpt.s2t.bin   vocab.ptes.spm   srcvocab.enzh_hant.spm

A name has the source and the target without a mark between them. A code of two letters must be one
of ISO 639-1; where a name can be read in two ways, English on one side decides. Older vocabularies
serve both directions under one name, so a vocabulary tells the two languages and not their order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from linnet_model.importers.huggingface.config import names
from linnet_model.network.model_config import ConfigError, require

Languages = tuple[str, str]

TWO_LETTERS = names(
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv "
    "cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr "
    "ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw "
    "ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv "
    "ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq "
    "sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh "
    "yi yo za zh zu"
)
CODE = re.compile(r"([a-z]{2,3})(_[a-z]{4})?")  # a language, and its script
PAIR = r"([a-z]{2,3}(?:_[a-z]{4})?[a-z]{2,3}(?:_[a-z]{4})?)"
DIRECTED = re.compile(rf"(?:model|lex(?:\.\d+)*)\.{PAIR}\..*")
VOCABULARY = re.compile(rf"(?:(?:src|trg)?vocab)\.{PAIR}\.spm")
SIZES = ("tiny", "base", "best")  # they look like pairs


def language_of(text: str) -> str | None:
    """Returns a BCP-47 code, zh-Hant for zh_hant."""
    found = CODE.fullmatch(text)
    if found is None or (len(found[1]) == 2 and found[1] not in TWO_LETTERS):
        return None
    return found[1] + (f"-{found[2][1:].title()}" if found[2] else "")


def pair_of(text: str) -> Languages | None:
    """Returns the languages that a name such as enpt stands for, if it has one reading."""
    if text in SIZES:
        return None
    readings = []
    for middle in range(2, len(text) - 1):
        source, target = language_of(text[:middle]), language_of(text[middle:])
        # Two codes of three letters without English may be any word.
        words = len(text) == 6 and "eng" not in (source, target)
        if source is not None and target is not None and source != target and not words:
            readings.append((source, target))
    english = [reading for reading in readings if "en" in reading]
    chosen = english or readings
    return chosen[0] if len(chosen) == 1 else None


def languages_of(names: Sequence[str]) -> Languages | None:
    """Returns the languages of a model whose files have these names, or None if they do not say.
    Raises ConfigError if they contradict each other."""
    directed = {name: found for name in names if (found := named_pair(DIRECTED, name))}
    other = {name: found for name in names if (found := named_pair(VOCABULARY, name))}
    told = ", ".join(
        f"{name} says {one} to {two}" for name, (one, two) in [*directed.items(), *other.items()]
    )
    require(
        len(set(directed.values())) <= 1
        and len({frozenset(p) for p in [*directed.values(), *other.values()]}) <= 1,
        f"the names of the files contradict each other: {told}; take the files of one model",
    )
    if not directed:
        return None
    pair = next(iter(directed.values()))
    # A word such as "more" looks like a pair: one name without English is not enough.
    return pair if "en" in pair or len(directed) + len(other) > 1 else None


def named_pair(form: re.Pattern[str], name: str) -> Languages | None:
    found = form.fullmatch(name.lower())
    return pair_of(found[1]) if found else None


def confirmed(guess: Languages | None, given: tuple[str | None, str | None]) -> Languages:
    """Returns the languages of a model. `given` are those of the flags, which may say more than the
    names of the files (pt-BR), but no other language."""
    sides = []
    for side, code, guessed in zip(("source", "target"), given, guess or (None, None), strict=True):
        flag = f"--{side}-language"
        if code is None and guessed is None:
            raise ConfigError(
                "the names of the files do not tell the languages: give --source-language and "
                "--target-language, BCP-47"
            )
        if code is not None and guessed is not None:
            require(
                agree(code, guessed),
                f"{flag} is {code!r}, the names of the files say {guessed!r}: leave out the flag, "
                "or rename the files",
            )
        sides.append(code or guessed or "")
    return sides[0], sides[1]


def agree(code: str, guessed: str) -> bool:
    one, other = code.lower().split("-"), guessed.lower().split("-")
    scripts = [[part for part in parts[1:] if len(part) == 4] for parts in (one, other)]
    return one[0] == other[0] and (not all(scripts) or scripts[0] == scripts[1])
