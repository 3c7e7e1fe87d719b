"""Reads checkpoints of fairseq without running anything that they name.

A checkpoint is a pickle, and a pickle may name any function of the machine to be called while it is
read. Here torch's weights-only reader takes tensors and plain containers; what fairseq itself puts
beside them (its options in an argparse.Namespace or an omegaconf.DictConfig, meters, enums) becomes
an inert Record that holds what it was given; any other name is refused before anything is read.

Two generations are read, in torch's zip format and in the older one: `args` of 2019 and `cfg` since
2020, as plain containers or as pickled omegaconf.
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

from linnet_model.network.model_config import ConfigError, require

# What tensors and plain containers are made of; torch's weights-only reader knows these itself.
TENSORS = re.compile(
    r"torch\._utils\._rebuild_(tensor|tensor_v2|parameter)"
    r"|torch\.(cuda\.|storage\.)?\w+Storage|torch\.nn\.parameter\.Parameter"
    r"|torch\.(Size|Tensor|device|bool|double|half|long|short|bfloat16|float\d*|u?int\d*)"
    r"|collections\.(Counter|OrderedDict)|_codecs\.encode|builtins\.(bytearray|complex|set)"
)
# What may be named beside them: it is never imported, a Record stands in its place.
INERT = re.compile(
    r"argparse\.Namespace"
    r"|(omegaconf|fairseq)(\.\w+)+"
    r"|typing\.(Any|Optional|Union|List|Dict|Tuple)"
    r"|builtins\.(bool|dict|float|int|list|str|tuple)"  # named as types of options
    r"|numpy\.(_?core\.multiarray\.scalar|dtype)"  # a loss among the statistics of the training
)
ZIP = b"PK\x03\x04"
LEGACY_PICKLES = 5  # magic number, protocol, facts of the machine, the checkpoint, storage keys


class Record:
    """Stands for an object of a class that is not imported: what it was made of, unused."""

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
    """Stands for collections.defaultdict, whose argument would be called for missing keys."""
    return {}


@dataclass
class FairseqCheckpoint:
    """Options and weights as the file has them."""

    options: dict[str, Any]  # those of the model, and of the task where the model has none
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
    """What torch.load makes of the file, with Records for what fairseq added to it."""
    require(Path(path).is_file(), f"no checkpoint at {path}")
    try:
        names = names_in(path)
    except ConfigError:
        raise
    except Exception as error:  # zipfile, zlib and pickletools have a type for every damage
        raise ConfigError(f"{path} is no checkpoint of torch: {error}") from None
    known: list[Callable[..., Any] | tuple[Callable[..., Any], str]] = [
        (empty_dict, "collections.defaultdict")
    ]
    for name in sorted(names - {"collections.defaultdict"}):
        if TENSORS.fullmatch(name):
            continue
        require(
            INERT.fullmatch(name) is not None,
            f"{path} names {name}, which no checkpoint of fairseq needs, nothing of it was run: "
            "do not use this file unless you know who made it",
        )
        known.append((record_class(name), name))
    try:
        with torch.serialization.safe_globals(known):
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # so has torch's reader
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ConfigError(f"{path} cannot be read: {reason}") from None


def names_in(path: Path) -> set[str]:
    """Every module.name that the pickles of a checkpoint ask for."""
    with Path(path).open("rb") as file:
        if file.read(len(ZIP)) == ZIP:
            with zipfile.ZipFile(path) as archive:
                inside = [n for n in archive.namelist() if n.endswith("/data.pkl")]
                require(len(inside) == 1, f"{path} is no checkpoint of torch: it has no data.pkl")
                return set(names_in_pickle(io.BytesIO(archive.read(inside[0]))))
        file.seek(0)
        return {name for _ in range(LEGACY_PICKLES) for name in names_in_pickle(file)}


def names_in_pickle(file: Any) -> Iterator[str]:
    """Reads up to the end of one pickle."""
    strings = ["", ""]  # the last two: what STACK_GLOBAL takes, if nobody hides it
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
    """Options as dicts, lists and values: Namespaces, omegaconf and enums unwrapped."""
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
    """Those of cfg["model"], on top of the task's; the newer nested tables become the old flat
    names: model.encoder.embed_dim is encoder_embed_dim."""
    require(isinstance(cfg, dict) and isinstance(cfg.get("model"), dict), "the cfg names no model")
    options = dict(cfg["task"]) if isinstance(cfg.get("task"), dict) else {}
    options.pop("_name", None)
    for key, value in cfg["model"].items():
        if key in ("encoder", "decoder", "quant_noise") and isinstance(value, dict):
            options |= {f"{key}_{inner}": item for inner, item in value.items()}
        else:
            options[key] = value
    return {key: resolved(value, cfg) for key, value in options.items()}


def resolved(value: Any, cfg: dict[str, Any]) -> Any:
    """omegaconf's "${task.max_source_positions}" is the value that stands there."""
    for _ in range(8):  # a chain that is longer goes in a circle
        found = re.fullmatch(r"\$\{([\w.]+)\}", value) if isinstance(value, str) else None
        if found is None:
            return value
        value = cfg
        for key in found[1].split("."):
            value = value.get(key) if isinstance(value, dict) else None
    return value
