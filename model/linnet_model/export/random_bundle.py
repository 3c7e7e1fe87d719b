"""linnet-random-bundle: writes a bundle with random weights, for measurements.

Without --tokenizer it serves token ids; --tokenizer trains a small one on random sentences.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from linnet_model.bundle import BundleFacts, add_shortlist, new_bundle, write_bundle
from linnet_model.command_line import command, count_from, parser_for
from linnet_model.config import BundleConfig, TokenizerConfig
from linnet_model.data.synthetic import word
from linnet_model.languages import LanguageTokens, max_forced
from linnet_model.network.encoder_decoder import EncoderDecoder, parameter_count
from linnet_model.network.model_config import MIXERS, require
from linnet_model.network.presets import PRESETS, preset
from linnet_model.stored_weights import WEIGHT_TYPES
from linnet_model.tokenizer import train_tokenizer

# The engine serves only encoder-decoders.
SERVED_PRESETS = [name for name in PRESETS if name != "language_model"]
DEFAULT_TOKENS = 1024  # default limit of sources and targets
# Default limit of targets if the decoder attends to the whole target: each slot holds keys and
# values of so many positions per layer.
DEFAULT_TOKENS_ATTENTION = 256


def made_up_lines(count: int, seed: int) -> list[str]:
    """Returns sentences of random words with a capital first letter and a full stop."""
    rng = random.Random(seed)
    words = [word(rng, rng.randint(1, 3)) for _ in range(3000)]
    return [
        " ".join(rng.choices(words, k=rng.randint(3, 12))).capitalize() + "." for _ in range(count)
    ]


def all_pairs(languages: Sequence[str], vocabulary: int) -> list[LanguageTokens]:
    """Returns every pair of different languages; each language has one token, on both sides."""
    require(len(languages) != 1, "one language makes no pair, name several")
    require(
        len(set(languages)) == len(languages),
        f"--languages names one twice: {', '.join(languages)}",
    )
    tokens = {language: vocabulary - 1 - i for i, language in enumerate(languages)}
    return [
        LanguageTokens(source, target, before=(tokens[source],), forced=(tokens[target],))
        for source in languages
        for target in languages
        if source != target
    ]


def random_bundle(
    out: Path,
    name: str,
    vocabulary: int,
    seed: int,
    mixer: str | None = None,
    weight_type: str = "bfloat16",
    tokenizer: bool = False,
    task: str = "translate",
    bundle_name: str | None = None,
    source_tokens: int = DEFAULT_TOKENS,
    target_tokens: int | None = None,
    candidates: int = 0,
    languages: Sequence[str] = (),
) -> int:
    """Writes a bundle of the preset `name` and returns its number of parameters. The same seed
    gives the same weights. Its limits are `source_tokens` and `target_tokens`; with `candidates` it
    has a random shortlist. With several `languages` it has all their pairs, with language tokens:
    the last ids of the vocabulary."""
    require(
        candidates <= vocabulary,
        f"--shortlist is {candidates} and the vocabulary has {vocabulary} tokens, lower it",
    )
    pairs = all_pairs(languages, vocabulary)
    sizes = preset(name, vocabulary, mixer)
    whole_target = sizes.attends_to_whole_target()
    if target_tokens is None:
        target_tokens = DEFAULT_TOKENS_ATTENTION if whole_target else DEFAULT_TOKENS
    if whole_target:
        sizes.max_positions = target_tokens + max_forced(pairs) + 1
    torch.manual_seed(seed)
    model = EncoderDecoder(sizes).eval()
    target = "de" if task == "translate" else "en"
    config = BundleConfig(
        name=bundle_name or f"random-{name.replace('_', '-')}",
        task=task,
        source_language=pairs[0].source if pairs else "en",
        target_language=pairs[0].target if pairs else target,
        max_source_tokens=source_tokens,
        max_target_tokens=target_tokens,
        beam_size=5,
        target_ratio=0.0,
        target_offset=min(256, target_tokens),
    )
    config.check()
    facts = BundleFacts(
        version=f"seed-{seed}",
        description=f"random weights, preset {name}, seed {seed}",
        license="none: random numbers",
    )
    with tempfile.TemporaryDirectory() as folder, new_bundle(out, replace=True) as partial:
        path = None
        if tokenizer:
            path = Path(folder) / "random.spm"
            train_tokenizer(
                made_up_lines(3000, seed),
                vocabulary - len(languages),
                TokenizerConfig(character_coverage=1.0),
                path,
            )
        write_bundle(partial, model, sizes, config, path, weight_type, facts, languages=pairs)
        if candidates:
            rng, tokens = random.Random(seed), range(vocabulary)
            chosen = {source: sorted(rng.sample(tokens, candidates)) for source in tokens}
            always = sorted(rng.sample(tokens, min(4 * candidates, vocabulary)))
            add_shortlist(partial, always, chosen)
    return parameter_count(model)


@command
def main(arguments: list[str] | None = None) -> None:
    parser = parser_for(__doc__)
    parser.add_argument(
        "--preset",
        choices=SERVED_PRESETS,
        required=True,
        metavar="NAME",
        help=f"preset of sizes: {', '.join(SERVED_PRESETS)}",
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder of the bundle; replaces the bundle that is there",
    )
    parser.add_argument(
        "--vocab", type=int, default=32768, metavar="N", help="rows of the embedding [%(default)s]"
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="random seed [%(default)s]"
    )
    parser.add_argument(
        "--mixer",
        choices=MIXERS,
        metavar="NAME",
        help=f"in all layers instead of the preset's: {', '.join(MIXERS)}",
    )
    parser.add_argument(
        "--task",
        choices=("translate", "summarize"),
        default="translate",
        help="task in the manifest [%(default)s]",
    )
    parser.add_argument(
        "--dtype",
        "--weights",
        choices=WEIGHT_TYPES,
        default="bfloat16",
        help="type of the stored weights [%(default)s]",
    )
    parser.add_argument(
        "--tokenizer", action="store_true", help="train a SentencePiece model on made-up sentences"
    )
    parser.add_argument(
        "--max-source-tokens",
        type=int,
        default=DEFAULT_TOKENS,
        metavar="N",
        help="limit of sources, with the end token [%(default)s]",
    )
    parser.add_argument(
        "--max-target-tokens",
        type=int,
        metavar="N",
        help=f"limit of targets [{DEFAULT_TOKENS}; {DEFAULT_TOKENS_ATTENTION} if the decoder "
        "attends to the whole target]",
    )
    parser.add_argument(
        "--shortlist",
        type=count_from(0),
        default=0,
        metavar="N",
        help="add a random shortlist with N candidates per source token and 4 N for all [none]",
    )
    parser.add_argument(
        "--languages",
        default="",
        metavar="CODE,CODE…",
        help="all pairs of these languages, with language tokens [en to de, without them]",
    )
    parser.add_argument("--name", metavar="TEXT", help="name of the bundle [random-PRESET]")
    options = parser.parse_args(arguments)
    count = random_bundle(
        options.out,
        options.preset,
        options.vocab,
        options.seed,
        options.mixer,
        options.dtype,
        options.tokenizer,
        options.task,
        options.name,
        options.max_source_tokens,
        options.max_target_tokens,
        options.shortlist,
        options.languages.split(",") if options.languages else (),
    )
    print(
        f"{options.out}: {options.preset}, {count:,} parameters, vocabulary {options.vocab}, seed "
        f"{options.seed}"
    )


if __name__ == "__main__":
    sys.exit(main())
