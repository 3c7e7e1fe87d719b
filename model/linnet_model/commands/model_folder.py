"""Recognises the model of another toolkit by its files, and reads what its importer would read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from linnet_model.importers.fairseq.import_fairseq import read_model as read_fairseq
from linnet_model.importers.files import check_downloaded
from linnet_model.importers.huggingface.config import CONFIG, required_json
from linnet_model.importers.huggingface.families import FAMILIES, check_type
from linnet_model.importers.huggingface.weights import weight_files
from linnet_model.importers.huggingface_marian.config import read_facts as read_huggingface_marian
from linnet_model.importers.huggingface_marian.import_huggingface_marian import (
    language_tags,
    read_tokenizer,
)
from linnet_model.importers.marian.decoder_config import read_decoder_config
from linnet_model.importers.marian.file_names import languages_of
from linnet_model.importers.marian.folder import find_files, read_pieces
from linnet_model.importers.marian.import_marian import file_names
from linnet_model.importers.marian.import_marian import read_model as read_marian
from linnet_model.importers.multilingual.config import read_facts as read_multilingual
from linnet_model.importers.multilingual.vocabulary import read_tokens as read_multilingual_tokens
from linnet_model.importers.summarisers.config import read_facts as read_summariser
from linnet_model.importers.summarisers.vocabulary import read_tokens as read_summariser_tokens
from linnet_model.network.encoder_decoder import parameter_count
from linnet_model.network.model_config import ConfigError, ModelConfig, require

Facts = list[tuple[str, str]]

SUPPORTED = (
    "supported are bundles (manifest.json); folders of Hugging Face (config.json with model_type "
    f"{', '.join(FAMILIES)}); folders of Marian and of Firefox Translations (one .npz or .bin with "
    "its configuration inside, and .spm); checkpoints of fairseq (FILE.pt: LightConv, DynamicConv, "
    "Transformer)"
)
SOME = 12
UNNAMED = "one pair, which the files do not name"


def some(names: Iterable[str]) -> str:
    found = sorted(names)
    more = len(found) - SOME
    return ", ".join(found[:SOME]) + (f" and {more} more" if more > 0 else "")


def describe_model(path: Path) -> Facts:
    """Returns what the model at `path` is. Raises ConfigError if no importer would read it."""
    if path.is_file():
        require(path.suffix == ".pt", f"{path} is a file, but no FILE.pt; {SUPPORTED}")
        return describe_fairseq(path)
    require(path.is_dir(), f"nothing at {path}")
    if (path / CONFIG).is_file():
        return describe_hugging_face(path)
    names = [file.name for file in path.iterdir()]
    checkpoints = sorted(path.glob("*.pt"))
    if checkpoints:
        best = path / "checkpoint_best.pt"
        return describe_fairseq(best if best in checkpoints else checkpoints[-1])
    if any(re.search(r"\.(npz|bin|npz\.gz|bin\.gz|spm)$", name) for name in names):
        return describe_marian(path)
    raise ConfigError(
        f"{path} has {some(names) or 'no files'}: no model that is known; {SUPPORTED}"
    )


def sizes_of(sizes: ModelConfig) -> Facts:
    encoder = f"{len(sizes.encoder_kernels)} of {', '.join(dict.fromkeys(sizes.encoder_mixers))}"
    decoder = f"{len(sizes.decoder_kernels)} of {', '.join(dict.fromkeys(sizes.decoder_mixers))}"
    return [
        (
            "layers",
            f"{encoder} and {decoder}, width {sizes.width}, feed-forward {sizes.ffn_width}, "
            f"{sizes.heads} heads",
        ),
        ("vocabulary", f"{sizes.vocabulary:,} source and {sizes.target_vocabulary:,} target rows"),
    ]


def weights_of(folder: Path) -> str:
    """Names the files with the weights and, of safetensors, count and types, from their headers."""
    files = weight_files(folder)
    size = f"{sum(file.stat().st_size for file in files) / 1e6:.1f} MB"
    told = f"{files[0].name}, {size}" if len(files) == 1 else f"{len(files)} files, {size}"
    for file in files:
        check_downloaded(file)
    if files[0].suffix != ".safetensors":
        return told
    types: list[str] = []
    for file in files:
        try:
            with safe_open(file, framework="pt") as tensors:
                types += [tensors.get_slice(name).get_dtype() for name in tensors.keys()]  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise ConfigError(f"{file} cannot be read: {error}") from None
    return f"{told}, {len(types)} tensors of {', '.join(sorted(set(types))) or 'no type'}"


def readme_license(folder: Path) -> str | None:
    """The licence that the front matter of a README.md names, as Hugging Face's hub has it."""
    file = folder / "README.md"
    if not file.is_file():
        return None
    front = re.match(r"---\n(.*?)\n---", file.read_text("utf-8", errors="replace"), re.DOTALL)
    found = re.search(r"^license:[ \t]*(\S.*?)[ \t]*$", front[1], re.MULTILINE) if front else None
    return found[1].strip("\"'") if found else None


def describe_hugging_face(folder: Path) -> Facts:
    table = required_json(folder / CONFIG)
    family, toolkit = FAMILIES[check_type(folder / CONFIG, table, FAMILIES)]
    facts: Facts = [("model", f"{family}, of Hugging Face's transformers")]
    languages = "--source-language CODE --target-language CODE"
    found: Any
    if toolkit == "huggingface":
        found = read_huggingface_marian(folder)
        pieces = read_tokenizer(folder, found).source_vocabulary
        tags = language_tags(pieces or [])
        told = (
            f"{len(tags)} targets: {some(tags)}"
            if tags
            else "one pair, which the files do not name"
        )
        languages += "=TAG" if tags else ""
    elif toolkit == "multilingual":
        found = read_multilingual(folder)
        tokens = read_multilingual_tokens(folder, found)
        told = f"{len(tokens.languages)}: {some(name.strip('_') for name in tokens.languages)}"
        languages = "--language CODE=NAME --language CODE=NAME"
    else:
        found = read_summariser(folder)
        read_summariser_tokens(folder, found)
        told, languages = UNNAMED, "--language CODE"
    license_text = readme_license(folder)
    return [
        *facts,
        ("languages", told),
        *sizes_of(found.sizes),
        ("weights", weights_of(folder)),
        ("limits", f"{found.max_source_tokens} source and {found.max_target_tokens} target tokens"),
        ("search", f"beam {found.beam_size}, length penalty {found.length_penalty:g}"),
        ("licence", f"{license_text}, by its README.md" if license_text else "not in the files"),
        command_of(toolkit, f"--model {folder} {languages}"),
    ]


def command_of(toolkit: str, flags: str) -> tuple[str, str]:
    return "import", f"linnet-model import {toolkit} {flags} --license TEXT --out BUNDLE"


def describe_marian(folder: Path) -> Facts:
    files = find_files(folder)
    guess = languages_of(file_names(files))
    search = read_decoder_config(folder, files)
    model, sizes = read_marian(files)
    pieces = {
        file.name: len(read_pieces(file).pieces) for file in (files.source_spm, files.target_spm)
    }
    return [
        ("model", f"Marian, {files.model.name}, {files.model.stat().st_size / 1e6:.1f} MB"),
        (
            "languages",
            f"{guess[0]} to {guess[1]}, by the names of the files" if guess else UNNAMED,
        ),
        *sizes_of(sizes),
        (
            "tokenizers",
            ", ".join(f"{name} with {count:,} pieces" for name, count in pieces.items()),
        ),
        ("shortlist", files.shortlist.name if files.shortlist else "none"),
        ("search", f"as {search.file.name} says" if search else "greedy"),
        ("parameters", f"{parameter_count(model):,}"),
        ("licence", "not in the files; models of Firefox are under the MPL 2.0"),
        command_of(
            "marian",
            f"--model {folder}"
            + ("" if guess else " --source-language CODE --target-language CODE"),
        ),
    ]


def describe_fairseq(file: Path) -> Facts:
    read = read_fairseq(file)
    facts = read.facts
    dictionaries = sorted(found.name for found in file.parent.glob("dict.*.txt"))
    pair = "-".join(str(read.options.get(f"{side}_lang") or "?") for side in ("source", "target"))
    return [
        ("model", f"fairseq, {read.options.get('arch')}, options in {read.generation}"),
        ("languages", pair),
        *sizes_of(facts.config),
        ("parameters", f"{parameter_count(read.model):,}"),
        ("limits", f"{facts.max_source_tokens} source and {facts.max_target_tokens} target tokens"),
        ("dictionaries", ", ".join(dictionaries) or "none beside the checkpoint"),
        *(("note", note) for note in facts.notes),
        ("licence", "not in the files"),
        command_of("fairseq", f"--checkpoint {file} --source-dict FILE --target-dict FILE"),
    ]
