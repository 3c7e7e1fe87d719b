"""linnet-train: trains a model from a recipe and a folder of texts.

A recipe with [[stages]] is trained stage by stage, each from the weights of the one before. The
same recipe, data and thread count give the same weights, also if the training was stopped or killed
and then resumed.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import sentencepiece
import torch

from linnet_model.bundle import MANIFEST
from linnet_model.command_line import parser_for, require_package, told
from linnet_model.config import SERVED, ConfigError, DataConfig, Recipe, to_tables
from linnet_model.json_files import read_json, write_json
from linnet_model.network.encoder_decoder import parameter_count
from linnet_model.sources import sources_of
from linnet_model.text_files import DataError, Reading, read_split
from linnet_model.tokenizer import load_tokenizer
from linnet_model.train.checkpoint import checkpoints, load_checkpoint, same_sizes
from linnet_model.train.datasets import training_pairs, validation_pairs
from linnet_model.train.lineage import (
    lineage_of,
    read_weights,
    same_data,
    same_init,
    same_start,
)
from linnet_model.train.objectives import make_dataset
from linnet_model.train.options import options_page
from linnet_model.train.stages import first_unfinished, read_stages, result_of, write_names
from linnet_model.train.trainer import Trainer, run
from linnet_model.train.training_log import Log, statistics_table
from linnet_model.train.vocabulary import check_vocabulary, prepare_tokenizer, same_vocabulary

DIVERGED = 3  # exit status of a training whose gradient is not finite

EXAMPLES = """examples:
  linnet-train --recipe model/recipes/en-de.toml --data DATA --out runs/en-de
  linnet-train --recipe model/recipes/en-de.toml --data DATA --out runs/en-de --resume
  linnet-train --recipe my.toml --data DATA --out runs/b --init-from runs/a --set train.updates=500
  linnet-train --options          print all keys of a recipe (docs/RECIPE_OPTIONS.md)

files of --out:
  settings.json  all settings as used, and the statistics of the data
  log.jsonl      one JSON object per line: loss and speed, and each validation
  samples.txt    sources, references and answers of the last validation
  source.spm     the SentencePiece model
  lock           held while a process trains there
  checkpoint-*   read by --resume, --init-from, linnet-export and linnet-score
of a recipe with stages:
  stages.json    the names of the stages, in order
  NAME/          the files above, of the stage NAME
"""


def pick_device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda needs a CUDA device and none is present, use --device cpu")
    return torch.device(name)


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_for(__doc__, epilog=EXAMPLES)
    what = parser.add_argument_group("recipe, data and output")
    what.add_argument("--recipe", type=Path, metavar="FILE", help="TOML file, see model/recipes")
    what.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder that contains the recipe's data.folder (files: docs/TRAINING.md)",
    )
    what.add_argument("--out", type=Path, metavar="DIR", help="run folder, created if missing")
    what.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="TABLE.KEY=VALUE",
        help="overrides a key of the recipe, in all its stages, value in TOML (repeatable)",
    )
    start = parser.add_argument_group("start")
    start.add_argument(
        "--resume",
        action="store_true",
        help="continue from the last checkpoint of --out, in the stage that was stopped, with the "
        "same results; another recipe is refused, but for length of the training, threads, type, "
        "checkpoints, validation, log and [bundle]",
    )
    start.add_argument(
        "--init-from",
        type=Path,
        metavar="PATH",
        help="bundle, run folder or checkpoint whose weights and vocabulary to start from",
    )
    start.add_argument(
        "--tokenizer-from",
        type=Path,
        metavar="PATH",
        help="use this SentencePiece model (.spm, or that of a bundle or run), do not train one",
    )
    how = parser.add_argument_group("device and output")
    how.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="auto: cuda if present",
    )
    how.add_argument(
        "--tensorboard",
        action="store_true",
        help="also write the log for tensorboard, below --out/tensorboard",
    )
    how.add_argument(
        "--options", action="store_true", help="print every key of a recipe with its meaning"
    )
    options = parser.parse_args(arguments)
    if not options.options:
        missing = [f"--{name}" for name in ("recipe", "data", "out") if not getattr(options, name)]
        if missing:
            parser.error(f"give {', '.join(missing)} (or --options, or --help)")
    return options


def start(options: argparse.Namespace) -> None:
    """Trains the stages of the recipe that are not finished. A mistake in any of them is found
    before the first begins, not after hours, unless it depends on the vocabulary."""
    check_out(options.out)
    stages = read_stages(options.recipe, options.set)
    if any(stage.recipe.bundle.task in SERVED for stage in stages):  # the bundle's card needs it
        for stage in stages:
            sources_of(stage.recipe.data.domains, stage.recipe.data.terms)
    device, threads = pick_device(options.device), torch.get_num_threads()
    out, first = options.out, first_unfinished(stages, options.out, options.resume)
    if options.tensorboard:
        require_package("tensorboard", "--tensorboard writes with", "leave out the flag")
    for stage in stages[first:]:
        check_measures(stage.recipe)
    for stage in stages[first + 1 :]:
        check_data(options.data, stage.recipe.data)
    init = None if options.init_from is None else result_of(options.init_from)
    vocabulary = init if options.tokenizer_from is None else result_of(options.tokenizer_from)
    if init is not None and vocabulary is not None:
        same_vocabulary(
            init,
            vocabulary,
            f"--init-from {init} has another vocabulary than --tokenizer-from {vocabulary}, and "
            "its weights belong to its own: leave out --tokenizer-from",
        )
    out.mkdir(parents=True, exist_ok=True)
    write_names(out, stages)
    for stage in stages[first + 1 :]:
        # It has no checkpoint; a vocabulary there is of an earlier start, perhaps with another one.
        (stage.folder(out) / "source.spm").unlink(missing_ok=True)
    for number, stage in enumerate(stages):
        folder = stage.folder(out)
        if number < first:
            print(f"{folder} is finished", flush=True)
        else:
            if stage.name:
                print(f"stage {stage.name}, {number + 1} of {len(stages)}\n", flush=True)
            torch.set_num_threads(stage.recipe.train.threads or threads)
            folder.mkdir(parents=True, exist_ok=True)
            with locked(folder):
                train_run(stage.recipe, options, folder, device, init, vocabulary)
        init = vocabulary = folder


def check_out(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out is {out}, which is a file: name a run folder")
    if (out / MANIFEST).exists():
        raise ConfigError(
            f"--out is {out}, a bundle, whose vocabulary the training would replace: name a run "
            "folder, and start from the weights of the bundle with --init-from"
        )


@contextlib.contextmanager
def locked(out: Path) -> Iterator[None]:
    """Refuses a run folder that another process trains in, as each would replace the other's."""
    with (out / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"another linnet-train trains in {out}: wait for it, or choose another --out"
            ) from None
        yield


def check_data(data: Path, config: DataConfig) -> None:
    """Raises DataError if the training or validation rows of a later stage cannot be read."""
    folder = data_folder(data, config)
    read_split(folder, config, "train", config.domains, Reading())
    validation_pairs(folder, config)


def data_folder(data: Path, config: DataConfig) -> Path:
    folder = data / config.folder
    if not folder.is_dir():
        raise DataError(f"no folder {folder}: data.folder is {config.folder!r} below --data")
    return folder


def check_measures(recipe: Recipe) -> None:
    """Refuses a training whose validation, which may come after hours, would lack its library."""
    if recipe.bundle.task == "summarize" and recipe.train.valid_rows > 0:
        require_package(
            "rouge_score",
            f"measures the answers to train.valid_rows ({recipe.train.valid_rows}) texts",
            "set train.valid_rows to 0",
        )


def train_run(
    recipe: Recipe,
    options: argparse.Namespace,
    out: Path,
    device: torch.device,
    init: Path | None,
    vocabulary: Path | None,
) -> None:
    """Trains a recipe in the run folder `out`, on from its last checkpoint if it has one, else from
    the weights of `init` with the vocabulary of `vocabulary`, if given."""
    data, reading = recipe.data, Reading()
    folder = data_folder(options.data, data)
    checkpoint = load_checkpoint(out) if checkpoints(out) else None
    before = read_json(out / "settings.json")
    if options.resume and checkpoint is None and before is not None:
        same_start(init, vocabulary, before, out)
    for partial in out.glob("*.partial"):  # of a training that was killed
        partial.unlink()
    read = training_pairs(folder, data, recipe.train.seed, reading)
    read_valid = validation_pairs(folder, data, reading)
    for warning in reading.warnings(data.mojibake):
        print(f"linnet-train: warning: {warning}", file=sys.stderr)
    tokenizer = load_tokenizer(
        prepare_tokenizer(recipe, options.data, out, vocabulary),
        data.capitals_mark,
    )
    check_vocabulary(tokenizer, recipe)
    seed = recipe.train.seed
    dataset = make_dataset(read, tokenizer, data, seed, random.Random(seed))
    valid = make_dataset(read_valid, tokenizer, data, seed)
    lines = statistics_table("training", dataset, data.domains)
    print("\n".join([*lines, "", *statistics_table("validation", valid, {}), ""]), flush=True)

    machine = {"device": str(device), "threads": torch.get_num_threads()}
    moved = False  # whether a part of the training ran on another machine than `machine`
    trainer = Trainer(recipe, dataset, device)
    init_from, vocabulary_from = str(init or ""), str(vocabulary or "")
    init_licences: list[str] = []
    data_facts = {"train": dataset.statistics(), "train_sha256": dataset.sha256()}
    if checkpoint is not None:
        if before is None:
            raise ConfigError(
                f"{out} has a checkpoint and no settings.json, which tells its data: start another "
                f"training from its weights with --init-from {out}"
            )
        same_init(init, before.get("init_from", ""), out)
        same_data(data_facts, before, out)
        init_from, init_licences = before.get("init_from", ""), before.get("init_licences", [])
        vocabulary_from = before.get("vocabulary_from", "")
        moved = before.get("moved", False) or any(before[key] != machine[key] for key in machine)
        trainer.resume(checkpoint)
    elif init is not None:
        weights, sizes = read_weights(init)
        same_sizes(recipe.model, sizes)
        trainer.start_from(weights)
        lineage = lineage_of(init)
        trainer.position.earlier_target_tokens = lineage.target_tokens
        init_licences = lineage.licences

    settings = {
        "recipe": to_tables(recipe),
        "recipe_file": options.recipe.name,
        "set": options.set,
        "parameters": parameter_count(trainer.model),
        **machine,
        "moved": moved,
        "bfloat16": trainer.bfloat16,
        "torch": torch.__version__,
        "sentencepiece": sentencepiece.__version__,
        **data_facts,
        "valid": valid.statistics(),
        "first_update": trainer.position.update,
        "init_from": init_from,
        "vocabulary_from": vocabulary_from,
        "init_licences": init_licences,
    }
    write_json(out / "settings.json", settings)
    print(setting_lines(recipe), flush=True)
    print(
        f"{settings['parameters']:,} parameters, from update {trainer.position.update:,} to "
        f"{recipe.train.updates:,} on {device} with {settings['threads']} thread(s)\n",
        flush=True,
    )
    log = Log(out, options.tensorboard, trainer.position.update)
    log.write("start", trainer.position.update, {"parameters": settings["parameters"]})
    try:
        run(trainer, valid, tokenizer, out, log)
    finally:
        trainer.close()
        log.close()


def setting_lines(recipe: Recipe) -> str:
    """Returns all settings as used, one line per table."""
    return "\n".join(
        f"[{table}] " + " ".join(f"{key}={json.dumps(value)}" for key, value in keys.items())
        for table, keys in to_tables(recipe).items()
    )


def main(arguments: list[str] | None = None) -> int:
    options = parse_arguments(arguments)
    if options.options:
        print(options_page(), end="")
        return 0
    try:
        start(options)
    except (ConfigError, DataError) as error:
        print(f"linnet-train: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"linnet-train: {told(error)}", file=sys.stderr)
        return 1
    except ArithmeticError as error:
        print(f"linnet-train: {error}", file=sys.stderr)
        return DIVERGED
    except KeyboardInterrupt:
        print("linnet-train: stopped, --resume continues from the last checkpoint", file=sys.stderr)
        return 130
    return 0


__all__ = ["Trainer", "main", "pick_device", "prepare_tokenizer"]


if __name__ == "__main__":
    sys.exit(main())
