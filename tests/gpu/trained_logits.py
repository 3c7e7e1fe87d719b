"""Logits of a trained model, for the times of the search: their largest values lie further apart
than those of random numbers, and frequent tokens come first in the vocabulary."""

from __future__ import annotations

import functools
import json

import torch
from decode import TEXTS, bundles
from torch import Tensor

BLOCK_TOKENS = 16  # of the encoder cache
STEPS = 20


def trained_logits(rows: int) -> Tensor:
    """Returns logits [rows, V] of the bundle en-de, float32 on the CPU: those of greedy_logits,
    again and again until there are enough."""
    logits = greedy_logits()
    return logits.repeat(-(-rows // len(logits)), 1)[:rows]


@functools.cache
@torch.inference_mode()
def greedy_logits() -> Tensor:
    """Returns those of a greedy search for the translations of TEXTS."""
    import sentencepiece

    bundle = bundles()[0].with_name("en-de")
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    end = manifest["vocabulary"]["eos_id"]
    module = torch.jit.load(str(bundle / manifest["model_file"]), map_location="cpu").eval()
    module.pack("float32")
    module.float()
    tokenizer = sentencepiece.SentencePieceProcessor(
        model_file=str(bundle / manifest["source_tokenizer_file"])
    )
    sources = [torch.tensor([*tokenizer.encode(text), end]) for text in TEXTS]
    lengths = torch.tensor([len(source) for source in sources], dtype=torch.int32)
    source = torch.nn.utils.rnn.pad_sequence(
        sources, batch_first=True, padding_value=manifest["vocabulary"]["pad_id"]
    )
    blocks_each = -(-source.size(1) // BLOCK_TOKENS)
    count = len(TEXTS)
    cache = module.new_encoder_cache(count * blocks_each, BLOCK_TOKENS)
    for layer, encoded in zip(cache, module.encode(source, lengths), strict=True):
        padding = blocks_each * BLOCK_TOKENS - encoded.size(1)
        layer.copy_(torch.nn.functional.pad(encoded, (0, 0, 0, 0, 0, padding)).view_as(layer))
    state = module.new_state(count)
    window = max(layer.size(0) for layer in state)
    backpointers = torch.arange(count, dtype=torch.int32)[:, None].repeat(1, window)
    blocks = torch.arange(count * blocks_each, dtype=torch.int32).view(count, blocks_each)
    tokens = torch.full((count,), end)
    found = []
    for step in range(STEPS):
        positions = torch.full((count,), step, dtype=torch.int32)
        logits = module.step(tokens, positions, backpointers, blocks, lengths, cache, state)
        found.append(logits)
        tokens = logits.argmax(-1)
    return torch.cat(found)
