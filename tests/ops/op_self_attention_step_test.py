"""self_attention_step: plain loops, whole causal attention, torch's attention, and properties."""

import op_reference as plain
import pytest
import torch
from op_beams import Beams
from op_cases import assert_near, ints, numbers, self_attention_arguments
from torch import Tensor

TYPES = [torch.float32, torch.bfloat16]
attend = torch.ops.linnet.self_attention_step

# (rows, size, depth of the cache, heads, neighbour_heads)
SHAPES = [
    (1, 16, 5, 1, 1),  # one head
    (6, 24, 1, 2, 1),  # a cache of one position
    (5, 512, 31, 8, 1),  # the base model, beam 5
    (6, 512, 11, 8, 3),  # Yang et al.'s best: 11 positions, 3 heads
    (7, 130, 9, 2, 1),  # 65 channels per head: vectors and a rest
    (7, 130, 9, 2, 3),  # both heads see both
    (6, 12, 4, 12, 5),  # one channel per head
    (12, 40, 70, 5, 99),  # every head sees all heads
    (3, 256, 3, 1, 3),  # the widest head on CUDA, without neighbours
]
SHAPE_NAMES = ["x".join(map(str, shape)) for shape in SHAPES]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_equals_plain_loops(shape, dtype):
    *sizes, heads, neighbour_heads = shape
    for seed in range(3):
        arguments = self_attention_arguments(*sizes, dtype, seed)
        cache = arguments[3]
        want, want_cache = plain.self_attention_step(*arguments, heads, neighbour_heads)
        got = attend(*arguments, heads, neighbour_heads)
        assert got.dtype == dtype
        assert got.shape == arguments[0].shape
        assert_near(got, want, dtype)
        assert torch.equal(cache.double(), want_cache)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("neighbour_heads", [1, 3])
@pytest.mark.parametrize("window", [1, 4, 24])
def test_steps_of_reordered_beams_equal_whole_sequences(window, neighbour_heads, dtype):
    """The last output of a hypothesis equals causal attention over its inputs, also if these are
    more than the cache holds."""
    slots, size, heads, steps = 9, 24, 3, 40
    cache = numbers(1, window, slots, 2, size, dtype=dtype) * 1000  # stale contents
    query, key, value = numbers(2, 3, steps, slots, size, dtype=dtype)
    beams = Beams(slots, window, seed=window)
    longest, checked = 0, 0
    for step in range(steps):
        y = attend(
            *(query[step], key[step], value[step]),
            *(cache, beams.positions, beams.backpointers, heads, neighbour_heads),
        )
        assert not y[beams.idle].any()
        for row, history in beams.history.items():
            at = tuple(zip(*history, strict=True))
            want = plain.last_of_causal_attention(
                query[at], key[at], value[at], heads, neighbour_heads, window
            )
            assert_near(y[row], want, dtype)
            longest, checked = max(longest, len(history)), checked + 1
        beams.next()
    assert longest > window
    assert checked > 100


def test_steps_equal_torch_causal_attention():
    time, heads, size = 20, 4, 64
    query, key, value = numbers(0, 3, time, size)
    cache = torch.full((time, 1, 2, size), torch.nan)
    backpointers = torch.zeros(1, time, dtype=torch.int32)
    got = [
        attend(query[t, None], key[t, None], value[t, None], cache, ints(t), backpointers, heads, 1)
        for t in range(time)
    ]
    by_head = (part.view(time, heads, -1).transpose(0, 1) for part in (query, key, value))
    want = torch.nn.functional.scaled_dot_product_attention(*by_head, is_causal=True)
    torch.testing.assert_close(
        torch.cat(got), want.transpose(0, 1).reshape(time, size), atol=2e-6, rtol=4e-6
    )


def test_neighbours_are_limited_to_the_heads():
    arguments = self_attention_arguments(6, 40, 9)
    want = attend(*arguments, 4, 7)
    for neighbour_heads in (9, 2**40 + 1):
        assert torch.equal(attend(*arguments, 4, neighbour_heads), want)
    assert not torch.equal(attend(*arguments, 4, 5), want)


def test_reads_only_earlier_positions():
    query, key, value, cache, positions, backpointers = self_attention_arguments(8, 32, 7)
    spoiled = torch.full_like(cache, torch.nan)
    for r, position in enumerate(positions.tolist()):
        for j in range(min(position, 6) + 1):
            if backpointers[r, 0] >= 0:
                entry, slot = (position - j) % 7, backpointers[r, j]
                spoiled[entry, slot] = cache[entry, slot]
    want = attend(query, key, value, cache, positions, backpointers, 4, 3)
    assert torch.equal(attend(query, key, value, spoiled, positions, backpointers, 4, 3), want)


def test_is_batch_invariant():
    query, key, value, cache, positions, backpointers = self_attention_arguments(12, 130, 31)
    whole = attend(query, key, value, cache.clone(), positions, backpointers, 2, 3)
    for row in range(12):
        one = slice(row, row + 1)
        inputs = (
            query[one],
            key[one],
            value[one],
            cache.clone(),
            positions[one],
            backpointers[one],
        )
        assert torch.equal(attend(*inputs, 2, 3)[0], whole[row])


def test_normalises_scores_of_any_size():
    query, *rest = self_attention_arguments(6, 32, 9)
    for factor in (0.0, 100.0, 1e6):
        got = attend(query * factor, *rest, 2, 1)
        want, _ = plain.self_attention_step(query * factor, *rest, 2, 1)
        # scores of size `factor` are rounded at 6e-8 of it; at 1e6 only the largest one counts
        torch.testing.assert_close(got.double(), want, atol=1e-4, rtol=0)


def test_accepts_no_rows():
    nothing = torch.zeros(0, 8)
    backpointers = torch.zeros(0, 3, dtype=torch.int32)
    cache = torch.zeros(3, 0, 2, 8)
    assert attend(nothing, nothing, nothing, cache, ints(), backpointers, 2, 1).shape == (0, 8)


def test_accepts_non_contiguous_inputs():
    query, key, value, cache, *indices = self_attention_arguments(6, 20, 5)
    want = attend(query, key, value, cache.clone(), *indices, 4, 3)

    def scattered(tensor: Tensor) -> Tensor:
        return torch.stack([tensor, tensor], -1)[..., 0]

    inputs = [scattered(tensor) for tensor in (query, key, value)]
    indices = [scattered(tensor) for tensor in indices]
    assert not any(tensor.is_contiguous() for tensor in inputs + indices)
    assert torch.equal(attend(*inputs, cache, *indices, 4, 3), want)


REFUSED = {
    "float64": ({"query": torch.zeros(2, 8).double()}, "query is Double on cpu; supported are"),
    "key of another type": ({"key": torch.zeros(2, 8).bfloat16()}, "key is BFloat16, query is"),
    "query of three dimensions": ({"query": torch.zeros(1, 2, 8)}, r"2 dimensions \[R, d\]"),
    "key of another row count": ({"key": torch.zeros(3, 8)}, r"key .* \(R\) must be 2 as in query"),
    "value of another size": ({"value": torch.zeros(2, 9)}, r"value .* \(d\) must be 8 as in"),
    "cache of three dimensions": (
        {"cache": torch.zeros(3, 4, 8)},
        r"needs 4 dimensions \[W, S, 2, d\]",
    ),
    "cache of no positions": ({"cache": torch.zeros(0, 4, 2, 8)}, r"\(W\) must be at least 1"),
    "cache of keys alone": ({"cache": torch.zeros(3, 4, 1, 8)}, "keys and values. must be 2"),
    "cache of another size": ({"cache": torch.zeros(3, 4, 2, 9)}, r"\(d\) must be 8 as in query"),
    "cache that is not contiguous": (
        {"cache": torch.zeros(4, 3, 2, 8).transpose(0, 1)},
        "must be contiguous: it is changed in place",
    ),
    "uneven heads": ({"heads": 3}, "8 channels do not fall into 3 heads"),
    "no heads": ({"heads": 0}, "number of heads is 0, must be at least 1"),
    "even neighbours": ({"neighbour_heads": 2}, "neighbour_heads is 2, must be odd and at least 1"),
    "no neighbours": ({"neighbour_heads": -1}, "neighbour_heads is -1, must be odd and at least"),
    "int64 backpointers": (
        {"backpointers": torch.zeros(2, 3, dtype=torch.int64)},
        "backpointers is Long, needs int32",
    ),
    "backpointers shorter than the cache": (
        {"backpointers": torch.zeros(2, 2, dtype=torch.int32)},
        "needs at least 3 .the positions in cache. slots per row",
    ),
    "a negative position": ({"positions": ints(0, -1)}, r"positions\[1\] is -1, must be at least"),
    "a slot that does not exist": (
        {"backpointers": torch.tensor([[0, 4, 0], [1, 1, 1]], dtype=torch.int32)},
        r"backpointers\[0, 1\] is 4, must lie between 0 and 3 \(slots of cache - 1\)",
    ),
    "two rows with one slot": (
        {"backpointers": torch.ones(2, 3, dtype=torch.int32)},
        "rows 0 and 1 both own slot 1",
    ),
}


@pytest.mark.parametrize("change", REFUSED, ids=str)
def test_refuses_wrong_arguments_and_keeps_the_cache(change):
    changes, message = REFUSED[change]
    cache = torch.ones(3, 4, 2, 8)
    arguments = {
        "query": torch.zeros(2, 8),
        "key": torch.zeros(2, 8),
        "value": torch.zeros(2, 8),
        "cache": cache,
        "positions": ints(9, 9),
        "backpointers": torch.tensor([[0, 0, 1], [1, 1, 0]], dtype=torch.int32),
        "heads": 2,
        "neighbour_heads": 1,
    }
    with pytest.raises(RuntimeError, match=f"self_attention_step: .*{message}"):
        attend(**(arguments | changes))
    assert (cache == 1).all(), "a refused call changes nothing"


@pytest.mark.parametrize("dtype", [*TYPES, torch.float16], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
def test_cuda_equals_plain_loops(cuda, shape, dtype):
    *sizes, heads, neighbour_heads = shape
    for seed in range(3):
        arguments = self_attention_arguments(*sizes, dtype, seed)
        want, want_cache = plain.self_attention_step(*arguments, heads, neighbour_heads)
        on_device = [tensor.to(cuda) for tensor in arguments]
        assert_near(attend(*on_device, heads, neighbour_heads), want, dtype)
        assert torch.equal(on_device[3].cpu().double(), want_cache)


def test_cuda_refuses_too_wide_head(cuda):
    arguments = [tensor.to(cuda) for tensor in self_attention_arguments(2, 512, 3)]
    with pytest.raises(RuntimeError, match="a head has 512 channels, on cuda it has at most 256"):
        attend(*arguments, 1, 1)
