"""What a recipe may say.

A recipe is a TOML file with one table per dataclass below. Every key has a type and a default here,
an unknown key is an error, and what was read is written beside the results, so that a run can be
repeated from its own folder.
"""

from __future__ import annotations

import dataclasses
import tomllib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path

MIXERS = ("dynamic", "light")
SCHEDULES = ("inverse_sqrt", "cosine", "trapezoid")
SHARING = ("all", "output", "none")


class ConfigError(ValueError):
    """A recipe says something that cannot be done; the message names the key, the value and the way
    out."""


@dataclass
class ModelConfig:
    """The encoder-decoder of Wu et al. 2019. Sizes are fixed at the start of a training."""

    vocabulary: int = 6000  # rows of the embedding, target side too if sharing is "all"
    target_vocabulary: int = 0  # 0: the same as vocabulary
    width: int = 256  # d, the channels between layers and inside the convolutions
    ffn_width: int = 768  # hidden channels of the feed-forward blocks
    heads: int = 4  # H, heads of the convolutions and of the encoder attention
    # K per encoder layer, odd.
    encoder_kernels: list[int] = field(default_factory=lambda: [3, 7, 15, 31])
    # K per decoder layer, odd.
    decoder_kernels: list[int] = field(default_factory=lambda: [3, 7, 15])
    # Per layer; one name: all layers.
    encoder_mixers: list[str] = field(default_factory=lambda: ["dynamic"])
    decoder_mixers: list[str] = field(default_factory=lambda: ["dynamic"])
    glu: bool = True  # linear d -> 2d and a gate before each convolution
    # Norm at the entry of each block and after the last; false: after each residual.
    pre_norm: bool = True
    # "all": one embedding for source, target, output; "output": target and output; "none"
    sharing: str = "all"
    dropout: float = 0.1  # on embeddings and on the output of each block
    input_dropout: float = 0.0  # on the input of each convolution block
    relu_dropout: float = 0.0  # on the hidden channels of the feed-forward blocks
    attention_dropout: float = 0.0  # on the weights of the encoder attention
    weight_dropout: float = 0.1  # DropConnect on the normalised taps of the convolutions

    def check(self) -> None:
        if self.target_vocabulary == 0:
            self.target_vocabulary = self.vocabulary
        for side in ("encoder", "decoder"):
            kernels, mixers = getattr(self, f"{side}_kernels"), getattr(self, f"{side}_mixers")
            require(
                len(kernels) > 0, f"model.{side}_kernels is empty, name one kernel width per layer"
            )
            for k in kernels:
                require(
                    k > 0 and k % 2 == 1,
                    f"model.{side}_kernels has {k}, kernel widths are odd and positive",
                )
            if len(mixers) == 1:
                mixers = mixers * len(kernels)
                setattr(self, f"{side}_mixers", mixers)
            require(
                len(mixers) == len(kernels),
                f"model.{side}_mixers names {len(mixers)} layers and {side}_kernels "
                f"{len(kernels)}, give one or as many",
            )
            for mixer in mixers:
                require(
                    mixer in MIXERS,
                    f"model.{side}_mixers has {mixer!r}, known are {', '.join(MIXERS)}",
                )
        require(
            self.sharing in SHARING,
            f"model.sharing is {self.sharing!r}, known are {', '.join(SHARING)}",
        )
        require(self.heads > 0, f"model.heads is {self.heads}, at least 1 is needed")
        require(
            self.width % self.heads == 0,
            f"model.width {self.width} is no multiple of heads {self.heads}",
        )
        require(
            self.width % 2 == 0 and self.width >= 4,
            f"model.width {self.width} must be even and at least 4",
        )
        require(
            self.vocabulary > 4, f"model.vocabulary is {self.vocabulary}, ids 0 to 3 are special"
        )
        require(
            self.sharing != "all" or self.target_vocabulary == self.vocabulary,
            f"model.sharing is 'all' with vocabularies of {self.vocabulary} and "
            f"{self.target_vocabulary}",
        )
        for name in (
            "dropout",
            "input_dropout",
            "relu_dropout",
            "attention_dropout",
            "weight_dropout",
        ):
            value = getattr(self, name)
            require(0.0 <= value < 1.0, f"model.{name} is {value}, must be in [0, 1)")


@dataclass
class TokenizerConfig:
    """One SentencePiece model for both sides; its size is model.vocabulary."""

    kind: str = "unigram"  # or "bpe"
    character_coverage: float = 0.9998  # rarer characters are spelled in bytes
    sentences: int = 400_000  # at most this many lines are read to train it
    placeholders: int = 8  # user-defined pieces <ph0>, <ph1>, ... kept whole in any text

    def check(self) -> None:
        require(
            self.kind in ("unigram", "bpe"),
            f"tokenizer.kind is {self.kind!r}, known are unigram, bpe",
        )
        require(
            0 <= self.placeholders <= 64,
            f"tokenizer.placeholders is {self.placeholders}, must be 0 to 64",
        )


@dataclass
class DataConfig:
    """Where the pairs are and how often each domain is seen."""

    # Below --data; holds train.tsv.xz, valid.tsv.xz, test.<domain>.tsv, refs.<domain>.tsv.
    folder: str = ""
    # Share of a domain's rows in each epoch; 2.0: twice.
    domains: dict[str, float] = field(default_factory=dict)
    # Domains of the validation loss; empty: those trained on.
    valid_domains: list[str] = field(default_factory=list)
    max_source_tokens: int = 120  # longer sources are cut (cut_source) or dropped
    max_target_tokens: int = 120  # longer targets are dropped
    cut_source: bool = False  # keep the head of a long source, for summaries
    # Of the training rows, whose source is cut at short_tokens: most of what there is to learn at a
    # fraction of the price, while the rest shows the whole length.
    short_share: float = 0.0
    short_tokens: int = 64
    lowercase_share: float = 0.0  # of the rows, with the source lower-cased
    uppercase_share: float = 0.0  # of the rows, with both sides upper-cased
    no_stop_share: float = 0.0  # of the rows, with the final full stop taken off both sides
    # Of the rows that hold one name or number on both sides, with another one put in.
    rename_share: float = 0.0
    # Of the rows, added: made-up addresses, numbers and names that are copied as they are.
    copy_share: float = 0.0
    # Of the rows, added: the target as its own source. A summary of one line is that line, and the
    # attention to the source is found sooner.
    echo_share: float = 0.0

    def check(self) -> None:
        require(self.folder != "", "data.folder is missing, name the folder below --data")
        require(
            len(self.domains) > 0, "data.domains is empty, name at least one domain and its share"
        )
        for name, share in self.domains.items():
            require(
                0 < share <= 64, f"data.domains.{name} is {share}, must be above 0 and at most 64"
            )
        for name in (
            "lowercase_share",
            "uppercase_share",
            "no_stop_share",
            "rename_share",
            "copy_share",
            "echo_share",
            "short_share",
        ):
            require(
                0.0 <= getattr(self, name) <= 1.0,
                f"data.{name} is {getattr(self, name)}, must be in [0, 1]",
            )
        for name in ("max_source_tokens", "max_target_tokens", "short_tokens"):
            require(
                getattr(self, name) >= 2,
                f"data.{name} is {getattr(self, name)}, must be at least 2",
            )


@dataclass
class TrainConfig:
    """How the weights are found."""

    seed: int = 1
    updates: int = 10_000  # the schedule's horizon; training ends there
    batch_target_tokens: int = 1500  # padded target tokens of a batch, at most
    batch_source_tokens: int = 6000  # padded source tokens of a batch, at most
    learning_rate: float = 1e-3  # the peak
    schedule: str = "trapezoid"  # or "inverse_sqrt", "cosine"
    warmup_updates: int = 400  # linear from 0
    decay_updates: int = 2000  # trapezoid: the last updates, linear down to final_share
    final_share: float = 0.05  # of the peak, where cosine and trapezoid end
    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-8
    weight_decay: float = 0.0  # decoupled, on matrices only
    clip_norm: float = 1.0  # of the gradient over all weights; 0: no clipping
    label_smoothing: float = 0.1
    # Of the running average of the weights that is validated and exported.
    average_decay: float = 0.999
    threads: int = 0  # of torch on the CPU; 0: torch's own choice
    bfloat16: bool = False  # autocast; pays where the machine has bfloat16 products
    checkpoint_seconds: int = 300  # a checkpoint about that often
    keep_checkpoints: int = 3
    valid_updates: int = 1000  # validation about that often
    valid_rows: int = 200  # decoded greedily for BLEU or ROUGE and for samples
    log_updates: int = 25

    def check(self) -> None:
        require(
            self.schedule in SCHEDULES,
            f"train.schedule is {self.schedule!r}, known are {', '.join(SCHEDULES)}",
        )
        for name in (
            "updates",
            "batch_target_tokens",
            "batch_source_tokens",
            "valid_updates",
            "log_updates",
            "checkpoint_seconds",
            "keep_checkpoints",
        ):
            require(
                getattr(self, name) > 0,
                f"train.{name} is {getattr(self, name)}, must be at least 1",
            )
        require(
            self.learning_rate > 0, f"train.learning_rate is {self.learning_rate}, must be above 0"
        )
        require(
            0.0 <= self.label_smoothing < 1.0,
            f"train.label_smoothing is {self.label_smoothing}, must be in [0, 1)",
        )
        require(
            0.0 <= self.average_decay < 1.0,
            f"train.average_decay is {self.average_decay}, must be in [0, 1)",
        )


@dataclass
class BundleConfig:
    """What a bundle says of itself beyond sizes."""

    name: str = ""
    task: str = "translate"  # or "summarize"
    source_language: str = "en"
    target_language: str = "de"
    max_source_tokens: int = 256  # the served limit, end token counted
    max_target_tokens: int = 256
    beam_size: int = 4  # defaults of the decoder
    length_penalty: float = 1.0
    min_target_tokens: int = 1
    no_repeat_ngram_size: int = 0
    target_ratio: float = 2.0  # a target has at most ratio * source + offset tokens
    target_offset: int = 20

    def check(self) -> None:
        require(self.name != "", "bundle.name is missing")
        require(
            self.task in ("translate", "summarize"),
            f"bundle.task is {self.task!r}, known are translate, summarize",
        )


@dataclass
class Recipe:
    model: ModelConfig = field(default_factory=ModelConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    bundle: BundleConfig = field(default_factory=BundleConfig)

    def check(self) -> None:
        for part in dataclasses.fields(self):
            getattr(self, part.name).check()


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def read_recipe(path: Path, settings: list[str] | None = None) -> Recipe:
    """Reads a TOML recipe; `settings` are `table.key=value` from the command line, value in TOML,
    and win."""
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"no recipe at {path}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    for setting in settings or []:
        merge(tables, parse_setting(setting))
    recipe = from_tables(Recipe, tables, "")
    recipe.check()
    return recipe


def parse_setting(setting: str) -> dict[str, typing.Any]:
    try:
        return tomllib.loads(setting)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"--set {setting!r} is not table.key=value in TOML: {error}") from None


def merge(tables: dict, changes: dict) -> None:
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(tables.get(key), dict):
            merge(tables[key], value)
        else:
            tables[key] = value


def from_tables(cls: type, tables: dict[str, typing.Any], where: str) -> typing.Any:
    """Builds dataclass `cls` of a TOML table: unknown keys and wrong types are errors."""
    hints = typing.get_type_hints(cls)
    values = {}
    for key, value in tables.items():
        name = f"{where}{key}"
        require(key in hints, f"unknown key {name}, known are {', '.join(hints)}")
        kind = hints[key]
        if dataclasses.is_dataclass(kind):
            require(isinstance(value, dict), f"{name} must be a table")
            values[key] = from_tables(kind, value, f"{name}.")
        else:
            values[key] = checked(value, kind, name)
    return cls(**values)


def checked(value: typing.Any, kind: typing.Any, name: str) -> typing.Any:
    if kind is float and type(value) is int:
        return float(value)
    if isinstance(kind, types.GenericAlias):
        outer, inner = typing.get_origin(kind), typing.get_args(kind)
        require(type(value) is outer, f"{name} is {value!r}, must be {kind}")
        if outer is list:
            return [checked(item, inner[0], name) for item in value]
        return {key: checked(item, inner[1], f"{name}.{key}") for key, item in value.items()}
    require(type(value) is kind, f"{name} is {value!r}, must be of type {kind.__name__}")
    return value


def to_tables(config: typing.Any) -> dict[str, typing.Any]:
    """The inverse of from_tables: plain dicts, for JSON beside the results."""
    return dataclasses.asdict(config)
