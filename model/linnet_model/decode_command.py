"""Runs linnet-decode, the engine of the server, on JSON lines."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from linnet_model.config import ConfigError
from linnet_model.network.ops import CHECKOUT

SOME_REFUSED = 1  # exit status: some lines have an error


def find_decode(named: Path | None) -> Path | None:
    """Returns `named`, else linnet-decode of this checkout's release build or of the path."""
    if named is not None:
        if not named.is_file():
            raise ConfigError(
                f"no linnet-decode at {named}, build it with ./start.sh --build or install the "
                "package linnet-server"
            )
        return named.resolve()  # a bare name would be searched for in the path
    built = CHECKOUT / "build" / "release" / "bin" / "linnet-decode"
    if built.is_file():
        return built
    installed = shutil.which("linnet-decode")
    return Path(installed) if installed else None


def hypotheses_of(
    command: Path,
    bundle: Path,
    lines: Sequence[dict[str, Any]],
    flags: Sequence[str] = (),
    *,
    none_if_refused: bool = False,
) -> list[list[dict[str, Any]]]:
    """Returns the hypotheses of each line, best first, each with its text, score and token_scores.
    A line that is refused has none of them or raises ConfigError."""
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    done = subprocess.run(
        [str(command), "--bundle", str(bundle), *flags],
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.split("\n") if line]
    for number, answer in enumerate(answers, 1):
        if "error" in answer and not none_if_refused:
            raise ConfigError(f"{command.name} refused text {number}: {answer['error']['message']}")
    expected = (0, SOME_REFUSED) if none_if_refused else (0,)
    if done.returncode not in expected or len(answers) != len(lines):
        raise ConfigError(
            f"{command.name} gave {len(answers)} answers to {len(lines)} texts and status "
            f"{done.returncode}: {done.stderr.strip()[-500:]}"
        )
    return [answer.get("hypotheses", []) for answer in answers]


def decode_lines(
    command: Path, bundle: Path, lines: Sequence[dict[str, Any]], flags: Sequence[str] = ()
) -> list[str]:
    """Returns the text of the best hypothesis of each line."""
    return [best[0]["text"] for best in hypotheses_of(command, bundle, lines, flags)]


def decode_texts(
    command: Path, bundle: Path, texts: Sequence[str], flags: Sequence[str] = ()
) -> list[str]:
    return decode_lines(command, bundle, [{"text": text} for text in texts], flags)


def run_synthetic(command: Path, bundle: Path, flags: Sequence[str] = ()) -> None:
    """Loads a bundle and decodes a few tokens that mean nothing, also without a tokenizer."""
    tokens = ("--synthetic", "--source-tokens", "4", "--target-tokens", "4")
    done = subprocess.run(
        [str(command), "--bundle", str(bundle), *tokens, *flags],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ConfigError(f"{command.name} cannot run {bundle}: {done.stderr.strip()[-500:]}")
