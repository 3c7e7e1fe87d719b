"""A bundle on disk: a folder with manifest.json, model.pt, the SentencePiece model and
MODEL_CARD.md.

The manifest is linnet.v1.BundleManifest (proto/linnet/v1/bundle.proto) in protobuf's JSON mapping.
model.pt is the scripted module with its weights. An extra file inside it has the sizes of the
model, so that a training can start from the bundle alone.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from linnet_model.config import BundleConfig, ConfigError, ModelConfig, from_tables, to_tables
from linnet_model.json_files import read_json
from linnet_model.languages import LanguageTokens, check_pairs, max_forced
from linnet_model.network import ops
from linnet_model.network.encoder_decoder import (
    BOS,
    EOS,
    PAD,
    UNK,
    EncoderDecoder,
    parameter_count,
)
from linnet_model.network.ensemble import Ensemble
from linnet_model.network.model_config import CONVOLUTIONS, require
from linnet_model.new_file import writing
from linnet_model.shortlist_file import Shortlist, write_shortlist
from linnet_model.stored_weights import restore, store

SCHEMA_VERSION = 1
SIZES = "linnet_model.json"  # inside model.pt
MODEL, MANIFEST, SHORTLIST = "model.pt", "manifest.json", "shortlist.bin"
SIGNATURE = f"{MANIFEST}.sig"  # of the signed manifest


@dataclass(frozen=True)
class GoldenExample:
    """A text and its known answer. `languages`: its pair, of a model that has several."""

    source: str
    target: str
    languages: tuple[str, str] | None = None

    def manifest(self) -> dict[str, str]:
        fields = {"source_text": self.source, "target_text": self.target}
        if self.languages is not None:
            source, target = self.languages
            fields |= {"source_language_code": source, "target_language_code": target}
        return fields


@dataclass
class BundleFacts:
    """Version, licence, description and examples in a manifest."""

    version: str
    license: str = ""
    description: str = ""
    provisional: bool = False
    golden_examples: Sequence[GoldenExample] = field(default_factory=list)
    # Defaults of the search that no recipe has, by their names in bundle.proto's DecodingDefaults.
    options: dict[str, float] = field(default_factory=dict)


@dataclass
class SpecialIds:
    """Ids of the special tokens; the defaults are fairseq's."""

    bos: int = BOS  # the end token's id in a model without one
    pad: int = PAD
    eos: int = EOS
    unk: int = UNK
    start: int | None = None  # first input of the decoder; None: the end token

    def manifest(self) -> dict[str, int]:
        ids = {f"{name}_id": getattr(self, name) for name in ("bos", "pad", "eos", "unk")}
        return ids if self.start is None else {**ids, "start_id": self.start}


def content_of(file: Path | bytes) -> bytes:
    return file if isinstance(file, bytes) else file.read_bytes()


@dataclass
class TokenizerFiles:
    """The tokenizer of a bundle: files and options in the manifest."""

    # A SentencePiece model, or merge operations of subword-nmt or GPT-2: a file, or its content.
    source: Path | bytes
    target: Path | bytes | None = None  # None: the source's file
    # Pieces in the order of their ids, if the ids differ from those of the files above.
    source_vocabulary: list[str] | None = None
    target_vocabulary: list[str] | None = None
    bpe_codes: bool = False
    byte_level: bool = False  # `source` has GPT-2's merges of bytes
    moses: bool = False
    capitals_mark: str = ""  # the piece that marks a text in capitals (capitals.py)
    # The server decodes only valid UTF-8 without control pieces (bundle.proto).
    text_grammar: bool = False
    placeholders: list[str] = field(default_factory=list)  # pieces that the server may copy through

    def write(self, folder: Path) -> dict[str, Any]:
        """Writes the files and returns their fields of the manifest."""
        kind = "merges" if self.byte_level else "codes" if self.bpe_codes else "spm"
        names = {"source_tokenizer_file": f"source.{kind}"}
        source, target = content_of(self.source), content_of(self.target or self.source)
        (folder / names["source_tokenizer_file"]).write_bytes(source)
        names["target_tokenizer_file"] = names["source_tokenizer_file"]
        if target != source:
            names["target_tokenizer_file"] = f"target.{kind}"
            (folder / names["target_tokenizer_file"]).write_bytes(target)
        for side in ("source", "target"):
            pieces = getattr(self, f"{side}_vocabulary")
            if pieces is not None:
                names[f"{side}_vocabulary_file"] = f"{side}.vocab"
                text = "".join(piece + "\n" for piece in pieces)
                (folder / f"{side}.vocab").write_text(text, encoding="utf-8", newline="\n")
        if self.bpe_codes:
            names["subword_kind"] = "SUBWORD_KIND_BPE_CODES"
        if self.byte_level:
            names["subword_kind"] = "SUBWORD_KIND_BYTE_LEVEL_BPE"
        if self.moses:
            names["word_tokenizer"] = "WORD_TOKENIZER_MOSES"
        if self.capitals_mark:
            names["capitals_mark"] = self.capitals_mark
        facts: dict[str, Any] = dict(names)
        if self.text_grammar:
            facts["text_grammar"] = True
        if self.placeholders:
            facts["placeholders"] = self.placeholders
        return facts


@contextlib.contextmanager
def new_bundle(out: Path, replace: bool = False) -> Iterator[Path]:
    """Yields a folder beside `out` that becomes `out` at the end, or vanishes after an error, so
    that nobody sees half a bundle.

    `out` must not exist or be empty. With `replace` it may be a bundle without checkpoints: that
    folder is removed, but its files are not written, because a server may have mapped them.
    """
    place = out.resolve()  # of a symbolic link, the folder that it names
    free = not place.exists() or (place.is_dir() and not any(place.iterdir()))
    if replace:
        require(
            free or (place / MANIFEST).is_file(),
            f"{out} exists and is no bundle, choose another folder",
        )
        require(
            not any(place.glob("checkpoint-*.pt")),
            f"{out} has checkpoints of a training, which would be lost: choose another folder",
        )
    else:
        require(free, f"{out} exists, remove it or choose another folder")
    with writing(out):
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        with writing(out):
            yield partial
        partial.chmod(0o755)  # mkdtemp keeps it from everybody else
        try:
            move_into_place(partial, place)
        except OSError as error:
            raise ConfigError(f"{out} cannot be replaced: {error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def move_into_place(folder: Path, place: Path) -> None:
    """Renames `folder` to `place` and removes what was there."""
    if not place.exists():
        folder.rename(place)
        return
    old = folder.with_name(f"{folder.name}.old")
    place.rename(old)
    try:
        folder.rename(place)
    except OSError:
        old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def joined_digest(digests: Sequence[str]) -> str:
    """Returns the SHA-256 of a file, or one of the digests of several."""
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def model_sha256(manifest: dict[str, Any]) -> str:
    """Returns the SHA-256 of the file with the weights."""
    files = {file["name"]: file["sha256"] for file in manifest["files"]}
    return str(files[manifest["model_file"]])


def save_module(
    model: EncoderDecoder | Ensemble, sizes: ModelConfig, weight_type: str, path: Path
) -> None:
    """Scripts a copy of the model and saves it with its weights in `weight_type`. Only of a single
    model are the sizes saved, so that a training can start from it."""
    # The copy has parameters of its own whose numbers are the model's: `store` replaces numbers,
    # and a model in memory twice is more than some machines have.
    shared = {id(p): nn.Parameter(p.detach(), requires_grad=False) for p in model.parameters()}
    stored = copy.deepcopy(model, shared).to("cpu").eval()
    store(stored, weight_type)
    extra = {} if isinstance(model, Ensemble) else {SIZES: json.dumps(to_tables(sizes)).encode()}
    # By way of memory: torch ends the process where a file that it writes has no room.
    path.write_bytes(torch.jit.script(stored).save_to_buffer(_extra_files=extra))


def load_module(path: Path, dtype: torch.dtype = torch.float32) -> torch.jit.ScriptModule:
    """Loads the scripted module of a model.pt to the CPU, converted to `dtype`."""
    ops.load()
    if not path.is_file():
        raise ConfigError(f"no model at {path}")
    module = torch.jit.load(str(path), map_location="cpu")
    restore(module)
    return module.to(dtype)


def read_bundle_weights(folder: Path) -> tuple[dict[str, torch.Tensor], ModelConfig]:
    """Returns the weights of a bundle by name, in float32, and the sizes of its model."""
    ops.load()
    extra = {SIZES: ""}
    module = torch.jit.load(
        str(folder / read_manifest(folder)["model_file"]), map_location="cpu", _extra_files=extra
    )
    if not extra[SIZES]:
        raise ConfigError(
            f"{folder} has no sizes inside its model: it is an ensemble, or linnet-export did not "
            "make it"
        )
    sizes = from_tables(ModelConfig, json.loads(extra[SIZES]), "model.")
    sizes.check()
    restore(module)
    return dict(module.state_dict()), sizes


def mixer_name(mixer: str) -> str:
    return f"{mixer}_conv" if mixer in CONVOLUTIONS else mixer


def architecture(
    model: EncoderDecoder | Ensemble, sizes: ModelConfig, weight_type: str
) -> dict[str, Any]:
    chosen = sizes.alignment_layer
    return {
        "encoder_mixers": [mixer_name(mixer) for mixer in sizes.encoder_mixers],
        "decoder_mixers": [mixer_name(mixer) for mixer in sizes.decoder_mixers],
        "encoder_kernel_sizes": sizes.encoder_kernels,
        "decoder_kernel_sizes": sizes.decoder_kernels,
        "model_dimension": sizes.width,
        "feed_forward_dimension": sizes.ffn_width,
        "heads": sizes.heads,
        "parameters": parameter_count(model),
        "weight_type": weight_type,
        **({"alignment_layer": chosen} if chosen >= 0 else {}),
    }


def default_options(config: BundleConfig) -> dict[str, Any]:
    return {
        "beam_size": config.beam_size,
        "length_penalty": config.length_penalty,
        "min_target_tokens": config.min_target_tokens,
        "max_target_ratio": config.target_ratio,
        "max_target_tokens": config.target_offset,
        "no_repeat_ngram_size": config.no_repeat_ngram_size,
        "max_ngram_repeats": config.max_ngram_repeats,
        "unknown_penalty": config.unknown_penalty,
    }


def write_bundle(
    folder: Path,
    model: EncoderDecoder | Ensemble,
    sizes: ModelConfig,
    config: BundleConfig,
    tokenizer: Path | TokenizerFiles | None,
    weight_type: str,
    facts: BundleFacts,
    special: SpecialIds | None = None,
    languages: Sequence[LanguageTokens] = (),
    control_ids: Sequence[int] = (),
) -> dict[str, Any]:
    """Writes model, tokenizer and, last, their manifest; returns the manifest.

    A path as `tokenizer` is a SentencePiece model for both sides. Without a tokenizer the bundle
    serves token ids only. `languages` are all pairs of a model that has several, and `control_ids`
    the other ids that are no text.
    """
    require(
        facts.version.strip() != "",
        f"the version of {config.name} is {facts.version!r}, no server loads a bundle without one: "
        "name it, by a date or a number",
    )
    config.check()
    check_pairs(languages, config.source_language, config.target_language)
    # The decoder reads the forced tokens as well.
    longest = config.max_target_tokens + max_forced(languages)
    sizes.check_lengths(config.max_source_tokens, longest)
    folder.mkdir(parents=True, exist_ok=True)
    save_module(model, sizes, weight_type, folder / MODEL)
    if isinstance(tokenizer, Path):
        tokenizer = TokenizerFiles(tokenizer)
    tokenizers = {} if tokenizer is None else tokenizer.write(folder)
    names = [MODEL, *sorted({name for key, name in tokenizers.items() if key.endswith("_file")})]
    other_source = sizes.vocabulary != sizes.target_vocabulary
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "name": config.name,
        "version": facts.version,
        "task": f"TASK_{config.task.upper()}",
        "source_language_code": config.source_language,
        "target_language_code": config.target_language,
        "architecture": architecture(model, sizes, weight_type),
        "vocabulary": {
            "size": sizes.target_vocabulary,
            **(special or SpecialIds()).manifest(),
            **({"source_size": sizes.vocabulary} if other_source else {}),
        },
        "limits": {
            "max_source_tokens": config.max_source_tokens,
            "max_target_tokens": config.max_target_tokens,
        },
        "default_options": default_options(config) | facts.options,
        "model_file": MODEL,
        **tokenizers,
        "files": [
            {"name": name, "bytes": (folder / name).stat().st_size, "sha256": sha256(folder / name)}
            for name in names
        ],
        "golden_examples": [example.manifest() for example in facts.golden_examples],
        "license": facts.license,
        "description": facts.description,
        "provisional": facts.provisional,
    }
    if languages:
        manifest["languages"] = [pair.manifest() for pair in languages]
    if control_ids:
        manifest["control_ids"] = list(control_ids)
    write_manifest(folder, manifest)
    return manifest


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def trained_in_reverse(folder: Path) -> bool:
    """Returns whether the second column of the texts was the source of the training."""
    training = read_json(folder / "training.json") or {}
    return bool(training.get("recipe", {}).get("data", {}).get("reverse", False))


def add_shortlist(
    folder: Path,
    always: Sequence[int],
    chosen: dict[int, list[int]],
    *,
    by_default: bool | None = None,
) -> dict[str, Any]:
    """Writes the shortlist into the bundle, in place of one that it has, and returns the changed
    manifest. With `by_default` the searches of the model use it unless a setting says otherwise;
    None keeps what the manifest says."""
    manifest = read_manifest(folder)
    vocabulary = manifest["vocabulary"]
    sources = vocabulary.get("source_size", vocabulary["size"])
    rows = [chosen.get(source, []) for source in range(sources)]
    manifest = put_shortlist(folder, manifest, Shortlist.of_rows(always, rows))
    if by_default is not None:
        manifest["shortlist_by_default"] = by_default
    write_manifest(folder, manifest)
    return manifest


def put_shortlist(folder: Path, manifest: dict[str, Any], shortlist: Shortlist) -> dict[str, Any]:
    """Writes the file of the shortlist, removes a former one, and returns the manifest with it."""
    former = manifest.get("shortlist_file")
    if former:
        (folder / former).unlink(missing_ok=True)
    file = folder / SHORTLIST
    write_shortlist(file, shortlist, manifest["vocabulary"]["size"])
    entry = {"name": SHORTLIST, "bytes": file.stat().st_size, "sha256": sha256(file)}
    files = [e for e in manifest["files"] if e["name"] not in (SHORTLIST, former)]
    return {**manifest, "shortlist_file": SHORTLIST, "files": [*files, entry]}


def print_files(manifest: dict[str, Any]) -> None:
    """Prints the name, size and sha256 of each file."""
    for entry in manifest["files"]:
        print(f"{entry['name']:14} {entry['bytes']:>12} bytes  sha256 {entry['sha256']}")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Reads the manifest, and checks that all files exist with its sizes and sha256 sums."""
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise ConfigError(f"no bundle at {folder}, it has no {MANIFEST}")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path} is not JSON: {error}") from None
    if manifest.get("schema_version") != SCHEMA_VERSION:
        raise ConfigError(
            f"{path} has schema version {manifest.get('schema_version')}, this reads "
            f"{SCHEMA_VERSION}"
        )
    named = [entry["name"] for entry in manifest.get("files", [])]
    for name in named + [name for key, name in manifest.items() if key.endswith("_file")]:
        if Path(name).name != name:
            raise ConfigError(f"{path} names {name!r}, which is outside of the bundle's folder")
    for entry in manifest.get("files", []):
        file = Path(folder) / entry["name"]
        if not file.is_file():
            raise ConfigError(f"{path} lists {entry['name']}, which is missing")
        if file.stat().st_size != int(entry["bytes"]):
            raise ConfigError(
                f"{file} has {file.stat().st_size} bytes, its manifest says {entry['bytes']}"
            )
        if sha256(file) != entry["sha256"]:
            raise ConfigError(
                f"{file} does not have the sha256 of its manifest, it was changed or damaged"
            )
    return manifest
