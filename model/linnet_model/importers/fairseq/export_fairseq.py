"""linnet-export-fairseq: writes a fairseq checkpoint from a bundle or a run.

Writes FILE.pt and the two dictionaries beside it. `linnet-model import fairseq` reads them back bit
for bit. --layout 2019 is for fairseq up to 0.9, `new` for later versions.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from linnet_model.bundle import MANIFEST, read_bundle_weights, read_manifest
from linnet_model.command_line import command, parser_for
from linnet_model.importers.fairseq.dictionary import dictionary_bytes
from linnet_model.importers.fairseq.import_fairseq import SOURCE_DICTIONARY, TARGET_DICTIONARY
from linnet_model.importers.fairseq.names import to_2019_names, to_fairseq
from linnet_model.importers.fairseq.options import options_of
from linnet_model.network.model_config import ModelConfig, require
from linnet_model.new_file import new_file
from linnet_model.tokenizer import load_tokenizer
from linnet_model.train.checkpoint import averaged_model, checkpoints
from linnet_model.train.stages import result_of

LAYOUTS = ("new", "2019")


@dataclass
class Exported:
    """The content of a fairseq checkpoint."""

    weights: dict[str, Tensor]
    config: ModelConfig
    max_source_tokens: int
    max_target_tokens: int
    source_language: str
    target_language: str
    # Source and target: the imported fairseq dictionary, or symbols by id.
    dictionaries: list[Path | list[str]]
    capitals_mark: str  # what fairseq does not do with a text, see `notes`
    tokens_around: bool

    def notes(self) -> list[str]:
        """Says how a text must be changed for fairseq, which knows neither languages nor marks."""
        found = []
        if self.tokens_around:
            found.append(
                "the model reads tokens of languages or styles around a text, which fairseq does "
                "not add: put them there"
            )
        if self.capitals_mark:
            found.append(
                f"the model reads a text in capitals as {self.capitals_mark} and the text in lower "
                "case, which fairseq does not do: change such texts"
            )
        return found


def of_bundle(folder: Path) -> Exported:
    manifest = read_manifest(folder)
    weights, config = read_bundle_weights(folder)
    return Exported(
        weights,
        config,
        int(manifest["limits"]["max_source_tokens"]),
        int(manifest["limits"]["max_target_tokens"]),
        manifest["source_language_code"],
        manifest["target_language_code"],
        [
            symbols_of_bundle(folder, manifest, "source", SOURCE_DICTIONARY, config.vocabulary),
            symbols_of_bundle(
                folder, manifest, "target", TARGET_DICTIONARY, config.target_vocabulary
            ),
        ],
        manifest.get("capitals_mark", ""),
        bool(manifest.get("languages")),
    )


def symbols_of_bundle(
    folder: Path, manifest: dict[str, Any], side: str, kept: str, rows: int
) -> Path | list[str]:
    if (folder / kept).is_file():
        return folder / kept
    if vocabulary := manifest.get(f"{side}_vocabulary_file"):
        lines = (folder / vocabulary).read_bytes().decode("utf-8")
        return filled(lines.removesuffix("\n").split("\n"), rows)
    if tokenizer := manifest.get(f"{side}_tokenizer_file"):
        return filled(pieces_of(folder / tokenizer), rows)
    return filled([], rows)


def of_run(run: Path) -> Exported:
    """Returns the averaged weights of a run's last checkpoint, or of the checkpoint `run`."""
    run = result_of(run)
    files = checkpoints(run) if run.is_dir() else [run]
    require(len(files) > 0, f"no checkpoint in {run}")
    model, recipe, _ = averaged_model(files[-1:])
    folder = run if run.is_dir() else run.parent
    pieces = pieces_of(folder / "source.spm")
    return Exported(
        dict(model.named_parameters()),
        recipe.model,
        recipe.bundle.max_source_tokens,
        recipe.bundle.max_target_tokens,
        recipe.bundle.source_language,
        recipe.bundle.target_language,
        [filled(pieces, recipe.model.vocabulary), filled(pieces, recipe.model.target_vocabulary)],
        recipe.data.capitals_mark,
        bool(recipe.data.styles),
    )


def pieces_of(tokenizer: Path) -> list[str]:
    model = load_tokenizer(tokenizer)
    return [model.id_to_piece(i) for i in range(model.get_piece_size())]


def filled(symbols: list[str], rows: int) -> list[str]:
    require(len(symbols) <= rows, f"{len(symbols)} pieces do not fit {rows} rows of the embedding")
    return symbols + [""] * (rows - len(symbols))


def state_dict(exported: Exported, layout: str) -> OrderedDict[str, Tensor]:
    """Returns the weights under fairseq's names of that layout, with the buffers it requires."""
    config = exported.config
    weights = {
        name: weight.detach().to(torch.float32).contiguous()
        for name, weight in exported.weights.items()
    }
    fairseq_weights = to_fairseq(weights, config)
    attention = config.decoder_mixers[0] == "self_attention"
    extra: dict[str, Tensor] = {}
    for side in ("encoder", "decoder"):
        extra[f"{side}.version"] = torch.tensor([3.0 if attention else 2.0])
        if layout == "2019" and config.positions == "sinusoidal":
            extra[f"{side}.embed_positions._float_tensor"] = torch.zeros(1)
        for i, mixer in enumerate(getattr(config, f"{side}_mixers")):
            if layout == "new" and mixer == "dynamic":
                # fairseq registers but never adds it, see "conv_bias" in names.py.
                extra[f"{side}.layers.{i}.conv.conv_bias"] = torch.zeros(1, 1, config.width)
    # Clones, because torch.save would write the whole storage behind a view.
    layout_weights = to_2019_names(fairseq_weights) if layout == "2019" else fairseq_weights
    copies: dict[int, Tensor] = {}
    return OrderedDict(
        (name, copies.setdefault(id(weight), weight.clone()))
        for name, weight in sorted((layout_weights | extra).items())
    )


def checkpoint_of(exported: Exported, layout: str) -> dict[str, Any]:
    """Returns the content of the file. It has only options of model and task; fairseq has defaults
    for the others."""
    options = options_of(exported.config, exported.max_source_tokens, exported.max_target_tokens)
    task = {
        "data": "",
        "source_lang": exported.source_language,
        "target_lang": exported.target_language,
        "left_pad_source": True,
        "left_pad_target": False,
        "max_source_positions": options["max_source_positions"],
        "max_target_positions": options["max_target_positions"],
    }
    content: dict[str, Any] = {
        "model": state_dict(exported, layout),
        "optimizer_history": [
            {
                "criterion_name": "CrossEntropyCriterion",
                "optimizer_name": "FairseqAdam",
                "lr_scheduler_state": {"best": None},
                "num_updates": 0,
            }
        ],
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0, "shuffle": True}},
    }
    if layout == "2019":
        arguments = argparse.Namespace(**options, **task_without(task, options), task="translation")
        return {"args": arguments} | content
    cfg = {
        "_name": None,
        "model": argparse.Namespace(**options, **task_without(task, options)),
        "task": {"_name": "translation"} | task,
        "criterion": {"_name": "cross_entropy", "sentence_avg": False},
    }
    return {"args": None, "cfg": cfg, "criterion": None, "task_state": {}} | content


def task_without(task: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in task.items() if key not in options}


def export_fairseq(exported: Exported, out: Path, layout: str) -> list[Path]:
    """Writes the checkpoint and the dictionaries beside it; returns the files. Refuses to replace
    another dictionary, which belongs to another checkpoint of the folder."""
    require(out.suffix == ".pt", f"--out is {out}, must be a FILE.pt")
    require(
        not (out.parent / MANIFEST).exists(),
        f"--out is {out}, in the folder of a bundle: choose another folder",
    )
    checkpoint, content = checkpoint_of(exported, layout), io.BytesIO()
    torch.save(checkpoint, content, _use_new_zipfile_serialization=layout != "2019")
    files = {out: content.getvalue()}
    languages = (exported.source_language, exported.target_language)
    for language, dictionary in zip(languages, exported.dictionaries, strict=True):
        file = out.parent / f"dict.{language}.txt"
        wanted = (
            dictionary.read_bytes()
            if isinstance(dictionary, Path)
            else dictionary_bytes(dictionary)
        )
        there = files.get(file) or (file.read_bytes() if file.exists() else wanted)
        require(
            there == wanted,
            f"{file} is the dictionary of another model, choose another folder for --out",
        )
        files[file] = wanted
    out.parent.mkdir(parents=True, exist_ok=True)
    for file, written in files.items():
        with new_file(file) as partial:
            partial.write_bytes(written)
    return list(files)


@command
def main(arguments: list[str] | None = None) -> None:
    parser = parser_for(__doc__)
    origin = parser.add_mutually_exclusive_group(required=True)
    origin.add_argument("--bundle", type=Path, help="folder of a bundle")
    origin.add_argument(
        "--run", type=Path, help="run folder of linnet-train, or one checkpoint in it"
    )
    parser.add_argument("--out", type=Path, required=True, help="FILE.pt to write")
    parser.add_argument(
        "--layout", choices=LAYOUTS, default="new", help="layout of weight names and options"
    )
    options = parser.parse_args(arguments)
    exported = of_bundle(options.bundle) if options.bundle else of_run(options.run)
    written = export_fairseq(exported, options.out, options.layout)
    for file in written:
        print(f"{file}  {file.stat().st_size:,} bytes")
    for note in exported.notes():
        print(f"note: {note}")


if __name__ == "__main__":
    sys.exit(main())
