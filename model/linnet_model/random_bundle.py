"""Bundles of a size with random weights, for measurements: python -m linnet_model.random_bundle.

Without a tokenizer they serve token ids; --tokenizer trains a small one on sentences made up from
the seed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

import torch

from linnet_model.augment import word
from linnet_model.bundle import BundleFacts, write_bundle
from linnet_model.config import BundleConfig, ConfigError, ModelConfig, TokenizerConfig
from linnet_model.tokenizer import train_tokenizer
from linnet_model.transducer import Transducer, parameter_count

ENCODER_KERNELS = [3, 7, 15, 31, 31, 31, 31]
DECODER_KERNELS = [3, 7, 15, 31, 31, 31]
PRESETS = {
    # Wu et al. 2019, with the gate: 213 million parameters for the big one at 32768 pieces, as in
    # the paper.
    "dynamic_base": {"width": 512, "ffn_width": 2048, "heads": 8},
    "dynamic_big": {"width": 1024, "ffn_width": 4096, "heads": 16},
    "tiny": {
        "width": 32,
        "ffn_width": 64,
        "heads": 4,
        "encoder_kernels": [3, 7],
        "decoder_kernels": [3, 5],
    },
}


def preset(name: str, vocabulary: int, mixer: str = "dynamic") -> ModelConfig:
    sizes = ModelConfig(
        **{"encoder_kernels": ENCODER_KERNELS, "decoder_kernels": DECODER_KERNELS, **PRESETS[name]},
        vocabulary=vocabulary,
        encoder_mixers=[mixer],
        decoder_mixers=[mixer],
        pre_norm=name == "tiny",
    )
    sizes.check()
    return sizes


def made_up_lines(count: int, seed: int) -> list[str]:
    """Sentences of random words, capital first and full stop last."""
    rng = random.Random(seed)
    words = [word(rng, rng.randint(1, 3)) for _ in range(3000)]
    return [
        " ".join(rng.choices(words, k=rng.randint(3, 12))).capitalize() + "." for _ in range(count)
    ]


def random_bundle(
    out: Path,
    name: str,
    vocabulary: int,
    seed: int,
    mixer: str = "dynamic",
    weight_type: str = "bfloat16",
    tokenizer: bool = False,
    task: str = "translate",
    bundle_name: str | None = None,
) -> int:
    """Writes the bundle of the preset `name` and returns its number of parameters. The same seed
    gives the same weights."""
    sizes = preset(name, vocabulary, mixer)
    torch.manual_seed(seed)
    model = Transducer(sizes).eval()
    target = "de" if task == "translate" else "en"
    config = BundleConfig(
        name=bundle_name or f"random-{name.replace('_', '-')}",
        task=task,
        target_language=target,
        max_source_tokens=1024,
        max_target_tokens=1024,
        beam_size=5,
        target_ratio=0.0,
        target_offset=256,
    )
    config.check()
    facts = BundleFacts(
        version=f"seed-{seed}",
        description=f"random weights, preset {name}, seed {seed}",
        license="none: random numbers",
    )
    with tempfile.TemporaryDirectory() as folder:
        path = None
        if tokenizer:
            path = Path(folder) / "random.spm"
            train_tokenizer(
                made_up_lines(3000, seed), vocabulary, TokenizerConfig(character_coverage=1.0), path
            )
        write_bundle(out, model, sizes, config, path, weight_type, facts)
    return parameter_count(model)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="linnet-random-bundle", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--preset", choices=sorted(PRESETS), required=True)
    parser.add_argument("--vocab", type=int, default=32768, help="rows of the embedding")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mixer", choices=("dynamic", "light"), default="dynamic")
    parser.add_argument("--task", choices=("translate", "summarize"), default="translate")
    parser.add_argument(
        "--weights",
        choices=("bfloat16", "float32"),
        default="bfloat16",
        help="type they are stored in",
    )
    parser.add_argument(
        "--tokenizer", action="store_true", help="train a SentencePiece model on made-up sentences"
    )
    parser.add_argument("--name", help="name of the bundle [random-PRESET]")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    try:
        count = random_bundle(
            options.out,
            options.preset,
            options.vocab,
            options.seed,
            options.mixer,
            options.weights,
            options.tokenizer,
            options.task,
            options.name,
        )
    except ConfigError as error:
        print(f"linnet-random-bundle: {error}", file=sys.stderr)
        return 1
    print(
        f"{options.out}: {options.preset}, {count:,} parameters, vocabulary {options.vocab}, seed "
        f"{options.seed}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
