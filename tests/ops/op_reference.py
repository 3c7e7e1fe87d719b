"""Reference of the operators: plain loops over numpy arrays in float64.

Each function takes tensors of any type and device and returns a float64 tensor on the CPU.
"""

import numpy as np
import torch
from torch import Tensor


def doubles(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()


def softmax(scores: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def conv(x: Tensor, weight: Tensor, lengths: Tensor, padding_left: int) -> Tensor:
    """x: [B, T, C], weight: [B, T, H, K] or [H, K], lengths: [B] -> [B, T, C]."""
    x_, taps = doubles(x), softmax(doubles(weight))
    batch, time, channels = x_.shape
    heads, width = taps.shape[-2:]
    taps = np.broadcast_to(taps, (batch, time, heads, width))
    taps = np.repeat(taps, channels // heads, axis=2)  # [B, T, C, K]
    y = np.zeros_like(x_)
    for b in range(batch):
        for t in range(int(lengths[b])):
            for k in range(width):
                s = t + k - padding_left
                if 0 <= s < int(lengths[b]):
                    y[b, t] += taps[b, t, :, k] * x_[b, s]
    return torch.from_numpy(y)


def conv_step(
    x: Tensor, weight: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor
) -> tuple[Tensor, Tensor]:
    """x: [R, C], weight: [R, H, K] or [H, K], state: [K, S, C], positions: [R],
    backpointers: [R, B] -> y [R, C], and the state after the step.
    """
    x_, taps, state_ = doubles(x), softmax(doubles(weight)), doubles(state).copy()
    rows, channels = x_.shape
    heads, width = taps.shape[-2:]
    taps = np.repeat(np.broadcast_to(taps, (rows, heads, width)), channels // heads, axis=1)
    y = np.zeros_like(x_)
    live = [r for r in range(rows) if backpointers[r, 0] >= 0]
    for r in live:
        state_[positions[r] % width, backpointers[r, 0]] = x_[r]
    for r in live:
        for j in range(min(width - 1, int(positions[r])) + 1):
            past = state_[(positions[r] - j) % width, backpointers[r, j]]
            y[r] += taps[r, :, width - 1 - j] * past
    return torch.from_numpy(y), torch.from_numpy(state_)


def depthwise_conv(
    x: Tensor, weight: Tensor, lengths: Tensor, padding_left: int, dilation: int
) -> Tensor:
    """x: [B, T, C], weight: [C, K], lengths: [B] -> [B, T, C]."""
    x_, taps = doubles(x), doubles(weight)
    y = np.zeros_like(x_)
    for b, length in enumerate(lengths.tolist()):
        for t in range(length):
            for k in range(taps.shape[1]):
                s = t + k * dilation - padding_left
                if 0 <= s < length:
                    y[b, t] += taps[:, k] * x_[b, s]
    return torch.from_numpy(y)


def depthwise_conv_step(
    x: Tensor,
    weight: Tensor,
    state: Tensor,
    positions: Tensor,
    backpointers: Tensor,
    dilation: int,
) -> tuple[Tensor, Tensor]:
    """x: [R, C], weight: [C, K], state: [W, S, C], positions: [R],
    backpointers: [R, B] -> y [R, C], and the state after the step.
    """
    x_, taps, state_ = doubles(x), doubles(weight), doubles(state).copy()
    depth, width = len(state_), taps.shape[1]
    y = np.zeros_like(x_)
    live = [r for r in range(len(x_)) if backpointers[r, 0] >= 0]
    for r in live:
        state_[positions[r] % depth, backpointers[r, 0]] = x_[r]
    for r in live:
        for k in range(width):
            j = (width - 1 - k) * dilation
            if j <= positions[r]:
                y[r] += taps[:, k] * state_[(positions[r] - j) % depth, backpointers[r, j]]
    return torch.from_numpy(y), torch.from_numpy(state_)


def neighbouring_attention(
    query: np.ndarray, keys: np.ndarray, values: np.ndarray, heads: int, neighbour_heads: int
) -> np.ndarray:
    """Attention of one position to S others. query: [d], keys: [S, d], values: [S, d] -> [d]."""
    size = len(query) // heads
    y = np.zeros_like(query)
    for h in range(heads):
        pairs = [
            (key[g * size : (g + 1) * size], value[g * size : (g + 1) * size])
            for key, value in zip(keys, values, strict=True)
            for g in range(heads)
            if abs(g - h) <= neighbour_heads // 2
        ]
        own = query[h * size : (h + 1) * size]
        shares = softmax(np.array([own @ key for key, _ in pairs]) / np.sqrt(size))
        for share, (_, value) in zip(shares, pairs, strict=True):
            y[h * size : (h + 1) * size] += share * value
    return y


def last_of_causal_attention(
    query: Tensor, key: Tensor, value: Tensor, heads: int, neighbour_heads: int, window: int
) -> Tensor:
    """query, key, value: [T, d]; a position reads the last `window` ones -> [d] of the last one."""
    seen = doubles(key)[-window:], doubles(value)[-window:]
    return torch.from_numpy(
        neighbouring_attention(doubles(query)[-1], *seen, heads, neighbour_heads)
    )


def self_attention_step(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cache: Tensor,
    positions: Tensor,
    backpointers: Tensor,
    heads: int,
    neighbour_heads: int,
) -> tuple[Tensor, Tensor]:
    """query, key, value: [R, d], cache: [W, S, 2, d], positions: [R],
    backpointers: [R, B] -> y [R, d], and the cache after the step.
    """
    query_, cache_ = doubles(query), doubles(cache).copy()
    depth = len(cache_)
    y = np.zeros_like(query_)
    live = [r for r in range(len(y)) if backpointers[r, 0] >= 0]
    for r in live:
        cache_[positions[r] % depth, backpointers[r, 0]] = doubles(torch.stack([key[r], value[r]]))
    for r in live:
        seen = range(min(depth - 1, int(positions[r])) + 1)
        past = np.stack([cache_[(positions[r] - j) % depth, backpointers[r, j]] for j in seen])
        y[r] = neighbouring_attention(query_[r], past[:, 0], past[:, 1], heads, neighbour_heads)
    return torch.from_numpy(y), torch.from_numpy(cache_)


def ssru_step(
    projected: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor
) -> tuple[Tensor, Tensor]:
    """projected: [R, 2C], state: [2, S, C], positions: [R], backpointers: [R, B] -> y [R, C], and
    the state after the step."""
    candidates, gates = np.split(doubles(projected), 2, axis=1)
    state_ = doubles(state).copy()
    before, y = state_.copy(), np.zeros_like(candidates)
    for r, position in enumerate(positions.tolist()):
        if backpointers[r, 0] < 0:
            continue
        forget = 1 / (1 + np.exp(-gates[r]))
        after = (1 - forget) * candidates[r]
        if position > 0:
            after = after + forget * before[(position - 1) % 2, backpointers[r, 1]]
        state_[position % 2, backpointers[r, 0]] = after
        y[r] = np.maximum(after, 0)
    return torch.from_numpy(y), torch.from_numpy(state_)


def source_attention(
    query: Tensor, encoder_cache: Tensor, blocks: Tensor, lengths: Tensor, heads: int
) -> Tensor:
    """query: [R, d], encoder_cache: [N, P, 2, d], blocks: [R, M], lengths: [R] -> [R, d]."""
    y = np.zeros(query.shape)
    for r, head, weights, values in attend(query, encoder_cache, blocks, lengths, heads):
        y[r, head] = weights @ values
    return torch.from_numpy(y)


def source_attention_weights(
    query: Tensor, encoder_cache: Tensor, blocks: Tensor, lengths: Tensor, heads: int, head: int
) -> Tensor:
    """As source_attention -> [R, M * P], of one head or, with head = -1, the mean of all."""
    size = query.shape[1] // heads
    shares = np.zeros((len(query), heads, blocks.shape[1] * encoder_cache.shape[1]))
    for r, channels, weights, _ in attend(query, encoder_cache, blocks, lengths, heads):
        shares[r, channels[0] // size, : len(weights)] = weights
    return torch.from_numpy(shares.mean(1) if head < 0 else shares[:, head])


def attend(query: Tensor, encoder_cache: Tensor, blocks: Tensor, lengths: Tensor, heads: int):
    """Yields for each row and head: row, channels, weights [S], values [S, d / heads]."""
    query_, encoder_cache_ = doubles(query), doubles(encoder_cache)
    rows, size = query_.shape
    block_tokens = encoder_cache_.shape[1]
    for r in range(rows):
        tokens = [
            encoder_cache_[blocks[r, s // block_tokens], s % block_tokens]
            for s in range(int(lengths[r]))
        ]
        if not tokens:
            continue
        keys, values = np.stack(tokens, axis=1)  # [S, d] each
        for head in np.split(np.arange(size), heads):
            scores = keys[:, head] @ query_[r, head] / np.sqrt(size // heads)
            yield r, head, softmax(scores), values[:, head]
