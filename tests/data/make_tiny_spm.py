"""Makes tiny.spm and folding.spm, small SentencePiece models of the C++ tests: run this file.

It is a unigram model with byte fallback, so that any text survives a round trip, without
normalisation, and with the special ids of every bundle (bos 0, pad 1, eos 2, unk 3). It is trained
on the sentences below. folding.spm has a piece for each letter, and reads some symbols as letters,
as a model with NFKC does.
"""

import io
import tempfile
from pathlib import Path

import sentencepiece

SENTENCES = [
    "The dog runs through the garden and barks at the cat.",
    "A small bird sings in the old apple tree every morning.",
    "She writes a long letter to her brother in the city.",
    "We want to read the book before the train arrives.",
    "He said that the weather would be better tomorrow.",
    "The children are playing in the water near the house.",
    "Please open the window, the room is warm.",
    "They were walking slowly along the river in the evening.",
    "Der Hund läuft durch den Garten und bellt die Katze an.",
    "Ein kleiner Vogel singt jeden Morgen im alten Apfelbaum.",
    "Sie schreibt ihrem Bruder in der Stadt einen langen Brief.",
    "Wir wollen das Buch lesen, bevor der Zug ankommt.",
    "Er sagte, dass das Wetter morgen besser werde.",
    "Die Kinder spielen im Wasser nahe beim Haus.",
    "Bitte öffne das Fenster, es ist warm im Zimmer.",
    "Sie gingen am Abend langsam den Fluss entlang, über die Brücke.",
]


def main() -> None:
    """Writes tiny.spm beside this file."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 4),
        model_writer=model,
        model_type="unigram",
        vocab_size=400,
        hard_vocab_limit=False,
        character_coverage=1.0,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        bos_id=0,
        pad_id=1,
        eos_id=2,
        unk_id=3,
        user_defined_symbols=["<ph0>", "<ph1>"],
        num_threads=1,
        minloglevel=2,
    )
    (Path(__file__).parent / "tiny.spm").write_bytes(model.getvalue())
    make_folding()


def make_folding() -> None:
    """Writes folding.spm beside this file."""
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.write("2122\t54 4D\n00B2\t32\nFF21\t41\n")  # ™, ² and the wide A
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([*SENTENCES, "ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789"]),
            model_writer=model,
            model_type="char",
            vocab_size=120,
            hard_vocab_limit=False,
            character_coverage=1.0,
            normalization_rule_tsv=rules.name,
            bos_id=0,
            pad_id=1,
            eos_id=2,
            unk_id=3,
            num_threads=1,
            minloglevel=2,
        )
    (Path(__file__).parent / "folding.spm").write_bytes(model.getvalue())


if __name__ == "__main__":
    main()
