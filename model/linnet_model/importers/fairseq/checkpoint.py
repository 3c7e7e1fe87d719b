"""Reads checkpoints of fairseq without executing the code that they name.

A checkpoint is a pickle, and unpickling may call any function that the pickle names. Here torch's
weights-only reader reads tensors and plain containers. Objects that fairseq adds (options in an
argparse.Namespace or an omegaconf.DictConfig, meters, enums) become inert Records. Any other name
is refused before anything is unpickled.

Two generations are supported, `args` of 2019 and `cfg` since 2020 (plain containers or pickled
omegaconf), in torch's zip format and in the older one.
"""

from __future__ import annotations

import io
import pickletools
import re
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from linnet_model.importers.files import check_downloaded, refuse_compressed
from linnet_model.importers.tensors import refuse_expanded
from linnet_model.network.model_config import ConfigError, require

# Names in pickles of tensors and plain containers, which torch's weights-only reader handles.
TENSORS = re.compile(
    r"torch\._utils\._rebuild_(tensor|tensor_v2|parameter)"
    r"|torch\.(cuda\.|storage\.)?\w+Storage|torch\.nn\.parameter\.Parameter"
    r"|torch\.(Size|Tensor|device|bool|double|half|long|short|bfloat16|float\d*|u?int\d*)"
    r"|collections\.(Counter|OrderedDict)|_codecs\.encode|builtins\.(bytearray|complex|set)"
)
# Other names that are allowed. They are never imported; a Record replaces each object.
INERT = re.compile(
    r"argparse\.Namespace"
    r"|(omegaconf|fairseq)(\.\w+)+"
    r"|typing\.(Any|Optional|Union|List|Dict|Tuple)"
    r"|builtins\.(bool|dict|float|int|list|str|tuple)"  # types of options
    r"|numpy\.(_?core\.multiarray\.scalar|dtype)"  # losses in the training statistics
)
ZIP = b"PK\x03\x04"
LEGACY_PICKLES = 5  # magic number, protocol, system info, the checkpoint, storage keys


class Record:
    """Replaces an object whose class is not imported; keeps its arguments and state."""

    name = ""
    arguments: tuple[Any, ...]

    def __new__(cls, *arguments: Any) -> Record:
        record = super().__new__(cls)
        record.arguments = arguments
        record.state = None
        return record

    def __setstate__(self, state: Any) -> None:
        self.state = state


def record_class(name: str) -> type[Record]:
    return type("Record", (Record,), {"name": name})


def empty_dict(*_: Any) -> dict[Any, Any]:
    """Replaces collections.defaultdict, whose argument would be called for missing keys."""
    return {}


@dataclass
class FairseqCheckpoint:
    """Options and weights of a file, unchanged."""

    options: dict[str, Any]  # options of the task, overridden by those of the model
    weights: OrderedDict[str, torch.Tensor]
    generation: str  # "args" or "cfg"


def read_checkpoint(path: Path) -> FairseqCheckpoint:
    content = load_inert(path)
    require(
        isinstance(content, dict) and isinstance(content.get("model"), dict),
        f"{path} holds no model, it is no checkpoint of fairseq",
    )
    weights = content["model"]
    for name, weight in weights.items():
        require(
            isinstance(name, str) and isinstance(weight, torch.Tensor),
            f"{path} has {name!r} of type {type(weight).__name__} among its weights",
        )
        refuse_expanded(path, name, weight)
    if content.get("cfg") is not None:
        options, generation = options_of_cfg(plain(content["cfg"])), "cfg"
    else:
        require(
            content.get("args") is not None,
            f"{path} has neither args nor cfg, the options that its model was built with",
        )
        options, generation = plain(content["args"]), "args"
    require(isinstance(options, dict), f"{path} has options of type {type(options).__name__}")
    return FairseqCheckpoint(options, weights, generation)


def load_inert(path: Path) -> Any:
    """Loads the file with torch.load, with Records in place of fairseq's objects."""
    require(Path(path).is_file(), f"no checkpoint at {path}")
    check_downloaded(Path(path))
    try:
        names = names_in(path)
    except ConfigError:
        raise
    except Exception as error:  # zipfile, zlib and pickletools raise many types
        raise ConfigError(f"{path} is no checkpoint of torch: {error}") from None
    known: list[Callable[..., Any] | tuple[Callable[..., Any], str]] = [
        (empty_dict, "collections.defaultdict")
    ]
    for name in sorted(names - {"collections.defaultdict"}):
        if TENSORS.fullmatch(name):
            continue
        require(
            INERT.fullmatch(name) is not None,
            f"{path} names {name}, which no checkpoint of fairseq needs; nothing was executed, do "
            "not use this file unless you trust its author",
        )
        known.append((record_class(name), name))
    try:
        with torch.serialization.safe_globals(known):
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch's reader raises many types as well
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ConfigError(f"{path} cannot be read: {reason}") from None


def names_in(path: Path) -> set[str]:
    """Returns every module.name in the pickles of a checkpoint."""
    with Path(path).open("rb") as file:
        if file.read(len(ZIP)) == ZIP:
            refuse_compressed(path)
            with zipfile.ZipFile(path) as archive:
                inside = [n for n in archive.namelist() if n.endswith("/data.pkl")]
                require(len(inside) == 1, f"{path} is no checkpoint of torch: it has no data.pkl")
                return set(names_in_pickle(io.BytesIO(archive.read(inside[0]))))
        file.seek(0)
        return {name for _ in range(LEGACY_PICKLES) for name in names_in_pickle(file)}


def names_in_pickle(file: Any) -> Iterator[str]:
    """Yields the names in one pickle, and reads `file` up to its end."""
    strings = ["", ""]  # the last two strings, the operands of STACK_GLOBAL
    for operation, argument, _ in pickletools.genops(file):
        if operation.name in ("GLOBAL", "INST"):
            module, _, name = str(argument).partition(" ")
            module = {"__builtin__": "builtins", "copy_reg": "copyreg"}.get(module, module)
            yield f"{module}.{name}".replace("builtins.long", "builtins.int")
        elif operation.name == "STACK_GLOBAL":  # which torch.save does not write
            yield ".".join(strings)
        elif isinstance(argument, str):
            strings = [strings[1], argument]


def plain(value: Any) -> Any:
    """Converts options to dicts, lists and values; unwraps Namespaces, omegaconf and enums."""
    if isinstance(value, Record):
        state = value.state if isinstance(value.state, dict) else {}
        if value.name == "argparse.Namespace":
            return plain(state)
        for content in ("_content", "_val"):
            if value.name.startswith("omegaconf.") and content in state:
                return plain(state[content])
        return plain(value.arguments[0]) if len(value.arguments) == 1 else value
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def options_of_cfg(cfg: dict[str, Any]) -> dict[str, Any]:
    """Returns the options of cfg["task"], overridden by those of cfg["model"]. Nested options get
    the older flat names: model.encoder.embed_dim becomes encoder_embed_dim."""
    require(isinstance(cfg, dict) and isinstance(cfg.get("model"), dict), "the cfg names no model")
    options = dict(cfg["task"]) if isinstance(cfg.get("task"), dict) else {}
    options["task"] = options.pop("_name", None)
    for key, value in cfg["model"].items():
        if key in ("encoder", "decoder", "quant_noise") and isinstance(value, dict):
            options |= {f"{key}_{inner}": item for inner, item in value.items()}
        else:
            options[key] = value
    return {key: resolved(value, cfg) for key, value in options.items()}


def resolved(value: Any, cfg: dict[str, Any]) -> Any:
    """Resolves an omegaconf reference such as "${task.max_source_positions}"."""
    for _ in range(8):  # bounds circular references
        found = re.fullmatch(r"\$\{([\w.]+)\}", value) if isinstance(value, str) else None
        if found is None:
            return value
        value = cfg
        for key in found[1].split("."):
            value = value.get(key) if isinstance(value, dict) else None
    return value
