"""linnet-export: writes a bundle from a run folder or checkpoint.

The weights are the running average of the last checkpoint, or the mean of several such averages.
The recipe's examples are decoded in float32, bfloat16 and int8. Those with equal answers become
golden examples in the manifest, which the server checks when it loads the bundle, in whichever of
these types it computes; but not those of which it copies a part that the vocabulary cannot spell.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import sys
from collections.abc import Iterable
from itertools import compress
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from linnet_model.bundle import (
    BundleFacts,
    TokenizerFiles,
    load_module,
    new_bundle,
    print_files,
    read_manifest,
    write_bundle,
    write_manifest,
)
from linnet_model.command_line import command, parser_for
from linnet_model.config import SERVED, BundleConfig, ConfigError, ModelConfig, Recipe, to_tables
from linnet_model.export.card import JUDGEMENTS, data_of_stages, write_card
from linnet_model.export.grammar import Grammar
from linnet_model.export.search import Options, beam_search
from linnet_model.json_files import read_json, write_json
from linnet_model.network.encoder_decoder import EOS, EncoderDecoder, parameter_count
from linnet_model.sources import TRAINED_ON, sources_of
from linnet_model.stored_weights import WEIGHT_TYPES
from linnet_model.styles import style_ids, styled_languages
from linnet_model.tokenizer import (
    free_placeholders,
    known_placeholders,
    load_tokenizer,
    normalises,
    spells,
)
from linnet_model.train.checkpoint import averaged_model, checkpoints, same_sizes
from linnet_model.train.lineage import lineage_of, read_weights
from linnet_model.train.stages import earlier_stages, read_stages, result_of
from linnet_model.train.training_log import has_ended, whole_lines

EXAMPLES = """examples:
  linnet-export --run runs/en-de --out bundles/en-de --bundle-version 2026-11-21
  linnet-export --run runs/en-de --out bundles/en-de --bundle-version 2026-11-21 --average 3
"""


def golden_examples(
    model_file: Path,
    tokenizer: sentencepiece.SentencePieceProcessor,
    manifest: dict[str, Any],
    texts: list[str],
    sources: list[list[int]],
) -> list[tuple[str, str]]:
    """Returns the texts with equal answers in float32, bfloat16 and int8, and these answers.
    `sources`: those of the texts, as read_examples returns them. Leaves out texts that the server
    does not read as they are."""
    if manifest.get("placeholders"):
        whole = [spells(tokenizer, text) for text in texts]
        texts, sources = list(compress(texts, whole)), list(compress(sources, whole))
    if not texts:
        return []
    answers, grammar = [], Grammar.of_manifest(tokenizer, manifest)
    for compute in ("float32", "bfloat16", "int8"):
        module = load_module(model_file, torch.bfloat16 if compute == "bfloat16" else torch.float32)
        if compute == "int8":
            module.pack(compute)  # as the engine does, with the same products
        found = beam_search(
            module,
            sources,
            Options.of_manifest(manifest),
            manifest["limits"]["max_target_tokens"],
            grammar=grammar,
        )
        answers.append([tokenizer.decode(hypotheses[0].ids[:-1]) for hypotheses in found])
    return [
        (text, first)
        for text, first, *others in zip(texts, *answers, strict=True)
        if first.strip() and all(other == first for other in others)
    ]


def training_facts(run: Path, recipe: Recipe, position: Any, parameters: int) -> dict[str, Any]:
    """Returns the content of training.json, from the run folder."""
    settings = read_json(run / "settings.json")
    log = [json.loads(line) for line in whole_lines(run / "log.jsonl")]
    valid = [
        entry for entry in log if entry["kind"] == "valid" and entry["update"] <= position.update
    ]
    origin = {name: settings[name] for name in ("recipe_file", "set") if name in settings}
    earlier = earlier_stages(run)
    first = earlier[0] if earlier else settings
    if first.get("init_from"):
        origin["init_from"] = Path(first["init_from"]).name
        origin["init_licences"] = first.get("init_licences", [])
    if earlier:
        origin["earlier_stages"] = earlier
    return {
        "recipe": to_tables(recipe),
        **origin,
        "parameters": parameters,
        "position": dataclasses.asdict(position),
        "device": settings["device"],
        "threads": settings["threads"],
        "moved": settings.get("moved", False),
        "bfloat16": settings["bfloat16"],
        "torch": settings["torch"],
        "sentencepiece": settings["sentencepiece"],
        "train": settings["train"],
        "last_validation": valid[-1] if valid else None,
        "ended": has_ended(run, position.update),
        "validations_without_gain": without_gain([entry["nll_all"] for entry in valid]),
    }


def average_in(
    model: EncoderDecoder, sizes: ModelConfig, tokenizer_file: Path, other: Path, share: float
) -> None:
    """Replaces the weights of the model by a mean of them, which count `share`, and of those of a
    bundle, run or checkpoint, which must have the same sizes and vocabulary. A mean of a model and
    of what it was fine-tuned from keeps most of both (Wortsman et al. 2022, arXiv 2109.01903)."""
    weights, found = read_weights(other)
    same_sizes(sizes, found)
    theirs = (other if other.is_dir() else other.parent) / tokenizer_file.name
    if not theirs.is_file():
        raise ConfigError(f"no {theirs.name} beside {other}, which tells its vocabulary")
    if theirs.read_bytes() != tokenizer_file.read_bytes():
        raise ConfigError(f"{theirs} is another vocabulary than {tokenizer_file}")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.lerp_(weights[name].to(parameter.dtype), 1 - share)


def without_gain(losses: list[float]) -> int:
    """Returns how many validations came after the one with the lowest loss."""
    return len(losses) - 1 - losses.index(min(losses)) if losses else 0


def license_line(data: dict[str, Any], others: Iterable[str] = ()) -> str:
    """Returns the licences of the texts, and of those that other weights were trained on."""
    sources = sources_of(data["domains"], data["terms"])
    licences = {source["licence"] for source in sources.values()}
    return TRAINED_ON + "; ".join(sorted({*licences, *others}))


def refuse_unserved(recipe: Recipe, run: Path) -> None:
    """Refuses tasks that the server does not have."""
    task = recipe.bundle.task
    if task not in SERVED:
        way = (
            f"start another training from it with linnet-train --init-from {run}"
            if task == "pretrain"
            else f"measure it with linnet-score --run {run}"
        )
        raise ConfigError(
            f"{run} has the task {task}, bundles exist only for {' and '.join(SERVED)}: {way}"
        )


def refuse_other_task(recipe: Recipe, overrides: Recipe) -> None:
    """Refuses a --recipe for another task than the run was trained for."""
    trained, named = recipe.bundle.task, overrides.bundle.task
    if named != trained:
        raise ConfigError(
            f"the run was trained to {trained} and bundle.task of --recipe is {named}: name a "
            "recipe of the same task"
        )


def read_examples(
    tokenizer: sentencepiece.SentencePieceProcessor, config: BundleConfig, before: tuple[int, ...]
) -> list[list[int]]:
    """Returns the sources of the recipe's examples, which begin with the ids of `before`. Raises
    ConfigError for a text that the model cannot read: no server could check its answer."""
    sources = []
    for text in config.examples:
        if not text.strip():
            raise ConfigError("bundle.examples has a text without words, leave it out")
        sources.append([*before, *tokenizer.encode(text), EOS])
        if len(sources[-1]) > config.max_source_tokens:
            raise ConfigError(
                f"bundle.examples has a text of {len(sources[-1])} tokens, the model reads at most "
                f"{config.max_source_tokens} (bundle.max_source_tokens): shorten {text[:40]!r}"
            )
    return sources


def export(
    run: Path,
    out: Path,
    average: int,
    weight_type: str,
    version: str,
    provisional: bool,
    overrides: Recipe | None = None,
    note: str = "",
    average_with: Path | None = None,
    average_share: float = 0.5,
) -> dict[str, Any]:
    files = checkpoints(run) if run.is_dir() else [run]
    if not files:
        raise ConfigError(f"no checkpoint in {run}")
    if average > len(files):
        raise ConfigError(
            f"--average is {average} and {run} has {len(files)} checkpoint(s), lower it; a run "
            "keeps its last train.keep_checkpoints"
        )
    folder = run if run.is_dir() else run.parent
    for name in ("settings.json", "log.jsonl", "source.spm"):
        if not (folder / name).is_file():
            raise ConfigError(
                f"no {name} beside {files[-1]}: --run is a run folder of linnet-train, or a "
                "checkpoint in one"
            )
    model, recipe, position = averaged_model(files[-average:])
    refuse_unserved(recipe, run)
    if overrides is not None:
        refuse_other_task(recipe, overrides)
        recipe.bundle = overrides.bundle
        recipe.data.terms |= overrides.data.terms
    tokenizer_file = folder / "source.spm"
    if average_with is not None:
        average_in(model, recipe.model, tokenizer_file, result_of(average_with), average_share)
    mark = recipe.data.capitals_mark
    tokenizer = load_tokenizer(tokenizer_file, mark)
    training = training_facts(folder, recipe, position, parameter_count(model))
    training["tokenizer"] = {
        "bytes": any(map(tokenizer.is_byte, range(tokenizer.get_piece_size()))),
        "normalises": normalises(tokenizer),
    }
    training["averaged_checkpoints"] = average
    training["note"] = note
    others = list(training.get("init_licences", []))
    if average_with is not None:
        training["averaged_with"] = average_with.resolve().name
        training["averaged_share"] = average_share
        training["averaged_licences"] = lineage_of(result_of(average_with)).licences
        others += training["averaged_licences"]
    mixers = dict.fromkeys(recipe.model.encoder_mixers + recipe.model.decoder_mixers)
    facts = BundleFacts(
        version=version,
        license=license_line(data_of_stages(training), others),
        description=f"{recipe.bundle.task} {recipe.bundle.source_language}"
        + (f" to {recipe.bundle.target_language}" if recipe.bundle.task == "translate" else "")
        + f", {', '.join(mixers)}, {parameter_count(model) / 1e6:.1f}M parameters",
        provisional=provisional,
    )
    tokenizers = TokenizerFiles(
        tokenizer_file,
        capitals_mark=mark,
        text_grammar=True,
        placeholders=free_placeholders(tokenizer, mark)
        if recipe.bundle.task == "translate"
        else [],
    )
    ids = style_ids(tokenizer, recipe.data.styles, recipe.bundle.default_style)
    styled = styled_languages(recipe.bundle.source_language, ids)
    sources = read_examples(tokenizer, recipe.bundle, styled[0].before if styled else ())
    with new_bundle(out, replace=True) as partial:
        manifest = write_bundle(
            partial,
            model.eval(),
            recipe.model,
            recipe.bundle,
            tokenizers,
            weight_type,
            facts,
            languages=styled,
            control_ids=known_placeholders(tokenizer) if styled else (),
        )
        golden = golden_examples(
            partial / manifest["model_file"],
            tokenizer,
            manifest,
            recipe.bundle.examples,
            sources,
        )
        manifest["golden_examples"] = [{"source_text": s, "target_text": t} for s, t in golden]
        write_manifest(partial, manifest)
        write_json(partial / "training.json", training)
        if (out / JUDGEMENTS).is_file():  # a reader's verdicts hold where the answers stay the same
            shutil.copy(out / JUDGEMENTS, partial)
        write_card(partial)
    return manifest


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_for(__doc__, epilog=EXAMPLES)
    what = parser.add_argument_group("input and output")
    what.add_argument(
        "--run",
        type=Path,
        required=True,
        metavar="DIR",
        help="--out of linnet-train, of whose stages the last is exported; or a run folder or "
        "checkpoint in it",
    )
    what.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder of the bundle; replaces the bundle that is there, with all its files but the "
        "verdicts of a reader",
    )
    what.add_argument(
        "--bundle-version", required=True, metavar="TEXT", help="free text, such as a date"
    )
    how = parser.add_argument_group("weights and limits")
    how.add_argument(
        "--average",
        type=int,
        default=1,
        metavar="N",
        help="average the last N checkpoints [%(default)s]",
    )
    how.add_argument(
        "--average-with",
        type=Path,
        metavar="PATH",
        help="average with the weights of this bundle, run or checkpoint, such as that from which "
        "the run went on: the mean keeps most of what both know",
    )
    how.add_argument(
        "--average-share",
        type=float,
        metavar="X",
        help="with --average-with, share of the run's own weights in the mean [0.5]",
    )
    how.add_argument(
        "--dtype",
        "--weights",
        choices=WEIGHT_TYPES,
        default="bfloat16",
        help="type of the stored weights [%(default)s]",
    )
    how.add_argument(
        "--recipe",
        type=Path,
        metavar="FILE",
        help="use the [bundle] and [data.terms] of this recipe, or of its last stage, instead of "
        "the run's",
    )
    card = parser.add_argument_group("model card")
    card.add_argument(
        "--provisional",
        action="store_true",
        help="mark the weights as provisional",
    )
    card.add_argument("--note", default="", metavar="TEXT", help="further remarks on the training")
    return parser.parse_args(arguments)


@command
def main(arguments: list[str] | None = None) -> None:
    options = parse_arguments(arguments)
    if options.average < 1:
        raise ConfigError(f"--average is {options.average}, at least 1 checkpoint is needed")
    share = 0.5 if options.average_share is None else options.average_share
    if options.average_share is not None and options.average_with is None:
        raise ConfigError("--average-share needs --average-with")
    if not 0 < share < 1:
        raise ConfigError(f"--average-share is {share}, must be above 0 and below 1")
    manifest = export(
        result_of(options.run),
        options.out,
        options.average,
        options.dtype,
        options.bundle_version,
        options.provisional,
        read_stages(options.recipe)[-1].recipe if options.recipe else None,
        options.note,
        options.average_with,
        share,
    )
    read_manifest(options.out)
    print_files(manifest)
    print(f"golden examples: {len(manifest['golden_examples'])}")


if __name__ == "__main__":
    sys.exit(main())
