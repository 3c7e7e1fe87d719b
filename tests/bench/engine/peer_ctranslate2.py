"""CTranslate2 on a Transformer of a given size with random weights, for the decoding benchmark."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable

import ctranslate2
import numpy as np
from ctranslate2.specs import transformer_spec
from peer import Run, Unavailable, arguments, serve

WRITE_TO = "LINNET_PEER_WRITES"  # if set: only write the model to this path


def words(vocabulary: int) -> list[str]:
    return ["<s>", "</s>", "<unk>"] + [f"w{i}" for i in range(vocabulary - 3)]


def random_transformer(sizes: argparse.Namespace, folder: str) -> None:
    """Writes an encoder-decoder of Vaswani et al. 2017 with one shared embedding table."""
    random = np.random.default_rng(1)
    width = sizes.width

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape, dtype=np.float32) / np.float32(shape[-1] ** 0.5)

    def fill_linear(spec: object, outputs: int, inputs: int) -> None:
        spec.weight = normal(outputs, inputs)
        spec.bias = np.zeros(outputs, np.float32)

    def fill_norm(spec: object) -> None:
        spec.gamma = np.ones(width, np.float32)
        spec.beta = np.zeros(width, np.float32)

    def fill_attention(spec: object, projections: list[int]) -> None:
        for linear, times in zip(spec.linear, projections, strict=True):
            fill_linear(linear, times * width, width)
        fill_norm(spec.layer_norm)

    def fill_ffn(spec: object) -> None:
        fill_linear(spec.linear_0, sizes.ffn, width)
        fill_linear(spec.linear_1, width, sizes.ffn)
        fill_norm(spec.layer_norm)

    spec = transformer_spec.TransformerSpec.from_config(sizes.layers, sizes.heads, pre_norm=False)
    table = normal(sizes.vocab, width)
    source = spec.encoder.embeddings
    (source[0] if isinstance(source, list) else source).weight = table
    spec.decoder.embeddings.weight = table
    spec.decoder.projection.weight = table
    spec.decoder.projection.bias = np.zeros(sizes.vocab, np.float32)
    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = True
        side.position_encodings.encodings = normal(max(sizes.source, sizes.target) + 2, width)
        for layer in side.layer:
            fill_attention(layer.self_attention, [3, 1])
            if side is spec.decoder:
                fill_attention(layer.attention, [1, 2, 1])
            fill_ffn(layer.ffn)
    spec.register_source_vocabulary(words(sizes.vocab))
    spec.register_target_vocabulary(words(sizes.vocab))
    spec.validate()
    spec.save(folder)


def translator_of(folder: str, options: argparse.Namespace) -> ctranslate2.Translator:
    return ctranslate2.Translator(
        folder,
        device=options.device,
        compute_type=options.compute,
        intra_threads=max(1, options.threads // options.workers),
        inter_threads=options.workers,
    )


def translation(
    translator: ctranslate2.Translator,
    options: argparse.Namespace,
    sentences: Callable[[int], list[list[str]]],
) -> Run:
    """Translates as many random sentences as asked for, the same in each run."""
    sources: dict[int, list[list[str]]] = {}

    def run(batch: int, beam: int) -> int:
        if batch not in sources:
            sources[batch] = sentences(batch)
        results = translator.translate_batch(
            sources[batch],
            beam_size=beam,
            max_batch_size=-(-batch // options.workers),
            min_decoding_length=options.target,
            max_decoding_length=options.target,
        )
        return sum(len(result.hypotheses[0]) for result in results)

    return run


def load(sizes: argparse.Namespace) -> Run:
    supported = ctranslate2.get_supported_compute_types(sizes.device)
    if sizes.compute not in supported:
        known = ", ".join(sorted(supported))
        raise Unavailable(f"no {sizes.compute} on {sizes.device}, it has {known}")
    with tempfile.TemporaryDirectory() as folder:
        # Runs in a separate process, so that its memory is not counted as the engine's.
        command = [sys.executable, __file__, *sys.argv[1:]]
        subprocess.run(command, env=os.environ | {WRITE_TO: folder}, check=True)
        translator = translator_of(folder, sizes)
    random = np.random.default_rng(7)

    def sentences(batch: int) -> list[list[str]]:
        ids = random.integers(0, sizes.vocab - 3, (batch, sizes.source))
        return [[f"w{i}" for i in row] for row in ids]

    return translation(translator, sizes, sentences)


def main() -> None:
    sizes = arguments(__doc__, workers=True)
    if folder := os.environ.get(WRITE_TO):
        return random_transformer(sizes, folder)
    return serve(f"CTranslate2 {ctranslate2.__version__}", lambda: load(sizes))


if __name__ == "__main__":
    main()
