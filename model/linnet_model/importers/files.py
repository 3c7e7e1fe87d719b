"""Files of a download that importers of several toolkits read."""

from __future__ import annotations

import zipfile
from pathlib import Path

import sentencepiece

from linnet_model.network.model_config import ConfigError, require

LFS_POINTER = b"version https://git-lfs"


def check_downloaded(file: Path) -> None:
    """Refuses the small text that a clone without git-lfs has in place of a large file."""
    with file.open("rb") as start:
        require(
            start.read(len(LFS_POINTER)) != LFS_POINTER,
            f"{file} is a pointer of git-lfs, not the file itself: run git lfs pull in its folder, "
            "or download the file",
        )


def refuse_compressed(archive: Path) -> None:
    """Refuses a zip file with compressed entries, which torch does not write: a few bytes could
    become any number."""
    with zipfile.ZipFile(archive) as opened:
        packed = [it.filename for it in opened.infolist() if it.compress_type != zipfile.ZIP_STORED]
    require(
        not packed, f"{archive} has the compressed entry {(packed or [''])[0]!r}, torch has none"
    )


def load_sentencepiece(file: Path) -> sentencepiece.SentencePieceProcessor:
    check_downloaded(file)
    return read_sentencepiece(file.read_bytes(), file)


def read_sentencepiece(content: bytes, file: Path) -> sentencepiece.SentencePieceProcessor:
    """`file` is what an error names."""
    # SentencePiece takes no bytes for no model, and crashes when it is asked something.
    require(bool(content), f"{file} is no SentencePiece model: it is empty")
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=content)
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{file} is no SentencePiece model: {error}") from None


def pieces_of(processor: sentencepiece.SentencePieceProcessor, file: Path) -> list[str]:
    """Returns the pieces of the SentencePiece model that was read from `file`, by id."""
    try:
        return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is no SentencePiece model: {error}") from None
