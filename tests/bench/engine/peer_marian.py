"""Hugging Face Marian's `generate` on a model of a given size with random weights."""

from __future__ import annotations

import argparse

import torch
import transformers
from peer import Run, Unavailable, arguments, serve
from transformers import MarianConfig, MarianMTModel

TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def load(sizes: argparse.Namespace) -> Run:
    if sizes.compute not in TYPES:
        raise Unavailable(f"transformers has no {sizes.compute} for Marian on a CPU")
    torch.set_num_threads(sizes.threads)
    torch.manual_seed(1)
    config = MarianConfig(
        vocab_size=sizes.vocab,
        d_model=sizes.width,
        encoder_layers=sizes.layers,
        decoder_layers=sizes.layers,
        encoder_attention_heads=sizes.heads,
        decoder_attention_heads=sizes.heads,
        encoder_ffn_dim=sizes.ffn,
        decoder_ffn_dim=sizes.ffn,
        max_position_embeddings=max(1024, sizes.source, sizes.target + 1),
        activation_function="relu",
        pad_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config).to(sizes.device, TYPES[sizes.compute]).eval()

    @torch.inference_mode()
    def run(batch: int, beam: int) -> int:
        torch.manual_seed(batch)
        source = torch.randint(3, sizes.vocab, (batch, sizes.source), device=sizes.device)
        found = model.generate(
            source,
            attention_mask=torch.ones_like(source),
            num_beams=beam,
            do_sample=False,
            min_new_tokens=sizes.target,
            max_new_tokens=sizes.target,
            bad_words_ids=None,
        )
        found.cpu()
        return batch * sizes.target

    return run


if __name__ == "__main__":
    settings = arguments(__doc__)
    serve(f"Marian, transformers {transformers.__version__}", lambda: load(settings))
