"""Tests of source attention, feed-forward blocks and layers."""

import math

import pytest
import torch

from linnet_model.network.dropout import KeepAll
from linnet_model.network.layers import DecoderLayer, EncoderAttention, FeedForward
from linnet_model.network.model_config import ModelConfig

KEEP = KeepAll()


def test_source_attention_steps_equal_formula():
    torch.manual_seed(1)
    width, heads, lengths = 8, 2, torch.tensor([6, 2], dtype=torch.int32)
    attention = EncoderAttention(width, heads, dropout=0.1)
    x, encoded = torch.randn(2, 3, width), torch.randn(2, 6, width)
    bias = torch.zeros(2, 1, 6)
    bias[1, :, 2:] = -math.inf
    with torch.no_grad():
        got = attention(x, encoded, bias, KEEP)
        keys, values = attention.key_value(encoded).split(width, dim=-1)
        query = attention.query(x)
        expected = torch.zeros(2, 3, width)
        for b in range(2):
            seen = int(lengths[b])
            for h in range(heads):
                part = slice(4 * h, 4 * h + 4)
                scores = query[b, :, part] @ keys[b, :seen, part].t() / 2.0
                expected[b, :, part] = scores.softmax(-1) @ values[b, :seen, part]
        expected = attention.output(expected)
        # 1e-5: float32 sums in another order
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
        pool = attention.keys_values(encoded)  # one block of 6 per source
        blocks = torch.tensor([[0], [1]], dtype=torch.int32)
        for t in range(3):
            step = attention.step(x[:, t].contiguous(), pool, blocks, lengths)
            torch.testing.assert_close(step, expected[:, t], rtol=1e-5, atol=1e-6)


def normal_distribution(x: torch.Tensor) -> torch.Tensor:
    return (1 + torch.erf(x / math.sqrt(2))) / 2


@pytest.mark.parametrize(
    ("activation", "formula"),
    [
        ("relu", lambda x: x.clamp(min=0)),
        ("swish", lambda x: x * torch.sigmoid(x)),
        ("gelu", lambda x: x * normal_distribution(x)),
    ],
)
def test_feed_forward_uses_configured_activation(activation: str, formula):
    torch.manual_seed(2)
    block = FeedForward(6, 10, activation, dropout=0.1)
    x = torch.randn(4, 6)
    with torch.no_grad():
        expected = block.fc2(formula(block.fc1(x)))
        torch.testing.assert_close(block(x, KEEP), expected)
        torch.testing.assert_close(block.serve(x), expected)


@pytest.mark.parametrize("pre_norm", [True, False])
def test_norms_precede_blocks_or_follow_residual(pre_norm: bool):
    config = ModelConfig(width=8, ffn_width=12, heads=2, pre_norm=pre_norm)
    torch.manual_seed(3)
    layer = DecoderLayer(config, "light", 3, 1, has_source=False)
    x = torch.randn(1, 5, 8)
    with torch.no_grad():
        norm, mixer, ffn = layer.mixer_norm, layer.mixer, layer.ffn
        if pre_norm:
            y = x + mixer(norm(x), None, KEEP)
            expected = y + ffn(layer.ffn_norm(y), KEEP)
        else:
            y = norm(x + mixer(x, None, KEEP))
            expected = layer.ffn_norm(y + ffn(y, KEEP))
        torch.testing.assert_close(layer(x, None, None, KEEP), expected)


def test_layer_without_source_has_no_attention_weights():
    config = ModelConfig(width=8, ffn_width=12, heads=2)
    names = [n for n, _ in DecoderLayer(config, "light", 3, 1, has_source=False).named_parameters()]
    assert names
    assert not [name for name in names if "attention" in name]
