"""linnet-diversify: translates training texts with a bundle, as more rows to train on.

Data diversification (Nguyen et al. 2020, arXiv 1911.01986): the student learns from the texts, from
their sources with the targets of a forward model, and from their targets with the sources of a
backward model. A bundle that was trained with data.reverse is a backward one.

The rows go to a file with the columns source, target and domain, whose domains end in _forward or
_backward: name the file in data.files of a recipe, and its domains in data.domains. Rows are left
out whose text is too long, whose translation is empty, loops or is the text of the other side, and
those of which a side that is new is in a test of the folder or of that of --out.

--channel names a bundle of the other direction, which chooses among several translations of each
text (linnet_research.data.noisy_channel): the student learns to leave out less than the bundle
does. --sentences makes a text of each whole sentence of a source, and takes nothing from the
targets: for self-training on texts in one language (He et al. 2020, arXiv 1909.13788), such as
those of the summariser's data.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import Counter
from collections.abc import Set
from pathlib import Path
from typing import Any

import sentencepiece

from linnet_model.bundle import read_manifest, trained_in_reverse
from linnet_model.command_line import command, count_from, parser_for
from linnet_model.config import ConfigError
from linnet_model.data_config import FILE_ENDINGS
from linnet_model.decode_command import decode_texts, find_decode
from linnet_model.loops import has_loop
from linnet_model.new_file import new_file
from linnet_model.sentences import split_sentences, whole_sentence
from linnet_model.sources import BACKWARD, FORWARD
from linnet_model.text_files import Pair, read_pairs, rows_file
from linnet_model.tokenizer import load_tokenizer
from linnet_research.data.held_out import folded, held_out
from linnet_research.data.noisy_channel import add_channel_flags, channel_of, rerank_texts

# Names of files that measure a training; held_out and linnet-score read them.
MEASURING = ("valid.tsv", "test.", "refs.")
SPEAKER = re.compile(r"[A-Z]\w*: (?=[A-Z])")  # before what is said in a talk


def translated_rows(
    pairs: list[Pair],
    translations: list[str],
    reverse: bool,
    ratios: tuple[float, float] = (0.0, math.inf),
    banned: Set[str] = frozenset(),
    new: bool = False,
) -> tuple[list[Pair], Counter[str]]:
    """Returns the rows to train on, and how many others were left out for which reason. A
    translation must have as many words per word of its text as lie between the `ratios`, and be
    none of the `banned` ones (held_out); neither may its text, if that is `new`."""
    rows, left_out = [], Counter[str]()
    for pair, answer in zip(pairs, translations, strict=True):
        words = answer.split()
        text = " ".join(words)  # a row is one line of three columns
        of_text = len((pair.target if reverse else pair.source).split())
        if not text:
            left_out["empty"] += 1
        elif len(words) < ratios[0] * of_text:
            left_out["too short"] += 1
        elif len(words) > ratios[1] * of_text:
            left_out["too long for its text"] += 1
        elif has_loop(text):
            left_out["looping"] += 1
        elif text == (pair.source if reverse else pair.target):
            left_out["equal to the other side"] += 1
        elif folded(text) in banned or (new and folded(pair.source) in banned):
            left_out["in a test"] += 1
        elif reverse:
            rows.append(Pair(text, pair.target, pair.domain + BACKWARD))
        else:
            rows.append(Pair(pair.source, text, pair.domain + FORWARD))
    return rows, left_out


def sentences_of(pairs: list[Pair], per_domain: int | None) -> list[Pair]:
    """Returns the whole sentences of the sources, each once and as its own target, so that a
    translation that only repeats it is left out: of each domain the first `per_domain`."""
    found: dict[str, Pair] = {}
    counts = Counter[str]()
    for pair in pairs:
        said = (SPEAKER.sub("", sentence) for sentence in split_sentences(pair.source))
        for sentence in filter(whole_sentence, said):
            if sentence in found or counts[pair.domain] == per_domain:
                continue
            found[sentence] = Pair(sentence, sentence, pair.domain)
            counts[pair.domain] += 1
    return list(found.values())


def reading_tokenizer(
    bundle: Path, manifest: dict[str, Any]
) -> sentencepiece.SentencePieceProcessor:
    """Returns the SentencePiece model of the sources, by which their tokens are counted. That of an
    imported bundle may have ids of its own."""
    if manifest.get("subword_kind"):
        raise ConfigError(
            f"{bundle} has a subword_kind, whose tokens are not counted here: name a bundle with a "
            "SentencePiece model"
        )
    file = bundle / manifest["source_tokenizer_file"]
    if manifest.get("source_vocabulary_file"):
        return sentencepiece.SentencePieceProcessor(model_file=str(file))
    return load_tokenizer(file, manifest.get("capitals_mark", ""))


def write_rows(file: Path, rows: list[Pair]) -> None:
    text = "".join(f"{row.source}\t{row.target}\t{row.domain}\n" for row in rows)
    with new_file(file) as partial:
        partial.write_text(text, encoding="utf-8")


def check_out(out: Path, inputs: list[Path]) -> None:
    """Refuses to replace a file that is read, or one that measures the training."""
    if out.suffix != FILE_ENDINGS[-1] or not out.parent.is_dir():
        raise ConfigError(f"--out is {out}, must be a .tsv in a folder that exists")
    if out.name.startswith(MEASURING):
        raise ConfigError(
            f"--out is {out}, names that begin with {', '.join(MEASURING)} are those of the "
            "validation and the tests: choose another name, for data.files of a recipe"
        )
    if out.resolve() in [file.resolve() for file in inputs]:
        raise ConfigError(
            f"--out is {out}, whose rows are translated and would be lost: choose another name"
        )


@command
def main(arguments: list[str] | None = None) -> None:
    parser = parser_for(__doc__)
    add = parser.add_argument
    add("--bundle", type=Path, required=True, metavar="DIR", help="folder of the bundle")
    add("--data", type=Path, required=True, metavar="DIR",
        help="folder with the rows, data.folder of a recipe")  # fmt: skip
    add("--files", nargs="+", default=["train"], metavar="NAME",
        help="files of the folder, without .tsv or .tsv.xz [train]")  # fmt: skip
    add("--domains", nargs="+", metavar="NAME", help="domains to translate [all]")
    add("--reverse", action=argparse.BooleanOptionalAction,
        help="translate the second column [data.reverse of the bundle's training]")  # fmt: skip
    add("--sentences", action="store_true",
        help="translate each whole sentence of the sources, which are English")  # fmt: skip
    add("--per-domain", type=count_from(1), metavar="N",
        help="with --sentences, sentences of each domain [all]")  # fmt: skip
    add_channel_flags(parser)
    add("--channel-min-score", type=float, metavar="X",
        help="log-probability of a text's token by it, mean at least [-inf]")  # fmt: skip
    add("--min-ratio", type=float, default=0.0, metavar="X",
        help="words of a translation per word of its text, at least [%(default)s]")  # fmt: skip
    add("--max-ratio", type=float, default=math.inf, metavar="X",
        help="words of a translation per word of its text, at most [%(default)s]")  # fmt: skip
    add("--tokens", type=count_from(1), default=100, metavar="N",
        help="max tokens of a text; rows with longer ones are left out [%(default)s]")  # fmt: skip
    add("--out", type=Path, required=True, metavar="FILE.tsv", help="file of the new rows")
    add("--decode", type=Path, metavar="FILE", help="linnet-decode [that of this checkout]")
    add("--device", default="cpu", choices=("cpu", "cuda"), help="[%(default)s]")
    add("--batch", type=count_from(1), default=64, metavar="N",
        help="texts in flight [%(default)s]")  # fmt: skip
    add("--beam", type=count_from(1), metavar="N", help="[that of the bundle]")
    add("--threads", type=count_from(1), metavar="N", help="[one per core]")
    options = parser.parse_args(arguments)
    files = [rows_file(options.data, name) for name in options.files]
    check_out(options.out, files)
    program = find_decode(options.decode)
    if program is None:
        raise ConfigError("no linnet-decode found, name it with --decode")
    if options.per_domain is not None and not options.sentences:
        raise ConfigError("--per-domain needs --sentences")
    if options.channel is not None and options.beam is not None:
        raise ConfigError("--channel searches with the beam of --hypotheses, leave out --beam")
    if not options.min_ratio <= options.max_ratio:
        raise ConfigError(
            f"--min-ratio is {options.min_ratio} and --max-ratio {options.max_ratio}, no "
            "translation has as many words: lower --min-ratio or raise --max-ratio"
        )
    manifest = read_manifest(options.bundle)
    if manifest["task"] != "TASK_TRANSLATE" or not manifest.get("source_tokenizer_file"):
        raise ConfigError(f"{options.bundle} is no translator with a tokenizer, name one")
    channel = channel_of(options, options.bundle)
    reverse = trained_in_reverse(options.bundle) if options.reverse is None else options.reverse
    longest = min(options.tokens, manifest["limits"]["max_source_tokens"] - 1)
    tokenizer = reading_tokenizer(options.bundle, manifest)
    banned = held_out(options.data) | held_out(options.out.parent)
    pairs = read_pairs(files, options.domains, mojibake="drop", empty="drop")
    if options.sentences:
        if reverse:
            raise ConfigError("--sentences translates sources, leave out --reverse or the bundle")
        pairs = sentences_of(pairs, options.per_domain)
    tokens = tokenizer.encode([pair.target if reverse else pair.source for pair in pairs])
    chosen = [pair for pair, ids in zip(pairs, tokens, strict=True) if len(ids) <= longest]
    texts = [pair.target if reverse else pair.source for pair in chosen]
    flags = ["--device", options.device, "--batch", str(options.batch)]
    for name, value in (("--beam", options.beam), ("--threads", options.threads)):
        flags += [] if value is None else [name, str(value)]
    if channel is None:
        answers = decode_texts(program, options.bundle, texts, flags)
    else:
        answers = rerank_texts(program, options.bundle, channel, texts, flags)
    ratios = (options.min_ratio, options.max_ratio)
    rows, left_out = translated_rows(
        chosen, answers, reverse, ratios, banned, new=options.sentences
    )
    left_out["too long"] = len(pairs) - len(chosen)
    without = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
    without = without and f"; left out: {without}"
    if not rows:
        raise ConfigError(f"none of {len(pairs):,} rows could be translated{without}")
    write_rows(options.out, rows)
    print(f"{options.out}: {len(rows):,} rows{without}")


if __name__ == "__main__":
    sys.exit(main())
