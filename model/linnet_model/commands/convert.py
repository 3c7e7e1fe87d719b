"""linnet-model convert: writes a bundle once more, with weights of another type.

bfloat16 halves a bundle of float32, int8 quarters it (stored_weights.py). Rounding changes some
answers, and no type gives back what was rounded away before. Golden examples are kept as they are,
so that `linnet-model check` tells what the rounding changes. A signature is not copied: sign the
new manifest.

The new module has the code of this version of Linnet, unless it is an ensemble. With the type that
the weights have already, only the code changes: so a bundle of an earlier version gets what was
made faster since.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch

from linnet_model.bundle import (
    MANIFEST,
    SIGNATURE,
    SIZES,
    new_bundle,
    print_files,
    put_shortlist,
    read_manifest,
    sha256,
    write_manifest,
)
from linnet_model.command_line import command, parser_for
from linnet_model.config import BundleConfig, ModelConfig, from_tables
from linnet_model.network import ops
from linnet_model.network.encoder_decoder import EncoderDecoder
from linnet_model.shortlist_file import read_shortlist
from linnet_model.stored_weights import WEIGHT_TYPES, store

CARD = "MODEL_CARD.md"


def with_this_code(module: torch.jit.ScriptModule, sizes: ModelConfig) -> torch.nn.Module:
    """Returns a module that has the weights of `module`, with their types and scales."""
    model = EncoderDecoder(sizes).eval()
    weights, parts = module.state_dict(), dict(module.named_modules())
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(False)
        parameter.data = weights[name]
    for name, part in model.named_modules():
        if hasattr(part, "scales"):
            part.scales = parts[name].scales
    return model


def convert(bundle: Path, out: Path, weight_type: str, name: str | None = None) -> dict[str, Any]:
    """Writes the bundle and returns its manifest."""
    manifest = read_manifest(bundle)
    stored, model_file = manifest["architecture"]["weight_type"], manifest["model_file"]
    if name is not None:
        BundleConfig(name=name).check()
    ops.load()
    extra = {SIZES: ""}
    module = torch.jit.load(str(bundle / model_file), map_location="cpu", _extra_files=extra)
    if extra[SIZES]:
        module = with_this_code(
            module, from_tables(ModelConfig, json.loads(extra[SIZES]), "model.")
        )
    if stored != weight_type:
        store(module, weight_type)
    with new_bundle(out) as partial:
        for file in sorted(bundle.iterdir()):
            if file.is_file() and file.name not in (model_file, MANIFEST, SIGNATURE):
                shutil.copyfile(file, partial / file.name)
        kept = {SIZES: extra[SIZES]} if extra[SIZES] else {}  # an ensemble has no sizes
        saved = torch.jit.script(module).save_to_buffer(_extra_files=kept)
        (partial / model_file).write_bytes(saved)
        entry = {
            "name": model_file,
            "bytes": (partial / model_file).stat().st_size,
            "sha256": sha256(partial / model_file),
        }
        if stored != weight_type:
            manifest["version"] += f"-{weight_type}"
        manifest |= {
            "name": name or manifest["name"],
            "architecture": manifest["architecture"] | {"weight_type": weight_type},
            "files": [entry if e["name"] == model_file else e for e in manifest["files"]],
        }
        if manifest.get("shortlist_file"):  # a shortlist.json of an earlier version becomes binary
            shortlist = read_shortlist(partial / manifest["shortlist_file"])
            manifest = put_shortlist(partial, manifest, shortlist)
        write_manifest(partial, manifest)
        if stored != weight_type and (partial / CARD).is_file():
            told = f"Converted by linnet-model: the weights, stored as {stored}, are {weight_type} "
            told += "here. What is said above of answers and scores is said of the former.\n"
            with (partial / CARD).open("a", encoding="utf-8") as card:
                card.write(f"\n{told}")
    return manifest


def command_line() -> argparse.ArgumentParser:
    parser = parser_for(__doc__)
    parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="folder of the bundle")
    parser.add_argument("--out", type=Path, required=True, help="folder of the new bundle")
    parser.add_argument(
        "--dtype", choices=WEIGHT_TYPES, required=True, help="type of stored weights"
    )
    parser.add_argument("--name", help="name of the new bundle [the same]")
    return parser


@command
def main(arguments: list[str] | None = None) -> None:
    options = command_line().parse_args(arguments)
    manifest = convert(options.bundle, options.out, options.dtype, options.name)
    read_manifest(options.out)
    print_files(manifest)


if __name__ == "__main__":
    sys.exit(main())
