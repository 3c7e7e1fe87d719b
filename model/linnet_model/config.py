"""Recipes: the settings of a training.

A recipe is a TOML file with one table per dataclass below. Every key has a type and a default here;
an unknown key is an error. Each run writes its recipe beside its results, so that it can be
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

from linnet_model.network.model_config import (
    MAX_TOKENS,
    ConfigError,
    ModelConfig,
    require,
    require_between,
)

SCHEDULES = ("inverse_sqrt", "cosine", "trapezoid")
OBJECTIVES = ("pairs", "language_model", "span_corruption")
SERVED = ("translate", "summarize")  # tasks of the service
TASKS = (*SERVED, "classify", "language_model", "pretrain")
STYLES = ("title", "sentence", "paragraph")  # of summaries
FILE_ENDINGS = (".tsv.xz", ".tsv")  # of files with rows, tried in this order
PLAIN_DOMAIN = "text"  # domain of rows from plain files
BUNDLE_NAME = re.compile("[a-z0-9][a-z0-9._-]{0,63}")  # the server accepts no other
T = typing.TypeVar("T")


@dataclass
class TokenizerConfig:
    """One SentencePiece model for both sides; its size is model.vocabulary."""

    kind: str = "unigram"  # how SentencePiece finds the pieces; or "bpe"
    character_coverage: float = 0.9998  # rarer characters are spelled in bytes
    sentences: int = 400_000  # at most this many lines are read to train it
    # User-defined pieces <ph0>, <ph1>, ... that are never split; span corruption marks its gaps
    # with them.
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
    """The training data: its files, the objective, and the share of each domain."""

    # Folder below --data. It holds train.tsv.xz, valid.tsv.xz, test.<domain>.tsv, refs.<domain>.tsv
    # with one row per line, source TAB target TAB domain, or the plain files named below.
    folder: str = ""
    # Names, without .tsv.xz or .tsv, of the files whose rows are the training text.
    files: list[str] = field(default_factory=lambda: ["train"])
    # Plain text files in the folder that replace the .tsv: line n of the source file belongs to
    # line n of the target file. Their rows have the domain "text". "language_model" and
    # "span_corruption" need only one of the two. A file may end in .xz, .gz or .bz2.
    train_source: str = ""
    train_target: str = ""
    valid_source: str = ""
    valid_target: str = ""
    test_source: str = ""
    test_target: str = ""
    # "pairs": predict the target from the source. "language_model": predict the next token of a
    # text, for a model without encoder layers. "span_corruption": predict the spans removed from a
    # text (Raffel et al. 2020).
    objective: str = "pairs"
    # "target", or "domain" to predict the name of the row's domain (a classifier).
    target_column: str = "target"
    # Learn the source from the target: the folder en-de then trains German to English.
    reverse: bool = False
    # "source", "target" or "both": which side's texts "language_model" and "span_corruption" read.
    text: str = "target"
    corrupted_share: float = 0.15  # share of a text's tokens that "span_corruption" removes
    mean_span_tokens: float = 3.0  # mean length of a removed span
    # Share of each domain's rows in an epoch; 2.0 uses every row twice.
    domains: dict[str, float] = field(default_factory=dict)
    # Author and licence of domains that linnet_model/sources.toml lacks, for the model card:
    # [data.terms.<domain>] with what, author, licence and attribution.
    terms: dict[str, dict[str, str]] = field(default_factory=dict)
    # Domains of the validation loss; empty: the training domains.
    valid_domains: list[str] = field(default_factory=list)
    # Rows that look as if they had been decoded with the wrong encoding: "warn" counts them, "drop"
    # leaves them out, "refuse" makes the first one an error.
    mojibake: str = "warn"
    empty_lines: str = "refuse"  # rows with an empty side: "refuse" is an error, "drop" skips them
    max_source_tokens: int = 120  # longer sources are cut (cut_source) or dropped
    # Longer targets are dropped; "language_model" and "span_corruption" split longer texts.
    max_target_tokens: int = 120
    cut_source: bool = False  # keep the beginning of a long source, for summaries
    # Share of training rows whose source is cut at short_tokens. Such rows teach most of the task
    # at a fraction of the cost; the other rows show the whole length.
    short_share: float = 0.0
    short_tokens: int = 64  # length of these sources
    lowercase_share: float = 0.0  # share of rows whose source becomes lower case
    uppercase_share: float = 0.0  # share of rows whose both sides become upper case
    # A piece of the vocabulary ("<ph7>") that marks a text in capitals; the model then reads the
    # text in lower case (capitals.py). Empty: the model reads capitals.
    capitals_mark: str = ""
    no_stop_share: float = 0.0  # share of rows that lose the final full stop on both sides
    # Share of rows put between quotation marks: English ones on the English side, German ones on
    # the German side.
    quote_share: float = 0.0
    # Share of rows with a name or number on both sides in which another one replaces it.
    rename_share: float = 0.0
    # Share of rows in which placeholders (<ph0>, <ph1>, ...) replace words that both sides share.
    # The server uses placeholders for text that the vocabulary cannot spell.
    placeholder_share: float = 0.0
    # Subword regularisation (Kudo 2018): the pieces of each training row are drawn anew in every
    # epoch, with probabilities proportional to their own to this power; 0: the most probable ones.
    # A smaller power gives more and shorter pieces; batches are sized without them and may exceed
    # batch_target_tokens.
    sampling_alpha: float = 0.0
    # Rows added, as a share of all: made-up addresses, numbers and names, copied unchanged.
    copy_share: float = 0.0
    # Rows added, as a share of all: made-up English sentences with amounts, dates, times and the
    # like, and their German translations. For English and German only.
    fact_share: float = 0.0
    # Rows added, as a share of all: the target as its own source. The attention to the source
    # trains sooner with them.
    echo_share: float = 0.0
    # Style of each domain's summaries: "title", "sentence" or "paragraph". The source begins with a
    # placeholder that stands for it, so a request can ask for a style; the first domain's style is
    # the default. Empty: the model has no styles.
    styles: dict[str, str] = field(default_factory=dict)
    # Rows added, as a share of all: English texts with their own sentences that are closest to the
    # target, a single one as "sentence" or, for a third of the rows, three as "paragraph". Domains
    # with a larger share give more of them. Needs styles.
    extract_share: float = 0.0

    def plain(self, split: str) -> list[str]:
        """Returns the plain files of "train", "valid" or "test", source and target; either may be
        empty."""
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
        self.check_files()
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
        require(
            whole or not self.reverse,
            "data.reverse is true, only pairs with a target have two sides",
        )
        require(
            0.0 <= self.sampling_alpha <= 1.0,
            f"data.sampling_alpha is {self.sampling_alpha}, must be in [0, 1]",
        )
        require(
            self.sampling_alpha == 0.0 or (whole and not self.cut_source),
            f"data.sampling_alpha is {self.sampling_alpha}, pieces are drawn for pairs with a "
            "target and whole sources: set it to 0",
        )
        for name in ("copy_share", "echo_share", "fact_share", "extract_share"):
            require(
                whole or getattr(self, name) == 0.0,
                f"data.{name} is {getattr(self, name)}, added rows are pairs with a target",
            )
        self.check_styles(whole)

    def check_styles(self, pairs: bool) -> None:
        require(
            not self.styles or (pairs and not self.capitals_mark and not self.placeholder_share),
            "data.styles is given, only summaries have styles: leave out capitals_mark and "
            "placeholder_share, and train on pairs with a target",
        )
        require(
            not self.styles or self.sampling_alpha == 0.0,
            f"data.sampling_alpha is {self.sampling_alpha} and data.styles is given, pieces are "
            "drawn for sources without a style: set it to 0",
        )
        for domain, style in self.styles.items():
            require(
                domain in self.domains,
                f"data.styles names {domain}, which data.domains lacks",
            )
            require(
                style in STYLES,
                f"data.styles.{domain} is {style!r}, known are {', '.join(STYLES)}",
            )
        for domain in self.domains if self.styles else []:
            require(domain in self.styles, f"data.styles lacks the domain {domain}")
        named = set(self.styles.values())
        require(
            self.extract_share == 0.0 or {"sentence", "paragraph"} <= named,
            f"data.extract_share is {self.extract_share}, the rows are added to domains with the "
            "styles sentence and paragraph: name one of each in data.styles",
        )

    def check_files(self) -> None:
        require(len(self.files) > 0, "data.files is empty, the usual one is train")
        for name in self.files:
            require(
                name not in ("", "valid") and "/" not in name and not name.endswith(FILE_ENDINGS),
                f"data.files has {name!r}, it takes names of files in data.folder without "
                ".tsv.xz or .tsv, and not valid, which measures the training",
            )
        require(
            len(set(self.files)) == len(self.files),
            f"data.files is {self.files}, name each file once",
        )
        require(
            self.files == ["train"] or not any(self.plain("train")),
            f"data.files is {self.files} and data.train_source or train_target is given, the rows "
            "are either of .tsv files or of plain files",
        )

    def check_plain_files(self) -> None:
        """Sets the domain of plain files, and refuses settings that plain files do not allow."""
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
    """Optimizer, schedule, batches, checkpoints and validation."""

    seed: int = 1  # seeds the weights, the order of the data and all random draws
    updates: int = 10_000  # length of the schedule; training ends there
    # Length of the schedule in seconds; updates then only sets the shares of warm-up and decay.
    # Such a training is not reproducible. 0: train for `updates`.
    seconds: float = 0.0
    batch_target_tokens: int = 1500  # max padded target tokens of a batch
    batch_source_tokens: int = 6000  # max padded source tokens of a batch
    accumulate: int = 1  # batches of an update, whose gradients are summed
    learning_rate: float = 1e-3  # peak learning rate
    # "trapezoid" holds the peak, then falls linearly; "inverse_sqrt" falls with the square root of
    # the updates; "cosine" falls along half a cosine.
    schedule: str = "trapezoid"
    warmup_updates: int = 400  # linear warm-up from 0
    decay_updates: int = 2000  # trapezoid: last updates, linear down to final_share
    final_share: float = 0.05  # share of the peak at which cosine and trapezoid end
    beta1: float = 0.9  # AdamW: decay of the mean of gradients
    beta2: float = 0.98  # AdamW: decay of the mean of squared gradients
    epsilon: float = 1e-8  # AdamW: added to the root of the squares
    weight_decay: float = 0.0  # decoupled, for matrices only
    clip_norm: float = 1.0  # max norm of the gradient over all weights; 0: no clipping
    label_smoothing: float = 0.1  # probability that is spread evenly over all tokens
    # Decay of the running average of the weights, which is validated and exported.
    average_decay: float = 0.999
    threads: int = 0  # torch threads on the CPU; 0: torch's default
    # Autocast to bfloat16. "auto": if the hardware has bfloat16 gemm, as CUDA and CPUs with AMX or
    # AVX512-BF16 have. A run that is resumed elsewhere may continue in the other type.
    bfloat16: bool | str = "auto"
    checkpoint_seconds: int = 300  # interval between checkpoints
    checkpoint_updates: int = 0  # also save after every so many updates; 0: by time only
    keep_checkpoints: int = 3  # number of latest checkpoints kept
    valid_updates: int = 1000  # interval between validations
    valid_rows: int = 200  # rows decoded greedily for BLEU, ROUGE or accuracy and for samples
    log_updates: int = 25  # interval between lines of log.jsonl

    def check(self) -> None:
        require(
            self.schedule in SCHEDULES,
            f"train.schedule is {self.schedule!r}, known are {', '.join(SCHEDULES)}",
        )
        for name in (
            "updates",
            "batch_target_tokens",
            "batch_source_tokens",
            "accumulate",
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
            self.bfloat16 in (True, False, "auto"),
            f"train.bfloat16 is {self.bfloat16!r}, must be true, false or 'auto'",
        )
        for name in (
            "seconds",
            "warmup_updates",
            "decay_updates",
            "weight_decay",
            "clip_norm",
            "threads",
            "checkpoint_updates",
            "valid_rows",
        ):
            require(
                getattr(self, name) >= 0,
                f"train.{name} is {getattr(self, name)}, must be at least 0",
            )
        for name in ("learning_rate", "epsilon"):
            require(
                getattr(self, name) > 0, f"train.{name} is {getattr(self, name)}, must be above 0"
            )
        for name in ("beta1", "beta2", "label_smoothing", "average_decay"):
            require(
                0.0 <= getattr(self, name) < 1.0,
                f"train.{name} is {getattr(self, name)}, must be in [0, 1)",
            )
        require(
            0.0 <= self.final_share <= 1.0,
            f"train.final_share is {self.final_share}, must be in [0, 1]",
        )


@dataclass
class BundleConfig:
    """Name, task, limits and default decoding options of the exported bundle."""

    name: str = ""  # model name in requests: "en-de"
    # "translate" and "summarize" are exported and served; "classify" (data.target_column is
    # "domain"), "language_model" and "pretrain" are measured by linnet-score --run.
    task: str = "translate"
    intended_use: str = ""  # the first paragraph of the card: what the model is for, and what not
    source_language: str = "en"  # BCP-47
    target_language: str = "de"  # BCP-47; of a summary the same as source_language
    max_source_tokens: int = 256  # served limit, with the end token
    max_target_tokens: int = 256  # served limit, without the end token
    beam_size: int = 4  # hypotheses of the search; 1 is greedy
    length_penalty: float = 1.0  # a score is the sum of log-probabilities / length^length_penalty
    min_target_tokens: int = 1  # without the end token
    no_repeat_ngram_size: int = 0  # length of token n-grams that no target repeats; 0: no limit
    # Max times in a row that a target has 1 to 16 tokens, or as often as its source; 0: no limit.
    max_ngram_repeats: int = 0
    target_ratio: float = 2.0  # a target has at most ratio * source + offset tokens
    target_offset: int = 20  # see target_ratio
    unknown_penalty: float = 0.0  # subtracted from the log-probability of the unknown token
    # Texts of one segment each. The card shows their answers beside those to the texts of
    # linnet_model/evaluation/texts; a server that loads the bundle checks that it gives the same
    # ones.
    examples: list[str] = field(default_factory=list)

    def check(self) -> None:
        require(
            BUNDLE_NAME.fullmatch(self.name) is not None,
            f'bundle.name "{self.name}" must be 1 to 64 lower-case letters, digits, '
            "'-', '_' or '.', a letter or digit first",
        )
        require(self.task in TASKS, f"bundle.task is {self.task!r}, known are {', '.join(TASKS)}")
        for name in ("max_source_tokens", "max_target_tokens"):
            require_between(f"bundle.{name}", getattr(self, name), 1, MAX_TOKENS)


@dataclass
class Recipe:
    """All settings of a training. Together with the data they determine the weights."""

    model: ModelConfig = field(default_factory=ModelConfig)  # architecture
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)  # text to tokens
    data: DataConfig = field(default_factory=DataConfig)  # training data and objective
    train: TrainConfig = field(default_factory=TrainConfig)  # optimization
    bundle: BundleConfig = field(default_factory=BundleConfig)  # the exported bundle

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
        require(
            data.sampling_alpha == 0.0 or self.tokenizer.kind == "unigram",
            f"data.sampling_alpha is {data.sampling_alpha} and tokenizer.kind is "
            f"{self.tokenizer.kind!r}, pieces are drawn by a unigram model: set it to 0",
        )
        languages = (self.bundle.source_language, self.bundle.target_language)
        require(
            data.fact_share == 0.0 or languages == (("de", "en") if data.reverse else ("en", "de")),
            f"data.fact_share is {data.fact_share} and the languages are {' to '.join(languages)}: "
            "the made-up sentences are English to German, or with data.reverse German to English, "
            "set it to 0",
        )


def read_recipe(path: Path, settings: list[str] | None = None) -> Recipe:
    """Reads a TOML recipe without stages. `settings` from the command line, `table.key=value` with
    the value in TOML, override it."""
    tables = read_tables(path)
    require(
        "stages" not in tables,
        f"{path} has stages, which linnet-train and linnet-export read: name a recipe without",
    )
    return recipe_of(tables, [parse_setting(setting) for setting in settings or []])


def read_tables(path: Path) -> dict[str, typing.Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"no recipe at {path}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None


def recipe_of(tables: dict[str, typing.Any], changes: list[dict[str, typing.Any]]) -> Recipe:
    """Returns the recipe of `tables`, in which `changes` replace keys one after another."""
    for change in changes:
        merge(tables, change)
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
    """Builds dataclass `cls` from a TOML table. Unknown keys and wrong types are errors."""
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
    if isinstance(kind, types.UnionType):
        require(type(value) in typing.get_args(kind), f"{name} is {value!r}, must be {kind}")
        return value
    if isinstance(kind, types.GenericAlias):
        outer, inner = typing.get_origin(kind), typing.get_args(kind)
        require(type(value) is outer, f"{name} is {value!r}, must be {kind}")
        if outer is list:
            return [checked(item, inner[0], name) for item in value]
        return {key: checked(item, inner[1], f"{name}.{key}") for key, item in value.items()}
    require(type(value) is kind, f"{name} is {value!r}, must be of type {kind.__name__}")
    return value


def to_tables(config: typing.Any) -> dict[str, typing.Any]:
    """Returns plain dicts for JSON, the inverse of from_tables."""
    return dataclasses.asdict(config)
