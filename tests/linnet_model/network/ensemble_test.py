"""Tests of ensembles: they average probabilities, step by step, and script like their members."""

from __future__ import annotations

import io

import pytest
import torch
from torch import Tensor

from linnet_model.network import ops
from linnet_model.network.encoder_decoder import EOS, EncoderDecoder, forced_logits
from linnet_model.network.ensemble import Ensemble, check_members
from linnet_model.network.model_config import ConfigError, ModelConfig

VOCABULARY, ROWS, LENGTH = 30, 3, 6
TOLERANCE = 1e-5  # float32, summed in another order


def config(width: int, **changes) -> ModelConfig:
    sizes = {"vocabulary": VOCABULARY, "width": width, "ffn_width": 24, "heads": 2}
    sizes |= {"encoder_kernels": [3], "decoder_kernels": [3, 5]} | changes
    made = ModelConfig(**sizes)
    made.check()
    return made


@pytest.fixture(scope="module")
def members() -> list[EncoderDecoder]:
    """The members differ in width, depth and mixers."""
    ops.load()
    torch.manual_seed(3)
    attention = {"encoder_mixers": ["self_attention"], "decoder_mixers": ["self_attention"]}
    attention |= {"encoder_kernels": [0], "decoder_kernels": [0, 0, 0], "max_positions": 20}
    configs = [config(16), config(8, **attention), config(16, decoder_mixers=["light"])]
    models = [EncoderDecoder(one).eval() for one in configs]
    for model in models:
        for parameter in model.parameters():
            parameter.data.mul_(2.0)
    return models


def batch() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(4, VOCABULARY, (ROWS, LENGTH), generator=generator)
    target = torch.randint(4, VOCABULARY, (ROWS, LENGTH), generator=generator)
    return source, torch.full((ROWS,), LENGTH, dtype=torch.int32), target


def steps(module, method: str, *more: Tensor) -> list:
    """The results of `method` for each token of the target, one row and cache block each."""
    source, lengths, target = batch()
    cache = [layer.contiguous() for layer in module.encode(source, lengths)]
    state = module.new_state(ROWS)
    blocks = torch.arange(ROWS, dtype=torch.int32).unsqueeze(1)
    rows = torch.arange(ROWS, dtype=torch.int32).unsqueeze(1)
    reach = max(ring.size(0) for ring in state)
    backpointers = rows.expand(ROWS, reach).contiguous()
    previous, results = torch.full((ROWS,), EOS), []
    for i in range(LENGTH):
        positions = torch.full((ROWS,), i, dtype=torch.int32)
        arguments = (previous, positions, backpointers, blocks, lengths, cache, state)
        results.append(getattr(module, method)(*arguments, *more))
        previous = target[:, i]
    return results


@torch.no_grad()
def average(members: list[EncoderDecoder]) -> Tensor:
    """log of the mean probability of every token, by the members' training path [B, T, V]."""
    source, lengths, target = batch()
    log_p = [forced_logits(m, source, lengths, target).log_softmax(-1) for m in members]
    return torch.stack(log_p).exp().mean(0).log()


@torch.no_grad()
def test_steps_average_the_probabilities(members):
    found = torch.stack(steps(Ensemble(members).eval(), "step"), dim=1)
    expected = average(members)
    assert expected.std() > 0.5
    torch.testing.assert_close(found, expected, rtol=TOLERANCE, atol=TOLERANCE)
    alone = forced_logits(members[0], *batch()).log_softmax(-1)
    assert (found - alone).abs().max() > 0.1, "it is not the first member"


def test_leaves_the_best_logits_to_the_engine(members):
    ensemble = Ensemble(members).eval()
    assert not torch.jit.script(ensemble).picks_best
    counts, temperatures = torch.ones(ROWS, dtype=torch.int32), torch.ones(ROWS)
    with pytest.raises(AssertionError, match="no step_best"):
        list(steps(ensemble, "step_best", counts, counts, temperatures))


@torch.no_grad()
@pytest.mark.parametrize("kind", ["", "float32"])
def test_scripted_equals_eager(members, kind: str):
    eager = torch.stack(steps(Ensemble(members).eval(), "step"))
    scripted = torch.jit.script(Ensemble(members).eval())
    again = torch.jit.load(saved(scripted))
    if kind:
        again.pack(kind)
    found = torch.stack(steps(again, "step"))
    torch.testing.assert_close(found, eager, rtol=TOLERANCE, atol=10 * TOLERANCE)


@torch.no_grad()
def test_int8_gives_probabilities(members):
    scripted = torch.jit.load(saved(torch.jit.script(Ensemble(members).eval())))
    scripted.pack("int8")
    for log_p in steps(scripted, "step"):
        torch.testing.assert_close(log_p.logsumexp(-1), torch.zeros(ROWS), rtol=0, atol=TOLERANCE)


def saved(module) -> io.BytesIO:
    file = io.BytesIO()
    torch.jit.save(module, file)
    file.seek(0)
    return file


@torch.no_grad()
def test_alignment_is_the_mean_of_the_members(members):
    found = steps(Ensemble(members).eval(), "align", 1)
    each = [steps(member, "align", min(1, len(member.decoder) - 1)) for member in members]
    # Steps of `align` alone do not change later layers, so only the first is compared.
    expected = torch.stack([one[0] for one in each]).mean(0)
    torch.testing.assert_close(found[0], expected, rtol=0, atol=TOLERANCE)
    torch.testing.assert_close(found[0].sum(-1), torch.ones(ROWS))


def test_shortlists_are_refused_by_name(members):
    scripted = torch.jit.script(Ensemble(members).eval())
    with pytest.raises(torch.jit.Error, match="serve it without a shortlist"):
        scripted.output_rows(torch.tensor([1], dtype=torch.int32))


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ([config(16)], "an ensemble of 1 models, there must be from 2 to 16"),
        ([config(16)] * 17, "an ensemble of 17 models"),
        ([config(16), config(16, vocabulary=31)], "model 2 of the ensemble has vocabularies of 31"),
        ([config(16), config(16, encoder_kernels=[])], "model 2 of the ensemble is a language"),
    ],
    ids=["one", "many", "vocabulary", "language model"],
)
def test_refuses_models_that_do_not_fit(configs: list[ModelConfig], message: str):
    with pytest.raises(ConfigError, match=message):
        check_members(configs)
