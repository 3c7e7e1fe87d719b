"""Tests that training path, serving path and scripted module are equal for all recipes."""

import io
import sys
from pathlib import Path

import pytest
import torch
from stepwise import stepwise

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

from forced_attention import forced_attention

from linnet_model.config import ConfigError, ModelConfig
from linnet_model.network.dropout import KeepAll
from linnet_model.network.encoder_decoder import (
    EOS,
    PAD,
    EncoderDecoder,
    forced_logits,
    parameter_count,
)
from linnet_model.network.input_embedding import sinusoids
from linnet_model.network.model_config import MIXERS

SSRU = {"decoder_mixers": ["ssru"], "decoder_kernels": [0, 0]}
SEE_ALL = {"encoder_mixers": ["self_attention"], "decoder_mixers": ["self_attention"]}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}  # float32 sums in two orders, over four layers


def make_model(**changes) -> EncoderDecoder:
    sizes = ModelConfig(
        **{
            "vocabulary": 50,
            "width": 16,
            "ffn_width": 24,
            "heads": 4,
            "encoder_kernels": [3, 7],
            "decoder_kernels": [5, 3],
            **changes,
        }
    )
    sizes.check()
    torch.manual_seed(5)
    model = EncoderDecoder(sizes).eval()
    if model.output_bias is not None:
        torch.nn.init.normal_(model.output_bias)
    return model


def stepwise_logits(module, source, lengths, target) -> torch.Tensor:
    return stepwise(module, "step", source, lengths, target)


def scenario() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(6)
    lengths = torch.tensor([9, 5, 1], dtype=torch.int32)
    source = torch.randint(4, 50, (3, 9))
    for row, length in enumerate(lengths.tolist()):
        source[row, length - 1] = EOS
        source[row, length:] = PAD
    return source, lengths, torch.randint(4, 50, (3, 12))


MODELS = [
    {},
    {"pre_norm": False},
    {"glu": False},
    {"encoder_mixers": ["light"], "decoder_mixers": ["light"]},
    {"encoder_mixers": ["depthwise"], "decoder_mixers": ["depthwise"]},
    {"encoder_mixers": ["full"], "decoder_mixers": ["full"]},
    {"encoder_mixers": ["light", "dynamic"], "weight_softmax": False},
    {"encoder_mixers": ["dilated"], "encoder_dilations": [1, 2], "pre_norm": False},
    {"decoder_mixers": ["dilated"], "decoder_dilations": [2, 4]},
    {**SEE_ALL, "encoder_kernels": [0, 0], "decoder_kernels": [0, 0]},
    {**SEE_ALL, "pre_norm": False, "encoder_kernels": [3, 0], "decoder_kernels": [2, 0]},
    {"encoder_mixers": ["csan_1d"], "decoder_mixers": ["csan_1d"]},
    {"encoder_mixers": ["csan_2d"], "decoder_mixers": ["csan_2d"], "decoder_kernels": [4, 2]},
    {"encoder_mixers": ["csan_2d", "dynamic"], "decoder_mixers": ["light", "csan_1d"]},
    {**SSRU, "pre_norm": False},
    {"decoder_mixers": ["ssru", "dynamic"], "decoder_kernels": [0, 5]},
    {"positions": "sinusoidal_marian", "first_position": 0, "activation": "swish"},
    {"positions": "learned", "max_positions": 12, "activation": "gelu"},
    {"positions": "none", "scale_embedding": False, "output_bias": True},
    {"norm_epsilon": 0.3, "pre_norm": False, **SSRU},
    {"norm_epsilon": 0.3, "pre_norm": False},
    {"norm_epsilon": 0.3},
    {"encoder_mixers": ["dynamic", "light"], "decoder_mixers": ["light", "dynamic"]},
    {"sharing": "output", "target_vocabulary": 60},
    {"sharing": "none", "target_vocabulary": 60},
]
each_model = pytest.mark.parametrize(
    "changes",
    MODELS,
    ids=lambda changes: "-".join(f"{k}={v}" for k, v in changes.items()) or "plain",
)


@each_model
def test_serving_path_equals_training_path(changes: dict):
    model, (source, lengths, target) = make_model(**changes), scenario()
    with torch.no_grad():
        trained = forced_logits(model, source, lengths, target)
    torch.testing.assert_close(
        stepwise_logits(model, source, lengths, target), trained, **TOLERANCE
    )
    scripted = torch.jit.script(model)
    served = stepwise_logits(scripted, source, lengths, target)
    torch.testing.assert_close(served, trained, **TOLERANCE)


# One model for each kind of decoder.
DECODERS = list(
    {
        str(
            [m.get(f"decoder_{key}") for key in ("mixers", "kernels")] + [m.get("weight_softmax")]
        ): m
        for m in MODELS
    }.values()
)


@pytest.mark.parametrize("changes", DECODERS, ids=str)
def test_several_tokens_in_a_step_have_the_bits_of_single_steps(changes: dict):
    source, lengths, target = scenario()
    saved = io.BytesIO()
    torch.jit.save(torch.jit.script(make_model(**changes)), saved)
    cuts = [[12], [5, *[1] * 7], [1, 4, 2, 5], [3, 3, 6]]
    # These call an operator several times in a step, which fits runs from the first position on.
    if changes.get("weight_softmax") is False or "full" in changes.get("decoder_mixers", []):
        cuts = cuts[:2]
    for kind in ("float32", "int8"):
        saved.seek(0)
        module = torch.jit.load(saved)
        module.pack(kind)
        for method, more in (("step", ()), ("align", (1,))):
            single = stepwise(module, method, source, lengths, target, *more)
            for runs in cuts:
                got = stepwise(module, method, source, lengths, target, *more, runs=runs)
                assert torch.equal(got, single)


@each_model
@torch.no_grad()
def test_sources_in_blocks_have_the_bits_of_padded_ones(changes: dict):
    source, lengths, _ = scenario()
    saved, block = io.BytesIO(), 4
    torch.jit.save(torch.jit.script(make_model(**changes)), saved)
    unused = torch.full((block,), PAD)
    rows, row_lengths, starts = [unused], [0], [0]
    for b in (2, 0, 1):
        for start in range(0, int(lengths[b]), block):
            row = torch.cat([source[b, start : start + block], unused])[:block]
            rows, starts = [*rows, row], [*starts, start]
            row_lengths.append(int(lengths[b]))
    inputs = torch.stack(rows), *(torch.tensor(it).int() for it in (row_lengths, starts))
    for kind in ("float32", "int8"):
        saved.seek(0)
        module = torch.jit.load(saved)
        module.pack(kind)
        if not module.packs_sources:
            with pytest.raises(torch.jit.Error, match="takes no blocks"):
                module.encode_blocks(*inputs)
            continue
        padded, packed = module.encode(source, lengths), module.encode_blocks(*inputs)
        for want, got in zip(padded, packed, strict=True):
            row = 1
            for b in (2, 0, 1):
                length = int(lengths[b])
                count = -(-length // block)
                own = got[row : row + count].flatten(0, 1)[:length]
                assert torch.equal(own, want[b, :length])
                row += count


def test_windows_of_attention_take_no_blocks():
    window = {"encoder_mixers": ["self_attention"], "encoder_kernels": [3, 3]}
    for changes in (window, {"encoder_mixers": ["csan_1d"]}, {"encoder_mixers": ["csan_2d"]}):
        assert not make_model(**changes).packs_sources
    assert make_model(**SEE_ALL, encoder_kernels=[0, 0]).packs_sources
    assert not make_model(encoder_kernels=[], sharing="output").packs_sources


@each_model
def test_alignment_equals_training_attention(changes: dict):
    model, (source, lengths, target) = make_model(**changes), scenario()
    for module in (model, torch.jit.script(model)):
        for layer in range(2):
            expected = forced_attention(forced_logits, model, source, lengths, target, layer)
            served = stepwise(module, "align", source, lengths, target, layer)
            torch.testing.assert_close(served[:, :, : source.size(1)], expected, **TOLERANCE)
            assert not served[:, :, source.size(1) :].any(), "weight behind the source"
            for row, length in enumerate(lengths.tolist()):
                assert not served[row, :, length:].any(), "weight behind a source's end"


def test_source_padding_does_not_change_logits():
    model, (source, lengths, target) = make_model(), scenario()
    with torch.no_grad():
        together = forced_logits(model, source, lengths, target)
        for row, length in enumerate(lengths.tolist()):
            alone = forced_logits(
                model, source[row : row + 1, :length], lengths[row : row + 1], target[row : row + 1]
            )
            torch.testing.assert_close(together[row : row + 1], alone, **TOLERANCE)


def test_target_token_ignores_later_tokens():
    model, (source, lengths, target) = make_model(), scenario()
    changed = target.clone()
    changed[:, 7:] = 9  # input of step 8
    with torch.no_grad():
        a = forced_logits(model, source, lengths, target)
        b = forced_logits(model, source, lengths, changed)
    torch.testing.assert_close(a[:, :8], b[:, :8], rtol=0, atol=0)
    assert not torch.allclose(a[:, 8:], b[:, 8:])


def test_target_padding_does_not_change_logits():
    source, lengths, target = scenario()
    for mixer in MIXERS:
        model = make_model(**(SSRU if mixer == "ssru" else {"decoder_mixers": [mixer]}))
        with torch.no_grad():
            together = forced_logits(model, source, lengths, target)
            alone = forced_logits(model, source, lengths, target[:, :5])
        torch.testing.assert_close(together[:, :5], alone, **TOLERANCE)


@pytest.mark.parametrize(("name", "steps"), [("sinusoidal", 7), ("sinusoidal_marian", 8)])
def test_positions_are_exact_in_bfloat16_module(name: str, steps: int):
    numbers = torch.tensor([0, 1, 255, 256, 257, 1000, 1001])
    frequencies = 10000.0 ** (-torch.arange(8, dtype=torch.float64) / steps)
    angles = numbers.double().unsqueeze(1) * frequencies
    expected = torch.cat([angles.sin(), angles.cos()], dim=1)
    # 1e-4: float32 represents an angle of 1000 to 6e-5
    torch.testing.assert_close(
        sinusoids(numbers, 16, float(steps)).double(), expected, rtol=0, atol=1e-4
    )
    model = make_model(positions=name, first_position=3).to(torch.bfloat16)
    x = model.enter_source(torch.zeros(1, 301, 16, dtype=torch.bfloat16), torch.arange(301))
    assert x.dtype == torch.bfloat16
    assert torch.equal(x[0], sinusoids(torch.arange(3, 304), 16, float(steps)).to(torch.bfloat16))


def test_learned_positions_start_at_first_position():
    model = make_model(
        positions="learned", first_position=2, max_positions=6, scale_embedding=False
    )
    table = model.enter_target.table.weight
    assert tuple(table.shape) == (8, 16)
    with torch.no_grad():
        assert torch.equal(model.enter_target(torch.zeros(6, 16), torch.arange(6)), table[2:])
    assert not torch.equal(model.enter_source.table.weight, table)


def test_language_model_steps_equal_forward():
    _, lengths, target = scenario()
    for mixer in MIXERS:
        decoder = SSRU if mixer == "ssru" else {"decoder_mixers": [mixer]}
        model = make_model(encoder_kernels=[], sharing="output", **decoder)
        assert model.embed_source is None
        previous = torch.cat([torch.full((3, 1), EOS), target[:, :-1]], dim=1)
        with torch.no_grad():
            whole = model.project(model.decode_whole(previous, None, None, KeepAll()))
        for module in (model, torch.jit.script(model)):
            assert module.encode(target, lengths) == []
            steps = stepwise_logits(module, target[:, :1], lengths, target)
            torch.testing.assert_close(steps, whole, **TOLERANCE)


def test_refuses_lengths_beyond_positions_or_state():
    learned = ModelConfig(positions="learned", max_positions=20)
    learned.check()
    learned.check_lengths(20, 19)
    with pytest.raises(ConfigError, match=r"sources of 21 tokens do not fit .* 20, raise it"):
        learned.check_lengths(21, 19)
    whole = ModelConfig(decoder_mixers=["self_attention"], decoder_kernels=[0], max_positions=20)
    whole.check()
    whole.check_lengths(500, 19)
    with pytest.raises(ConfigError, match="targets of 20 tokens and an end token do not fit"):
        whole.check_lengths(500, 20)
    bounded = ModelConfig()
    bounded.check()
    bounded.check_lengths(5000, 5000)


def test_shared_table_exists_once():
    shared, apart = make_model(), make_model(sharing="none", target_vocabulary=50)
    assert parameter_count(apart) == parameter_count(shared) + 2 * 50 * 16
    assert [n for n, _ in shared.named_parameters() if "embed" in n or n == "output.weight"] == [
        "embed_source.weight"
    ]


def test_state_and_cache_have_type_of_module():
    module = torch.jit.script(make_model().to(torch.bfloat16))
    assert [tuple(s.shape) for s in module.new_state(6)] == [(5, 6, 16), (3, 6, 16)]
    assert [tuple(m.shape) for m in module.new_encoder_cache(2, 8)] == [(2, 8, 2, 16)] * 2
    for tensor in module.new_state(6) + module.new_encoder_cache(2, 8):
        assert tensor.dtype == torch.bfloat16
        assert not tensor.any()


@pytest.mark.parametrize("kind", [None, "float32", "int8"])
@pytest.mark.parametrize("changes", [{}, {"output_bias": True}], ids=["plain", "bias"])
def test_output_rows_give_same_logits(changes, kind):
    model = make_model(**changes)
    if kind:
        model = torch.jit.script(model)
        model.pack(kind)
    source, lengths, target = scenario()
    features = stepwise(model, "features", source, lengths, target)[:, 0]
    logits = stepwise_logits(model, source, lengths, target)[:, 0]
    tokens = torch.tensor([49, 3, 17, 2], dtype=torch.int32)
    with torch.no_grad():
        assert torch.equal(model.logits_of(features), logits)
        weight, bias = model.output_rows(tokens)
        few = torch.ops.linnet.linear(features, weight, bias)
    torch.testing.assert_close(few, logits[:, tokens.long()], rtol=0, atol=1e-6 if not kind else 0)


def test_reused_slot_ignores_old_state():
    model, (source, lengths, target) = make_model(), scenario()
    once = stepwise_logits(model, source, lengths, target)
    with torch.no_grad():
        memory, state = model.encode(source, lengths), model.new_state(3)
        for window in state:
            window.fill_(1e3)  # state of an earlier sequence
        rows = torch.arange(3, dtype=torch.int32).unsqueeze(1)
        first = model.step(
            torch.full((3,), EOS),
            torch.zeros(3, dtype=torch.int32),
            rows.repeat(1, 7),
            rows,
            lengths,
            memory,
            state,
        )
    torch.testing.assert_close(first, once[:, 0], **TOLERANCE)
