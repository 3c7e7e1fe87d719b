"""Compares the logits of an imported bundle with those of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from linnet_model.bundle import read_bundle_weights
from linnet_model.network.encoder_decoder import EncoderDecoder, forced_logits

TOLERANCE = 1e-4  # float32 through five layers, summed in another order


def compare_logits(
    theirs: Any,
    bundle: Path,
    sources: tuple[int, int] = (4, 150),
    targets: tuple[int, int] = (4, 150),
    spread: float = 0.5,
) -> None:
    """Compares a batch with padded sources and targets, of tokens in these ranges, in eager
    mode."""
    weights, sizes = read_bundle_weights(bundle)
    model = EncoderDecoder(sizes).eval()
    model.load_state_dict(weights)
    config, generator = theirs.config, torch.Generator().manual_seed(3)
    start = config.decoder_start_token_id
    lengths = torch.tensor([17, 9, 1, 12], dtype=torch.int32)
    source = torch.randint(*sources, (4, 17), generator=generator)
    padded = torch.arange(17) >= lengths.unsqueeze(1)
    source[padded] = config.pad_token_id
    target = torch.randint(*targets, (4, 21), generator=generator)
    previous = torch.cat([torch.full((4, 1), start), target[:, :-1]], dim=1)
    with torch.no_grad():
        wanted = theirs(
            input_ids=source, attention_mask=(~padded).long(), decoder_input_ids=previous
        ).logits
        found = forced_logits(model, source, lengths, target, start)
    assert wanted.std() > spread  # values differ
    torch.testing.assert_close(found, wanted, rtol=TOLERANCE, atol=TOLERANCE)
