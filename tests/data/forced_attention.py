"""Attention weights of the training path, for tests: simple and slow."""

from __future__ import annotations

import torch


def forced_attention(forced_logits, model, source, lengths, target, layer: int) -> torch.Tensor:
    """Returns the attention of decoder layer `layer`, averaged over its heads, for target [B, T]:
    [B, T, S]. `forced_logits` is that of linnet_model.network.encoder_decoder."""
    seen: dict[str, torch.Tensor] = {}

    def watch(module, inputs, output):
        x, encoded, bias = inputs[:3]
        b, t, d = x.shape
        h = module.heads
        query = module.query(x).view(b, t, h, d // h)
        keys = module.key_value(encoded)[..., :d].reshape(b, -1, h, d // h)
        scores = torch.einsum("bthc,bshc->bhts", query, keys) / (d // h) ** 0.5
        if bias is not None:
            scores = scores + bias.unsqueeze(1)
        seen["weights"] = scores.softmax(-1).mean(1)

    handle = model.decoder[layer].attention.register_forward_hook(watch)
    try:
        with torch.no_grad():
            forced_logits(model, source, lengths, target)
    finally:
        handle.remove()
    return seen["weights"]
