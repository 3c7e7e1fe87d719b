"""What a recipe may say.

A recipe is a TOML file with one table per dataclass below. Every key has a type and a default here,
an unknown key is an error, and what was read is written beside the results, so that a run can be
repeated from its own folder.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path

from linnet_model.network.model_config import ConfigError, ModelConfig, require

SCHEDULES = ("inverse_sqrt", "cosine", "trapezoid")
OBJECTIVES = ("pairs", "language_model", "span_corruption")
SERVED = ("translate", "summarize")  # tasks of the service
TASKS = (*SERVED, "classify", "language_model", "pretrain")
PLAIN_DOMAIN = "text"  # of rows that come from plain files
BUNDLE_NAME = re.compile("[a-z0-9][a-z0-9._-]{0,63}")  # as the reader of bundles wants it
T = typing.TypeVar("T")


@dataclass
class TokenizerConfig:
    """One SentencePiece model for both sides; its size is model.vocabulary."""

    kind: str = "unigram"  # how SentencePiece finds the pieces; or "bpe"
    character_coverage: float = 0.9998  # rarer characters are spelled in bytes
    sentences: int = 400_000  # at most this many lines are read to train it
    # User-defined pieces <ph0>, <ph1>, ... that stay whole in any text; span corruption marks its
    # gaps with them.
    placeholders: int = 8

    def check(self) -> None:
        require(
            self.kind in ("unigram", "bpe"),
            f"tokenizer.kind is {self.kind!r}, known are unigram, bpe",
        )
        require(
            0 <= self.placeholders <= 100,
            f"tokenizer.placeholders is {self.placeholders}, must be 0 to 100",
        )


@dataclass
class DataConfig:
    """Where the texts are, what is learnt from them, and how often each domain is seen."""

    # Below --data; holds train.tsv.xz, valid.tsv.xz, test.<domain>.tsv, refs.<domain>.tsv, one row
    # a line: source TAB target TAB domain. Or the plain files named below.
    folder: str = ""
    # Plain text files of the folder in place of the .tsv: line n of one belongs to line n of the
    # other. Their rows are of the domain "text". With one file alone its lines are the texts of
    # "language_model" and "span_corruption". May end in .xz, .gz or .bz2.
    train_source: str = ""
    train_target: str = ""
    valid_source: str = ""
    valid_target: str = ""
    test_source: str = ""
    test_target: str = ""
    # "pairs": the source is given, the target is learnt. "language_model": texts alone, for a model
    # without encoder layers. "span_corruption": texts with gaps are given, what stood in the gaps
    # is learnt (Raffel et al. 2020).
    objective: str = "pairs"
    # "target", or "domain": the name of the row's domain is the answer to be learnt, which makes a
    # classifier of it.
    target_column: str = "target"
    # "source", "target" or "both": which side's texts "language_model" and "span_corruption" read.
    text: str = "target"
    corrupted_share: float = 0.15  # of the tokens of a text, put into gaps by "span_corruption"
    mean_span_tokens: float = 3.0  # of such a gap
    # Share of a domain's rows in each epoch; 2.0: twice.
    domains: dict[str, float] = field(default_factory=dict)
    # Whose texts they are, for the model card, where linnet_model/sources.toml does not know a
    # domain: [data.terms.<domain>] with what, author, licence and attribution.
    terms: dict[str, dict[str, str]] = field(default_factory=dict)
    # Domains of the validation loss; empty: those trained on.
    valid_domains: list[str] = field(default_factory=list)
    # Rows that look as if they had been decoded with the wrong encoding: "warn" counts them, "drop"
    # leaves them out, "refuse" ends with the first.
    mojibake: str = "warn"
    empty_lines: str = "refuse"  # "refuse" ends with the first row that lacks a side; or "drop"
    max_source_tokens: int = 120  # longer sources are cut (cut_source) or dropped
    # Longer targets are dropped; longer texts of the objectives without pairs are split.
    max_target_tokens: int = 120
    cut_source: bool = False  # keep the head of a long source, for summaries
    # Of the training rows, whose source is cut at short_tokens: most of what there is to learn at a
    # fraction of the price, while the rest shows the whole length.
    short_share: float = 0.0
    short_tokens: int = 64  # where these sources are cut
    lowercase_share: float = 0.0  # of the rows, with the source lower-cased
    uppercase_share: float = 0.0  # of the rows, with both sides upper-cased
    # A piece of the vocabulary ("<ph7>") that stands before a text in capitals, which the model
    # then reads in small letters (capitals.py); empty: capitals are read as they are.
    capitals_mark: str = ""
    no_stop_share: float = 0.0  # of the rows, with the final full stop taken off both sides
    # Of the rows, put between quotation marks: English ones in the source, German ones in the
    # target.
    quote_share: float = 0.0
    # Of the rows that hold one name or number on both sides, with another one put in.
    rename_share: float = 0.0
    # Of the rows, with placeholders (<ph0>, <ph1>, ...) for words that both sides share: a server
    # puts them for what the vocabulary cannot spell, and back again.
    placeholder_share: float = 0.0
    # Of the rows, added: made-up addresses, numbers and names that are copied as they are.
    copy_share: float = 0.0
    # Of the rows, added: the target as its own source. A summary of one line is that line, and the
    # attention to the source is found sooner.
    echo_share: float = 0.0

    def plain(self, split: str) -> list[str]:
        """The plain files of "train", "valid" or "test": source and target, either may be empty."""
        return [getattr(self, f"{split}_{side}") for side in ("source", "target")]

    def check(self) -> None:
        require(self.folder != "", "data.folder is missing, name the folder below --data")
        for name, known in (
            ("objective", OBJECTIVES),
            ("target_column", ("target", "domain")),
            ("text", ("source", "target", "both")),
            ("mojibake", ("warn", "drop", "refuse")),
            ("empty_lines", ("refuse", "drop")),
        ):
            value = getattr(self, name)
            require(value in known, f"data.{name} is {value!r}, known are {', '.join(known)}")
        self.check_plain_files()
        require(
            len(self.domains) > 0, "data.domains is empty, name at least one domain and its share"
        )
        for name, share in self.domains.items():
            require(
                0 < share <= 64, f"data.domains.{name} is {share}, must be above 0 and at most 64"
            )
        for part in dataclasses.fields(self):
            if part.name.endswith("_share"):
                value = getattr(self, part.name)
                require(0.0 <= value <= 1.0, f"data.{part.name} is {value}, must be in [0, 1]")
        for name in ("max_source_tokens", "max_target_tokens", "short_tokens"):
            require(
                getattr(self, name) >= 2,
                f"data.{name} is {getattr(self, name)}, must be at least 2",
            )
        require(
            0.0 < self.corrupted_share < 1.0,
            f"data.corrupted_share is {self.corrupted_share}, must be above 0 and below 1",
        )
        require(
            self.mean_span_tokens >= 1.0,
            f"data.mean_span_tokens is {self.mean_span_tokens}, must be at least 1",
        )
        require(
            self.target_column == "target" or self.objective == "pairs",
            f"data.target_column is 'domain' with data.objective {self.objective!r}, labels are "
            "learnt from pairs",
        )
        whole = self.target_column == "target" and self.objective == "pairs"
        for name in ("copy_share", "echo_share"):
            require(
                whole or getattr(self, name) == 0.0,
                f"data.{name} is {getattr(self, name)}, copies and echoes are pairs with a target",
            )

    def check_plain_files(self) -> None:
        """Fills in the one domain of plain files, and refuses what cannot be read from them."""
        for split in ("train", "valid", "test"):
            given = [name for name in self.plain(split) if name]
            require(
                len(given) != 1 or self.objective != "pairs",
                f"data.{split}_source and data.{split}_target belong together, one is missing",
            )
        if not any(self.plain("train")):
            return
        require(
            any(self.plain("valid")),
            "data.train_source or train_target is given and valid_source and valid_target are not, "
            "keep some lines for validation and name them",
        )
        if not self.domains:
            self.domains = {PLAIN_DOMAIN: 1.0}
        require(
            list(self.domains) == [PLAIN_DOMAIN],
            f"data.domains names {', '.join(self.domains)}, rows of plain files are of the domain "
            f"{PLAIN_DOMAIN}",
        )


@dataclass
class TrainConfig:
    """How the weights are found."""

    seed: int = 1  # of the weights, the order of the data and all that is drawn
    updates: int = 10_000  # the schedule's horizon; training ends there
    # The horizon in seconds, in place of updates, which then only say by what shares the schedule
    # warms up and decays. Such a training does not give the same numbers twice. 0: no limit.
    seconds: float = 0.0
    batch_target_tokens: int = 1500  # padded target tokens of a batch, at most
    batch_source_tokens: int = 6000  # padded source tokens of a batch, at most
    learning_rate: float = 1e-3  # the peak
    # "trapezoid" holds the peak and falls in a line, "inverse_sqrt" falls with the root of the
    # updates, "cosine" in half a wave.
    schedule: str = "trapezoid"
    warmup_updates: int = 400  # linear from 0
    decay_updates: int = 2000  # trapezoid: the last updates, linear down to final_share
    final_share: float = 0.05  # of the peak, where cosine and trapezoid end
    beta1: float = 0.9  # of AdamW: how long it remembers gradients
    beta2: float = 0.98  # of AdamW: how long it remembers their squares
    epsilon: float = 1e-8  # of AdamW: added to the root of the squares
    weight_decay: float = 0.0  # decoupled, on matrices only
    clip_norm: float = 1.0  # of the gradient over all weights; 0: no clipping
    label_smoothing: float = 0.1  # share of the wanted probability that all tokens divide
    # Of the running average of the weights that is validated and exported.
    average_decay: float = 0.999
    threads: int = 0  # of torch on the CPU; 0: torch's own choice
    bfloat16: bool = False  # autocast; pays where the machine has bfloat16 products
    checkpoint_seconds: int = 300  # a checkpoint about that often
    checkpoint_updates: int = 0  # and one whenever this divides the updates done; 0: by time alone
    keep_checkpoints: int = 3  # the last so many; older ones are removed
    valid_updates: int = 1000  # validation about that often
    valid_rows: int = 200  # decoded greedily for BLEU, ROUGE or accuracy and for samples
    log_updates: int = 25  # a line in log.jsonl about that often

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
        require(self.seconds >= 0, f"train.seconds is {self.seconds}, must be at least 0")
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
        require(
            self.checkpoint_updates >= 0,
            f"train.checkpoint_updates is {self.checkpoint_updates}, must be at least 0",
        )


@dataclass
class BundleConfig:
    """What a bundle says of itself beyond sizes."""

    name: str = ""  # by which requests ask for the model: "en-de"
    # "translate" and "summarize" are exported and served; "classify" (data.target_column is
    # "domain"), "language_model" and "pretrain" are measured by linnet-score --run.
    task: str = "translate"
    source_language: str = "en"  # BCP-47
    target_language: str = "de"  # BCP-47; of a summary the same as source_language
    max_source_tokens: int = 256  # the served limit, end token counted
    max_target_tokens: int = 256  # the served limit, end token not counted
    beam_size: int = 4  # hypotheses of the search; 1 is greedy
    length_penalty: float = 1.0  # a score is the sum of log-probabilities / length^length_penalty
    min_target_tokens: int = 1  # end token not counted
    no_repeat_ngram_size: int = 0  # no target repeats so many tokens in a row; 0: it may
    target_ratio: float = 2.0  # a target has at most ratio * source + offset tokens
    target_offset: int = 20  # see target_ratio
    # Texts of one segment each. The card shows how they are answered, and a server that loads the
    # bundle checks itself against the answers.
    examples: list[str] = field(default_factory=list)

    def check(self) -> None:
        require(
            BUNDLE_NAME.fullmatch(self.name) is not None,
            f'bundle.name "{self.name}" must be 1 to 64 lower-case letters, digits, '
            "'-', '_' or '.', a letter or digit first",
        )
        require(self.task in TASKS, f"bundle.task is {self.task!r}, known are {', '.join(TASKS)}")


@dataclass
class Recipe:
    """All that decides what a training gives, beside the data."""

    model: ModelConfig = field(default_factory=ModelConfig)  # what is trained
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)  # how text becomes tokens
    data: DataConfig = field(default_factory=DataConfig)  # what it is trained on
    train: TrainConfig = field(default_factory=TrainConfig)  # how
    bundle: BundleConfig = field(default_factory=BundleConfig)  # what it is for

    def check(self) -> None:
        for part in dataclasses.fields(self):
            getattr(self, part.name).check()
        data, task = self.data, self.bundle.task
        require(
            (data.objective == "language_model") == (not self.model.encoder_kernels),
            f"data.objective is {data.objective!r} with {len(self.model.encoder_kernels)} encoder "
            "layers: a language model has none (model.encoder_kernels = []), everything else has "
            "some",
        )
        wanted = {"language_model": "language_model", "span_corruption": "pretrain"}.get(
            data.objective, "classify" if data.target_column == "domain" else ""
        )
        require(
            task == wanted if wanted else task in SERVED,
            f"bundle.task is {task!r} with data.objective {data.objective!r} and "
            f"data.target_column {data.target_column!r}, it must be "
            + (repr(wanted) if wanted else " or ".join(SERVED)),
        )


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


def merge(tables: dict[str, typing.Any], changes: dict[str, typing.Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(tables.get(key), dict):
            merge(tables[key], value)
        else:
            tables[key] = value


def from_tables(cls: type[T], tables: dict[str, typing.Any], where: str) -> T:
    """Builds dataclass `cls` of a TOML table: unknown keys and wrong types are errors."""
    hints = typing.get_type_hints(cls)
    values = {}
    for key, value in tables.items():
        name = f"{where}{key}"
        require(key in hints, f"unknown key {name}, known are {', '.join(hints)}")
        kind = hints[key]
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
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
