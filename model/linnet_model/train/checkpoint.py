"""Checkpoints: everything that a training needs to resume with the same results."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Any

import torch

from linnet_model.config import (
    BundleConfig,
    ConfigError,
    ModelConfig,
    Recipe,
    from_tables,
    to_tables,
)
from linnet_model.network.encoder_decoder import EncoderDecoder
from linnet_model.new_file import new_file
from linnet_model.train.optim import Average

CHECKPOINTS = "checkpoint-*.pt"  # in a run folder


@dataclasses.dataclass
class Position:
    """Position of a training: the next update, and the next batch of its epoch."""

    update: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0  # of training so far, with validation and checkpoints
    target_tokens: int = 0  # trained on so far
    earlier_target_tokens: int = 0  # by the trainings whose weights this one started from
    unlogged_nll: float = 0.0  # of the updates since the last line of the log
    unlogged_tokens: int = 0


def save_checkpoint(
    folder: Path,
    recipe: Recipe,
    model: EncoderDecoder,
    average: Average,
    optimizer: torch.optim.Optimizer,
    position: Position,
    keep: int,
) -> Path:
    """Writes folder/checkpoint-<update>.pt atomically, and removes all but the last `keep`."""
    path = folder / f"checkpoint-{position.update:07d}.pt"
    checkpoint = {
        "recipe": to_tables(recipe),
        "model": model.state_dict(),
        "average": average.weights,
        "optimizer": optimizer.state_dict(),
        "position": dataclasses.asdict(position),
    }
    content = io.BytesIO()  # torch does not say why a file that it writes has no room
    torch.save(checkpoint, content)
    with new_file(path) as partial:
        partial.write_bytes(content.getbuffer())
    for old in checkpoints(folder)[:-keep]:
        old.unlink()
    return path


def checkpoints(folder: Path) -> list[Path]:
    """Returns the checkpoints in the order of their updates, of which some may have more digits."""
    return sorted(Path(folder).glob(CHECKPOINTS), key=lambda path: (len(path.name), path.name))


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Loads a checkpoint file, or the last one of a folder."""
    path = Path(path)
    if path.is_dir():
        found = checkpoints(path)
        if not found:
            raise ConfigError(f"no checkpoint in {path}")
        path = found[-1]
    if not path.is_file():
        raise ConfigError(f"no checkpoint at {path}")
    checkpoint: Any = None
    why = "it holds something else"
    try:
        with path.open("rb") as file:
            checkpoint = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many types
        why = (str(error).splitlines() or [type(error).__name__])[0]
        if isinstance(error, MemoryError) or "memory" in why:
            raise ConfigError(f"{path} cannot be loaded: {why}") from error
    if not isinstance(checkpoint, dict) or not {"recipe", "average", "position"} <= set(checkpoint):
        others = checkpoints(path.parent)
        earlier = [other.name for other in others[: others.index(path)]] if path in others else []
        way = "name a run folder of linnet-train, or a checkpoint in it"
        if path.match(CHECKPOINTS):
            way = f"remove it to go on from {earlier[-1]}" if earlier else "remove it to train anew"
        raise ConfigError(f"{path} is no checkpoint or is damaged ({why}): {way}")
    return checkpoint


def averaged_model(paths: list[Path]) -> tuple[EncoderDecoder, Recipe, Position]:
    """Returns a model with the mean of the checkpoints' averaged weights, and the recipe and
    position of the last one."""
    loaded = [load_checkpoint(path) for path in paths]
    recipe = from_tables(Recipe, loaded[-1]["recipe"], "")
    recipe.check()
    model = EncoderDecoder(recipe.model)
    weights = {
        name: torch.stack([checkpoint["average"][name] for checkpoint in loaded]).mean(dim=0)
        for name in loaded[-1]["average"]
    }
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    return model, recipe, Position(**loaded[-1]["position"])


# A resumed training gives the numbers of one that was never stopped, so only these keys of its
# recipe may differ from the checkpoint's. The first line sets how long it trains: a training may be
# extended, or ended sooner with its decay. The second is the machine's: other cores and types
# change the last digits. No update depends on the others.
RESUME_MAY_CHANGE = {
    *("train.updates", "train.seconds", "train.decay_updates"),
    *("train.threads", "train.bfloat16"),
    *("train.checkpoint_seconds", "train.checkpoint_updates", "train.keep_checkpoints"),
    *("train.valid_updates", "train.valid_rows", "train.log_updates"),
    *("data.valid_domains", "data.valid_source", "data.valid_target"),
    *("data.test_source", "data.test_target", "data.terms"),
    *(f"bundle.{part.name}" for part in dataclasses.fields(BundleConfig)),
}


def same_settings(wanted: Recipe, checkpoint: dict[str, Any], out: Path) -> None:
    """Refuses to resume with another recipe than that of the checkpoint, and names all keys that
    differ and may not."""
    found = from_tables(Recipe, checkpoint["recipe"], "")
    found.check()
    differ = []
    theirs = to_tables(found)
    for table, keys in to_tables(wanted).items():
        for key, value in keys.items():
            if value != theirs[table][key] and f"{table}.{key}" not in RESUME_MAY_CHANGE:
                differ.append(f"{table}.{key} is {value} and was {theirs[table][key]}")
    if differ:
        raise ConfigError(
            f"{out} cannot be resumed with another recipe: {'; '.join(differ)}. Set them back, or "
            f"start another training from its weights with --init-from {out}"
        )


def different_size(one: ModelConfig, other: ModelConfig) -> str | None:
    """Returns the first key of [model] by which the architectures differ. Dropouts may differ."""
    for part in dataclasses.fields(ModelConfig):
        same = getattr(one, part.name) == getattr(other, part.name)
        if not same and not part.name.endswith("dropout"):
            return part.name
    return None


def same_sizes(wanted: ModelConfig, found: ModelConfig) -> None:
    """Refuses weights of another architecture and names the first key that differs."""
    key = different_size(wanted, found)
    if key is not None:
        raise ConfigError(
            f"model.{key} is {getattr(wanted, key)} in the recipe and {getattr(found, key)} in the "
            "weights to start from"
        )
