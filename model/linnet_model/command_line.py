"""The parser and the decorator that the package's commands share."""

from __future__ import annotations

import argparse
import functools
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

from linnet_model import __version__
from linnet_model.config import ConfigError
from linnet_model.text_files import DataError


def parser_for(doc: str | None, **settings: Any) -> argparse.ArgumentParser:
    """Returns the parser of a command with --help and --version. `doc` is the docstring of its
    module, "linnet-name: description"; `settings` go to argparse."""
    name, _, description = (doc or "").partition(": ")
    settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
    parser = argparse.ArgumentParser(prog=name, description=description, **settings)
    parser.add_argument("--version", action="version", version=f"{name} {__version__}")
    return parser


def count_from(least: int) -> Callable[[str], int]:
    """Returns the type of an argument that is a whole number of at least `least`."""

    def count(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        return value

    return count


def require_package(name: str, purpose: str, otherwise: str) -> None:
    """Refuses to begin what would end, perhaps after hours, for lack of a Python package.
    `otherwise`: how to do without it."""
    if importlib.util.find_spec(name) is None:
        raise ConfigError(
            f"there is no Python package {name}, which {purpose}: install it, or {otherwise}"
        )


def told(error: OSError) -> str:
    """Returns the message of a command for a file that it cannot read or write."""
    return f"{error.filename or 'a file'} cannot be read or written: {error.strerror or error}"


def command(main: Callable[[list[str] | None], None]) -> Callable[..., int]:
    """Decorates the main function of a command. An error in its input or of a file becomes one line
    on standard error, with the command's name, and exit status 1. Ctrl-C becomes one as well, with
    status 130."""
    name = str(sys.modules[main.__module__].__doc__).partition(": ")[0]

    @functools.wraps(main)
    def run(arguments: list[str] | None = None) -> int:
        try:
            main(arguments)
        except (ConfigError, DataError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        except OSError as error:
            print(f"{name}: {told(error)}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print(f"{name}: stopped", file=sys.stderr)
            return 130
        return 0

    return run
