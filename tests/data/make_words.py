"""Writes the outputs of the original tools for the sentences below, for tests of the text pipeline.

    pip install sacremoses==0.2.0 subword-nmt==0.3.8 sentencepiece==0.2.1

in a separate environment, then run this file with it. It writes, in its folder,

    words.json   sacremoses' words and text, subword-nmt's pieces, SentencePiece's pieces as ids
    v0.2.codes   merge operations of subword-nmt's learner
    v0.1.codes   the same in the format of its first version: "</w>" is a symbol
    tiny.vocab   the pieces of tiny.spm in the order of a Marian model

The sentences of this file are followed by random mixtures of their parts and of punctuation, from
a fixed seed.
"""

import io
import json
import random
from collections import Counter
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import sentencepiece
from sacremoses import MosesDetokenizer, MosesTokenizer
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

HERE = Path(__file__).parent
LANGUAGES = ["en", "de", "fr", "it", "zh", "ja", "ko", "xx"]  # "xx" has no list of prefixes
PROSE = [
    "The children's books aren't on Mr. Miller's table; they're in the boys' room.",
    "He paid $1,000.50 (about 900,75 €) on Jan. 5, 2021, at 10:30 a.m.",
    "See No. 5, pp. 12-15 and Art. 3. No. That isn't all.",
    'She said: "Well-known state-of-the-art methods don\'t work!"',
    "Visit https://example.org/a_b?x=1&y=2#top or write to jane.doe@example.org.",
    "Wait... what?! No.. never.... Really?",
    "It's 'quoted', ``so'' called, and the '90s were the 1990's best.",
    "I like C++, C#, F# and R&D; a|b [see <b>this</b>] {or} that\\n.",
    "The U.S. and the U.K. e.g. have i.e. two names, etc. and so on.",
    "Dr. No met Prof. X. The end.",
    "x-ray, e-mail, 3-4 days, -5 degrees, - dash -, a--b, foo- bar, -",
    "rock 'n' roll o'clock l'eau d'accord dell'arte 'tis 5' 6\" 'em",
    "Sie sagte: „Das ist gut.“ Danach ging er z.B. um 8.30 Uhr usw. weg.",
    "Am 3. Oktober bzw. am 12. kamen ca. 1.000,50 Gäste, d.h. alle, u.a. Dr. Weiß.",
    "Heinrich VIII. regierte; die Nr. 7 der Abt. IX. lebt. Das war's.",
    "Il n'y a qu'une réponse : « l'amour », n'est-ce pas ? Oui ! 50 % d'eau.",
    "M. Dupont et Mme. Curie, cf. p. 5, etc. sont là. L'été, c'est aujourd'hui.",
    "L'uomo dell'università non c'è; un po' d'acqua.",
    "日本語のテキスト、と English words。「はい」 10円です。",
    "中文文本，包括 English 和 数字 123。 你好！",
    '한국어 문장입니다. 서울, 부산 그리고 "대구".',
    "Emoji 😀 and 👩‍👩‍👧 flags 🇩🇪, e\u0301 combining, soft\u00adhyphen, zero\u200bwidth.",
    "Привет, мир! Это т.е. тест. Γειά σου, κόσμε. שלום עולם",
    "हिन्दी में क्या क़ ज़रूरी है। ١٢٣,٤ ½ ² Ⅷ",
    "a\tb\u00a0c\u2003d\u3000e\x07f\x1fg  h",
    "literal @-@ and @@ and foo@@ bar &amp; &lt;tag&gt; &apos; &#124; &bar;",
    "trailing dot and quote.' ",
    "'",
    ".",
    "..",
    ",",
    "a.",
    "1,",
    "A.B.C. d.e.f. G.",
    "prices: ¥5 £3 ₹2 ¢9 ¿Qué? ¡Sí! §1 °C 5% №7",
    "100%-ig, 5-Euro-Schein, Baden-Württemberg-Straße, E-Mails/Tag",
    "“Curly ‘quotes’ — and – dashes…”",
    "a,b,c 1,2,3 a,1 1,a ,x x, ,, ,1, 1,,2",
    "ſtraße ŉ ǅ ꟃ ᏸ ქართული Ⰰ 𝔘𐐀 ა.",
    "",
    " ",
]
MARKS = [
    *".,'\"-`@&|<>[]()!?:;%$€/\\ ",
    *["..", "...", " '", "' ", "'s", "n't", " @-@ ", "@@ ", "&amp;", "&apos;", "„", "“", "”", "’"],
    *["«", "»", "—", "10", "1,5", "No. ", "Dr. ", "z.B. ", "a", "Z", "é", "ß", "Ж", "日", "한"],
    *["ー", "😀", "\u0301", "\u200b", "\u00a0", "१", "½", "\u094d", "\x07", "\x1f", "x-y", "l'"],
]


def mixtures(count: int, seed: int) -> list[str]:
    """Returns sentences with punctuation inserted at random, and punctuation alone."""
    rng = random.Random(seed)
    texts = []
    for _ in range(count):
        text = rng.choice(PROSE)[: rng.randrange(40)] if rng.random() < 0.6 else ""
        for _ in range(rng.randrange(1, 9)):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(MARKS) + text[at:]
        texts.append(text)
    return texts


def moses() -> list[dict[str, str]]:
    """Returns text, words, and the detokenized text for each language."""
    cases = []
    for language in LANGUAGES:
        tokenizer, detokenizer = MosesTokenizer(language), MosesDetokenizer(language)
        if language == "it":  # its list of prefixes differs from ours
            english = MosesTokenizer("en")
            tokenizer.NONBREAKING_PREFIXES = english.NONBREAKING_PREFIXES
            tokenizer.NUMERIC_ONLY_PREFIXES = english.NUMERIC_ONLY_PREFIXES
        count = 90 if language in ("en", "de", "fr") else 15
        for text in PROSE + mixtures(count, seed=LANGUAGES.index(language)):
            words = tokenizer.tokenize(text, aggressive_dash_splits=True, escape=True)
            cases.append(
                {
                    "language": language,
                    "text": text,
                    "words": " ".join(words),
                    "from_words": detokenizer.detokenize(words),
                    "from_text": detokenizer.detokenize(text.split()),
                }
            )
    return cases


def learn_first_version(lines: list[str], merges: int) -> str:
    """Returns merge codes with a separate end-of-word symbol, the most frequent pair first."""
    words = [([*word, "</w>"], n) for word, n in Counter(" ".join(lines).split()).items()]
    codes = []
    for _ in range(merges):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, n in words:
            for pair in pairwise(word):
                pairs[pair] += n
        left, right = max(pairs, key=lambda pair: (pairs[pair], pair))
        codes.append(f"{left} {right}")
        for word, _ in words:
            for i in range(len(word) - 1):
                if word[i : i + 2] == [left, right]:
                    word[i : i + 2] = [left + right]
    return "\n".join(codes) + "\n"


def byte_pairs() -> list[dict[str, str]]:
    """Returns words and their pieces with codes of both versions."""
    english = MosesTokenizer("en")
    lines = [
        english.tokenize(text, aggressive_dash_splits=True, return_str=True).strip()
        for text in PROSE + mixtures(60, seed=99)
    ]
    lines += ["@@ a@@ @@b @@@@ @", "</w> a</w> x</w>b", "ééé 日本語 aaaaaaaaa ababababab", "e" * 60]
    learned = io.StringIO()
    learn_bpe(io.StringIO("\n".join(lines)), learned, 250, min_frequency=2)
    (HERE / "v0.2.codes").write_text(learned.getvalue())
    (HERE / "v0.1.codes").write_text(learn_first_version(lines, 120))
    cases = []
    for name in ("v0.2.codes", "v0.1.codes"):
        with (HERE / name).open() as codes:
            bpe = BPE(codes)
        cases += [{"codes": name, "words": line, "pieces": bpe.segment(line)} for line in lines]
    return cases


def mapped_pieces() -> list[dict[str, object]]:
    """Returns ids of SentencePiece's pieces in another vocabulary, and the text of the ids."""
    spm = sentencepiece.SentencePieceProcessor(model_file=str(HERE / "tiny.spm"))
    own = [spm.id_to_piece(i) for i in range(4, spm.vocab_size())]
    own.remove("▁an")  # a piece that the model's vocabulary lacks
    vocabulary = ["</s>", "<unk>", *reversed(own), ">>fra<<", "▁ailleurs", "<pad>"]
    (HERE / "tiny.vocab").write_text("\n".join(vocabulary) + "\n")
    ids = {piece: i for i, piece in enumerate(vocabulary)}
    cases = []
    for text in PROSE + mixtures(40, seed=7):
        pieces = spm.encode(text, out_type=str)
        cases.append({"text": text, "ids": [ids.get(piece, 1) for piece in pieces]})
    return cases


def main() -> None:
    """Writes the files."""
    tools = ("sacremoses", "subword-nmt", "sentencepiece")
    said = {
        "made_with": {tool: version(tool) for tool in tools},
        "moses": moses(),
        "byte_pairs": byte_pairs(),
        "mapped_pieces": mapped_pieces(),
    }
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
    (HERE / "words.json").write_text(text.replace("},{", "},\n{") + "\n")


if __name__ == "__main__":
    main()
