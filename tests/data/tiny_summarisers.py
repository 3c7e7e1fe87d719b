"""Tiny BART and PEGASUS models of Hugging Face's transformers with random weights, for the tests of
the importer: a folder in the layout of the hub, and the model and tokenizer that transformers loads
from it."""

from __future__ import annotations

import json
import random
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
import tiny_marian as marian
import torch

KINDS = ("bart", "pegasus")
MAX_LENGTH, MIN_LENGTH = 26, 6  # as transformers counts: with start, forced and end token
BYTE_LEVEL = Path(__file__).resolve().parent / "byte_level"
ENDING = {"bart": 3.0, "pegasus": 2.0}  # bias of the end token, with which lengths differ


@dataclass
class TinySummariser:
    kind: str
    folder: Path
    model: Any
    tokenizer: Any

    def ids(self, text: str) -> list[int]:
        """The source's ids by transformers, with <s> (BART) and the end token."""
        return self.tokenizer(text).input_ids

    @property
    def silent(self) -> int:
        """Tokens before a target: the start token, and BART's forced <s>."""
        return 2 if self.kind == "bart" else 1

    def generate(self, text: str, **options: Any) -> list[int]:
        """The best target's ids with the end token, behind the forced ones, by the options of the
        folder. `early_stopping` is fairseq's rule, and Linnet's."""
        beam = options.get("num_beams", self.model.generation_config.num_beams)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # two take longer for so small a model, on a busy machine tenfold
        with torch.no_grad():
            source = torch.tensor([self.ids(text)])
            answer = self.model.generate(source, early_stopping=beam > 1, **options)
        torch.set_num_threads(threads)
        return answer[0, self.silent :].tolist()


def randomize(model: Any, seed: int, ending: float) -> None:
    """Sets weights so large that answers differ, also in the tables and the norms."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:  # sinusoids
                continue
            scale = 0.4 if parameter.dim() > 1 and ".layers." in name else 0.3
            ones = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            parameter.copy_(ones + scale * torch.randn(parameter.shape, generator=generator))
        # With random tied tables a token is its own most likely successor, and no answer ends.
        last = getattr(model.model.decoder, "layer_norm", None)
        (last or model.model.decoder.layers[-1].final_layer_norm).weight.neg_()
        bias = 0.5 * torch.randn(model.final_logits_bias.shape, generator=generator)
        bias[0, model.config.eos_token_id] += ending
        model.final_logits_bias.copy_(bias)


def make_bart_tokenizer(folder: Path, fast: bool = True) -> Any:
    """Of the merges in byte_level, with <mask> behind the pieces."""
    hf = marian.transformers_quietly()
    pieces = (BYTE_LEVEL / "pieces.vocab").read_text(encoding="utf-8").split("\n")[:-1]
    numbers = {piece: i for i, piece in enumerate([*pieces, "<mask>"])}
    vocabulary, merges = folder / "vocab.json", folder / "merges.txt"
    vocabulary.write_text(json.dumps(numbers, ensure_ascii=False), encoding="utf-8")
    merges.write_bytes((BYTE_LEVEL / "merges.txt").read_bytes())
    make = hf.BartTokenizerFast if fast else hf.BartTokenizer
    return make(str(vocabulary), str(merges))


def make_pegasus_tokenizer(folder: Path) -> Any:
    hf = marian.transformers_quietly()
    file = folder / "spiece.model"
    with file.open("wb") as writer:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(marian.SOURCES + marian.TARGETS),
            model_writer=writer,
            vocab_size=150,
            hard_vocab_limit=False,
            num_threads=1,
            minloglevel=2,
            pad_id=0,
            eos_id=1,
            unk_id=2,
            bos_id=-1,
            user_defined_symbols=["<n>"],
        )
    return hf.PegasusTokenizer(str(file))


def make_tiny_summariser(kind: str, folder: Path, safe: bool = True, **changes: Any) -> Any:
    """Writes the folder. `safe`: safetensors, else torch.save; `changes`: of the configuration."""
    hf = marian.transformers_quietly()
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bart = kind == "bart"
        tokenizer = make_bart_tokenizer(folder) if bart else make_pegasus_tokenizer(folder)
        tokenizer.save_pretrained(folder)
    settings = {
        "vocab_size": len(tokenizer) + (0 if bart else 5),  # rows without a token
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "activation_function": "gelu" if bart else "relu",
        "scale_embedding": not bart,
        "max_position_embeddings": 64,
        "normalize_before": not bart,  # keys of the hub that transformers ignores
        "add_final_layer_norm": not bart,
        "normalize_embedding": bart,
        "prefix": " ",
    }
    make, make_config = (
        (hf.BartForConditionalGeneration, hf.BartConfig)
        if bart
        else (hf.PegasusForConditionalGeneration, hf.PegasusConfig)
    )
    model = make(make_config(**(settings | changes))).eval()
    randomize(model, 1, ENDING[kind])
    model.generation_config.update(
        max_length=MAX_LENGTH,
        min_length=MIN_LENGTH,
        num_beams=4,
        length_penalty=2.0,
        no_repeat_ngram_size=3,
        early_stopping=True,
        forced_bos_token_id=0 if bart else None,
    )
    model.save_pretrained(folder, safe_serialization=safe)
    return TinySummariser(kind, folder, model, tokenizer)


def texts(kind: str, count: int) -> list[str]:
    """Texts of a few sentences that the vocabulary spells in not too many tokens."""
    if kind == "pegasus":
        return marian.SOURCES[:count]
    rng = random.Random(3)
    text = "The dog's bowl isn't where we've left it; they'll say I'm wrong 2019 naïve мир"
    words = text.split()
    return [" ".join(rng.choices(words, k=rng.randint(2, 12))) + "." for _ in range(count)]
