"""The argument parser of the package's commands."""

from __future__ import annotations

import argparse
from typing import Any

from linnet_model import __version__


def parser_for(doc: str | None, **settings: Any) -> argparse.ArgumentParser:
    """Returns the parser of a command with --help and --version. `doc` is the docstring of its
    module, "linnet-name: description"; `settings` go to argparse."""
    name, _, description = (doc or "").partition(": ")
    settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
    parser = argparse.ArgumentParser(prog=name, description=description, **settings)
    parser.add_argument("--version", action="version", version=f"{name} {__version__}")
    return parser
