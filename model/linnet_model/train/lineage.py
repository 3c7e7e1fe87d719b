"""Reads what a training starts from: weights, and the texts and trainings behind them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from linnet_model.bundle import read_bundle_weights, read_manifest
from linnet_model.config import ConfigError, ModelConfig, from_tables, require
from linnet_model.json_files import read_json
from linnet_model.sources import TRAINED_ON, licences_of
from linnet_model.train.checkpoint import load_checkpoint

# Fields of a manifest by which a token has another id than in source.spm.
OTHER_IDS = ("source_vocabulary_file", "target_vocabulary_file", "subword_kind", "word_tokenizer")


def read_weights(path: Path) -> tuple[dict[str, torch.Tensor], ModelConfig]:
    """Reads the averaged weights of a checkpoint or run folder, or the weights of a bundle."""
    if path.is_dir() and (path / "manifest.json").exists():
        manifest = read_manifest(path)
        other = [key for key in OTHER_IDS if manifest.get(key)]
        require(
            not other,
            f"{path} has a {', '.join(other)}: its ids are not those of its SentencePiece model, "
            "whose pieces would get the weights of others; only bundles of linnet-export are "
            "trained further",
        )
        return read_bundle_weights(path)
    checkpoint = load_checkpoint(path)
    return checkpoint["average"], from_tables(ModelConfig, checkpoint["recipe"]["model"], "model.")


@dataclass(frozen=True)
class Lineage:
    """Sums up all trainings that led to weights, as far as the bundle or the run folder tells."""

    target_tokens: int
    licences: list[str]  # of the texts: each once, in order


def lineage_of(path: Path) -> Lineage:
    """Reads what led to the weights of a bundle, a run folder or a checkpoint."""
    folder = path if path.is_dir() else path.parent
    manifest = read_json(folder / "manifest.json")
    if manifest is not None:
        training = read_json(folder / "training.json") or {"position": {}}
        line = manifest.get("license", "").removeprefix(TRAINED_ON)
        return Lineage(tokens_of(training["position"]), sorted(filter(None, line.split("; "))))
    tokens = tokens_of(load_checkpoint(path)["position"])
    settings = read_json(folder / "settings.json")
    if settings is None:
        return Lineage(tokens, [])
    data = settings["recipe"]["data"]
    own = licences_of(data["domains"], data.get("terms"))
    return Lineage(tokens, sorted({*own, *settings.get("init_licences", [])}))


def tokens_of(position: dict[str, Any]) -> int:
    return int(position.get("target_tokens", 0)) + int(position.get("earlier_target_tokens", 0))


def same_data(facts: dict[str, Any], settings: dict[str, Any], out: Path) -> None:
    """Refuses to resume with other training data than those of the settings of `out`, by their
    statistics and digest: the position of the checkpoint is one in the batches of its own data.
    `facts`: what the settings of the resumed training are to have of the data."""
    found, before = facts["train"], settings["train"]
    differ = []
    for domain in sorted(found.keys() | before.keys()):
        now, then = (Counter(side.get(domain)) for side in (found, before))
        keys = [key for key in now | then if now[key] != then[key]]
        for key in keys[:1]:
            what = key.replace("_", " ")
            differ.append(f"{domain} has {now[key]:,} {what} and had {then[key]:,}")
    digest = facts["train_sha256"]
    if not differ and settings.get("train_sha256", digest) != digest:  # older ones have none
        differ.append("other texts have as many tokens")
    if differ:
        raise ConfigError(
            f"{out} cannot be resumed with other training data: {'; '.join(differ)}. Set the files "
            "of --data and the version of linnet-train back, or start another training from its "
            f"weights with --init-from {out}"
        )


def same_init(init: Path | None, before: str, out: Path) -> None:
    """Refuses to resume with other weights to start from than before, which would not be used.
    Where they lie may have changed, but not the name of the folder or file."""
    if init is not None and init.resolve().name != Path(before).resolve().name * bool(before):
        raise ConfigError(
            f"{out} is resumed with its own weights, and it started from {before or 'random ones'},"
            f" not from {init}: leave out --init-from, or choose another --out"
        )


def same_start(
    init: Path | None, vocabulary: Path | None, settings: dict[str, Any], out: Path
) -> None:
    """Refuses to resume a training that was stopped before its first checkpoint without the weights
    or the vocabulary that it started from: it begins again, and would begin with others."""
    for flag, now, key in (
        ("--init-from", init, "init_from"),
        ("--tokenizer-from", vocabulary, "vocabulary_from"),
    ):
        then = settings.get(key, "")
        if then and now is None:
            raise ConfigError(
                f"{out} has no checkpoint yet and was started with {flag} {then}: give the flag "
                "again, or leave out --resume to start anew"
            )
