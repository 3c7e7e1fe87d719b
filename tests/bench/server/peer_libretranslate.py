"""LibreTranslate with a CTranslate2 model of given layer sizes, for http_libretranslate.py.

Run it with the Python of an environment that has libretranslate:

    peer_libretranslate.py package DIR --tokens N …    writes the package en to de into DIR
    peer_libretranslate.py serve DIR PORT              serves it

The weights are random, except for those that make every hypothesis end after N tokens: a row of the
decoder's position encodings points to the end token.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import sys
from pathlib import Path

END = 2


def fill(spec: object, sizes: argparse.Namespace) -> None:
    """Random weights, of the sizes that CTranslate2's specification of a Transformer asks for."""
    import numpy as np

    random = np.random.default_rng(1)
    width = sizes.width

    def normal(*shape: int) -> object:
        return random.standard_normal(shape, dtype=np.float32) / np.float32(shape[-1] ** 0.5)

    def linear(one: object, outputs: int, inputs: int) -> None:
        one.weight, one.bias = normal(outputs, inputs), np.zeros(outputs, np.float32)

    def norm(one: object) -> None:
        one.gamma, one.beta = np.ones(width, np.float32), np.zeros(width, np.float32)

    def attention(one: object, projections: list[int]) -> None:
        for part, times in zip(one.linear, projections, strict=True):
            linear(part, times * width, width)
        norm(one.layer_norm)

    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = True
        embeddings = side.embeddings
        (embeddings[0] if isinstance(embeddings, list) else embeddings).weight = normal(
            sizes.vocabulary, width
        )
        side.position_encodings.encodings = normal(512, width)
        for layer in side.layer:
            attention(layer.self_attention, [3, 1])
            if side is spec.decoder:
                attention(layer.attention, [1, 2, 1])
            linear(layer.ffn.linear_0, sizes.ffn, width)
            linear(layer.ffn.linear_1, width, sizes.ffn)
            norm(layer.ffn.layer_norm)
    # What the decoder's layers add is small, so that it leaves the position visible at the end.
    for layer in spec.decoder.layer:
        for last in (
            layer.self_attention.linear[-1],
            layer.attention.linear[-1],
            layer.ffn.linear_1,
        ):
            last.weight *= np.float32(0.02)
    # Dimension 0 is the end token's: it is large at position N alone.
    positions = spec.decoder.position_encodings.encodings
    positions[:, 0], positions[sizes.tokens, 0] = 0, 1000
    linear(spec.decoder.projection, sizes.vocabulary, width)
    weight, bias = spec.decoder.projection.weight, spec.decoder.projection.bias
    weight[:, 0], weight[END], bias[END] = 0, 0, -100
    weight[END, 0] = 20


def package(folder: Path, sizes: argparse.Namespace) -> None:
    import ctranslate2
    import sentencepiece
    from ctranslate2.specs import transformer_spec

    spec = transformer_spec.TransformerSpec.from_config(
        (sizes.encoder_layers, sizes.decoder_layers), sizes.heads, pre_norm=False
    )
    fill(spec, sizes)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(sizes.spm))
    words = [pieces.id_to_piece(id) for id in range(pieces.get_piece_size())]
    words = ["<s>", "<blank>", "</s>", "<unk>", *(it for it in words if it[0] != "<")]
    words = (words + [f"unused{number}" for number in range(sizes.vocabulary)])[: sizes.vocabulary]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.decoder_start_token = "<s>"
    spec.validate()
    for source, target in (("en", "de"), ("de", "en")):  # with one alone it would look for others
        place = folder / f"{source}_{target}"
        (place / "model").mkdir(parents=True)
        spec.save(str(place / "model"))
        shutil.copy(sizes.spm, place / "sentencepiece.model")
        names = {"en": "English", "de": "German"}
        data = {"package_version": "1.0", "argos_version": "1.9", "from_code": source}
        data |= {"from_name": names[source], "to_code": target, "to_name": names[target]}
        (place / "metadata.json").write_text(json.dumps(data))
    model = ctranslate2.Translator(str(place / "model"), compute_type="int8", intra_threads=1)
    for text in ("A dog runs.", "Nobody in the village forgot the old church by the river."):
        (found,) = model.translate_batch([pieces.encode(text, out_type=str)], beam_size=4)
        assert len(found.hypotheses[0]) == sizes.tokens, found.hypotheses


def serve(folder: Path, port: int) -> None:
    os.environ |= {"ARGOS_PACKAGES_DIR": str(folder), "ARGOS_COMPUTE_TYPE": "int8"}
    os.environ |= {"ARGOS_INTRA_THREADS": "1", "OMP_NUM_THREADS": "1"}
    import argostranslate.translate

    class WholeText:
        """Its splitter of sentences would fetch a model: a text here is one sentence."""

        def __init__(self, package: object):
            pass

        def split_sentences(self, text: str) -> list[str]:
            return [text]

    argostranslate.translate.MiniSBDSentencizer = WholeText
    from libretranslate.main import main

    sys.argv = ["libretranslate", "--host", "127.0.0.1", "--port", str(port)]
    logging.getLogger("argostranslate.utils").setLevel(logging.WARNING)  # it logs every text
    main()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("package")
    make.add_argument("folder", type=Path)
    make.add_argument("--spm", type=Path, required=True)
    names = ("tokens", "encoder-layers", "decoder-layers", "width", "ffn", "heads", "vocabulary")
    for name in names:
        make.add_argument(f"--{name}", type=int, required=True)
    run = commands.add_parser("serve")
    run.add_argument("folder", type=Path)
    run.add_argument("port", type=int)
    return parser.parse_args()


if __name__ == "__main__":
    options = parse()
    if options.command == "package":
        package(options.folder, options)
    else:
        serve(options.folder, options.port)
