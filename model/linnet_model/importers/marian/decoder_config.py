"""Reads how Marian is to search with a model: the config.….yml of Firefox's and Bergamot's models,
and the decoder.yml of others, which stand beside the model.

Every key is read, or restricted to the values that Linnet's search has, or known to have no effect
on an answer. Unknown keys and other values are refused by name.

Source: src/common/config_parser.cpp of marian-nmt/marian-dev 1.12 and of browsermt/marian-dev 1.9,
src/translator/parser.h of browsermt/bergamot-translator.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from linnet_model.importers.huggingface.config import names
from linnet_model.importers.marian.config import integer, shown
from linnet_model.importers.marian.folder import ModelFiles
from linnet_model.importers.marian.settings import MAX_BYTES, read_settings
from linnet_model.network.model_config import require

READ = names("beam-size max-length-factor models normalize shortlist vocabs")
ONLY: dict[str, tuple[Any, ...]] = {
    "allow-special": (False,),
    "allow-unk": (False,),
    "force-decode": (False,),
    "gemm-precision": (
        "float32",
        "int8",
        "int8Alpha",
        "int8shift",
        "int8shiftAlpha",
        "int8shiftAll",
        "int8shiftAlphaAll",
        "int16",
    ),
    "ignore-model-config": (False,),
    "input-join-fields": (False,),
    "input-reorder": ([], None),
    "no-spm-decode": (False,),
    "no-spm-encode": (False,),
    "output-sampling": ([], None, False),
    "tsv": (False,),
    "weights": ([], None, [1], [1.0]),
    "word-penalty": (0, 0.0),
    "xml-input": (False,),
}
# Batches, threads, memory, files, logs and what is printed beside an answer. Some are answers of
# their own in Linnet: it splits texts (max-length-break, ssplit), its limits are flags of the
# import (max-length), and it computes all products exactly (output-approx-knn).
NO_EFFECT = names(
    "alignment authors build-info cache-mutex-buckets cache-size check-nan cite clip-gemm "
    "cpu-threads data-threads devices dump-config fp16 input int16 interpolate-env-vars log "
    "log-level log-time-zone maxi-batch maxi-batch-sort max-length max-length-break "
    "max-length-crop mini-batch mini-batch-words model-mmap n-best num-devices optimize output "
    "output-approx-knn port precision quality quiet quiet-translation relative-paths seed "
    "skip-cost ssplit-mode ssplit-prefix-file stat-freq tsv-fields version word-scores workspace"
)
BEGINNINGS, ENDING = ("config", "decoder"), (".yml", ".yaml")
MAX_BEAM = 32
MAX_FACTOR = 1000.0


@dataclass(frozen=True)
class DecoderConfig:
    """The search as a file describes it; None where the file says nothing."""

    file: Path
    beam_size: int | None = None
    length_penalty: float | None = None
    target_ratio: float | None = None
    shortlist: bool = False


def read_decoder_config(folder: Path, files: ModelFiles) -> DecoderConfig | None:
    """Returns the configuration of the folder's model, or None if the folder has none."""
    found = sorted(
        file
        for file in folder.iterdir()
        if file.is_file()
        and file.suffix in ENDING
        and (file.name.startswith(BEGINNINGS) or file.stem.endswith(".decoder"))
    )
    require(
        len(found) <= 1,
        f"{folder} has {', '.join(file.name for file in found)}: keep the one that says how the "
        "model is to be used",
    )
    return read_file(found[0], files) if found else None


def read_file(file: Path, files: ModelFiles) -> DecoderConfig:
    where = str(file)
    size = file.stat().st_size
    require(size <= MAX_BYTES, f"{where} has {size} bytes, at most {MAX_BYTES}")
    settings = read_settings(where, file.read_bytes())
    unknown = sorted(settings.keys() - READ - NO_EFFECT - ONLY.keys())
    require(not unknown, f"{where} has unknown keys, which would be ignored: {', '.join(unknown)}")
    for key in sorted(ONLY.keys() & settings.keys()):
        value, supported = settings[key], ONLY[key]
        require(
            any(type(value) is type(one) and value == one for one in supported),
            f"{where} has {key} {shown(value)}, supported are "
            f"{', '.join(dict.fromkeys(shown(one) for one in supported))}",
        )
    check_names(where, "models", settings, [files.model], 1)
    check_names(where, "vocabs", settings, [files.source_spm, files.target_spm], 2)
    beam = settings.get("beam-size")
    return DecoderConfig(
        file,
        None if beam is None else integer(where, "beam-size", beam, 1, MAX_BEAM),
        number(where, "normalize", settings, 10.0),
        number(where, "max-length-factor", settings, MAX_FACTOR),
        uses_shortlist(where, settings, files),
    )


def number(where: str, key: str, settings: dict[str, Any], maximum: float) -> float | None:
    value = settings.get(key)
    if value is None:
        return None
    require(
        type(value) in (int, float) and 0 <= value <= maximum,
        f"{where} has {key} {shown(value)}, it must be a number from 0 to {maximum:g}",
    )
    return float(value)


def file_name(value: Any) -> str:
    return PurePosixPath(str(value)).name


def check_names(
    where: str, key: str, settings: dict[str, Any], files: list[Path], count: int
) -> None:
    """Refuses a list of files other than those of the folder."""
    value = settings.get(key)
    if value is None:
        return
    given = [file_name(one) for one in value] if isinstance(value, list) else [file_name(value)]
    wanted = [file.name for file in files]
    require(
        given == wanted,
        f"{where} has {key} {shown(value)}, {count} are read, and the folder's are "
        f"{', '.join(wanted)}",
    )


def uses_shortlist(where: str, settings: dict[str, Any], files: ModelFiles) -> bool:
    """Returns whether the model is to be used with its shortlist: a list of the file and of numbers
    that a binary file does not need."""
    value = settings.get("shortlist")
    if value in (None, [], False):
        return False
    given = file_name(value[0] if isinstance(value, list) else value)
    found = files.shortlist.name if files.shortlist else "none"
    require(
        files.shortlist is not None and given == found,
        f"{where} has the shortlist {given}, and the folder has {found}: put it there, or delete "
        "the key",
    )
    return True
