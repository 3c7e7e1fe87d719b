"""Words that Linnet does not use, and what it says instead: CONTRIBUTING.md has the glossary.

    python tests/words.py [PATH…]

lists what breaks the rules below these paths, a line each. Readers of the code know gRPC, PyTorch
and vLLM; a word of our own in a name, comment, setting or page costs each of them a minute.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# A pattern of the retired word, and what to write instead.
RETIRED = {
    r"house(s|keep\w*)?\b": "the server; what is admitted or in flight",
    r"newcomers?": "waiting or admissible sequence",
    r"\b(un)?seat(s|ed|ing)?\b": "running; add, admit; finish, remove",
    r"\bsits?\b|\bsitting\b": "runs",
    r"\blanes?\b": "slot",
    r"ancest\w*": "backpointers",
    r"\b(im)?patien\w*": "timeout; abandonment; low priority",
    r"\bpictures?\b|\balbum": "snapshot",
    r"lotter\w*": "sampling",
    r"\bwhoever\b|\bwhatever\b|\bhowever (many|much|long)\b": "name the subject",
    r"\b(him|her)self\b": "itself",
    r"\b(any|in|its|this|other) company\b": "batch; batch invariance",
    r"turn(s|ed|ing)? away": "reject, refuse, shed",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"mischief|puppet|\bwedge|storm(y|s)\b": "fault plan; faulty or fake engine; stall",
    r"\bdepartures?\b": "abandonment",
    r"transducer": "encoder-decoder",
    r"turnstile": "notification",
    r"\bpump\b|\bblame\w*": "runner; attribution",
    r"\bflown\b|\bheard\b": "in flight; collected",
    r"\bspoken\b": "aligned",
    r"\bunder way\b": "in flight, running",
    r"\blet in\b": "admitted",
    r"\bk?Most[A-Z]\w*|\bkMost\b|\w+_(most|least)\b|\b(most|least)_\w+": "max, min",
    r"\bborders?\b": "boundary; where torch's errors are caught",
}
# Where a word means something else: sentences that are translated, SIMD lanes, HTML, nginx.
EXCEPTIONS = {
    r"house(s|keep\w*)?\b": r"docs/TRAINING|shortlist_test|copied_runs_|tokenizer_test|sentences",
    r"\bsits?\b|\bsitting\b": r"tests/bench/server/sentences\.py",
    r"\b(im)?patien\w*": r"model/linnet_model/sources\.toml",
    r"\blanes?\b": r"model/ops/c(pu|uda)/|model/runtime/search/candidates|tests/ops/cuda/emul",
    r"\bborders?\b": r"client/load/|\.html$|\.css$",
    r"\bk?Most[A-Z]\w*|\bkMost\b|\w+_(most|least)\b|\b(most|least)_\w+": r"\.py$|nginx",
}
# Fragments: a comment says what a thing is or does, with a subject and a verb.
FRAGMENT = re.compile(r"(?:^|[^:])(?://\s+|#\s+|\"\"\")(?:What|Of|Whether|How) [a-z]")
UNTRACKED = {"build", "__pycache__"}
CODE = {".cc", ".h", ".cu", ".cuh", ".proto", ".py", ".sh", ".txt", ".cmake"}
# Models that were fetched, texts of other people, data, and the record of what changed.
SKIPPED = re.compile(
    r"^models/|tests/(data|fuzz/corpus|bench/results)/|model/bundles/|deps/|LICENSE"
    r"|tests/words|linnet_model/texts/.*\.txt$|\.(spm|pt|svg|npz|lock|png|bin|tsv|gz|xz)$"
)


@dataclass
class Found:
    path: str
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word!r}: write {self.instead}"


def check(path: str, text: str) -> Iterator[Found]:
    for pattern, instead in RETIRED.items():
        if pattern in EXCEPTIONS and re.search(EXCEPTIONS[pattern], path):
            continue
        for m in re.finditer(
            pattern, text, re.IGNORECASE if pattern[0] != "\\" or "Most" not in pattern else 0
        ):
            yield Found(path, text.count("\n", 0, m.start()) + 1, m[0], instead)
    if Path(path).suffix in CODE:
        for number, line in enumerate(text.splitlines(), 1):
            if m := FRAGMENT.search(line):
                yield Found(path, number, m[0].strip(), "a sentence with a subject and a verb")


def tree() -> list[str]:
    """The files of the project by their paths from its root, without what is built or hidden."""
    found: list[str] = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if f[0] != "." and f not in UNTRACKED)
        found += (Path(folder, name).relative_to(ROOT).as_posix() for name in sorted(names))
    return found


def violations(paths: list[str]) -> list[Found]:
    found: list[Found] = []
    for path in paths:
        if SKIPPED.search(path):
            continue
        try:
            text = (ROOT / path).read_text()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        found += check(path, text)
    return found


if __name__ == "__main__":
    wanted = tuple(sys.argv[1:])
    for one in violations([path for path in tree() if not wanted or path.startswith(wanted)]):
        print(one)
