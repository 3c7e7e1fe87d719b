"""Reads the arrays of an .npz file, as Marian writes it: a zip archive of .npy files without
compression. Nothing is unpickled, and no array is larger than its bytes in the file."""

from __future__ import annotations

import io
import math
import zipfile
from pathlib import Path

import numpy as np

from linnet_model.importers.marian.binary import MAX_ITEMS, Array
from linnet_model.network.model_config import ConfigError, require


def read_archive(file: Path) -> dict[str, Array]:
    """Returns the arrays by name."""
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            require(
                len(entries) <= MAX_ITEMS,
                f"{file} has {len(entries)} arrays, at most {MAX_ITEMS} are read",
            )
            packed = [e.filename for e in entries if e.compress_type != zipfile.ZIP_STORED]
            require(
                not packed,
                f"{file}: {', '.join(packed[:1])} is compressed, which Marian does not do; save it "
                "again with numpy.savez",
            )
            sizes = sum(entry.file_size for entry in entries)
            require(
                sizes <= file.stat().st_size,
                f"{file} has arrays of {sizes} bytes, more than the file: they overlap",
            )
            arrays: dict[str, Array] = {}
            for entry in entries:
                name = entry.filename.removesuffix(".npy")
                require(name not in arrays, f"{file} has {name} twice")
                arrays[name] = read_array(file, name, archive.read(entry))
            return arrays
    except ConfigError:
        raise
    except Exception as error:  # zipfile raises many types
        raise ConfigError(f"{file} is no .npz file: {error}") from None


def read_array(file: Path, name: str, content: bytes) -> Array:
    read = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(read)
        reader = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, by_columns, dtype = reader(read)
    except Exception as error:  # numpy's parser of headers raises many types
        raise ConfigError(f"{file}: {name} is no array: {error}") from None
    require(
        dtype in (np.dtype("<f4"), np.dtype("i1")),
        f"{file}: {name} has the type {dtype}, read are float32 and bytes",
    )
    elements = math.prod(shape)
    needed, given = elements * dtype.itemsize, len(content) - read.tell()
    if min(shape, default=0) < 0 or needed != given:
        raise ConfigError(
            f"{file}: {name} of shape {list(shape)} needs {needed} bytes, has {given}"
        )
    values = np.frombuffer(content, dtype, elements, read.tell())
    return values.reshape(shape, order="F" if by_columns else "C")
