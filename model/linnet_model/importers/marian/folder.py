"""Finds and reads the files of a model in a folder: model, SentencePiece models, shortlist."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from linnet_model.importers.files import (
    check_downloaded,
    load_sentencepiece,
    pieces_of,
)
from linnet_model.importers.marian.archive import read_archive
from linnet_model.importers.marian.binary import Array, read_binary
from linnet_model.importers.marian.shortlist import is_shortlist
from linnet_model.network.model_config import require

MAX_MODEL_BYTES = 1 << 33  # the largest published models have 4 GB
MAX_SPM_BYTES = 1 << 26
PADDING = "<pad>"
PACKED = (".gz", ".zst", ".xz", ".bz2")


@dataclass
class ModelFiles:
    model: Path
    source_spm: Path
    target_spm: Path  # may be the same
    shortlist: Path | None


@dataclass
class Pieces:
    """The vocabulary of one side."""

    file: Path
    pieces: list[str]  # by id
    eos: int
    unk: int


def find_files(folder: Path) -> ModelFiles:
    require(folder.is_dir(), f"no folder at {folder}")
    files = sorted(file for file in folder.iterdir() if file.is_file())
    binaries = [file for file in files if file.suffix == ".bin"]
    shortlists = [file for file in binaries if is_shortlist(file)]
    models = [f for f in files if f.suffix == ".npz" and not f.name.endswith(".optimizer.npz")]
    # Firefox ships a small model that rates translations beside some of its models.
    models += [
        file
        for file in binaries
        if file not in shortlists and not file.name.startswith("qualityModel")
    ]
    packed = [file.name for file in files if file.suffix in PACKED]
    hint = f"; unpack {', '.join(packed)} first" if packed else ""
    away = "; move the others to another folder" if len(models) > 1 else ""
    require(
        len(models) == 1,
        f"{folder} has {named(models)} among .npz and .bin, it must have one model{away}{hint}",
    )
    require(
        len(shortlists) <= 1,
        f"{folder} has {named(shortlists)} as shortlists, a model has one",
    )
    source, target = find_spm(folder, [file for file in files if file.suffix == ".spm"], hint)
    return ModelFiles(models[0], source, target, shortlists[0] if shortlists else None)


def named(files: list[Path]) -> str:
    return ", ".join(file.name for file in files) or "nothing"


def find_spm(folder: Path, found: list[Path], hint: str) -> tuple[Path, Path]:
    """Returns the SentencePiece models of source and target."""
    sides = [
        [file for file in found if file.name.startswith(beginnings)]
        for beginnings in (("src", "source"), ("trg", "target"))
    ]
    if len(found) == 1 and not any(sides):
        return found[0], found[0]
    vocabularies = [f.name for f in folder.iterdir() if f.name.endswith((".yml", ".vocab"))]
    also = f" (vocabularies as {', '.join(sorted(vocabularies))} are not read)"
    require(
        len(found) == 2 and all(len(side) == 1 for side in sides),
        f"{folder} has {named(found)} among .spm: it must have one vocabulary for both sides, or "
        f"two, src….spm and trg….spm{also if vocabularies else ''}{hint}",
    )
    return sides[0][0], sides[1][0]


def read_arrays(file: Path) -> dict[str, Array]:
    size = file.stat().st_size
    check_downloaded(file)
    require(size <= MAX_MODEL_BYTES, f"{file} has {size} bytes, at most {MAX_MODEL_BYTES} are read")
    return read_archive(file) if file.suffix == ".npz" else read_binary(file)


def read_pieces(file: Path) -> Pieces:
    size = file.stat().st_size
    require(size <= MAX_SPM_BYTES, f"{file} has {size} bytes, at most {MAX_SPM_BYTES} are read")
    model = load_sentencepiece(file)
    pieces = pieces_of(model, file)
    for i, piece in enumerate(pieces):
        require(
            piece != "" and "\n" not in piece and piece != PADDING,
            f"{file} has the piece {piece!r} with the id {i}, which a bundle cannot have",
        )
    require(
        model.eos_id() >= 0 and model.unk_id() >= 0,
        f"{file} has the end token {model.eos_id()} and the unknown token {model.unk_id()}, Marian "
        "needs both",
    )
    return Pieces(file, pieces, model.eos_id(), model.unk_id())
