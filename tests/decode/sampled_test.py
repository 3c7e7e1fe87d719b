"""Sampling: the random numbers, the candidates, and batch invariance."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from decode_lines import EOS, SOURCES, as_given, eager_model, line, with_options

PAD = 1


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox4x32-10 of Salmon et al. 2011, as the paper defines it."""
    low = 0xFFFFFFFF
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = (
            (b >> 32) ^ counter[1] ^ key[0],
            b & low,
            (a >> 32) ^ counter[3] ^ key[1],
            a & low,
        )
        key = ((key[0] + 0x9E3779B9) & low, (key[1] + 0xBB67AE85) & low)
    return counter


def uniform(seed: int, hypothesis: int, position: int) -> float:
    first, second, *_ = philox((position, hypothesis, 0, 0), (seed & 0xFFFFFFFF, seed >> 32))
    return (first << 32 | second) / 2**64


def kept(probabilities: list[float], top_k: int, top_p: float, min_p: float) -> list[int]:
    order = sorted(range(len(probabilities)), key=lambda t: (-probabilities[t], t))
    order = order[: top_k or None]
    wanted, held, tokens = top_p * sum(probabilities[t] for t in order), 0.0, []
    for token in order:
        if held >= wanted:
            break
        tokens.append(token)
        held += probabilities[token]
    return sorted(t for t in tokens if probabilities[t] >= min_p * probabilities[order[0]])


def check_draw(probabilities: list[float], options: dict, u: float, token: int) -> None:
    """Checks that u selects `token`, up to rounding."""
    rounding = 1e-4  # tolerance for probabilities of another float32 path
    tokens = kept(
        probabilities,
        options.get("top_k", 0),
        options.get("top_p", 1.0),
        options.get("min_p", 0.0),
    )
    total = sum(probabilities[t] for t in tokens)
    below = sum(probabilities[t] for t in tokens if t < token) / total
    assert token in tokens
    assert below - rounding <= u <= below + probabilities[token] / total + rounding


def sampled(seed: int, **options) -> list[dict]:
    return [
        line(i, len(asked["source_ids"]), max_target_tokens=12, **options, seed=seed + i)
        for i, asked in enumerate(SOURCES)
    ]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.7},
        {"top_k": 40},
        {"top_p": 0.4},
        {"top_k": 200, "top_p": 0.6, "temperature": 1.5},
        {"min_p": 0.2, "top_p": 0.9},
    ],
    ids=str,
)
def test_tokens_match_recomputed_draws(decode, options):
    """Recomputes the draws in Python: Philox, softmax of the eager model, and a sort."""
    import torch

    from linnet_model.network.encoder_decoder import forced_logits

    model = eager_model()
    lines = sampled(2**40 + 5, **options, n_best=1, min_target_tokens=0)
    for asked, (best,) in zip(lines, decode(lines), strict=True):
        source = asked["source_ids"]
        with torch.no_grad():
            logits = forced_logits(
                model,
                torch.tensor([source]),
                torch.tensor([len(source)], dtype=torch.int32),
                torch.tensor([best["ids"]]),
            )[0]
        logits = logits.double() / options.get("temperature", 1.0)
        scores = logits.log_softmax(-1)
        for position, token in enumerate(best["ids"]):
            assert best["token_scores"][position] == pytest.approx(
                scores[position, token].item(), abs=1e-4
            )
            if position == 12:
                continue  # the end token is forced there
            probabilities = scores[position].exp().tolist()
            probabilities[PAD] = 0.0
            u = uniform(asked["options"]["seed"], 0, position)
            check_draw(probabilities, options, u, token)


def test_sampling_is_batch_invariant(decode):
    lines = sampled(17, n_best=3) + sampled(18, n_best=2, top_k=9) + SOURCES
    lines += [asked | {"target_ids": [9, 8, EOS]} for asked in SOURCES]
    lines += with_options(sampled(19, n_best=4, top_p=0.8), beam_size=6)
    alone = decode(lines, "--batch", "1")
    assert decode(lines, "--batch", "32") == alone
    order = list(range(len(lines)))
    random.Random(4).shuffle(order)
    mixed = decode([lines[i] for i in order], "--batch", "5")
    assert [mixed[order.index(i)] for i in range(len(lines))] == alone
    assert decode(lines, "--batch", "5", threads=1) == alone


def test_draws_beam_size_and_returns_n_best(decode):
    (three,) = decode([line(1, 9, n_best=3, seed=5)])
    assert len(three) == 3
    (best_of_three,) = decode([line(1, 9, beam_size=3, n_best=1, seed=5)])
    assert best_of_three == three[:1]
    scores = [h["score"] for h in three]
    assert scores == sorted(scores, reverse=True)
    # One target by default, not the bundle's beam of five.
    asked = line(1, 9, seed=5)
    (one,) = decode([asked])
    assert len(one) == 1
    assert one[0] in three
    # The flags, and a line that overrides them.
    plain = {"source_ids": asked["source_ids"], "options": {"max_target_tokens": 12}}
    ((by_flag,),) = decode([plain], "--seed", "5")
    ((by_line,),) = decode([line(1, 9, max_target_tokens=12, seed=5)])
    assert by_flag == by_line
    flags = ("--top-k", "3", "--top-p", "0.5", "--temperature", "0.5", "--n-best", "2")
    options = {"top_k": 3, "top_p": 0.5, "temperature": 0.5, "n_best": 2, "seed": 5}
    assert decode([plain], *flags, "--seed", "5") == decode(
        [plain | {"options": {"max_target_tokens": 12} | options}]
    )


def test_sampled_target_has_its_score(decode):
    lines = sampled(3, n_best=2, top_k=50, temperature=1.2)
    for asked, drawn in zip(lines, decode(lines), strict=True):
        options = {"temperature": 1.2}
        given = {"source_ids": asked["source_ids"], "options": options}
        scored = decode([given | {"target_ids": h["ids"]} for h in drawn])
        assert scored == [[as_given(h)] for h in drawn]


def test_first_token_frequencies_match_model(decode):
    """2000 requests that differ only in their seed."""
    import torch

    from linnet_model.network.encoder_decoder import forced_logits

    source, draws, top_k = SOURCES[1]["source_ids"], 2000, 8
    lines = [
        {
            "source_ids": source,
            "options": {"seed": seed, "top_k": top_k, "max_target_tokens": 1},
        }
        for seed in range(draws)
    ]
    seen = Counter(best["ids"][0] for (best,) in decode(lines, "--batch", "64"))
    with torch.no_grad():
        logits = forced_logits(
            eager_model(),
            torch.tensor([source]),
            torch.tensor([len(source)], dtype=torch.int32),
            torch.tensor([[EOS]]),
        )[0, 0].double()
    logits[[PAD, EOS]] = -math.inf  # min_target_tokens is 1
    best = logits.topk(top_k)
    expected = dict(
        zip(best.indices.tolist(), (best.values.softmax(0) * draws).tolist(), strict=True)
    )
    assert set(seen) <= set(expected)
    statistic = sum((seen[token] - e) ** 2 / e for token, e in expected.items())
    assert statistic < 24.3  # exceeded once in 1000 with 7 degrees of freedom; the seeds are fixed


BAD_OPTIONS = [
    ({"top_k": -1}, "top_k is -1, it must be at least 0"),
    ({"top_k": 1.5}, "top_k is 1.5, it must be an integer"),
    ({"top_p": 0}, "top_p is 0, it must be above 0 and at most 1"),
    ({"top_p": 1.25}, "top_p is 1.25, it must be above 0 and at most 1"),
    ({"seed": -1}, "seed is -1, it must be an integer from 0 to"),
    ({"seed": 2**64}, "seed is 1.8446744073709552e+19, it must be an integer from 0 to"),
    ({"seed": 1, "beam_size": 2, "n_best": 3}, "n_best is 3"),
    ({"seed": 1, "n_best": 33}, "beam_size is 33"),
]


def test_refuses_bad_options(run, bundle):
    done = run(
        bundle, lines=[{"source_ids": [9, EOS], "options": options} for options, _ in BAD_OPTIONS]
    )
    assert done.status == 1
    for (options, message), answer in zip(BAD_OPTIONS, done.answers, strict=True):
        assert message in answer["error"]["message"], options
