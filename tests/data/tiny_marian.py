"""Tiny Marian models of Hugging Face's transformers with random weights, for the tests of the
importer: a folder in the layout of OPUS-MT, and the model and tokenizer that transformers loads
from it."""

from __future__ import annotations

import io
import json
import logging
import random
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
import torch

END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"
MAX_LENGTH = 26  # as transformers counts: with the start token and the end token


@dataclass
class TinyMarian:
    folder: Path
    model: Any  # transformers.MarianMTModel
    tokenizer: Any  # transformers.MarianTokenizer

    @property
    def config(self) -> Any:
        return self.model.config


def sentences(syllables: str, seed: int, count: int = 400) -> list[str]:
    rng = random.Random(seed)
    parts = syllables.split()
    words = ["".join(rng.choices(parts, k=rng.randint(1, 3))) for _ in range(150)]
    return [
        " ".join(rng.choices(words, k=rng.randint(3, 9))).capitalize() + "." for _ in range(count)
    ]


SOURCES = sentences("ka lo mi ter run ba est qui no ven tal or", seed=1)
TARGETS = sentences("schö gu ren ün lich bär auf ze wo dan ist öl", seed=2)


def train_pieces(lines: list[str], pieces: int, algorithm: str = "unigram") -> bytes:
    """Trains a SentencePiece model with the special tokens at the ids of OPUS-MT."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=pieces,
        model_type=algorithm,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


def numbered(*models: bytes) -> dict[str, int]:
    """Numbers the tokens in the order of OPUS-MT: end, unknown, the pieces of all models,
    padding."""
    pieces = [END, UNKNOWN]
    for model in models:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        pieces += [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    pieces = [piece for piece in dict.fromkeys(pieces) if piece not in ("<s>", PADDING)]
    return {piece: i for i, piece in enumerate([*pieces, PADDING])}


def transformers_quietly() -> Any:
    """Imports transformers late and silently: it takes seconds and prints warnings."""
    import transformers

    logging.getLogger("transformers").setLevel(logging.ERROR)
    return transformers


def randomize(model: Any, seed: int) -> None:
    """Sets weights so large that answers differ, also in the tables and the norms."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:
                continue
            scale = 0.4 if parameter.dim() > 1 and ".layers." in name else 0.3
            ones = 1.0 if "layer_norm.weight" in name else 0.0
            parameter.copy_(ones + scale * torch.randn(parameter.shape, generator=generator))
        # With random tied tables a token is its own most likely successor, and no answer ends.
        model.model.decoder.layers[-1].final_layer_norm.weight.neg_()
        bias = 0.5 * torch.randn(model.final_logits_bias.shape, generator=generator)
        bias[0, model.config.eos_token_id] += 4.0
        model.final_logits_bias.copy_(bias)


def make_tiny_marian(
    folder: Path,
    seed: int = 1,
    separate: bool = False,
    safe: bool = True,
    rows: int = 0,
    **changes: Any,
) -> TinyMarian:
    """Writes the folder. `separate`: a vocabulary and a table per side; `safe`: safetensors, else
    torch.save; `rows`: of the table, filled up with tokens that no text has; `changes`: overrides
    of the MarianConfig."""
    hf = transformers_quietly()
    folder.mkdir(parents=True, exist_ok=True)
    source, target = train_pieces(SOURCES, 90), train_pieces(TARGETS, 80)
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    vocabulary = numbered(source) if separate else numbered(source, target)
    if rows > len(vocabulary):
        del vocabulary[PADDING]
        vocabulary |= {f"<unused{i}>": i for i in range(len(vocabulary), rows - 1)}
        vocabulary[PADDING] = rows - 1
    if separate:
        # transformers has one padding id, so both sides need equally many pieces.
        target_vocabulary = numbered(target)
        rows = max(len(vocabulary), len(target_vocabulary))
        for table in (vocabulary, target_vocabulary):
            del table[PADDING]
            table |= {f"<unused{i}>": i for i in range(len(table), rows - 1)} | {PADDING: rows - 1}
        (folder / "target_vocab.json").write_text(json.dumps(target_vocabulary))
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    padding = vocabulary[PADDING]
    settings = {
        "vocab_size": len(vocabulary),
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "activation_function": "swish",
        "scale_embedding": True,
        "max_position_embeddings": 40,
        "pad_token_id": padding,
        "decoder_start_token_id": padding,
        "eos_token_id": 0,
        "bos_token_id": 0,
        "forced_eos_token_id": 0,
        "share_encoder_decoder_embeddings": not separate,
        "normalize_embedding": False,  # keys of OPUS-MT that transformers ignores
        "normalize_before": False,
        "add_final_layer_norm": False,
        "static_position_embeddings": True,
        "extra_pos_embeddings": len(vocabulary),
    }
    config = hf.MarianConfig(**(settings | changes))
    model = hf.MarianMTModel(config).eval()
    randomize(model, seed)
    model.generation_config.update(
        max_length=MAX_LENGTH,
        num_beams=3,
        no_repeat_ngram_size=2,
        bad_words_ids=[[padding]],
        renormalize_logits=True,
    )
    model.save_pretrained(folder, safe_serialization=safe)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sacremoses is missing, and token ids do not need it
        tokenizer = hf.MarianTokenizer(
            source_spm=str(folder / "source.spm"),
            target_spm=str(folder / "target.spm"),
            vocab=str(folder / "vocab.json"),
            target_vocab_file=str(folder / "target_vocab.json") if separate else None,
            separate_vocabs=separate,
        )
    return TinyMarian(folder, model, tokenizer)


def log_probabilities(tiny: TinyMarian, source: list[int], target: list[int]) -> torch.Tensor:
    """Returns transformers' log-probability of each target token [T], including the end token."""
    start = [tiny.config.decoder_start_token_id]
    with torch.no_grad():
        logits = tiny.model(
            input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([start + target[:-1]])
        ).logits
    return logits[0].log_softmax(-1)[torch.arange(len(target)), torch.tensor(target)]


def greedy(tiny: TinyMarian, source: list[int], max_length: int = MAX_LENGTH) -> list[int]:
    """Returns the greedy output of transformers with the end token, without the start token."""
    with torch.no_grad():
        answer = tiny.model.generate(torch.tensor([source]), num_beams=1, max_length=max_length)
    return answer[0, 1:].tolist()
