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

from linnet_model.data_config import PLACEHOLDERS_USED, DataConfig
from linnet_model.languages import check_language_code
from linnet_model.network.model_config import (
    MAX_TOKENS,
    ConfigError,
    ModelConfig,
    require,
    require_between,
)

SCHEDULES = ("inverse_sqrt", "cosine", "trapezoid")
SERVED = ("translate", "summarize")  # tasks of the service
ANSWERED = ("classify", "parse")  # an answer is right if it is the target
TASKS = (*SERVED, *ANSWERED, "language_model", "pretrain")
MAX_SEED = 2**40  # so that what is computed from it fits 64 bits
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
        require(self.sentences > 0, f"tokenizer.sentences is {self.sentences}, must be at least 1")


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
            "seed",
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
        require(self.seed <= MAX_SEED, f"train.seed is {self.seed}, must be at most {MAX_SEED}")
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
    # "translate" and "summarize" are exported and served; "classify" (the target is a label),
    # "parse" (it is a logical form), "language_model" and "pretrain" are measured by
    # linnet-score --run.
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
    # The style of a request that names none: one of data.styles; empty: the first of them. Other
    # than the order of data.styles, it does not change the training.
    default_style: str = ""
    # Texts of one segment each. The card shows their answers beside those to the texts of
    # linnet_model/texts; a server that loads the bundle checks that it gives the same
    # ones.
    examples: list[str] = field(default_factory=list)

    def check(self) -> None:
        require(
            BUNDLE_NAME.fullmatch(self.name) is not None,
            f'bundle.name "{self.name}" must be 1 to 64 lower-case letters, digits, '
            "'-', '_' or '.', a letter or digit first",
        )
        require(self.task in TASKS, f"bundle.task is {self.task!r}, known are {', '.join(TASKS)}")
        check_language_code("bundle.source_language", self.source_language)
        check_language_code("bundle.target_language", self.target_language)
        for name in ("max_source_tokens", "max_target_tokens"):
            require_between(f"bundle.{name}", getattr(self, name), 1, MAX_TOKENS)
        self.check_search()
        require(
            self.task != "summarize" or self.source_language == self.target_language,
            f"bundle.target_language is {self.target_language!r} and bundle.source_language "
            f"{self.source_language!r}: a summary has the language of its text",
        )

    def check_search(self) -> None:
        """Refuses defaults of the search that no server loads (search_options.cc, manifest.cc)."""
        for name, least, most in (
            ("beam_size", 1, 32),
            ("length_penalty", 0, 10),
            ("unknown_penalty", -1e6, 1e6),
            ("target_ratio", 0, 1000),
            ("target_offset", 0, self.max_target_tokens),
            ("min_target_tokens", 0, self.target_offset),
            ("no_repeat_ngram_size", 0, MAX_TOKENS),
            ("max_ngram_repeats", 0, MAX_TOKENS),
        ):
            value = getattr(self, name)
            require(  # a NaN is not between
                least <= value <= most,
                f"bundle.{name} is {value}, must be between {least} and {most}"
                + {
                    "target_offset": ", bundle.max_target_tokens",
                    "min_target_tokens": ", bundle.target_offset",
                }.get(name, ""),
            )


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
            self.model.target_vocabulary in (0, self.model.vocabulary),
            f"model.target_vocabulary is {self.model.target_vocabulary} and model.vocabulary "
            f"{self.model.vocabulary}: a training has one SentencePiece model for both sides, "
            "leave it out",
        )
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
            task == wanted if wanted else task in (*SERVED, *ANSWERED),
            f"bundle.task is {task!r} with data.objective {data.objective!r} and "
            f"data.target_column {data.target_column!r}, it must be "
            + (repr(wanted) if wanted else " or ".join((*SERVED, *ANSWERED))),
        )
        languages = (self.bundle.source_language, self.bundle.target_language)
        for key, what in (
            ("fact_share", "made-up sentences"),
            ("quote_share", "marks and verbs of speech"),
            ("same_names", "names"),
        ):
            value = getattr(data, key)
            shown, off = ("true", "false") if value is True else (value, "0")
            require(
                not value or languages == (("de", "en") if data.reverse else ("en", "de")),
                f"data.{key} is {shown} and the languages are {' to '.join(languages)}: the "
                f"{what} are English to German, or with data.reverse German to English, set it to "
                f"{off}",
            )
        require(
            data.placeholder_share == 0.0 or self.tokenizer.placeholders >= PLACEHOLDERS_USED,
            f"tokenizer.placeholders is {self.tokenizer.placeholders} and data.placeholder_share "
            f"needs {PLACEHOLDERS_USED}, raise it or set data.placeholder_share to 0",
        )

    def check_lengths(self) -> None:
        """Refuses limits beyond the model's positions, with which a training would end at its first
        long row, or could not be exported. The recipe of a checkpoint is not checked, because
        linnet-export --recipe and --resume may replace its [bundle]."""
        model = self.model
        if model.positions == "learned":
            for side in ("source", "target") if model.encoder_kernels else ("target",):
                key = f"max_{side}_tokens"
                require(
                    getattr(self.data, key) <= model.max_positions,
                    f"data.{key} is {getattr(self.data, key)} and the learned positions are "
                    f"model.max_positions {model.max_positions}, raise it or lower data.{key}",
                )
        if self.bundle.task in SERVED:
            try:
                model.check_lengths(self.bundle.max_source_tokens, self.bundle.max_target_tokens)
            except ConfigError as error:
                raise ConfigError(f"bundle: {error}") from None


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
    """Reads the tables of a recipe: those of its base, if it names one, in which its own keys
    replace others."""
    tables = read_toml(path)
    base = tables.pop("base", None)
    if base is None:
        return tables
    require(
        isinstance(base, str) and base != "",
        f"base is {base!r}, must be the file name of another recipe",
    )
    below = read_toml(path.parent / base)
    for key in ("base", "stages"):
        require(key not in below, f"{base}, the base of {path}, has {key}: name one without")
    merge(below, tables)
    return below


def read_toml(path: Path) -> dict[str, typing.Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"no recipe at {path}") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None


def recipe_of(tables: dict[str, typing.Any], changes: list[dict[str, typing.Any]]) -> Recipe:
    """Returns the recipe of `tables`, in which `changes` replace keys one after another. A domain
    with share 0 is left out, so that a change can leave one out."""
    for change in changes:
        merge(tables, change)
    data = tables.get("data", {})
    if isinstance(data, dict) and isinstance(data.get("domains"), dict):
        for domain in [domain for domain, share in data["domains"].items() if share == 0]:
            for key in ("domains", "styles"):
                if isinstance(data.get(key), dict):
                    data[key].pop(domain, None)
    recipe = from_tables(Recipe, tables, "")
    recipe.check()
    recipe.check_lengths()
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


# Keys of recipes that were removed because they brought nothing (research/RESULTS.md), and their
# values in the trainings that did not use them; None: any. Stored recipes have these keys.
REMOVED: dict[str, typing.Any] = {
    "data.both_directions": False,
    "data.sampling_alpha": 0.0,
    "train.simcut": 0.0,
    "train.simcut_share": None,
}


def from_tables(cls: type[T], tables: dict[str, typing.Any], where: str) -> T:
    """Builds dataclass `cls` from a TOML table. Unknown keys and wrong types are errors."""
    hints = typing.get_type_hints(cls)
    values = {}
    for key, value in tables.items():
        name = f"{where}{key}"
        if name in REMOVED:
            require(
                REMOVED[name] in (None, value),
                f"{name} is {value!r}, but linnet-train no longer has this feature: leave the key "
                "out",
            )
            continue
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
