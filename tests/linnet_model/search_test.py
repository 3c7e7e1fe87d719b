"""Tests of the Python search: greedy is argmax, a wide beam is exact, batch invariance."""

import itertools
from pathlib import Path

import pytest
import torch

from linnet_model.bundle import load_module
from linnet_model.config import ModelConfig
from linnet_model.export.random_bundle import random_bundle
from linnet_model.export.search import Options, banned, beam_search, repeating
from linnet_model.network.encoder_decoder import EOS, PAD, UNK, EncoderDecoder, forced_logits
from linnet_model.network.model_config import ConfigError
from linnet_model.train.validation import greedy

SOURCES = [[7, 9, 4, EOS], [5, EOS], [4, 4, 8, 10, 6, 5, EOS]]


@pytest.fixture(scope="module")
def pair():
    """A model with few tokens and peaked distributions, and its scripted form."""
    sizes = ModelConfig(
        vocabulary=11, width=16, ffn_width=16, heads=2, encoder_kernels=[3], decoder_kernels=[3]
    )
    sizes.check()
    torch.manual_seed(11)
    model = EncoderDecoder(sizes).eval()
    with torch.no_grad():
        model.decoder_norm.weight.mul_(3)
    return model, torch.jit.script(model)


def log_probability(model: EncoderDecoder, source: list[int], target: list[int]) -> float:
    """Returns the log-probability of a target with its end token by the training path, without
    PAD."""
    ids = torch.tensor([target])
    with torch.no_grad():
        logits = forced_logits(model, torch.tensor([source]), torch.tensor([len(source)]), ids)
    logprobs = logits[0].log_softmax(dim=-1)
    return float(sum(logprobs[t, token] for t, token in enumerate(target)))


def test_scores_equal_training_path_log_probabilities(pair):
    model, module = pair
    options = Options(beam_size=3, length_penalty=0.7, max_target_tokens=6)
    for source, found in zip(SOURCES, beam_search(module, SOURCES, options, 100), strict=True):
        assert len(found) == 3
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        for hypothesis in found:
            assert hypothesis.ids[-1] == EOS
            expected = log_probability(model, source, hypothesis.ids) / len(hypothesis.ids) ** 0.7
            assert hypothesis.score == pytest.approx(expected, abs=1e-4)


def test_beam_of_one_is_greedy(pair):
    model, module = pair
    options = Options(beam_size=1, min_target_tokens=0, max_target_tokens=8)
    for source, found in zip(SOURCES, beam_search(module, SOURCES, options, 100), strict=True):
        expected = greedy(model, torch.tensor([source]), torch.tensor([len(source)]), 8)[0]
        assert found[0].ids == [*expected, EOS]


def test_greedy_ends_with_the_learned_positions():
    sizes = ModelConfig(
        vocabulary=11, width=16, heads=2, positions="learned", max_positions=6, output_bias=True
    )
    sizes.check()
    model = EncoderDecoder(sizes)
    with torch.no_grad():
        model.output_bias[EOS] = -100.0  # a model that never ends a target by itself
    source = torch.tensor([[7, 9, 4, 4, 5, EOS]])
    (answer,) = greedy(model, source, torch.tensor([6]), 22)
    assert len(answer) == 6
    assert len(greedy(model, source, torch.tensor([6]), 3)[0]) == 3


def test_wide_beam_finds_best_of_all_targets(pair):
    model, module = pair
    source, maximum = SOURCES[0], 2
    tokens = [t for t in range(11) if t not in (EOS, PAD)]
    every = [
        [*target, EOS]
        for length in range(1, maximum + 1)
        for target in itertools.product(tokens, repeat=length)
    ]
    scores = {tuple(t): log_probability(model, source, t) / len(t) for t in every}
    options = Options(beam_size=len(every), max_target_tokens=maximum)
    found = beam_search(module, [source], options, 100)[0]
    assert tuple(found[0].ids) == max(scores, key=scores.get)


def test_answers_are_batch_invariant(pair):
    _, module = pair
    options = Options(beam_size=4, max_target_tokens=9)
    together = beam_search(module, SOURCES, options, 100)
    for source, found in zip(SOURCES, together, strict=True):
        alone = beam_search(module, [source], options, 100)[0]
        assert [h.ids for h in alone] == [h.ids for h in found]


def test_search_obeys_length_and_ngram_limits(pair):
    _, module = pair
    options = Options(beam_size=3, min_target_tokens=4, max_target_tokens=7, no_repeat_ngram_size=2)
    for found in beam_search(module, SOURCES, options, 100):
        for hypothesis in found:
            assert 5 <= len(hypothesis.ids) <= 8
            pairs = list(itertools.pairwise([EOS, *hypothesis.ids]))
            assert len(set(pairs)) == len(pairs)
    short = beam_search(module, SOURCES, Options(beam_size=2, max_target_tokens=50), 3, 3)
    assert all(len(h.ids) <= 4 for found in short for h in found)


def test_unknown_penalty_suppresses_unknown_token(pair):
    _, module = pair
    options = Options(beam_size=3, unknown_penalty=1e4, max_target_tokens=9)
    found = beam_search(module, SOURCES, options, 100)
    assert all(UNK not in h.ids for hypotheses in found for h in hypotheses)


@pytest.mark.parametrize(
    ("tokens", "size", "expected"),
    [
        ([], 2, []),
        ([5, 6, 5], 2, [6]),
        ([5, 6, 7, 5, 6], 3, [7]),
        ([5, 6, 5, 7, 5], 2, [6, 7]),
        ([5, 6], 0, []),
    ],
)
def test_bans_tokens_that_repeat_ngram(tokens: list[int], size: int, expected: list[int]):
    assert banned(tokens, size) == expected


@pytest.mark.parametrize(
    ("tokens", "times", "expected"),
    [
        ([], 1, []),
        ([5], 1, [5]),
        ([5], 2, []),
        ([5, 5], 2, [5]),
        ([5, 6, 5, 6], 2, [5]),
        ([5, 6, 5, 6, 5], 2, [6]),
        ([5, 6, 5], 1, [5, 6]),
        ([6, 5, 6, 5, 7], 2, []),
        ([5, 5], 0, []),
        (list(range(16)) * 2 + list(range(13)), 2, []),
        (list(range(16)) * 2 + list(range(14)), 2, [14]),
        (list(range(16)) * 2 + list(range(15)), 2, [15]),
        (list(range(17)) * 2 + list(range(16)), 2, []),
    ],
)
def test_bans_tokens_that_repeat_ngram_in_a_row(tokens: list[int], times: int, expected: list[int]):
    assert repeating(tokens, times) == expected


def test_repeats_of_source_are_allowed():
    options = Options(max_ngram_repeats=2)
    assert options.repeats([5, 6, 7, 2]) == 2
    assert options.repeats([5, 6, 5, 6, 2]) == 2
    assert options.repeats([5, 6, 5, 6, 5, 2]) == 3
    assert options.repeats([5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 2]) == 4
    assert Options().repeats([5, 5, 5, 2]) == 0


def test_target_limit_depends_on_source_length():
    options = Options(max_target_ratio=1.5, max_target_tokens=10)
    assert options.limit(5, 100) == 17
    assert options.limit(500, 100) == 100


def test_search_runs_in_bfloat16(tmp_path: Path):
    random_bundle(tmp_path, "tiny", 60, seed=1)
    module = load_module(tmp_path / "model.pt", torch.bfloat16)
    found = beam_search(module, SOURCES, Options(beam_size=2, max_target_tokens=5), 100)
    assert all(len(hypotheses) == 2 for hypotheses in found)


def test_defaults_that_it_does_not_have_are_refused():
    with pytest.raises(ConfigError, match="has hop by default, which the search in Python"):
        Options.of_manifest({"default_options": {"beam_size": 2, "hop": 1}})
    assert Options.of_manifest({"default_options": {"beam_size": 2}}).beam_size == 2
