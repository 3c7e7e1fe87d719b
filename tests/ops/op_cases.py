"""Random arguments of the operators, and the tolerances of their results."""

import torch
from torch import Tensor

# float32: sums of at most some hundred terms of size 1, each rounded at 6e-8, with taps that come
# from an exponential good to some units in the last place.
# bfloat16 keeps 8 bits: one rounding of a result, all of whose terms were summed in float32, is at
# most 2^-9 of it, and results here stay below 4. float16 keeps 11 bits: 2^-12 of it.
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 2**-7, torch.float16: 2**-10}


def assert_near(got: Tensor, want: Tensor, dtype: torch.dtype) -> None:
    torch.testing.assert_close(
        got.detach().cpu().double(), want, atol=TOLERANCE[dtype], rtol=2 * TOLERANCE[dtype]
    )


def numbers(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normal numbers that `dtype` holds exactly."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype)


def ints(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int32)


def conv_arguments(
    batch: int,
    time: int,
    channels: int,
    heads: int,
    width: int,
    dynamic: bool,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """x, weight and lengths, ragged: the first sentence is full, others are shorter, down to 0."""
    x = numbers(seed, batch, time, channels, dtype=dtype)
    shape = (batch, time, heads, width) if dynamic else (heads, width)
    weight = numbers(seed + 1, *shape, dtype=dtype)
    lengths = ints(*(max(0, time - b * (1 + time // 3)) for b in range(batch)))
    return x, weight, lengths


def depthwise_arguments(
    batch: int,
    time: int,
    channels: int,
    width: int,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """x, weight and lengths, ragged as in conv_arguments. The taps are scaled by their number,
    so that results are of size 1, as with a softmax."""
    x, _, lengths = conv_arguments(batch, time, channels, 1, width, False, dtype, seed)
    return x, (numbers(seed + 1, channels, width) * width**-0.5).to(dtype), lengths


def ring_indices(rows: int, depth: int, seed: int = 0) -> tuple[int, Tensor, Tensor]:
    """The number of slots, positions and backpointers for rows in pairs, as beams of two. Each pair
    has its own position and refers to its own two slots. Some slots are unused, and every third
    pair has an idle row.
    """
    generator = torch.Generator().manual_seed(seed)
    slots = 2 * rows + 3
    names = torch.randperm(slots, generator=generator)
    positions = torch.zeros(rows, dtype=torch.int32)
    backpointers = torch.full((rows, depth + 2), -7, dtype=torch.int32)  # -7: must not be used
    for pair in range(0, rows, 2):
        own = names[pair : pair + 2]
        position = int(torch.randint(0, 3 * depth, (), generator=generator))
        for row in range(pair, min(pair + 2, rows)):
            positions[row] = position
            known = min(position + 1, depth)
            backpointers[row, :known] = own[
                torch.randint(0, len(own), (known,), generator=generator)
            ]
            backpointers[row, 0] = names[row]
        if pair % 6 == 4:
            backpointers[pair, 0] = -1
    return slots, positions, backpointers


def step_arguments(
    rows: int,
    channels: int,
    heads: int,
    width: int,
    dynamic: bool,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """x, weight, state, positions and backpointers."""
    slots, positions, backpointers = ring_indices(rows, width, seed)
    x = numbers(seed, rows, channels, dtype=dtype)
    shape = (rows, heads, width) if dynamic else (heads, width)
    weight = numbers(seed + 1, *shape, dtype=dtype)
    state = numbers(seed + 2, width, slots, channels, dtype=dtype)
    return x, weight, state, positions, backpointers


def gated_step_arguments(
    rows: int,
    channels: int,
    heads: int,
    width: int,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> tuple[Tensor, Tensor, int, Tensor, Tensor, Tensor]:
    """z, taps_weight, heads, state, positions and backpointers."""
    _, _, state, *indices = step_arguments(rows, channels, heads, width, True, dtype, seed)
    z = numbers(seed + 3, rows, 2 * channels, dtype=dtype)
    taps = (numbers(seed + 4, heads * width, channels) * channels**-0.5).to(dtype)
    return z, taps, heads, state, indices[0], indices[1]


def normed_arguments(
    rows: int, channels: int, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, ...]:
    """x, residual, weight and bias of add_norm."""
    shapes = [(rows, channels), (rows, channels), (channels,), (channels,)]
    return tuple(numbers(i, *shape, dtype=dtype) for i, shape in enumerate(shapes))


def depthwise_step_arguments(
    rows: int,
    channels: int,
    width: int,
    dilation: int,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, int]:
    """x, weight, state, positions, backpointers and the dilation."""
    depth = (width - 1) * dilation + 1
    slots, positions, backpointers = ring_indices(rows, depth, seed)
    x, weight, _ = depthwise_arguments(1, rows, channels, width, dtype, seed)
    state = numbers(seed + 2, depth, slots, channels, dtype=dtype)
    return x[0], weight, state, positions, backpointers, dilation


def ssru_arguments(
    rows: int, channels: int, dtype: torch.dtype = torch.float32, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """projected, state, positions and backpointers; rows include first positions."""
    slots, positions, backpointers = ring_indices(rows, 2, seed)
    projected = numbers(seed, rows, 2 * channels, dtype=dtype)
    return projected, numbers(seed + 1, 2, slots, channels), positions, backpointers


def sequence_arguments(
    batch: int, time: int, size: int, dtype: torch.dtype = torch.float32, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """query_key_value [B, T, 3 d] and lengths, ragged as in conv_arguments."""
    x, _, lengths = conv_arguments(batch, time, 3 * size, 1, 1, False, dtype, seed)
    return x, lengths


def self_attention_arguments(
    rows: int,
    size: int,
    depth: int,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """query, key, value, cache, positions and backpointers."""
    slots, positions, backpointers = ring_indices(rows, depth, seed)
    query, key, value = numbers(seed, 3, rows, size, dtype=dtype)
    cache = numbers(seed + 1, depth, slots, 2, size, dtype=dtype)
    return query, key, value, cache, positions, backpointers


def attention_arguments(
    lengths: list[int],
    size: int,
    block_tokens: int,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """query, encoder_cache, blocks and lengths; each row has its own source in scattered
    blocks."""
    generator = torch.Generator().manual_seed(seed)
    needed = [-(-length // block_tokens) for length in lengths]
    pool = sum(needed) + 4
    names = torch.randperm(pool, generator=generator).int().tolist()
    blocks = torch.full((len(lengths), max(needed, default=0) + 1), -7, dtype=torch.int32)
    for row, count in enumerate(needed):
        for m in range(count):
            blocks[row, m] = names.pop()
    query = numbers(seed, len(lengths), size, dtype=dtype)
    encoder_cache = numbers(seed + 1, pool, block_tokens, 2, size, dtype=dtype)
    return query, encoder_cache, blocks, ints(*lengths)
