"""Decodes the texts that linnet-score measures, with linnet-decode and its flags or with the search
in Python."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceProcessor

from linnet_model.bundle import load_module
from linnet_model.config import ConfigError
from linnet_model.decode_command import decode_lines, find_decode
from linnet_model.export.grammar import Grammar
from linnet_model.export.search import Options, answer_texts
from linnet_model.network.model_config import require
from linnet_model.styles import before_source
from linnet_model.tokenizer import load_tokenizer

COMPUTE, DEVICE = "--compute", "--device"
OPTIONS = {  # of the manifest's default_options, by the flag of linnet-decode that replaces each
    "--beam": "beam_size",
    "--beam-size": "beam_size",
    "--length-penalty": "length_penalty",
    "--no-repeat-ngram-size": "no_repeat_ngram_size",
    "--max-ngram-repeats": "max_ngram_repeats",
}
SPEED = ("--threads", "--batch")  # flags of linnet-decode that change no answer


def tokenizer_of(bundle: Path, manifest: dict[str, Any], side: str) -> SentencePieceProcessor:
    file = bundle / manifest[f"{side}_tokenizer_file"]
    return load_tokenizer(file, manifest.get("capitals_mark", ""))


@dataclass(frozen=True)
class Decoding:
    """The program, None for the search in Python, and its flags by name."""

    program: Path | None
    flags: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Names the engine, its compute type, and every flag that may change an answer."""
        if self.program is None:
            return "the search in Python (linnet_model.export.search), float32"
        others = {k: v for k, v in self.flags.items() if k not in (COMPUTE, *SPEED)}
        return ", ".join(["linnet-decode", self.flags[COMPUTE], *words(others)])

    def options(self, manifest: dict[str, Any]) -> str:
        """Names the options of the search: the manifest's, but those that a flag replaces. Other
        flags are in the name."""
        options = dict(manifest["default_options"])
        for flag, value in self.flags.items():
            if flag in OPTIONS:
                options[OPTIONS[flag]] = value
        text = f"beam {options['beam_size']}, length penalty {float(options['length_penalty']):g}"
        if int(options["no_repeat_ngram_size"]):
            text += f", no {options['no_repeat_ngram_size']}-gram twice"
        if int(options.get("max_ngram_repeats", 0)):
            text += f", no n-gram more than {options['max_ngram_repeats']} times in a row"
        return text

    def answers(
        self, bundle: Path, manifest: dict[str, Any], texts: Sequence[str], style: str = ""
    ) -> list[str]:
        """Decodes the texts; of a summariser in a style, "": the default."""
        if self.program:
            lines = [{"text": text, **({"style": style} if style else {})} for text in texts]
            return decode_lines(self.program, bundle, lines, words(self.flags))
        writing = tokenizer_of(bundle, manifest, "target")
        return answer_texts(
            load_module(bundle / manifest["model_file"]),
            tokenizer_of(bundle, manifest, "source"),
            writing,
            list(texts),
            Options.of_manifest(manifest),
            manifest["limits"]["max_target_tokens"],
            before=before_source(manifest, style),
            grammar=Grammar.of_manifest(writing, manifest),
        )


def words(flags: dict[str, str]) -> list[str]:
    return [f"{name}={value}" if value else name for name, value in flags.items()]


def parse_flags(given: Sequence[str], publish: bool) -> dict[str, str]:
    """Returns the flags of linnet-decode by name, in float32 unless they name another type.
    Published scores are those of the bundle's own search, so `publish` refuses what changes it."""
    flags = {COMPUTE: "float32"}
    for word in given:
        name, _, value = word.partition("=")
        require(
            name.startswith("--"), f"--decode-flag={word} must be --NAME or --NAME=VALUE, in one"
        )
        require(
            not publish or name in (COMPUTE, DEVICE, *SPEED),
            f"--decode-flag={word} changes the search, and --write publishes the scores of the "
            f"bundle's options: leave one of them out; {', '.join((COMPUTE, DEVICE, *SPEED))} may "
            "stay",
        )
        flags[name] = value
    require(
        not publish or flags[COMPUTE] not in ("", "auto"),
        f"--decode-flag={COMPUTE}={flags[COMPUTE]} does not say which type the written scores "
        "have, name it",
    )
    return flags


def choose_decoding(
    engine: str, named: Path | None, given: Sequence[str], publish: bool
) -> Decoding:
    """Returns how to decode: `engine` is command, python, or auto for linnet-decode if it is
    built."""
    flags = parse_flags(given, publish)
    program = None if engine == "python" else find_decode(named)
    if program is not None:
        return Decoding(program, flags)
    require(
        not given and not (engine == "python" and named),
        "--decode and --decode-flag are for linnet-decode, the search in Python has no flags: "
        "leave them out, or build linnet-decode with ./start.sh --build",
    )
    if engine == "command":
        raise ConfigError(
            "linnet-decode is not built, build it with ./start.sh --build or use --engine python"
        )
    if engine == "auto":
        print("linnet-score: linnet-decode is not built, the search in Python decodes",
              file=sys.stderr)  # fmt: skip
    return Decoding(None)
