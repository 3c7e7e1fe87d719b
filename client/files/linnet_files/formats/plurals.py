"""Plural forms of languages, as in the headers of message catalogues.

Source: https://www.gnu.org/software/gettext/manual/html_node/Plural-forms.html and the headers that
Debian's catalogues have."""

from __future__ import annotations

import gettext
import re
from collections.abc import Callable

_ONE = "nplurals=1; plural=0;"
_TWO = "nplurals=2; plural=(n != 1);"
_FRENCH = "nplurals=2; plural=(n > 1);"
_RUSSIAN = (
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && "
    "(n%100<10 || n%100>=20) ? 1 : 2);"
)
_CZECH = "nplurals=3; plural=(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2;"
_RULES = {
    "ja zh ko vi th id ms lo my km jv su bo dz": _ONE,
    "fr pt-br oc br mg wa ln hy am fa tg uz fil tl mfe": _FRENCH,
    "ru uk be sr hr bs": _RUSSIAN,
    "cs sk": _CZECH,
    "pl": "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);",
    "lt": "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && "
    "(n%100<10 || n%100>=20) ? 1 : 2);",
    "lv": "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);",
    "ro": "nplurals=3; plural=(n==1 ? 0 : (n==0 || (n%100 > 0 && n%100 < 20)) ? 1 : 2);",
    "sl": "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);",
    "ga": "nplurals=5; plural=n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4;",
    "cy": "nplurals=4; plural=(n==1) ? 0 : (n==2) ? 1 : (n != 8 && n != 11) ? 2 : 3;",
    "ar": "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : "
    "n%100>=11 ? 4 : 5;",
    "mt": "nplurals=4; plural=(n==1 ? 0 : n==0 || (n%100>1 && n%100<11) ? 1 : "
    "(n%100>10 && n%100<20) ? 2 : 3);",
    "is": "nplurals=2; plural=(n%10!=1 || n%100==11);",
    "mk": "nplurals=2; plural=(n%10==1 && n%100!=11) ? 0 : 1;",
}
_FORMS = {code: rule for codes, rule in _RULES.items() for code in codes.split()}
_RULE = re.compile(r"nplurals\s*=\s*(\d{1,2})\s*;\s*plural\s*=\s*([^;\n\\]+)")
_COUNTED = (*range(201), 1000, 1_000_000)


def rule_of(language: str) -> str:
    """The value of Plural-Forms for a language; that of English for one that is not listed."""
    code = language.lower().replace("_", "-")
    return _FORMS.get(code) or _FORMS.get(code.split("-")[0], _TWO)


def numbers(rule: str) -> list[set[int]] | None:
    """The numbers, of some, that each form stands for. None if the rule cannot be read."""
    found = _RULE.search(rule)
    if not found:
        return None
    try:
        form: Callable[[int], int] = gettext.c2py(found[2])
        forms: list[set[int]] = [set() for _ in range(int(found[1]))]
        for number in _COUNTED:
            forms[form(number)].add(number)
    except (ValueError, IndexError, ZeroDivisionError, RecursionError):
        return None
    return forms or None


# The categories of Unicode CLDR 44 for whole numbers, beside "one" and "other".
_CATEGORIES = {
    "ru uk be pl lt cs sk": ("few", "many"),
    "sr hr bs ro": ("few",),
    "fr es it pt ca": ("many",),
    "sl": ("two", "few"),
    "ga": ("two", "few", "many"),
    "mt": ("two", "few", "many"),
    "ar cy": ("zero", "two", "few", "many"),
    "he": ("two",),
    "lv": ("zero",),
}


def categories(language: str) -> tuple[str, ...]:
    """The plural categories that a language has and English has not."""
    code = language.lower().split("-")[0]
    return next((found for codes, found in _CATEGORIES.items() if code in codes.split()), ())
