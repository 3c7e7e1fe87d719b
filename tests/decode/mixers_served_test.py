"""Every mixer through the engine: answers of linnet-decode equal those of the eager Python model,
in a mixed batch as well as alone."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from tiny_sizes import VOCABULARY

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

EOS = 2
MIXERS = (
    "dynamic",
    "light",
    "depthwise",
    "dilated",
    "full",
    "self_attention",
    "csan_1d",
    "csan_2d",
    "ssru",
)
SEED = 7


def line(seed: int, tokens: int, **options) -> dict:
    rng = random.Random(seed)
    ids = [rng.randrange(4, VOCABULARY) for _ in range(tokens - 1)]
    return {"source_ids": [*ids, EOS], "options": {"max_target_tokens": 16, **options}}


# Short and long sources, targets longer than any kernel, beams of all widths.
LINES = [
    line(1, 9, beam_size=5, n_best=5),
    line(2, 40, beam_size=1, max_target_tokens=40, min_target_tokens=40),
    line(3, 2, beam_size=4, n_best=2),
    line(4, 17, beam_size=2, n_best=2, max_target_tokens=25, min_target_tokens=20),
    line(5, 64, beam_size=5, n_best=3),
    line(6, 1, beam_size=3, n_best=3),
    line(7, 23, beam_size=5, length_penalty=0.4, no_repeat_ngram_size=2),
]


@pytest.fixture(scope="module", params=MIXERS)
def served(request, tmp_path_factory):
    """A tiny float32 model with this mixer in all layers, and its bundle."""
    import torch

    from linnet_model.bundle import BundleFacts, write_bundle
    from linnet_model.config import BundleConfig
    from linnet_model.network import ops
    from linnet_model.network.encoder_decoder import EncoderDecoder
    from linnet_model.network.presets import preset

    ops.load()
    torch.set_num_threads(1)
    sizes = preset("tiny", VOCABULARY, request.param, max_positions=64)
    if request.param.startswith("csan"):
        sizes.decoder_kernels = [4, 5]  # narrower than the targets
    sizes.check()
    torch.manual_seed(SEED)
    model = EncoderDecoder(sizes).eval()
    folder = tmp_path_factory.mktemp("bundles") / request.param
    config = BundleConfig(
        name=request.param, max_source_tokens=64, max_target_tokens=60, target_ratio=0.0
    )
    write_bundle(folder, model, sizes, config, None, "float32", BundleFacts(version="1"))
    return folder, model


@pytest.fixture
def decode(served, run):
    def decode_lines(lines: list[dict], *flags: str) -> list[list[dict]]:
        done = run(served[0], *flags, lines=lines)
        assert done.status == 0, done.stderr
        return [answer["hypotheses"] for answer in done.answers]

    return decode_lines


def test_hypotheses_equal_python_search(served, decode):
    from linnet_model.export.search import Options, beam_search

    for wanted, hypotheses in zip(LINES, decode(LINES), strict=True):
        options = dict(wanted["options"])
        count = options.pop("n_best", 1)
        (expected,) = beam_search(served[1], [wanted["source_ids"]], Options(**options), maximum=60)
        assert [h["ids"] for h in hypotheses] == [h.ids for h in expected[:count]]
        # 1e-4: float32 sums in another order
        scores = [h.score for h in expected[:count]]
        assert [h["score"] for h in hypotheses] == pytest.approx(scores, abs=1e-4)


def test_token_scores_equal_training_path(served, decode):
    import torch

    from linnet_model.network.encoder_decoder import forced_logits

    for wanted, hypotheses in zip(LINES, decode(LINES), strict=True):
        source = torch.tensor([wanted["source_ids"]])
        length = torch.tensor([source.shape[1]], dtype=torch.int32)
        for h in hypotheses:
            target = torch.tensor([h["ids"]])
            with torch.no_grad():
                logits = forced_logits(served[1], source, length, target)
            scores = logits.log_softmax(-1)[0].gather(1, target[0].unsqueeze(1)).squeeze(1)
            assert h["token_scores"] == pytest.approx(scores.tolist(), abs=1e-4)


def test_attention_equals_training_path(served, decode):
    import torch
    from forced_attention import forced_attention

    from linnet_model.network.encoder_decoder import forced_logits

    aligned = decode([{**line, "align": True} for line in LINES])
    plain = decode(LINES)
    for wanted, hypotheses, without in zip(LINES, aligned, plain, strict=True):
        attention = torch.tensor(hypotheses[0].pop("attention"))
        assert hypotheses == without, "the search is the same"
        source = torch.tensor([wanted["source_ids"]])
        length = torch.tensor([source.shape[1]], dtype=torch.int32)
        target = torch.tensor([hypotheses[0]["ids"]])
        layer = len(served[1].decoder) - 2
        expected = forced_attention(forced_logits, served[1], source, length, target, layer)[0]
        torch.testing.assert_close(attention, expected, rtol=0, atol=1e-5)  # weights up to 1


def test_answers_are_batch_invariant(decode):
    lines = LINES + [{**line, "align": True} for line in LINES[::-1]]
    alone = decode(lines, "--batch", "1")
    assert "attention" in alone[-1][0]
    assert decode(lines, "--batch", "14") == alone
    assert decode(lines[::-1], "--batch", "3")[::-1] == alone
    assert decode(lines, "--batch", "8", "--threads", "1") == alone
