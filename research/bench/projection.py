"""Measures how well tags are projected onto translations, on message catalogues.

    research/bench/projection.py --catalogues DIR --bundle model/bundles/en-de [--out DIR]

DIR has .mo files of German (apt-get download libreoffice-l10n-de digikam-data inkscape … and
dpkg-deb -x them). A line is kept if both of its sides have the same tags, properly nested, and some
words are outside of them. The reference translation is decoded by force, so all ways below get the
same alignments:

- Linnet's (server/markup/projection.h), in the program bench_projection;
- Bergamot's (browsermt/bergamot-translator, src/translator/html.cpp): each token of the target has
  the tags of the source token with the greatest weight, and the tokens of a word those of the
  token with the greatest weight among them;
- each text node translated alone, as LibreTranslate does: the words of the reference have the tags
  of the words that an alignment by edit distance finds in the concatenated translations.

A span is the set of the words in an element; precision, recall and F1 are over all pairs of an
element's start tag and a word. BLEU is that of own translations of the lines, whole (which tags do
not change) and by text nodes. Writes OUT/projection.json.
"""

from __future__ import annotations

import argparse
import collections
import gettext
import html
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "model"), str(ROOT / "tests/bench")]

import machine  # noqa: E402
import sacrebleu  # noqa: E402

from linnet_model.evaluation.decoding import tokenizer_of  # noqa: E402

TAG = re.compile(r"<!--.*?-->|</?[A-Za-z][^<>]*>")
BLOCKS = re.compile(
    "p|br/?|hr|[uod]l|li|h[1-6]|table|t[rdh]|div|html|body|head|title|pre|center|dt|dd|blockquote"
    "|style|script|nl/?|item|list|para|qt|button"
)
SPECIAL = ("code", "kbd", "samp", "var", "img", "link")  # HTML copies these, or they have no end
WORD = re.compile(r"\w+")
PIECE = r"[^\W_]+|(?:[^\w\s]|_)+"
SEED = 1

Tagged = list[tuple[str, tuple[str, ...]]]  # words, each with the start tags around it


def name_of(tag: str) -> str:
    found = re.match(r"</?\s*([^\s/>]+)", tag)
    return found[1].lower() if found else ""


def blocks_of(text: str) -> list[str]:
    """The lines between tags of blocks."""
    lines = [""]
    for part in re.split(f"({TAG.pattern})", text):
        if TAG.fullmatch(part) and BLOCKS.fullmatch(name_of(part)):
            lines.append("")
        else:
            lines[-1] += part
    return [re.sub(r"\s+", " ", line).strip() for line in lines]


def is_nested(text: str) -> bool:
    open_tags: list[str] = []
    for tag in TAG.findall(text):
        if tag.startswith("<!--") or tag.endswith("/>") or name_of(tag) in SPECIAL:
            return False
        if not tag.startswith("</"):
            open_tags.append(name_of(tag))
        elif not open_tags or open_tags.pop() != name_of(tag):
            return False
    return not open_tags


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(TAG.sub("", text))).strip()


def tagged(text: str) -> list[tuple[str, ...]]:
    """The start tags around each character of the plain text."""
    around: list[tuple[str, ...]] = []
    open_tags: list[str] = []
    for part in re.split(f"({TAG.pattern})", text):
        if not TAG.fullmatch(part):
            around += [tuple(open_tags)] * len(html.unescape(part))
        elif part.startswith("</"):
            open_tags.pop()
        else:
            open_tags.append(part)
    return around


def tagged_words(text: str) -> Tagged:
    around = tagged(text)
    bare = html.unescape(TAG.sub("", text))
    return [(found[0], around[found.start()]) for found in WORD.finditer(bare)]


def catalogue_lines(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*.mo")):
        with path.open("rb") as file:
            try:
                messages: dict[Any, str] = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
            except (OSError, UnicodeDecodeError):
                continue
        for key, target in messages.items():
            if isinstance(key, str) and TAG.search(key):
                sources, targets = blocks_of(key.split("\x04")[-1]), blocks_of(target)
                if len(sources) == len(targets):
                    yield from zip(sources, targets, strict=True)


def is_useful(source: str, target: str) -> bool:
    tags = sorted(TAG.findall(source))
    words, others = WORD.findall(plain(source)), WORD.findall(plain(target))
    return (
        bool(tags)
        and tags == sorted(TAG.findall(target))
        and is_nested(source)
        and is_nested(target)
        and 4 <= len(words) <= 60
        and 3 <= len(others) <= 70
        and any(not around for _, around in tagged_words(source))
        and len(set(words) & set(others)) <= 0.6 * len(words)
    )


def decode(bundle: Path, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The best hypothesis of each line."""
    program = ROOT / "build/release/bin/linnet-decode"
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    done = subprocess.run(
        [program, "--bundle", bundle], input=text, capture_output=True, text=True, check=True
    )
    return [json.loads(line)["hypotheses"][0] for line in done.stdout.splitlines()]


def token_ends(tokenizer: Any, ids: list[int], text: str) -> list[int]:
    """The characters of a text up to the end of each token."""
    ends, end = [], 0
    for count in range(1, len(ids) + 1):
        start = tokenizer.decode(ids[:count])
        common = next(
            (i for i, (a, b) in enumerate(zip(start, text, strict=False)) if a != b),
            min(len(start), len(text)),
        )
        end = max(end, common)
        ends.append(end)
    return ends


class Line:
    """A line of the catalogues with the attention of its reference on its source."""

    def __init__(self, source: str, target: str, answer: dict[str, Any], tokenizers: Any):
        self.source, self.target = source, target
        self.plain_source, self.plain_target = plain(source), plain(target)
        self.attention: list[list[float]] = answer["attention"]
        source_ids = tokenizers[0].encode(self.plain_source)
        self.source_ends = token_ends(tokenizers[0], source_ids, self.plain_source)
        self.target_ends = token_ends(tokenizers[1], answer["ids"][:-1], self.plain_target)

    @property
    def fits(self) -> bool:
        """Its tokens are the texts, as far as this script can tell."""
        return (
            len(self.source_ends) + 1 == len(self.attention[0])
            and self.source_ends[-1] == len(self.plain_source)
            and self.target_ends[-1] == len(self.plain_target)
        )

    def words_of(self, ends: list[int], pattern: str, text: str) -> list[tuple[int, int, set[int]]]:
        """The words of a text and their tokens."""
        begins = [0, *ends[:-1]]
        return [
            (
                word.start(),
                word.end(),
                {
                    i
                    for i, (a, b) in enumerate(zip(begins, ends, strict=True))
                    if a < word.end() and b > word.start()
                },
            )
            for word in re.finditer(pattern, text)
        ]


def projected_by_linnet(lines: list[Line], program: Path) -> list[Tagged]:
    """With the pieces and links of the server (WordUnit::kPiece, markup_stage.cc)."""
    texts = []
    for line in lines:
        sources = line.words_of(line.source_ends, PIECE, line.plain_source)
        targets = line.words_of(line.target_ends, PIECE, line.plain_target)
        links = []
        for number, (_, _, rows) in enumerate(targets):
            weights = [
                sum(line.attention[row][column] for row in rows for column in columns)
                / max(len(rows), 1)
                for _, _, columns in sources
            ]
            links += [
                f"{i}:{number}:{weight:.6f}" for i, weight in enumerate(weights) if weight >= 0.02
            ]

        def in_bytes(words: Any, text: str) -> str:
            return " ".join(
                f"{len(text[:begin].encode())}-{len(text[:end].encode())}"
                for begin, end, _ in words
            )

        texts.append(
            "\t".join(
                [
                    line.source,
                    line.plain_target,
                    in_bytes(sources, line.plain_source),
                    in_bytes(targets, line.plain_target),
                    " ".join(links),
                ]
            )
        )
    done = subprocess.run(
        [program], input="\n".join(texts) + "\n", capture_output=True, text=True, check=True
    )
    return [tagged_words(answer) for answer in done.stdout.splitlines()]


def projected_by_bergamot(line: Line) -> Tagged:
    around = tagged(line.source)
    begins = [0, *line.source_ends[:-1]]

    def tags_of(column: int) -> tuple[str, ...]:
        if column >= len(begins):  # the end token
            return ()
        # A token begins with the blank before it.
        at = begins[column]
        while at < line.source_ends[column] - 1 and line.plain_source[at].isspace():
            at += 1
        return around[at] if at < len(around) else ()

    best = [max(range(len(row)), key=row.__getitem__) for row in line.attention]
    words: Tagged = []
    for begin, end, rows in line.words_of(line.target_ends, r"\w+", line.plain_target):
        row = max(rows, key=lambda i: line.attention[i][best[i]]) if rows else 0
        words.append((line.plain_target[begin:end], tags_of(best[row])))
    return words


def nodes_of(text: str) -> list[tuple[str, tuple[str, ...]]]:
    around, bare = tagged(text), html.unescape(TAG.sub("", text))
    nodes: list[tuple[str, tuple[str, ...]]] = []
    for part in re.split(f"({TAG.pattern})", text):
        if part and not TAG.fullmatch(part):
            at = sum(len(node) for node, _ in nodes)
            nodes.append((html.unescape(part), around[at]))
    assert "".join(node for node, _ in nodes) == bare
    return nodes


def matched(said: Tagged, wanted: list[str]) -> Tagged:
    """Gives each wanted word the tags of its word among those said, by minimum edit distance."""
    n, m = len(said), len(wanted)
    cost = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n + 1):
        for j in range(m + 1):
            if i == 0 or j == 0:
                cost[i][j] = i + j
                continue
            same = said[i - 1][0].lower() == wanted[j - 1].lower()
            cost[i][j] = min(
                cost[i - 1][j - 1] + (0 if same else 1), cost[i - 1][j] + 1, cost[i][j - 1] + 1
            )
    tags: list[tuple[str, ...]] = [()] * m
    i, j = n, m
    while j > 0:
        same = i > 0 and said[i - 1][0].lower() == wanted[j - 1].lower()
        if i > 0 and cost[i][j] == cost[i - 1][j - 1] + (0 if same else 1):
            i, j = i - 1, j - 1
            tags[j] = said[i][1]
        elif i > 0 and cost[i][j] == cost[i - 1][j] + 1:
            i -= 1
        else:
            j -= 1
            tags[j] = said[min(i, n - 1)][1] if said else ()
    return list(zip(wanted, tags, strict=True))


def bleu(texts: list[str], lines: list[Line]) -> float:
    answers = [re.sub(r"\s+", " ", text).strip() for text in texts]
    references = [line.plain_target for line in lines]
    return round(sacrebleu.corpus_bleu(answers, [references]).score, 2)


def f1(answers: list[Tagged], lines: list[Line]) -> dict[str, float]:
    right = said = wanted = 0
    for answer, line in zip(answers, lines, strict=True):
        gold = tagged_words(line.target)
        assert len(gold) == len(answer), (line.target, answer)

        def pairs(words: Tagged) -> collections.Counter[tuple[str, int]]:
            return collections.Counter(
                (tag, place) for place, (_, tags) in enumerate(words) for tag in tags
            )

        got, want = pairs(answer), pairs(gold)
        right += (got & want).total()
        said += got.total()
        wanted += want.total()
    precision, recall = right / said, right / wanted
    return {
        "precision": round(100 * precision, 1),
        "recall": round(100 * recall, 1),
        "f1": round(200 * precision * recall / (precision + recall), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--catalogues", type=Path, required=True)
    parser.add_argument("--bundle", type=Path, default=ROOT / "model/bundles/en-de")
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/bin/bench_projection")
    parser.add_argument("--max-lines", type=int, default=1000)
    flags = machine.parse(parser)

    pairs = sorted({(a, b) for a, b in catalogue_lines(flags.catalogues) if is_useful(a, b)})
    random.Random(SEED).shuffle(pairs)
    pairs = pairs[: flags.max_lines]
    manifest = json.loads((flags.bundle / "manifest.json").read_text())
    tokenizers = [tokenizer_of(flags.bundle, manifest, side) for side in ("source", "target")]
    forced = decode(
        flags.bundle,
        [{"text": plain(a), "target": plain(b), "align": True} for a, b in pairs],
    )
    found = [Line(a, b, answer, tokenizers) for (a, b), answer in zip(pairs, forced, strict=True)]
    lines = [line for line in found if line.fits]
    print(f"{len(pairs)} lines, {len(lines)} of them with known tokens", file=sys.stderr)

    plains = [line.plain_source for line in lines]
    nodes = [nodes_of(line.source) for line in lines]
    texts = [node.strip() for parts in nodes for node, _ in parts if WORD.search(node)]
    said = iter(decode(flags.bundle, [{"text": text} for text in texts]))
    alone, joined = [], []
    for line, parts in zip(lines, nodes, strict=True):
        words: Tagged = []
        whole = ""
        for node, tags in parts:
            text = node.replace(node.strip(), next(said)["text"]) if WORD.search(node) else node
            words += [(word, tags) for word in WORD.findall(text)]
            whole += text
        alone.append(matched(words, WORD.findall(line.plain_target)))
        joined.append(whole)
    own = [answer["text"] for answer in decode(flags.bundle, [{"text": a} for a in plains])]

    ways = {
        "linnet": projected_by_linnet(lines, flags.program),
        "bergamot": [projected_by_bergamot(line) for line in lines],
        "text_nodes": alone,
    }
    result = {name: f1(answers, lines) for name, answers in ways.items()}
    print(json.dumps(result, indent=1))
    machine.write_result(
        flags.out / "projection.json",
        {
            "version": machine.version_of(ROOT),
            "bundle": machine.bundle_name(flags.bundle),
            "lines": len(lines),
            **result,
            "bleu": {"linnet": bleu(own, lines), "text_nodes": bleu(joined, lines)},
        },
    )


if __name__ == "__main__":
    main()
