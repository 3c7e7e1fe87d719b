"""self_attention against torch's attention, and properties."""

import pytest
import torch
import torch.nn.functional as F
from op_cases import assert_near, ints, numbers, sequence_arguments
from torch import Tensor

TYPES = [torch.float32, torch.bfloat16]
attend = torch.ops.linnet.self_attention

# (batch, time, size, heads)
SHAPES = [
    (1, 1, 4, 1),
    (3, 5, 64, 4),  # as many positions as one group has
    (4, 31, 512, 8),  # the base model
    (2, 17, 256, 8),  # the student
    (2, 9, 130, 2),  # 65 channels per head: vectors and a rest
    (3, 200, 96, 3),
]


def torch_attention(query_key_value: Tensor, heads: int) -> Tensor:
    """[T, 3 d] -> float64 [T, d]."""
    time = len(query_key_value)
    parts = query_key_value.double().view(time, 3, heads, -1)
    q, k, v = parts.permute(1, 2, 0, 3)
    return F.scaled_dot_product_attention(q, k, v).transpose(0, 1).reshape(time, -1)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_torch_attention_up_to_the_length_and_is_zero_after_it(shape, dtype):
    batch, time, size, heads = shape
    x, lengths = sequence_arguments(batch, time, size, dtype)
    got = attend(x, lengths, heads)
    assert got.dtype == dtype
    assert got.shape == (batch, time, size)
    for b, length in enumerate(lengths.tolist()):
        if length > 0:
            assert_near(got[b, :length], torch_attention(x[b, :length], heads), dtype)
        assert not got[b, length:].any()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_sequence_has_the_same_bits_beside_others_and_at_any_padding(dtype):
    x, lengths = sequence_arguments(4, 40, 96, dtype)
    together = attend(x, lengths, 3)
    for b, length in enumerate(lengths.tolist()):
        alone = attend(x[b : b + 1, :length], lengths[b : b + 1], 3)
        assert torch.equal(alone[0], together[b, :length])


def test_reads_nothing_behind_a_length():
    x, lengths = sequence_arguments(2, 12, 32)
    want = attend(x, lengths, 4)
    x[1, int(lengths[1]) :] = torch.nan
    assert torch.equal(attend(x, lengths, 4), want)


def test_takes_views():
    x, lengths = sequence_arguments(3, 11, 32)
    view = x.transpose(0, 1).contiguous().transpose(0, 1)
    assert torch.equal(attend(view, lengths, 4), attend(x, lengths, 4))


@pytest.mark.parametrize(
    ("x", "lengths", "heads", "message"),
    [
        (numbers(1, 2, 3, 13), ints(1, 2), 1, "13 channels, must have three times as many"),
        (numbers(1, 2, 3, 12), ints(1, 2), 3, "heads"),
        (numbers(1, 2, 3, 12), ints(1, 4), 2, "lengths"),
        (numbers(1, 2, 3, 12), ints(1), 2, "lengths"),
        (numbers(1, 3, 12), ints(1), 2, "needs 3 dimensions"),
    ],
)
def test_refuses_wrong_arguments(x, lengths, heads, message):
    with pytest.raises(RuntimeError, match=f"self_attention: .*{message}"):
        attend(x, lengths, heads)
