"""The table [data] of a recipe: which texts a training reads, and what it makes of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from linnet_model.network.model_config import require

OBJECTIVES = ("pairs", "language_model", "span_corruption")
STYLES = ("title", "sentence", "paragraph")  # of summaries
FILE_ENDINGS = (".tsv.xz", ".tsv")  # of files with rows, tried in this order
PLAIN_DOMAIN = "text"  # domain of rows from plain files


# Names of rows that augmentation adds, with the share that adds them.
ADDED_BY = {
    "copies": "copy_share",
    "echoes": "echo_share",
    "facts": "fact_share",
    "joined": "join_share",
    "paragraphs": "extract_share",
    "sentences": "extract_share",
}
RESERVED = ("all", *ADDED_BY)  # no domain has these names
MAX_PLACEHOLDERS = 3  # words of a pair that become placeholders; a server may use more
PLACEHOLDERS_USED = MAX_PLACEHOLDERS + 2  # one more at the end, and one may mark capitals


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
    # Share of rows with a name, time or number on both sides in which another one replaces it.
    rename_share: float = 0.0
    # Names that translators between English and German have put into the other language (Mary and
    # Maria, John and Johannes) are in the target as in the source. For English and German only.
    same_names: bool = False
    # Share of rows in which placeholders (<ph0>, <ph1>, ...) replace words that both sides share.
    # The server uses placeholders for text that the vocabulary cannot spell.
    placeholder_share: float = 0.0
    # Rows added, as a share of all: two to four sentences of a domain, joined to one text, so that
    # a model of short sentences meets longer texts (Kondo et al. 2021).
    join_share: float = 0.0
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
    # Rows added, as a share of all: parts of English texts with those of their sentences that are
    # closest to the text's summary, half of them with one as "sentence", half with two or three as
    # "paragraph". Domains with a larger share give more of them. Needs styles.
    extract_share: float = 0.0
    # Domains whose texts give these rows. Empty: all.
    extract_domains: list[str] = field(default_factory=list)

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
        for name in (*self.domains, *self.valid_domains):
            require(
                name not in RESERVED,
                f"the domain {name} of data.domains or data.valid_domains has a name that is used "
                f"for other rows ({', '.join(RESERVED)}), rename it in the texts",
            )
        for name, share in self.domains.items():
            require(
                0 < share <= 64, f"data.domains.{name} is {share}, must be above 0 and at most 64"
            )
        for part in dataclasses.fields(self):
            if part.name.endswith("_share"):
                value = getattr(self, part.name)
                require(0.0 <= value <= 1.0, f"data.{part.name} is {value}, must be in [0, 1]")
        cased = self.lowercase_share + self.uppercase_share
        require(
            cased <= 1.0,
            f"data.lowercase_share and data.uppercase_share are {cased:g} together, must be at "
            "most 1: no row gets both",
        )
        for name in ("max_source_tokens", "max_target_tokens", "short_tokens"):
            require(
                getattr(self, name) >= 2,
                f"data.{name} is {getattr(self, name)}, must be at least 2",
            )
        require(
            self.short_share == 0.0 or self.cut_source,
            f"data.short_share is {self.short_share}, only cut sources are short: set "
            "data.cut_source to true, or the share to 0",
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
        for name in ("join_share", "copy_share", "echo_share", "fact_share", "extract_share"):
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
            not self.styles or self.join_share == 0.0,
            f"data.join_share is {self.join_share} and data.styles is given, joined texts have no "
            "summary: set it to 0",
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
        for domain in self.extract_domains:
            require(
                domain in self.styles and self.extract_share > 0.0,
                f"data.extract_domains has {domain}, it takes domains of data.styles and needs "
                "data.extract_share",
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
        require(
            self.valid_domains in ([], [PLAIN_DOMAIN]) or not any(self.plain("valid")),
            f"data.valid_domains names {', '.join(self.valid_domains)}, rows of plain files are of "
            f"the domain {PLAIN_DOMAIN}: leave it out",
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
