"""source_attention against plain loops, torch's attention, and properties."""

import op_reference as plain
import pytest
import torch
from op_cases import assert_near, attention_arguments, ints, numbers

TYPES = [torch.float32, torch.bfloat16]
attend = torch.ops.linnet.source_attention
weigh = torch.ops.linnet.source_attention_weights

# (lengths, size, heads, block_tokens)
SHAPES = [
    ([5], 16, 1, 4),
    ([1, 0, 3, 16, 17], 64, 4, 16),  # one token, idle, part of a block, a whole one, one more
    ([30, 31, 7, 0, 2], 512, 8, 16),  # the base model
    ([9, 4], 130, 2, 5),  # 65 channels per head: vectors and a rest
    ([6, 2, 1], 12, 12, 1),  # one channel per head, one token per block
    ([200, 129], 96, 3, 32),
    ([40], 256, 1, 16),  # the widest head on CUDA
]
SHAPE_NAMES = [f"{max(lengths)}-{size}-{heads}-{block}" for lengths, size, heads, block in SHAPES]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_equals_plain_loops(shape, dtype):
    lengths, size, heads, block_tokens = shape
    arguments = attention_arguments(lengths, size, block_tokens, dtype)
    got = attend(*arguments, heads)
    assert got.dtype == dtype
    assert got.shape == (len(lengths), size)
    assert_near(got, plain.source_attention(*arguments, heads), dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_weights_equal_plain_loops(shape, dtype):
    lengths, size, heads, block_tokens = shape
    arguments = attention_arguments(lengths, size, block_tokens, dtype)
    for head in (-1, 0, heads - 1):
        got = weigh(*arguments, heads, head)
        assert got.dtype == torch.float32
        assert_near(got, plain.source_attention_weights(*arguments, heads, head), torch.float32)
        for row in range(len(lengths)):
            one = slice(row, row + 1)
            alone = (arguments[0][one], arguments[1], arguments[2][one], arguments[3][one])
            assert torch.equal(weigh(*alone, heads, head)[0], got[row])


def test_weights_of_a_head_that_is_not_there_are_refused():
    for head in (-2, 4):
        with pytest.raises(RuntimeError, match=f"head is {head}, must lie between 0 and 3, or be"):
            weigh(*attention_arguments([5], 32, 4), 4, head)


def test_equals_torch_attention():
    query, encoder_cache, blocks, lengths = attention_arguments([21, 21, 21], 64, 8)
    heads = 4
    tokens = encoder_cache[blocks[:, :3].long()].reshape(3, 24, 2, heads, 16)[:, :21]
    keys, values = tokens[:, :, 0].transpose(1, 2), tokens[:, :, 1].transpose(1, 2)
    want = torch.nn.functional.scaled_dot_product_attention(
        query.view(3, heads, 1, 16), keys, values
    )
    got = attend(query, encoder_cache, blocks, lengths, heads)
    torch.testing.assert_close(got, want.reshape(3, 64), atol=2e-6, rtol=4e-6)


@pytest.mark.parametrize("heads", [1, 4])
def test_hypotheses_of_one_source_share_its_blocks(heads):
    query, encoder_cache, blocks, lengths = attention_arguments([13], 32, 4)
    queries = torch.cat([query, query * 2, query])
    got = attend(queries, encoder_cache, blocks.expand(3, -1), lengths.expand(3), heads)
    assert torch.equal(got[:1], attend(query, encoder_cache, blocks, lengths, heads))
    assert torch.equal(got[0], got[2])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("size", [512, 8 * 67])  # vectors, and vectors with a rest
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_of_several_sources_have_the_bits_of_each_alone(threads, size, dtype):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)  # which divide the rows of a source and its heads anywhere
    heads = 8
    _, encoder_cache, blocks, lengths = attention_arguments([40, 31, 0, 31, 64], size, 16, dtype)
    blocks[3, 0] = blocks[1, 0]  # begins as another source does
    order = torch.tensor([0] * 5 + [1] * 3 + [3] * 2 + [2] * 2 + [1] + [4] * 20)
    queries = torch.randn(len(order), size, generator=torch.Generator().manual_seed(5)).to(dtype)
    got = attend(queries, encoder_cache, blocks[order], lengths[order], heads)
    for i, row in enumerate(order):
        one = (queries[i : i + 1], encoder_cache, blocks[row][None], lengths[row][None])
        assert torch.equal(got[i : i + 1], attend(*one, heads)), i
    torch.set_num_threads(before)


def test_block_order_does_not_matter():
    query, encoder_cache, blocks, lengths = attention_arguments([9, 14], 32, 4)
    want = attend(query, encoder_cache, blocks, lengths, 2)
    order = torch.randperm(len(encoder_cache), generator=torch.Generator().manual_seed(1))
    where = torch.argsort(order).int()
    moved = torch.where(blocks >= 0, where[blocks.clamp(min=0).long()], blocks)
    assert torch.equal(attend(query, encoder_cache[order], moved, lengths, 2), want)


def test_ignores_tokens_after_the_source():
    query, encoder_cache, blocks, lengths = attention_arguments([6, 9], 32, 4)
    want = attend(query, encoder_cache, blocks, lengths, 2)
    spoiled = torch.full_like(encoder_cache, torch.nan)
    for row, length in enumerate(lengths.tolist()):
        for s in range(length):
            block = blocks[row, s // 4]
            spoiled[block, s % 4] = encoder_cache[block, s % 4]
    assert torch.equal(attend(query, spoiled, blocks, lengths, 2), want)


def test_is_batch_invariant():
    query, encoder_cache, blocks, lengths = attention_arguments([30, 1, 0, 17, 64, 5], 130, 16)
    whole = attend(query, encoder_cache, blocks, lengths, 2)
    for row in range(6):
        one = slice(row, row + 1)
        assert torch.equal(
            attend(query[one], encoder_cache, blocks[one], lengths[one], 2)[0], whole[row]
        )


def test_normalises_scores_of_any_size():
    query, encoder_cache, blocks, lengths = attention_arguments([12, 5], 32, 4)
    for factor in (0.0, 100.0, 1e6):
        got = attend(query * factor, encoder_cache, blocks, lengths, 2)
        want = plain.source_attention(query * factor, encoder_cache, blocks, lengths, 2)
        # scores of size `factor` are rounded at 6e-8 of it; at 1e6 only the largest one counts
        torch.testing.assert_close(got.double(), want, atol=1e-4, rtol=0)


def test_accepts_empty_input():
    encoder_cache = numbers(0, 2, 4, 2, 8)
    none = torch.zeros(0, 3, dtype=torch.int32)
    assert attend(torch.zeros(0, 8), encoder_cache, none, ints(), 2).shape == (0, 8)
    no_blocks = torch.zeros(1, 0, dtype=torch.int32)
    assert not attend(torch.ones(1, 8), encoder_cache, no_blocks, ints(0), 2).any()
    no_pool = torch.zeros(0, 4, 2, 8)
    assert not attend(torch.ones(1, 8), no_pool, no_blocks, ints(0), 2).any()


def test_accepts_non_contiguous_inputs():
    query, encoder_cache, blocks, lengths = attention_arguments([9, 14], 32, 4)
    want = attend(query, encoder_cache, blocks, lengths, 2)
    query, blocks, lengths = (torch.stack([t, t], -1)[..., 0] for t in (query, blocks, lengths))
    assert not (query.is_contiguous())
    assert not (blocks.is_contiguous())
    assert not (lengths.is_contiguous())
    assert torch.equal(attend(query, encoder_cache, blocks, lengths, 2), want)


REFUSED = {
    "float64": ({"query": torch.zeros(2, 8).double()}, "query is Double on cpu; supported are"),
    "encoder_cache of another type": (
        {"encoder_cache": torch.zeros(4, 3, 2, 8).bfloat16()},
        "need one type",
    ),
    "query of three dimensions": ({"query": torch.zeros(1, 2, 8)}, r"2 dimensions \[R, d\]"),
    "encoder_cache of three dimensions": (
        {"encoder_cache": torch.zeros(4, 3, 8)},
        r"4 dimensions \[N, P, 2, d\]",
    ),
    "encoder_cache of keys alone": (
        {"encoder_cache": torch.zeros(4, 3, 1, 8)},
        "keys and values. must be 2",
    ),
    "encoder_cache of another size": (
        {"encoder_cache": torch.zeros(4, 3, 2, 9)},
        r"\(d\) must be 8 as in query",
    ),
    "encoder_cache that is not contiguous": (
        {"encoder_cache": torch.zeros(4, 3, 8, 2).transpose(2, 3)},
        "must be contiguous: it is too large to be copied",
    ),
    "blocks of another row count": (
        {"blocks": torch.zeros(1, 2, dtype=torch.int32)},
        r"blocks has shape \[1, 2\], dimension 0 \(R\) must be 2",
    ),
    "int64 blocks": (
        {"blocks": torch.zeros(2, 2, dtype=torch.int64)},
        "blocks is Long, needs int32",
    ),
    "uneven heads": ({"heads": 3}, "8 channels do not fall into 3 heads"),
    "no heads": ({"heads": 0}, "number of heads is 0, must be at least 1"),
    "a length beyond the blocks": ({"lengths": ints(7, 1)}, r"lengths\[0\] is 7, .* 0 and 6"),
    "a negative length": ({"lengths": ints(1, -1)}, r"lengths\[1\] is -1, must lie between 0"),
    "a block that is not there": (
        {"blocks": torch.tensor([[0, 4], [0, 0]], dtype=torch.int32)},
        r"blocks\[0, 1\] is 4, must lie between 0 and 3",
    ),
}


@pytest.mark.parametrize("change", REFUSED, ids=str)
def test_refuses_wrong_arguments(change):
    changes, message = REFUSED[change]
    arguments = {
        "query": torch.zeros(2, 8),
        "encoder_cache": torch.zeros(4, 3, 2, 8),
        "blocks": torch.zeros(2, 2, dtype=torch.int32),
        "lengths": ints(6, 6),
        "heads": 2,
    }
    with pytest.raises(RuntimeError, match=message):
        attend(**(arguments | changes))


@pytest.mark.parametrize("dtype", [*TYPES, torch.float16], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_cuda_equals_plain_loops(cuda, shape, dtype):
    lengths, size, heads, block_tokens = shape
    arguments = attention_arguments(lengths, size, block_tokens, dtype)
    got = attend(*(tensor.to(cuda) for tensor in arguments), heads)
    assert_near(got, plain.source_attention(*arguments, heads), dtype)


def test_cuda_refuses_too_wide_head(cuda):
    query, encoder_cache, blocks, lengths = (t.to(cuda) for t in attention_arguments([3], 512, 4))
    with pytest.raises(RuntimeError, match="a head has 512 channels, on cuda it has at most 256"):
        attend(query, encoder_cache, blocks, lengths, 1)
