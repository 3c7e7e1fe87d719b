"""Importers: models of other toolkits become bundles."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from linnet_model.bundle import print_files, read_manifest
from linnet_model.command_line import parser_for
from linnet_model.importers.card_flags import CardFlags
from linnet_model.importers.golden import GoldenChoice
from linnet_model.stored_weights import WEIGHT_TYPES


def import_parser(
    doc: str | None, dtype: str | None = "float32", dtype_told: str = "%(default)s"
) -> argparse.ArgumentParser:
    """Returns the parser of an importer, with the flags of the bundle that it writes. `dtype` is
    the default of --dtype, and `dtype_told` says so in its help."""
    parser = parser_for(doc)
    parser.add_argument("--out", type=Path, required=True, help="folder of the bundle")
    parser.add_argument("--name", help="name of the bundle [SOURCE-TARGET]")
    parser.add_argument(
        "--license", default="", help="license of the weights, as free text; the card states it"
    )
    parser.add_argument(
        "--source",
        default="",
        metavar="TEXT",
        help="where the model comes from, for the card [the name of its folder or file]",
    )
    golden = parser.add_mutually_exclusive_group()
    golden.add_argument(
        "--golden",
        type=Path,
        metavar="FILE",
        help="texts of the golden examples, one per line; or TEXT TAB ANSWER, with answers of the "
        "toolkit [a few sentences, answered by transformers if it reads the model, else by Linnet]",
    )
    golden.add_argument("--no-golden", action="store_true", help="make no golden examples")
    parser.add_argument(
        "--dtype",
        choices=WEIGHT_TYPES,
        default=dtype,
        help=f"type of stored weights [{dtype_told}]",
    )
    return parser


def card_flags_of(options: argparse.Namespace) -> CardFlags:
    """Returns what the flags of import_parser say of the model, for its card."""
    choice = GoldenChoice(wanted=not options.no_golden, file=options.golden)
    return CardFlags(options.license.strip(), options.source.strip(), choice)


def report(
    options: argparse.Namespace, program: str, source: str, manifest: dict[str, Any], more: str = ""
) -> None:
    """Reads the finished bundle once more and prints what it is; warns of what its card lacks."""
    read_manifest(options.out)
    print(f"{source}: {manifest['description']}{more}")
    print_files(manifest)
    examples = len(manifest["golden_examples"])
    print(f"golden examples: {examples}")
    if not manifest["license"]:
        print(
            f"{program}: no --license is given: the card says that the licence of the weights is "
            "not stated; read it where the model comes from",
            file=sys.stderr,
        )
    if not examples and not options.no_golden:
        print(
            f"{program}: the bundle has no golden examples, its MODEL_CARD.md says why",
            file=sys.stderr,
        )
