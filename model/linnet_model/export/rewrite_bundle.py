"""linnet-rewrite-bundle: writes the module of a bundle again with the current model code.

Older bundles lack methods that the engine requires, or needs for int8, alignment and shortlists.
Weights, tokenizer, limits, examples and scores do not change; scores.json names the new file, which
holds the weights that were measured.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from linnet_model.bundle import (
    print_files,
    read_bundle_weights,
    read_manifest,
    save_module,
    sha256,
    write_manifest,
)
from linnet_model.command_line import parser_for
from linnet_model.config import ConfigError
from linnet_model.network.encoder_decoder import EncoderDecoder


def rewrite_bundle(folder: Path) -> dict[str, Any]:
    """Replaces the module of the bundle in `folder` and returns the manifest with the new sum."""
    manifest = read_manifest(folder)
    weights, sizes = read_bundle_weights(folder)
    model = EncoderDecoder(sizes).eval()
    model.load_state_dict(weights)
    file = folder / manifest["model_file"]
    # Written beside the old file and then renamed, so that an interruption leaves the old bundle.
    new = file.with_name(file.name + ".new")
    save_module(model, sizes, manifest["architecture"]["weight_type"], new)
    os.replace(new, file)
    for entry in manifest["files"]:
        if entry["name"] == file.name:
            entry["bytes"], entry["sha256"] = file.stat().st_size, sha256(file)
    write_manifest(folder, manifest)
    scores = folder / "scores.json"
    if scores.exists():
        measured = json.loads(scores.read_text(encoding="utf-8"))
        measured["model_sha256"] = sha256(file)
        scores.write_text(
            json.dumps(measured, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    return manifest


def main(arguments: list[str] | None = None) -> int:
    parser = parser_for(__doc__)
    parser.add_argument(
        "--bundle", type=Path, required=True, metavar="DIR", help="folder of the bundle"
    )
    options = parser.parse_args(arguments)
    try:
        manifest = rewrite_bundle(options.bundle)
        read_manifest(options.bundle)
    except ConfigError as error:
        print(f"linnet-rewrite-bundle: {error}", file=sys.stderr)
        return 1
    print_files(manifest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
