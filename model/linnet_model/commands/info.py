"""linnet-model info: says what a bundle, or a model of another toolkit, is.

Reads a folder with a bundle, a folder of Hugging Face or of Marian, or a checkpoint of fairseq, and
prints family, sizes, languages, types and licence as `name: value`. For a model that can be
imported it prints the command; for another it ends with status 1 and says what the importer would
refuse. Only the import itself compares every weight with the configuration.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from linnet_model.bundle import MANIFEST, read_manifest
from linnet_model.command_line import command, parser_for
from linnet_model.commands.model_folder import describe_model

SOME = 12  # language pairs, and names of languages, that are listed


def languages_of(manifest: dict[str, Any]) -> str:
    pairs = [
        f"{pair['source_language_code']} to {pair['target_language_code']}"
        for pair in manifest.get("languages", [])
    ] or [f"{manifest['source_language_code']} to {manifest['target_language_code']}"]
    more = len(pairs) - SOME
    return ", ".join(pairs[:SOME]) + (f" and {more} more" if more > 0 else "")


def describe_bundle(folder: Path) -> list[tuple[str, str]]:
    manifest = read_manifest(folder)
    shape, limits = manifest["architecture"], manifest["limits"]
    sizes = sum(int(entry["bytes"]) for entry in manifest["files"])
    tokenizer = manifest.get("source_tokenizer_file")
    return [
        ("bundle", f"{manifest['name']}, version {manifest['version']}"),
        ("task", manifest["task"].removeprefix("TASK_").lower()),
        ("languages", languages_of(manifest)),
        ("description", manifest.get("description", "")),
        (
            "layers",
            f"{len(shape['encoder_mixers'])} of {', '.join(dict.fromkeys(shape['encoder_mixers']))}"
            f" and {len(shape['decoder_mixers'])} of "
            f"{', '.join(dict.fromkeys(shape['decoder_mixers']))}, width "
            f"{shape['model_dimension']}, feed-forward {shape['feed_forward_dimension']}, "
            f"{shape['heads']} heads",
        ),
        ("parameters", f"{shape['parameters']:,}, stored as {shape['weight_type']}"),
        ("vocabulary", f"{manifest['vocabulary']['size']:,} rows, tokenizer {tokenizer or 'none'}"),
        (
            "limits",
            f"{limits['max_source_tokens']} source and {limits['max_target_tokens']} target tokens",
        ),
        ("golden examples", str(len(manifest.get("golden_examples", [])))),
        ("licence", manifest.get("license") or "not stated"),
        ("files", f"{len(manifest['files'])}, {sizes / 1e6:.1f} MB, as the manifest's sha256 say"),
    ]


def command_line() -> argparse.ArgumentParser:
    parser = parser_for(__doc__)
    parser.add_argument(
        "path", type=Path, metavar="PATH", help="folder of a bundle or a model; a checkpoint"
    )
    return parser


@command
def main(arguments: list[str] | None = None) -> None:
    path = command_line().parse_args(arguments).path
    facts = describe_bundle(path) if (path / MANIFEST).exists() else describe_model(path)
    for name, value in facts:
        print(f"{name + ':':17}{value}")


if __name__ == "__main__":
    sys.exit(main())
