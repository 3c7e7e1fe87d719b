"""Importers: models of other toolkits become bundles."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from linnet_model.bundle import WEIGHT_TYPES
from linnet_model.command_line import parser_for
from linnet_model.network.model_config import ConfigError, require


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


@contextlib.contextmanager
def new_bundle(out: Path) -> Iterator[Path]:
    """Yields a folder beside `out` that becomes `out` at the end, or vanishes after an error, so
    that nobody sees half a bundle. `out` must not exist, or be an empty folder."""
    require(
        not out.exists() or (out.is_dir() and not any(out.iterdir())),
        f"{out} exists, remove it or choose another folder",
    )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise ConfigError(f"{out} cannot be written: {error}") from None
    try:
        yield partial
        partial.chmod(0o755)  # mkdtemp keeps it from everybody else
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
