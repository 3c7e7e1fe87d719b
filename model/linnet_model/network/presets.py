"""Presets: the models of the papers, and a tiny one for tests.

The table gives parameters in millions, as built here and as in the paper. V is the vocabulary;
"tied" is one table for source, target and output. Figures with a question mark are second-hand.

| preset              | V                | here  | paper | why they differ                        |
|---------------------|------------------|-------|-------|----------------------------------------|
| dynamic_big         | 32768, tied      | 213.2 | 213   |                                        |
| - without the gate  |                  | 199.6 | 200   |                                        |
| light_big           | 32768, tied      | 208.9 | 202   | unknown: 195.2 without the gate        |
| self_attention_big  | 32768, tied      | 209.9 | 210   |                                        |
| self_attention_base | 37000, tied      |  63.1 | 65    | V is "about 37000" there               |
| dynamic_base        | 32768, tied      |  61.7 |       |                                        |
| light_base          | 32768, tied      |  60.7 |       |                                        |
| csan_base           | 32768, tied      |  60.9 |       | as many as self_attention_base         |
| iwslt               | 8848, 6632 apart |  38.7 |       |                                        |
| summarization       | 30000, apart     |  91.0 | 87?   | 88.0 with 6 encoder layers             |
| student_tiny        | 32000, tied      |  16.9 | 17    |                                        |
| student_base        | 32000, tied      |  42.7 | 43    |                                        |
| language_model      | 32768, tied      |  34.6 | 339?  | 17 layers, adaptive softmax: not here  |
| tay_base            | 32128, tied      | 210.5 | 230   | "approximately", for all its models;   |
| tay_dilated         | 32128, tied      | 209.0 | 230   | its Transformer of this size: 223.2    |
"""

from __future__ import annotations

import copy
from typing import Any

from linnet_model.network.model_config import ConfigError, ModelConfig

ENCODER_KERNELS = [3, 7, 15, 31, 31, 31, 31]  # Wu et al. 2019, section 5.1
DECODER_KERNELS = [3, 7, 15, 31, 31, 31]
CSAN_WINDOW = 11  # Yang et al. 2019: 11 positions, and 3 heads, are the best of each

WU = {
    "encoder_kernels": ENCODER_KERNELS,
    "decoder_kernels": DECODER_KERNELS,
    "pre_norm": False,
    "weight_dropout": 0.0,
}
BASE = {**WU, "width": 512, "ffn_width": 2048, "heads": 8, "input_dropout": 0.1}
BIG = {
    **WU,
    "width": 1024,
    "ffn_width": 4096,
    "heads": 16,
    "dropout": 0.3,  # English-German; 0.1 for English-French, 0.2 for Chinese-English
    "attention_dropout": 0.1,
    "weight_dropout": 0.1,
    "input_dropout": 0.1,
}
VASWANI = {
    "encoder_kernels": [0] * 6,
    "decoder_kernels": [0] * 6,
    "encoder_mixers": ["self_attention"],
    "decoder_mixers": ["self_attention"],
    "pre_norm": False,
}
LIGHT = {"encoder_mixers": ["light"], "decoder_mixers": ["light"]}
STUDENT = {
    "encoder_kernels": [0] * 6,
    "decoder_kernels": [0] * 2,
    "encoder_mixers": ["self_attention"],
    "decoder_mixers": ["ssru"],
    "heads": 8,
    "pre_norm": False,
    "glu": False,
}
TAY = {
    "width": 768,
    "ffn_width": 3072,
    "heads": 12,
    "encoder_kernels": [7] * 12,
    "decoder_kernels": [7] * 12,
}
# Used as dilations of filters with 3 taps. A review of the paper (andlukyane.com) gives these
# eleven numbers for twelve layers, as filter sizes; the last one is repeated here.
TAY_DILATIONS = [4, 4, 7, 7, 15, 15, 15, 15, 31, 31, 31, 31]

PRESETS: dict[str, dict[str, Any]] = {
    # Wu et al. 2019 as in fairseq's architectures, but for the sharing of embeddings.
    "dynamic_base": BASE,
    "dynamic_big": BIG,
    "light_base": {**BASE, **LIGHT},
    "light_big": {**BIG, **LIGHT},
    "iwslt": {
        **WU,
        "width": 512,
        "ffn_width": 1024,
        "heads": 4,
        "glu": False,
        "sharing": "none",
        "dropout": 0.3,
        "attention_dropout": 0.1,
        "weight_dropout": 0.1,
    },
    "summarization": {**BASE, "sharing": "none", "dropout": 0.3},
    "language_model": {**BASE, "encoder_kernels": []},
    # Vaswani et al. 2017.
    "self_attention_base": {**VASWANI, "width": 512, "ffn_width": 2048, "heads": 8},
    "self_attention_big": {
        **VASWANI,
        "width": 1024,
        "ffn_width": 4096,
        "heads": 16,
        "dropout": 0.3,
        "attention_dropout": 0.1,
    },
    # Yang et al. 2019 use windows only in the first three encoder layers.
    "csan_base": {
        **VASWANI,
        "width": 512,
        "ffn_width": 2048,
        "heads": 8,
        "encoder_mixers": ["csan_2d"] * 3 + ["self_attention"] * 3,
        "encoder_kernels": [CSAN_WINDOW] * 3 + [0] * 3,
    },
    # Tay et al. 2021: windows of 7.
    "tay_base": TAY,
    "tay_dilated": {
        **TAY,
        "encoder_kernels": [3] * 12,
        "decoder_kernels": [3] * 12,
        "encoder_mixers": ["dilated"],
        "decoder_mixers": ["dilated"],
        "encoder_dilations": TAY_DILATIONS,
        "decoder_dilations": TAY_DILATIONS,
    },
    # The students of Firefox Translations, in which the recurrent unit of Kim et al. 2019 decodes.
    "student_tiny": {**STUDENT, "width": 256, "ffn_width": 1536},
    "student_base": {**STUDENT, "width": 512, "ffn_width": 2048},
    # For tests.
    "tiny": {
        "width": 32,
        "ffn_width": 64,
        "heads": 4,
        "encoder_kernels": [3, 7],
        "decoder_kernels": [3, 5],
    },
}


def preset(name: str, vocabulary: int, mixer: str | None = None, **changes: Any) -> ModelConfig:
    """Returns the checked sizes of a preset, with `mixer` in all layers if it is given."""
    if name not in PRESETS:
        raise ConfigError(f"no preset {name!r}, known are {', '.join(PRESETS)}")
    sizes = ModelConfig(**{**copy.deepcopy(PRESETS[name]), "vocabulary": vocabulary, **changes})
    sizes.check()
    return sizes if mixer is None else with_mixer(sizes, mixer)


def with_mixer(sizes: ModelConfig, mixer: str) -> ModelConfig:
    """Returns the same model with `mixer` in all layers and about the same context per layer.

    A dilated filter has 3 taps that span the width of the filter that it replaces; csan has its
    window of 11; self-attention sees the whole sequence. A convolution that replaces an attention
    over the whole sequence gets the width of Wu et al. 2019. SSRU, which only a decoder has, goes
    with an encoder of self-attention, as in Kim et al. 2019.
    """
    sizes, chosen = copy.deepcopy(sizes), mixer
    for side, usual in (("encoder", ENCODER_KERNELS), ("decoder", DECODER_KERNELS)):
        mixer = "self_attention" if (chosen, side) == ("ssru", "encoder") else chosen
        before, apart = (getattr(sizes, f"{side}_{what}") for what in ("kernels", "dilations"))
        layers = range(len(before))
        spans = [(before[i] - 1) * apart[i] + 1 if before[i] else 0 for i in layers]
        widths = [spans[i] or usual[min(i, len(usual) - 1)] for i in layers]
        dilations = [1 for _ in layers]
        if mixer in ("self_attention", "ssru"):
            widths = [0 for _ in layers]
        elif mixer.startswith("csan"):
            widths = [CSAN_WINDOW for _ in layers]
        elif mixer == "dilated":
            dilations = [max(1, width // 2) for width in widths]
            widths = [3 for _ in layers]
        setattr(sizes, f"{side}_mixers", [mixer for _ in layers])
        setattr(sizes, f"{side}_kernels", widths)
        setattr(sizes, f"{side}_dilations", dilations)
    sizes.check()
    return sizes
