"""What the command lines of the package have in common."""

from __future__ import annotations

import argparse
from typing import Any

from linnet_model import __version__


def parser_for(doc: str | None, **settings: Any) -> argparse.ArgumentParser:
    """The parser of a command whose module says at its top "linnet-name: what it does". It knows
    --help and --version; `settings` go to argparse."""
    name, _, description = (doc or "").partition(": ")
    settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
    parser = argparse.ArgumentParser(prog=name, description=description, **settings)
    parser.add_argument("--version", action="version", version=f"{name} {__version__}")
    return parser
