"""Importers: models of other toolkits become bundles."""

from __future__ import annotations

import argparse
from pathlib import Path

from linnet_model.bundle import WEIGHT_TYPES
from linnet_model.command_line import parser_for


def import_parser(doc: str | None) -> argparse.ArgumentParser:
    """Returns the parser of an importer, with the flags of the bundle that it writes."""
    parser = parser_for(doc)
    parser.add_argument("--out", type=Path, required=True, help="folder of the bundle")
    parser.add_argument("--name", help="name of the bundle [SOURCE-TARGET]")
    parser.add_argument("--license", default="", help="license of the weights, as free text")
    parser.add_argument(
        "--dtype", choices=sorted(WEIGHT_TYPES), default="float32", help="type of stored weights"
    )
    return parser
