"""Stages: trainings of one recipe file, each from the weights of the one before.

A stage is a run folder OUT/NAME; OUT/stages.json has the names in order. The last stage is the
result.
"""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linnet_model.config import (
    BUNDLE_NAME,
    ConfigError,
    Recipe,
    parse_setting,
    read_tables,
    recipe_of,
    require,
)
from linnet_model.json_files import read_json, write_json
from linnet_model.train.checkpoint import (
    checkpoints,
    different_size,
    load_checkpoint,
    same_settings,
)
from linnet_model.train.training_log import has_ended


@dataclass
class Stage:
    """A training in the run folder `name` of --out, with all keys of the recipe as it uses them."""

    name: str  # empty if the recipe has no stages: then --out is the run folder
    recipe: Recipe

    def folder(self, out: Path) -> Path:
        return out / self.name

    def finished(self, out: Path, checkpoint: dict[str, Any]) -> bool:
        """Returns whether the stage has been trained to the end of its schedule and validated, by
        its last checkpoint."""
        wanted, found = self.recipe.train, checkpoint["recipe"]["train"]
        return (wanted.updates, wanted.seconds) == (found["updates"], found["seconds"]) and (
            has_ended(self.folder(out), checkpoint["position"]["update"])
        )


def read_stages(path: Path, settings: list[str] | None = None) -> list[Stage]:
    """Reads the stages of a recipe; a recipe without stages is a single one without a name.
    `settings` override every stage."""
    tables = read_tables(path)
    changes = [parse_setting(setting) for setting in settings or []]
    if "stages" not in tables:
        return [Stage("", recipe_of(tables, changes))]
    parts = tables.pop("stages")
    require(
        isinstance(parts, list) and len(parts) > 0 and all(isinstance(p, dict) for p in parts),
        f'stages is {parts!r}, must be tables [[stages]] with a name = "..." each',
    )
    stages: list[Stage] = []
    for number, part in enumerate(parts, 1):
        name = part.pop("name", None)
        require(
            isinstance(name, str) and BUNDLE_NAME.fullmatch(name) is not None,
            f"stage {number} has the name {name!r}, must be 1 to 64 lower-case letters, digits, "
            "'-', '_' or '.', a letter or digit first",
        )
        require(
            name not in [stage.name for stage in stages],
            f"stages {number} and another one have the name {name!r}, give each its own",
        )
        try:
            stages.append(Stage(name, recipe_of(copy.deepcopy(tables), [part, *changes])))
        except ConfigError as error:
            raise ConfigError(f"stage {name}: {error}") from None
    for number, stage in enumerate(stages):
        for earlier in stages[:number]:
            same_model(stage, earlier)
            same_terms(stage, earlier)
    return stages


def same_model(stage: Stage, earlier: Stage) -> None:
    """Refuses a stage whose weights or vocabulary cannot be those of an earlier one."""
    ours, theirs = stage.recipe, earlier.recipe
    key = different_size(ours.model, theirs.model)
    differ = [("model", key)] if key else []
    differ += [
        ("tokenizer", part.name)
        for part in dataclasses.fields(ours.tokenizer)
        if getattr(ours.tokenizer, part.name) != getattr(theirs.tokenizer, part.name)
    ]
    if ours.data.capitals_mark != theirs.data.capitals_mark:
        differ.append(("data", "capitals_mark"))
    for table, key in differ:
        raise ConfigError(
            f"stage {stage.name}: {table}.{key} is {getattr(getattr(ours, table), key)!r} and "
            f"{getattr(getattr(theirs, table), key)!r} in stage {earlier.name}: all stages train "
            "one model with one vocabulary, set it above the stages"
        )


def same_terms(stage: Stage, earlier: Stage) -> None:
    """Refuses other terms for a domain of an earlier stage: the card has one entry for both."""
    ours, theirs = stage.recipe.data, earlier.recipe.data
    for domain in ours.domains.keys() & theirs.domains.keys():
        require(
            ours.terms.get(domain) == theirs.terms.get(domain),
            f"stage {stage.name}: data.terms.{domain} is not that of stage {earlier.name}: give "
            "other texts another domain (plain files have only one, use .tsv files)",
        )


def names_of(out: Path) -> list[str]:
    """Returns the names of the stages whose run folders are in `out`; of a run folder none."""
    found = read_json(out / "stages.json")
    return [] if found is None else found["stages"]


def write_names(out: Path, stages: list[Stage]) -> None:
    if not stages[0].name:
        (out / "stages.json").unlink(missing_ok=True)
        return
    write_json(out / "stages.json", {"stages": [stage.name for stage in stages]})


def first_unfinished(stages: list[Stage], out: Path, resume: bool) -> int:
    """Returns the number of the stage, from 0, where training starts or goes on in `out`;
    len(stages) if none is left. Refuses an `out` of another recipe or other stages."""
    names = [stage.name for stage in stages if stage.name]
    before = [name for name in names_of(out) if checkpoints(out / name)]
    require(
        names[: len(before)] == before and not (names and checkpoints(out)),
        f"{out} has {'the stages ' + ', '.join(before) if before else 'a training without stages'} "
        f"and the recipe has {'the stages ' + ', '.join(names) if names else 'none'}: use another "
        "--out, or add stages only at the end",
    )
    left = []
    for number, stage in enumerate(stages):
        folder = stage.folder(out)
        if not checkpoints(folder):
            left.append(number)
            continue
        require(resume, f"{folder} already has checkpoints, use --resume or another --out")
        checkpoint = load_checkpoint(folder)
        same_settings(stage.recipe, checkpoint, folder)
        if not stage.finished(out, checkpoint):
            left.append(number)
    for number in left[:1]:
        for later in stages[number + 1 :]:
            require(
                not checkpoints(later.folder(out)),
                f"{stages[number].folder(out)} is to be trained further and {later.folder(out)} "
                "has started from its weights: set train.updates and train.seconds back, or "
                f"remove {later.folder(out)} to train that stage again",
            )
    return left[0] if left else len(stages)


def result_of(run: Path) -> Path:
    """Returns the run folder with the result: that of the last stage, or `run` if it has none.
    Refuses stages that are not finished."""
    names = names_of(run) if run.is_dir() else []
    if not names:
        return run
    last = run / names[-1]
    files = checkpoints(last)
    if not files or not has_ended(last, load_checkpoint(last)["position"]["update"]):
        begun = [run / name for name in names if checkpoints(run / name)]
        raise ConfigError(
            f"stage {names[-1]}, the last one of {run}, is not finished: go on with linnet-train "
            "--resume" + (f", or name the run folder of a stage, {begun[-1]}" if begun else "")
        )
    return last


def earlier_stages(run: Path) -> list[dict[str, Any]]:
    """Returns name, recipe, statistics of the data and position of each stage before that with the
    run folder `run`; none if it is not a stage."""
    run = run.resolve()
    names = names_of(run.parent)
    found = []
    for name in names[: names.index(run.name)] if run.name in names else []:
        folder = run.parent / name
        settings = read_json(folder / "settings.json")
        require(
            settings is not None,
            f"no settings.json in {folder}, an earlier stage of {run}, whose texts the card names: "
            "put the folder back, or train all stages in another --out",
        )
        found.append(
            {
                "name": name,
                "recipe": settings["recipe"],
                "init_from": settings["init_from"],
                "init_licences": settings.get("init_licences", []),
                "train": settings["train"],
                "position": load_checkpoint(folder)["position"],
            }
        )
    return found
