"""For any Unicode input the answer is text: whole characters and no control pieces, and text that
the vocabulary cannot encode is copied. The model has random weights, which can emit any token.

Set LINNET_UNICODE_TEXTS=100000 LINNET_UNICODE_SEED=7 for a long run.
"""

from __future__ import annotations

import json
import os
import random
import shutil

import pytest

TEXTS = int(os.environ.get("LINNET_UNICODE_TEXTS", "200"))
SEED = int(os.environ.get("LINNET_UNICODE_SEED", "1"))
BLOCKS = [
    (0x20, 0x7F), (0xA0, 0x250), (0x370, 0x530), (0x590, 0x700), (0x900, 0xE00), (0x2000, 0x2070),
    (0x20A0, 0x20C0), (0x2190, 0x2400), (0x2600, 0x27C0), (0x3040, 0x30FF), (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3), (0xFE00, 0xFE10), (0x1F300, 0x1F650), (0x1D400, 0x1D500), (0x20000, 0x20100),
]  # fmt: skip


@pytest.fixture(scope="module")
def server(start, bundles, tmp_path_factory):
    models = tmp_path_factory.mktemp("spelling")
    folder = models / "en-de"
    shutil.copytree(bundles / "en-de", folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest |= {"text_grammar": True, "placeholders": [f"<ph{n}>" for n in range(8)]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    running = start(models=models)
    yield running
    assert running.stop() == 0


def random_text(rng: random.Random) -> str:
    words = []
    for _ in range(rng.randint(1, 6)):
        if rng.random() < 0.4:
            words.append(rng.choice(["the", "dog", "A", "RUNS", "x.", "<ph0>", "<PH7>", "</s>"]))
            continue
        low, high = rng.choice(BLOCKS)
        points = [rng.randrange(low, high) for _ in range(rng.randint(1, 4))]
        words.append("".join(map(chr, points)))
    return " ".join(words)


def test_any_unicode_is_answered_with_text(server, record_property):
    rng = random.Random(SEED)
    options = {"beam_size": 2, "max_target_tokens": 24}
    calls = (TEXTS + 19) // 20
    record_property("texts", 20 * calls)
    for _ in range(calls):
        texts = [random_text(rng) for _ in range(20)]
        texts = [text if text.strip() else "x" for text in texts]
        for text, reply in zip(
            texts, server.translate(*texts, options=options).translations, strict=True
        ):
            asked = (SEED, text)
            assert "\ufffd" not in reply.text, asked
            for piece in ("</s>", "<unk>", "<s>", "<pad>", "\u2047"):
                assert piece in text or piece not in reply.text, asked
            for number in range(8):
                piece = f"<ph{number}>"
                assert reply.text.lower().count(piece) <= text.lower().count(piece), asked


@pytest.mark.parametrize(
    ("text", "copied"),
    [
        ("I met Yūki in 東京.", ["Yūki", "東京"]),
        ("I ♥ you", ["♥"]),
        ("the 👩\u200d💻 runs", ["👩\u200d💻"]),
        ("say <ph3> now", ["<ph3>"]),
        ("مرحبا بكم في المدينة", ["مرحبا بكم في المدينة"]),
    ],
)
def test_text_without_tokens_is_copied(server, text, copied):
    for beam_size in (1, 5):
        options = {"beam_size": beam_size, "n_best": 1}
        translation = server.translate(text, options=options).translations[0]
        for run in copied:
            assert translation.text.count(run) == 1, translation.text


def test_stream_equals_unary_call(server):
    text = "The dog ♥ the 東京 garden."
    parts = list(server.stream_translate(text))
    assert "".join(part.part.text for part in parts if part.HasField("part")) == (
        server.translate(text).translations[0].text
    )
