"""linnet-model check: loads a bundle as a server does, and answers its golden examples.

Compares the files with the sizes and sha256 sums of the manifest, loads the bundle in linnet-decode
and decodes its golden examples with the manifest's options. A bundle without examples decodes
tokens that mean nothing, so that its model runs at least once. Exit status 1: damaged, refused by
the engine, or an example has another answer.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from linnet_model.bundle import read_manifest
from linnet_model.command_line import command, parser_for
from linnet_model.config import ConfigError
from linnet_model.decode_command import decode_lines, find_decode, run_synthetic

COMPUTE = ("float32", "auto", "bfloat16", "int8")


def line_of(example: dict[str, str]) -> dict[str, str]:
    """Returns the line of linnet-decode for a golden example."""
    line = {"text": example["source_text"]}
    for side in ("source", "target"):
        code = example.get(f"{side}_language_code")
        if code:
            line[f"{side}_language"] = code
    return line


def check(bundle: Path, decode: Path, compute: str, threads: int) -> str:
    """Returns one line about the bundle. Raises ConfigError with every answer that differs."""
    manifest: dict[str, Any] = read_manifest(bundle)
    flags = ["--compute", compute, "--threads", str(threads)]
    examples = manifest.get("golden_examples", [])
    if not examples:
        run_synthetic(decode, bundle, flags)
        return "the files are whole, the model runs; there are no golden examples"
    answers = decode_lines(decode, bundle, [line_of(example) for example in examples], flags)
    different = [
        f"{example['source_text']!r} became {answer!r}, expected {example['target_text']!r}"
        for example, answer in zip(examples, answers, strict=True)
        if answer != example["target_text"]
    ]
    if different:
        raise ConfigError(
            f"{bundle}: {len(different)} of {len(examples)} golden examples have another answer in "
            f"{compute}:\n  " + "\n  ".join(different)
        )
    return f"the files are whole, {len(examples)} of {len(examples)} golden examples in {compute}"


def command_line() -> argparse.ArgumentParser:
    parser = parser_for(__doc__)
    parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="folder of the bundle")
    parser.add_argument(
        "--compute", choices=COMPUTE, default=COMPUTE[0], help="as of the server [%(default)s]"
    )
    parser.add_argument(
        "--threads", type=int, default=0, metavar="N", help="0 is one per core [%(default)s]"
    )
    parser.add_argument(
        "--decode", type=Path, metavar="FILE", help="path of linnet-decode [the built or installed]"
    )
    return parser


@command
def main(arguments: list[str] | None = None) -> None:
    options = command_line().parse_args(arguments)
    decode = find_decode(options.decode)
    if decode is None:
        raise ConfigError(
            "linnet-decode, which loads the bundle, is not built and not installed: run ./start.sh "
            "--build, install the package linnet-server, or name it with --decode"
        )
    print(f"{options.bundle}: {check(options.bundle, decode, options.compute, options.threads)}")


if __name__ == "__main__":
    sys.exit(main())
