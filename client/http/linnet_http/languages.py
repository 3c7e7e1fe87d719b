"""Language codes of each API, and the names of languages."""

from __future__ import annotations

from dataclasses import dataclass, field

from linnet import ListModelsResponse

# Codes of LibreTranslate and Argos that are not BCP-47.
_LIBRE = {"zt": "zh-Hant", "pb": "pt-BR", "auto": ""}
_TWO_SCRIPTS = {"sr", "zh"}  # languages whose script depends on the region
# English names of the languages that translation models commonly have; others are shown by code.
NAMES = {
    line.split(" ", 1)[0]: line.split(" ", 1)[1]
    for line in """\
af Afrikaans
am Amharic
ar Arabic
az Azerbaijani
be Belarusian
bg Bulgarian
bn Bengali
bs Bosnian
ca Catalan
cs Czech
cy Welsh
da Danish
de German
el Greek
en English
eo Esperanto
es Spanish
et Estonian
eu Basque
fa Persian
fi Finnish
fr French
ga Irish
gl Galician
gu Gujarati
he Hebrew
hi Hindi
hr Croatian
hu Hungarian
hy Armenian
id Indonesian
is Icelandic
it Italian
ja Japanese
ka Georgian
kk Kazakh
kn Kannada
ko Korean
ky Kyrgyz
lt Lithuanian
lv Latvian
mk Macedonian
ml Malayalam
mr Marathi
ms Malay
mt Maltese
nb Norwegian Bokmål
nl Dutch
nn Norwegian Nynorsk
no Norwegian
pl Polish
pt Portuguese
pt-BR Portuguese (Brazilian)
ro Romanian
ru Russian
sk Slovak
sl Slovenian
sq Albanian
sr Serbian
sv Swedish
sw Swahili
ta Tamil
te Telugu
th Thai
tr Turkish
uk Ukrainian
ur Urdu
uz Uzbek
vi Vietnamese
zh Chinese
zh-Hans Chinese (simplified)
zh-Hant Chinese (traditional)
""".splitlines()
}


def name_of(code: str) -> str:
    return NAMES.get(code) or NAMES.get(code.split("-")[0]) or code


def from_libre(code: str) -> str:
    """BCP-47 of a code in LibreTranslate's API; "" for "auto"."""
    return _LIBRE.get(code.lower(), code)


def from_flores(code: str) -> str:
    """BCP-47 of a code of FLORES-200, such as "eng_Latn"; other codes are kept."""
    return code.replace("_", "-") if "_" in code else code


def _language(code: str) -> str:
    """The language of a code, without script and region."""
    return code.replace("_", "-").split("-")[0].lower()


def are_variants(one: str, other: str) -> bool:
    """True for codes of one language that differ by region, as en and en-US do; not if their texts
    may be in different scripts."""
    subtags = [code.replace("_", "-").split("-")[1:] for code in (one, other)]
    scripts = any(len(subtag) == 4 for subtag in (*subtags[0], *subtags[1]))
    same = _language(one) == _language(other)
    return same and not scripts and _language(one) not in _TWO_SCRIPTS


@dataclass
class Pairs:
    """The language pairs that a server translates, and the languages that it summarises."""

    targets: dict[str, set[str]] = field(default_factory=dict)  # by source
    summarizes: set[str] = field(default_factory=set)
    # The pairs of each model (source, target).
    by_model: dict[str, set[tuple[str, str]]] = field(default_factory=dict)

    @classmethod
    def of(cls, reply: ListModelsResponse) -> Pairs:
        found = cls()
        for model in reply.models:
            found.by_model[model.name] = {
                (it.source_language_code, it.target_language_code) for it in model.language_pairs
            }
            for pair in model.language_pairs:
                if pair.source_language_code == pair.target_language_code:
                    found.summarizes.add(pair.source_language_code)
                else:
                    found.targets.setdefault(pair.source_language_code, set()).add(
                        pair.target_language_code
                    )
        return found

    def sources(self) -> list[str]:
        return sorted(self.targets)

    def all_targets(self) -> list[str]:
        return sorted(set().union(*self.targets.values())) if self.targets else []

    def sources_of(self, model: str, target: str) -> set[str]:
        """The languages that a model translates into `target`, whatever the region of that is."""
        wanted = _language(target)
        pairs = self.by_model.get(model, set())
        return {source for source, into in pairs if _language(into) == wanted}

    def reachable(self, source: str) -> list[str]:
        """The targets of a source, those through a third language included."""
        direct = self.targets.get(source, set())
        through = set().union(*(self.targets.get(middle, set()) for middle in direct), direct)
        return sorted(through - {source})
