"""Tiny models of Hugging Face's transformers with several languages and random weights, for the
tests of the importers: a folder in the layout of M2M-100, NLLB-200 or mBART-50, or of OPUS-MT with
several targets, and the model and tokenizer that transformers loads from it."""

from __future__ import annotations

import json
import random
import unicodedata
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tiny_marian as marian
import torch

KINDS = ("m2m100", "nllb", "mbart50")
# The languages of the tests: BCP-47 and the name in each model.
NAMES = {
    "m2m100": {"en": "en", "de": "de", "fr": "fr"},
    "nllb": {"en": "eng_Latn", "de": "deu_Latn", "fr": "fra_Latn"},
    "mbart50": {"en": "en_XX", "de": "de_DE", "fr": "fr_XX"},
}
# Seed of the weights, and share of the norm in the end token, with which targets have many lengths.
WEIGHTS = {"m2m100": (2, 0.6), "nllb": (1, 0.8), "mbart50": (1, 1.6)}
MAX_LENGTH = 24  # as transformers counts: with the start token, the language and the end token


@dataclass
class TinyMultilingual:
    kind: str
    folder: Path
    model: Any
    tokenizer: Any

    @property
    def languages(self) -> list[str]:
        """As the importer takes them: CODE=TAG."""
        return [f"{code}={tag}" for code, tag in NAMES[self.kind].items()]

    def ids(self, text: str, source: str) -> list[int]:
        """The source's ids by transformers, with the language and the end token."""
        self.tokenizer.src_lang = NAMES[self.kind][source]
        return self.tokenizer(text).input_ids

    def language_id(self, code: str) -> int:
        tag = NAMES[self.kind][code]
        return self.tokenizer.convert_tokens_to_ids(f"__{tag}__" if self.kind == "m2m100" else tag)

    def generate(self, text: str, source: str, target: str, **options: Any) -> list[int]:
        """The best target's ids, behind the language and with the end token. `early_stopping` is
        fairseq's rule, and Linnet's."""
        with torch.no_grad():
            answer = self.model.generate(
                torch.tensor([self.ids(text, source)]),
                forced_bos_token_id=self.language_id(target),
                early_stopping=options.get("num_beams", 1) > 1,
                **options,
            )
        return answer[0, 2:].tolist()


def randomize(model: Any, seed: int, ending: float) -> None:
    """Sets weights so large that answers differ, also in the tables and the norms."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            scale = 0.4 if parameter.dim() > 1 and ".layers." in name else 0.3
            ones = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            parameter.copy_(ones + scale * torch.randn(parameter.shape, generator=generator))
        # With random tied tables a token is its own most likely successor, and no answer ends.
        model.model.decoder.layer_norm.weight.neg_()
        # Of the norm's constant output the end token gets a share, so that targets end.
        end = model.model.shared.weight[model.config.eos_token_id]
        end.add_(model.model.decoder.layer_norm.bias, alpha=ending)
        if hasattr(model, "final_logits_bias"):
            bias = 0.5 * torch.randn(model.final_logits_bias.shape, generator=generator)
            model.final_logits_bias.copy_(bias)


def make_tokenizer(kind: str, folder: Path) -> Any:
    hf = marian.transformers_quietly()
    spm = folder / "sentencepiece.bpe.model"
    algorithm = "bpe" if kind == "nllb" else "unigram"
    spm.write_bytes(marian.train_pieces(marian.SOURCES + marian.TARGETS, 150, algorithm))
    if kind == "m2m100":
        pieces = ["<s>", "<pad>", "</s>", "<unk>"]
        processor = marian.sentencepiece.SentencePieceProcessor(model_file=str(spm))
        pieces += [processor.id_to_piece(i) for i in range(3, processor.get_piece_size())]
        file = folder / "vocab.json"
        numbers = {piece: i for i, piece in enumerate(pieces)}
        file.write_text(json.dumps(numbers, ensure_ascii=False), encoding="utf-8")
        return hf.M2M100Tokenizer(str(file), str(spm), src_lang="en", tgt_lang="de")
    if kind == "nllb":
        return hf.NllbTokenizer(str(spm), src_lang="eng_Latn", tgt_lang="deu_Latn")
    return hf.MBart50Tokenizer(str(spm), src_lang="en_XX", tgt_lang="de_DE")


def make_tiny_multilingual(
    kind: str, folder: Path, safe: bool = True, **changes: Any
) -> TinyMultilingual:
    """Writes the folder. `safe`: safetensors, else torch.save; `changes`: of the configuration."""
    hf = marian.transformers_quietly()
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = make_tokenizer(kind, folder)
        tokenizer.save_pretrained(folder)
    # M2M100Tokenizer does not count its languages.
    tokens = tokenizer.get_lang_id("zu") + 1 if kind == "m2m100" else len(tokenizer)
    settings = {
        "vocab_size": tokens + 9,  # rows without a token
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "activation_function": "gelu" if kind == "mbart50" else "relu",
        "scale_embedding": True,
        "max_position_embeddings": 48,
        "decoder_start_token_id": 2,
        "forced_eos_token_id": 2 if kind == "mbart50" else None,
    }
    configs = {"mbart50": hf.MBartConfig}
    config = configs.get(kind, hf.M2M100Config)(**(settings | changes))
    models = {"mbart50": hf.MBartForConditionalGeneration}
    model = models.get(kind, hf.M2M100ForConditionalGeneration)(config).eval()
    randomize(model, *WEIGHTS[kind])
    model.generation_config.update(max_length=MAX_LENGTH, num_beams=3)
    model.save_pretrained(folder, safe_serialization=safe)
    return TinyMultilingual(kind, folder, model, tokenizer)


TAGS = {"de": "deu", "nl": "nld", "zh-Hant": "cmn_Hant"}


def add_targets(tiny: marian.TinyMarian) -> marian.TinyMarian:
    """Names target languages in a folder of make_tiny_marian, in place of some of its pieces, as in
    OPUS-MT models with several targets. Returns it with the tokenizer that knows them."""
    hf = marian.transformers_quietly()
    file = tiny.folder / "vocab.json"
    numbers = json.loads(file.read_text(encoding="utf-8"))
    pieces = sorted(numbers, key=lambda piece: numbers[piece])
    for number, tag in enumerate(TAGS.values(), start=20):
        pieces[number] = f">>{tag}<<"
    numbers = {piece: i for i, piece in enumerate(pieces)}
    file.write_text(json.dumps(numbers, ensure_ascii=False), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = hf.MarianTokenizer(
            source_spm=str(tiny.folder / "source.spm"),
            target_spm=str(tiny.folder / "target.spm"),
            vocab=str(file),
        )
    return marian.TinyMarian(tiny.folder, tiny.model, tokenizer)


def fuzzed_texts(count: int, seed: int) -> list[str]:
    """Texts of known words, white space, marks, and any characters of Unicode. None is the name of
    a special token, which transformers reads as such a token and Linnet as text."""
    rng = random.Random(seed)
    words = " ".join(marian.SOURCES[:40] + marian.TARGETS[:40]).split()

    def character() -> str:
        while True:
            code = rng.choice([rng.randrange(0x21, 0x250), rng.randrange(0x10000), 0x1F600, 0x301])
            mark = chr(code)
            if unicodedata.category(mark) not in ("Cs", "Cn", "Cc"):
                return mark

    texts = []
    while len(texts) < count:
        parts = []
        for _ in range(rng.randint(1, 7)):
            kind = rng.random()
            if kind < 0.5:
                parts.append(rng.choice(words))
            elif kind < 0.8:
                parts.append("".join(character() for _ in range(rng.randint(1, 3))))
            else:
                parts.append(
                    rng.choice(["  ", "\t", "\u00a0", "\u3000", "\u200b", "(", "…", "9,5"])
                )
        text = rng.choice(["", " "]).join(parts)
        if text.strip():
            texts.append(text)
    return texts
