"""Golden examples of imported bundles: texts with the answers of the reference implementation.

An answer of Linnet's own proves only that Linnet agrees with itself (own_answers.py makes such
where no other program is at hand). Folders of Hugging Face are answered by transformers, if it is
installed, with a tokenizer of the folder's vocabulary and the folder's options of the search,
except early_stopping, which is true as in Linnet, and renormalize_logits, which is off. Kept are
the answers that do not change in bfloat16, have no unknown token, and end before the limit on
tokens. Answers of fairseq and Marian come from a file that these programs wrote.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linnet_model.bundle import GoldenExample, TokenizerFiles, content_of
from linnet_model.importers.golden_texts import SUMMARIES, TEXTS
from linnet_model.languages import LanguageTokens
from linnet_model.network.model_config import ConfigError, require
from linnet_model.text_files import read_lines

MAX_EXAMPLES = 64
MAX_PAIRS = 8  # of a model with many: the first ones get examples


@dataclass(frozen=True)
class GoldenChoice:
    """The flags --golden and --no-golden. Functions of the package make no examples by default."""

    wanted: bool = False
    file: Path | None = None


@dataclass
class Golden:
    """The examples of a bundle, and the sentence of its card about them."""

    examples: list[GoldenExample] = field(default_factory=list)
    told: str = "none were asked for"

    def card(self) -> str:
        return f"{len(self.examples)}, {self.told}" if self.examples else f"none: {self.told}"


@dataclass(frozen=True)
class Text:
    source: str
    target: str | None = None  # None: the reference implementation is to answer


def read_texts(file: Path) -> list[Text]:
    """Reads lines TEXT, or TEXT TAB ANSWER."""
    require(file.is_file(), f"--golden: no file at {file}")
    found = []
    for number, line in enumerate(read_lines(file), 1):
        parts = line.split("\t")
        require(
            len(parts) <= 2 and all(part.strip() for part in parts),
            f"{file}:{number} has {len(parts) - 1} tabs or an empty part, a line is TEXT or TEXT "
            "TAB ANSWER",
        )
        found.append(Text(*parts))
    require(
        0 < len(found) <= MAX_EXAMPLES,
        f"{file} has {len(found)} lines, 1 to {MAX_EXAMPLES} are read",
    )
    return found


def given_examples(choice: GoldenChoice, reference: str) -> Golden:
    """Returns the examples of --golden, all of which have answers. `reference` names the program
    whose answers they must be."""
    if not choice.wanted or choice.file is None:
        return Golden()
    texts = read_texts(choice.file)
    pairs = [(text.source, text.target) for text in texts if text.target is not None]
    require(
        len(pairs) == len(texts),
        f"{choice.file} has texts without answers, give those of {reference}: TEXT TAB ANSWER",
    )
    examples = [GoldenExample(source, target) for source, target in pairs]
    return Golden(
        examples, f"with the answers of {choice.file.name}, given as those of {reference}"
    )


def transformers_version() -> str | None:
    """The version of transformers, or None where it is missing."""
    if importlib.util.find_spec("transformers") is None:
        return None
    return importlib.metadata.version("transformers")


def load_tokenizer(hf: Any, folder: Path, kind: str, files: TokenizerFiles) -> Any:
    """Returns transformers' tokenizer in Python of a folder, with no language set. It is made of
    the vocabulary alone: transformers 4 cannot read the settings that transformers 5 writes."""
    if kind == "marian":
        apart = (folder / "target_vocab.json").is_file()
        return hf.MarianTokenizer(
            source_spm=str(folder / "source.spm"),
            target_spm=str(folder / "target.spm"),
            vocab=str(folder / "vocab.json"),
            target_vocab_file=str(folder / "target_vocab.json") if apart else None,
            separate_vocabs=apart,
        )
    with tempfile.TemporaryDirectory() as name:
        vocabulary, other = Path(name) / "vocab.json", Path(name) / "other"
        numbers = {piece: i for i, piece in enumerate(files.source_vocabulary or []) if piece}
        vocabulary.write_text(json.dumps(numbers), encoding="utf-8")
        other.write_bytes(content_of(files.source))
        if kind == "bart":
            return hf.BartTokenizer(str(vocabulary), str(other))
        if kind == "m2m_100" and (folder / "vocab.json").is_file():
            return hf.M2M100Tokenizer(str(folder / "vocab.json"), str(other))
        names = {"mbart": "MBart50Tokenizer", "m2m_100": "NllbTokenizer"}
        return getattr(hf, names.get(kind, "PegasusTokenizer"))(str(other))


class Reference:
    """A model of a folder in transformers."""

    def __init__(
        self,
        folder: Path,
        kind: str,
        files: TokenizerFiles,
        max_source_tokens: int,
        silent: frozenset[int],
    ):
        """`silent` are ids that are no text, such as those of languages."""
        import transformers as hf

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # sacremoses is missing: punctuation stays as it is
            hf.logging.set_verbosity_error()
            hf.logging.disable_progress_bar()
            self.max_source_tokens, self.silent = max_source_tokens, silent
            self.tokenizer = load_tokenizer(hf, folder, kind, files)
            self.model = hf.AutoModelForSeq2SeqLM.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, dtype="float32"
            ).eval()

    def answer(self, text: str, pair: LanguageTokens) -> str | None:
        """Returns the best answer; None if a limit on tokens ends it, or a token is unknown."""
        import torch

        tokenizer, options = self.tokenizer, self.model.generation_config
        ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))
        ids = [*pair.before, *ids, tokenizer.eos_token_id, *pair.after]
        if len(ids) > self.max_source_tokens:
            return None
        forced = {"forced_bos_token_id": pair.forced[0]} if pair.forced else {}
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.model.generate(
                torch.tensor([ids]),
                attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                do_sample=False,
                early_stopping=options.num_beams > 1,
                renormalize_logits=False,
                **forced,
            )[0]
        if len(found) >= options.max_length or tokenizer.unk_token_id in found:
            return None
        answer: str = tokenizer.decode(
            [token for token in found.tolist() if token not in self.silent],
            skip_special_tokens=True,
            clean_up_tokenization_spaces=False,
        )
        return answer if answer.strip() else None

    def answers(self, texts: list[tuple[str, LanguageTokens]]) -> list[str | None]:
        """Returns the answers that are the same in bfloat16, None in place of the others."""
        import torch

        exact = [self.answer(*text) for text in texts]
        self.model.to(torch.bfloat16)
        rounded = [self.answer(*text) for text in texts]
        return [one if one == other else None for one, other in zip(exact, rounded, strict=True)]


def default_texts(pairs: Sequence[LanguageTokens], task: str) -> list[tuple[str, LanguageTokens]]:
    """Returns all texts of the first pair's source language, and one of each further pair's."""
    known = SUMMARIES if task == "summarize" else TEXTS
    chosen = []
    for number, pair in enumerate(pairs[:MAX_PAIRS]):
        texts = known.get(pair.source.split("-")[0].lower(), [])
        chosen += [(text, pair) for text in (texts if number == 0 else texts[:1])]
    return chosen


def transformers_examples(
    choice: GoldenChoice,
    folder: Path,
    kind: str,
    files: TokenizerFiles,
    own: tuple[str, str],
    pairs: Sequence[LanguageTokens],
    max_source_tokens: int,
    control_ids: Sequence[int] = (),
    task: str = "translate",
) -> Golden:
    """Returns examples of a folder of Hugging Face with the model_type `kind`, whose importer has
    read it. `own` is the manifest's pair, `pairs` its `languages`."""
    if not choice.wanted:
        return Golden()
    all_pairs = sorted(pairs, key=lambda pair: (pair.source, pair.target) != own)
    all_pairs = all_pairs or [LanguageTokens(*own)]
    if choice.file is not None:
        read = read_texts(choice.file)
        if all(text.target is not None for text in read):
            return given_examples(choice, "transformers")
        require(
            not any(text.target for text in read),
            f"{choice.file} has texts with and without answers, either all have one or none has",
        )
        texts = [(text.source, all_pairs[0]) for text in read]
    else:
        texts = default_texts(all_pairs, task)
    if not texts:
        return Golden(told=f"there are no texts in {own[0]}, give some with --golden")
    version = transformers_version()
    if version is None:
        return Golden(told="transformers, which makes them, is not installed")
    try:
        tokens = [(*pair.before, *pair.after, *pair.forced) for pair in pairs]
        silent = frozenset(control_ids).union(*tokens)
        answers = Reference(folder, kind, files, max_source_tokens, silent).answers(texts)
    except ConfigError:
        raise
    except Exception as error:  # of a library that we do not know
        line = (str(error).splitlines() or [type(error).__name__])[0]
        return Golden(told=f"transformers {version} failed: {line[:200]}")
    examples = [
        GoldenExample(text, answer, (pair.source, pair.target) if pairs else None)
        for (text, pair), answer in zip(texts, answers, strict=True)
        if answer is not None
    ]
    if not examples:
        return Golden(
            told=f"all answers of transformers {version} to {len(texts)} texts change in bfloat16, "
            "have an unknown token, or reach the limit on tokens"
        )
    return Golden(
        examples,
        f"made by transformers {version} in float32 with early_stopping (of {len(texts)} texts "
        "those whose answers bfloat16 and the limit on tokens do not change)",
    )
