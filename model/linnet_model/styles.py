"""Styles of summaries, and the pieces at the start of a source that ask for them."""

from __future__ import annotations

from typing import Any

import sentencepiece

from linnet_model.data_config import STYLES
from linnet_model.languages import LanguageTokens
from linnet_model.network.encoder_decoder import UNK
from linnet_model.network.model_config import require

# A summariser copies nothing through placeholders, so they are free for its styles.
PIECES = {style: f"<ph{number}>" for number, style in enumerate(STYLES)}
# Rows that augmentation adds.
SENTENCES, PARAGRAPHS = "sentences", "paragraphs"
ADDED = {SENTENCES: "sentence", PARAGRAPHS: "paragraph"}


def style_ids(
    tokenizer: sentencepiece.SentencePieceProcessor, styles: dict[str, str], default: str = ""
) -> dict[str, int]:
    """Returns the id of the piece of each style in `styles`, which names the style of each domain.
    The first style is the default of the model: `default`, or else the first of `styles`."""
    named = list(styles.values())
    require(
        default in ("", *named),
        f"bundle.default_style is {default!r}, data.styles has "
        f"{', '.join(dict.fromkeys(named)) or 'none'}",
    )
    names = dict.fromkeys([default, *named] if default else named)
    ids = {name: tokenizer.piece_to_id(PIECES[name]) for name in names}
    missing = [PIECES[name] for name, found in ids.items() if found == UNK]
    require(
        not missing,
        f"data.styles needs the pieces {', '.join(missing)}, which the vocabulary lacks: raise "
        "tokenizer.placeholders",
    )
    return ids


def style_of(styles: dict[str, str], domain: str) -> str:
    """Returns the style of a domain's rows; that of rows added by augmentation, such as echoes, is
    the default unless ADDED names another."""
    return styles.get(domain) or ADDED.get(domain) or next(iter(styles.values()))


def styled_languages(language: str, ids: dict[str, int]) -> list[LanguageTokens]:
    """Returns the entries of the manifest's `languages` for a summariser with these styles."""
    return [LanguageTokens(language, language, (id_,), style=name) for name, id_ in ids.items()]


def styles_of(manifest: dict[str, Any]) -> list[str]:
    """Returns the styles of a bundle, the default first."""
    languages = manifest.get("languages", [])
    names = [pair["style"] for pair in languages if "style" in pair]
    return [name.removeprefix("SUMMARY_STYLE_").lower() for name in names]


def before_source(manifest: dict[str, Any], style: str = "") -> tuple[int, ...]:
    """Returns the ids that a source in this style begins with; "": the default style."""
    known = styles_of(manifest)
    require(
        style in ("", *known),
        f"the style {style!r} is asked for, {manifest['name']} has {', '.join(known) or 'none'}",
    )
    if not known:
        return ()
    return tuple(manifest["languages"][known.index(style or known[0])]["before_source_ids"])
