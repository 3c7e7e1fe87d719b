"""Makes merges.txt, pieces.vocab and golden.json of this folder with Hugging Face's tokenizers: a
byte-level BPE of 500 pieces in the layout of BART, the ids of texts of any characters, the texts of
any ids, and what its pattern takes each character of Unicode for.

    .venv/bin/python tests/data/byte_level/make.py

The golden numbers are those of tokenizers 0.22.2.
"""

from __future__ import annotations

import json
import random
import unicodedata
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

FOLDER = Path(__file__).resolve().parent
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
TRAINED = [
    "The dog's bowl isn't where we've left it; they'll say I'm wrong, and you're right, he'd add.",
    "A study of 1,234 patients, in 2019 and 2020, found that 56.7% of them slept less than before.",
    "Researchers at the university said on Monday that the results were not what they expected.",
    "Über Straßen und Plätze, naïve cafés, 東京都 and 北京市, мир и война, ΑΒΓ αβγ.",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0928\u092e\u0938\u094d\u0924\u0947",
    "  Indented lines\n\n\tand tabs,  double  blanks and trailing ones.   \n",
]
WORDS = " ".join(TRAINED).split()
GAPS = [
    "",
    " ",
    " ",
    " ",
    "  ",
    "   ",
    "\n",
    "\n\n",
    "\t",
    " \t",
    "\t ",
    "\u00a0",
    "\u2028",
    "\u3000",
    "\u200b",
    "\x1c",
]
SIGNS = [
    "'s",
    "'S",
    "'re",
    "'ll ",
    " 've",
    "''d",
    "'",
    "…",
    "9",
    "²",
    "Ⅷ",
    "½",
    "\u0301",
    "😀",
    "👩\u200d🔬",
    "<s>x",
    "!?",
]


def character(rng: random.Random) -> str:
    """A character that Unicode 14 has."""
    while True:
        ranges = [(0, 0x80), (0x80, 0x250), (0x250, 0x3000), (0x3000, 0x10000), (0x10000, 0x20000)]
        mark = chr(rng.randrange(*rng.choice(ranges)))
        if unicodedata.category(mark) not in ("Cs", "Cn") and mark != "\0":
            return mark


def text(rng: random.Random) -> str:
    parts = []
    for _ in range(rng.randint(1, 9)):
        kind = rng.random()
        if kind < 0.4:
            parts.append(rng.choice(WORDS))
        elif kind < 0.7:
            parts.append(rng.choice(SIGNS))
        else:
            parts.append("".join(character(rng) for _ in range(rng.randint(1, 4))))
        parts.append(rng.choice(GAPS))
    return "".join(parts)


def kinds() -> list[list[int]]:
    """Ranges of code points, [first, last, 0 white space, 1 letter, 2 number or 3 other]."""
    split = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str
    ranges: list[list[int]] = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        joins = [len(split(mark + chr(code))) == 1 for mark in "a1!"]
        kind = joins.index(True) + 1 if any(joins) else 0
        if ranges and ranges[-1][2] == kind:
            ranges[-1][1] = code
        else:
            ranges.append([code, code, kind])
    return ranges


def main() -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        min_frequency=1,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken(token, special=True) for token in SPECIAL],
    )
    tokenizer.train_from_iterator(TRAINED, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    pieces = sorted(model["vocab"], key=lambda piece: model["vocab"][piece])
    (FOLDER / "pieces.vocab").write_text("".join(f"{p}\n" for p in pieces), encoding="utf-8")
    merges = "".join(" ".join(merge) + "\n" for merge in model["merges"])
    (FOLDER / "merges.txt").write_text("#version: 0.2\n" + merges, encoding="utf-8")

    # Without the special tokens, so that their names are text.
    plain = Tokenizer(models.BPE(vocab=model["vocab"], merges=[tuple(m) for m in model["merges"]]))
    plain.pre_tokenizer, plain.decoder = tokenizer.pre_tokenizer, tokenizer.decoder
    rng = random.Random(7)
    texts = ["", " ", "   ", "a", " a", "\n", "a \n", "x" * 300, "'" * 40, " " * 60 + "x", "don'tx"]
    texts += [text(rng) for _ in range(250)]
    encoded = [{"text": t, "ids": plain.encode(t).ids} for t in texts]
    decoded = []
    for _ in range(60):
        ids = [rng.randrange(len(SPECIAL), len(pieces)) for _ in range(rng.randint(1, 8))]
        if rng.random() < 0.5:  # single bytes, most of them no characters
            ids = [rng.randrange(4, 260) for _ in range(rng.randint(1, 12))]
        decoded.append({"ids": ids, "text": plain.decode(ids, skip_special_tokens=False)})
    golden = {"encoded": encoded, "decoded": decoded, "kinds": kinds()}
    lines = [
        f"{json.dumps(key)}: [\n"
        + ",\n".join(json.dumps(item, separators=(",", ":")) for item in items)
        + "\n]"
        for key, items in golden.items()
    ]
    (FOLDER / "golden.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
