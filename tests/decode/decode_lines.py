"""Input lines for linnet-decode, and their scores from the eager model."""

from __future__ import annotations

import random

from tiny_sizes import SEED, VOCABULARY

EOS = 2


def source(seed: int, tokens: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(4, VOCABULARY) for _ in range(tokens - 1)] + [EOS]


def line(seed: int, tokens: int = 9, /, prefix: list[int] | None = None, **options) -> dict:
    made = {"source_ids": source(seed, tokens), "options": {"max_target_tokens": 12, **options}}
    return made | ({"prefix_ids": prefix} if prefix is not None else {})


def as_given(hypothesis: dict) -> dict:
    """A hypothesis as the answer for its tokens as a given target, which no limit cuts."""
    return hypothesis | {"finish_reason": "STOP"}


def with_options(lines: list[dict], **options) -> list[dict]:
    return [line | {"options": line["options"] | options} for line in lines]


SOURCES = [line(seed, tokens) for seed, tokens in enumerate((2, 9, 17, 40, 3, 25, 9, 12))]


def eager_model():
    """The model of the bundle: the same seed gives the same weights."""
    import torch

    from linnet_model.network.encoder_decoder import EncoderDecoder
    from linnet_model.network.presets import preset

    torch.manual_seed(SEED)
    return EncoderDecoder(preset("tiny", VOCABULARY)).eval()


def forced_scores(model, source: list[int], target: list[int]) -> list[float]:
    """Log-probabilities of the target tokens, computed in one pass."""
    import torch

    from linnet_model.network.encoder_decoder import forced_logits

    length = torch.tensor([len(source)], dtype=torch.int32)
    with torch.no_grad():
        logits = forced_logits(model, torch.tensor([source]), length, torch.tensor([target]))
    scores = logits.float().log_softmax(-1)[0]
    return scores.gather(1, torch.tensor(target).unsqueeze(1)).squeeze(1).tolist()
