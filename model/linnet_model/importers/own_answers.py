"""Golden examples of a bundle whose toolkit is not at hand: the answers of Linnet's own engine.

They do not compare two implementations. They tell whether another version, machine or build of
Linnet still gives the answers that this one gave at the import. Kept are the answers of
linnet-decode in float32 that do not change in int8, with or without the shortlist, so that every
setting of a server gives them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from linnet_model.bundle import GoldenExample, write_manifest
from linnet_model.config import ConfigError
from linnet_model.decode_command import find_decode, hypotheses_of
from linnet_model.importers.golden import Golden, GoldenChoice, default_texts, read_texts
from linnet_model.languages import LanguageTokens

TOLD = "golden examples are Linnet's own answers"


def has_answers(choice: GoldenChoice) -> bool:
    """Returns whether --golden names a file with answers of the toolkit."""
    return choice.file is not None and any(text.target for text in read_texts(choice.file))


def add_own_examples(
    folder: Path, manifest: dict[str, Any], choice: GoldenChoice
) -> tuple[Golden, dict[str, Any]]:
    """Writes examples into the manifest of the finished bundle `folder`. Returns them and the
    manifest, whose description says whose answers they are."""
    golden = own_examples(folder, manifest, choice)
    if golden.examples:
        manifest = manifest | {
            "golden_examples": [example.manifest() for example in golden.examples],
            "description": f"{manifest['description']}; {TOLD}",
        }
        write_manifest(folder, manifest)
    return golden, manifest


def own_examples(folder: Path, manifest: dict[str, Any], choice: GoldenChoice) -> Golden:
    if not choice.wanted:
        return Golden()
    pair = LanguageTokens(manifest["source_language_code"], manifest["target_language_code"])
    if choice.file is not None:
        texts = [text.source for text in read_texts(choice.file)]
    else:
        texts = [text for text, _ in default_texts([pair], "translate")]
    if not texts:
        return Golden(told=f"there are no texts in {pair.source}, give some with --golden")
    decode = find_decode(None)
    if decode is None:
        return Golden(told="linnet-decode, which makes them, is not built and not installed")
    shortlists = ["--shortlist=false"]
    shortlists += ["--shortlist=true"] if "shortlist_file" in manifest else []
    runs = [
        ["--compute", compute, shortlist]
        for compute in ("float32", "int8")
        for shortlist in shortlists
    ]
    lines = [{"text": text} for text in texts]
    try:
        answers = [
            [found[0]["text"] if found else "" for found in hypotheses]
            for hypotheses in (
                hypotheses_of(decode, folder, lines, flags, none_if_refused=True) for flags in runs
            )
        ]
    except ConfigError as error:
        return Golden(told=f"linnet-decode failed: {(str(error).splitlines() or [''])[0][:200]}")
    kept = [
        GoldenExample(text, given[0])
        for text, given in zip(texts, zip(*answers, strict=True), strict=True)
        if given[0].strip() and len(set(given)) == 1
    ]
    if not kept:
        return Golden(
            told=f"all answers to {len(texts)} texts change in int8 or with the shortlist"
        )
    return Golden(
        kept,
        f"made by Linnet itself in float32, for want of another program (of {len(texts)} texts "
        "those whose answers int8 and the shortlist do not change)",
    )
