"""The layers of Wu et al. 2019 (Pay Less Attention with Lightweight and Dynamic Convolutions),
twice each.

`forward` is the training path: differentiable plain PyTorch over whole sequences. `encode` and
`step` are the serving path: they call the operators torch.ops.linnet.*, are scripted into the
bundle, and give the same numbers. No layer keeps anything between calls; what a decoder layer must
remember goes in and comes out.

Names of sizes: B sources, S source tokens, T target tokens, R decoder rows, d = C channels, H
heads, K taps.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linnet_model.dropout import Dropout


def band_matrix(taps: Tensor, padding_left: int) -> Tensor:
    """The taps of every position, laid out as the rows of a matrix over positions.

    taps: [N, T, K]  ->  [N, T, T] with out[n, t, s] = taps[n, t, s - t + padding_left], 0 where no
    tap falls.
    """
    n, t, k = taps.shape
    # Rows of width T + K, flattened and cut to rows of width T + K - 1, begin one further right in
    # each row.
    skewed = F.pad(taps, (0, t)).reshape(n, t * (t + k))[:, : t * (t + k - 1)].view(n, t, t + k - 1)
    return skewed[:, :, padding_left : padding_left + t]


def convolve(x: Tensor, taps: Tensor, padding_left: int) -> Tensor:
    """y[b,t,c] = sum_k taps[b,t,h,k] * x[b, t + k - padding_left, c],  h = c / (C / H), x zero
    outside.

    x: [B, T, C], taps: [B, T, H, K] normalised  ->  [B, T, C]. As a band matrix and one batched
    product: for the short sequences of training that is cheaper than to gather windows.
    """
    b, t, c = x.shape
    h, k = taps.shape[2], taps.shape[3]
    band = band_matrix(taps.transpose(1, 2).reshape(b * h, t, k), padding_left)
    heads = x.view(b, t, h, c // h).transpose(1, 2).reshape(b * h, t, c // h)
    return torch.bmm(band, heads).view(b, h, t, c // h).transpose(1, 2).reshape(b, t, c)


class DynamicConv(nn.Module):
    """A depthwise convolution whose taps are predicted from the position they are centred on."""

    def __init__(
        self, width: int, heads: int, kernel: int, padding_left: int, weight_dropout: float
    ):
        super().__init__()
        self.heads, self.kernel, self.padding_left = heads, kernel, padding_left
        self.weight_dropout = weight_dropout
        self.weight_linear = nn.Linear(width, heads * kernel, bias=False)
        nn.init.xavier_uniform_(self.weight_linear.weight)

    @torch.jit.unused
    def forward(self, x: Tensor, drop: Dropout) -> Tensor:
        """x: [B, T, C], zero at padded positions -> [B, T, C]."""
        b, t, _ = x.shape
        taps = self.weight_linear(x).view(b, t, self.heads, self.kernel).softmax(dim=-1)
        return convolve(x, drop(taps, self.weight_dropout), self.padding_left)

    @torch.jit.export
    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x: [B, S, C], lengths: int32 [B] -> [B, S, C], zero from lengths[b] on."""
        weight = self.weight_linear(x).view(x.size(0), x.size(1), self.heads, self.kernel)
        return torch.ops.linnet.dynamic_conv(x, weight, lengths, self.padding_left)

    @torch.jit.export
    def step(self, x: Tensor, window: Tensor, positions: Tensor, ancestry: Tensor) -> Tensor:
        """x: [R, C], window: [K, lanes, C] changed in place, positions: [R], ancestry: [R, A] ->
        [R, C]."""
        weight = self.weight_linear(x).view(x.size(0), self.heads, self.kernel)
        return torch.ops.linnet.dynamic_conv_step(x, weight, window, positions, ancestry)


class LightConv(nn.Module):
    """A depthwise convolution with learned taps, the same at every position."""

    def __init__(
        self, width: int, heads: int, kernel: int, padding_left: int, weight_dropout: float
    ):
        super().__init__()
        self.heads, self.kernel, self.padding_left = heads, kernel, padding_left
        self.weight_dropout = weight_dropout
        self.weight = nn.Parameter(torch.empty(heads, kernel))
        nn.init.xavier_uniform_(self.weight)

    @torch.jit.unused
    def forward(self, x: Tensor, drop: Dropout) -> Tensor:
        """x: [B, T, C], zero at padded positions -> [B, T, C]."""
        b, t, _ = x.shape
        taps = drop(self.weight.softmax(dim=-1), self.weight_dropout)
        return convolve(x, taps.expand(b, t, self.heads, self.kernel), self.padding_left)

    @torch.jit.export
    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x: [B, S, C], lengths: int32 [B] -> [B, S, C], zero from lengths[b] on."""
        return torch.ops.linnet.light_conv(x, self.weight, lengths, self.padding_left)

    @torch.jit.export
    def step(self, x: Tensor, window: Tensor, positions: Tensor, ancestry: Tensor) -> Tensor:
        """x: [R, C], window: [K, lanes, C] changed in place, positions: [R], ancestry: [R, A] ->
        [R, C]."""
        return torch.ops.linnet.light_conv_step(x, self.weight, window, positions, ancestry)


MIXERS = {"dynamic": DynamicConv, "light": LightConv}


class ConvBlock(nn.Module):
    """linear d -> 2d, GLU (or d -> d), convolution, linear d -> d."""

    def __init__(
        self,
        mixer: str,
        width: int,
        heads: int,
        kernel: int,
        padding_left: int,
        glu: bool,
        input_dropout: float,
        weight_dropout: float,
    ):
        super().__init__()
        self.glu, self.kernel = glu, kernel
        self.input_dropout = input_dropout
        self.linear1 = linear(width, 2 * width if glu else width)
        self.conv = MIXERS[mixer](width, heads, kernel, padding_left, weight_dropout)
        self.linear2 = linear(width, width)

    def gate(self, x: Tensor) -> Tensor:
        x = self.linear1(x)
        return F.glu(x, dim=-1) if self.glu else x

    @torch.jit.unused
    def forward(self, x: Tensor, valid: Tensor | None, drop: Dropout) -> Tensor:
        """x: [B, T, d], valid: [B, T, 1] of 1 and 0, or None where nothing is padded -> [B, T,
        d]."""
        x = self.gate(drop(x, self.input_dropout))
        if valid is not None:
            x = x * valid
        return self.linear2(self.conv(x, drop))

    @torch.jit.export
    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        return self.linear2(self.conv.encode(self.gate(x), lengths))

    @torch.jit.export
    def step(self, x: Tensor, window: Tensor, positions: Tensor, ancestry: Tensor) -> Tensor:
        return self.linear2(self.conv.step(self.gate(x), window, positions, ancestry))


class EncoderAttention(nn.Module):
    """Multi-head attention from a decoder position to all positions of its source."""

    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query = linear(width, width)
        self.key_value = linear(width, 2 * width)  # rows: keys, then values
        self.output = linear(width, width)

    @torch.jit.unused
    def forward(self, x: Tensor, memory: Tensor, bias: Tensor | None, drop: Dropout) -> Tensor:
        """x: [B, T, d], memory: [B, S, d], bias: [B, 1, S] of 0 and -inf or None -> [B, T, d]."""
        b, t, d = x.shape
        s, h = memory.shape[1], self.heads

        def split(y: Tensor, length: int) -> Tensor:
            return y.reshape(b, length, h, d // h).transpose(1, 2).reshape(b * h, length, d // h)

        keys, values = self.key_value(memory).split(d, dim=-1)
        scores = torch.bmm(
            split(self.query(x) * (d // h) ** -0.5, t), split(keys, s).transpose(1, 2)
        )
        if bias is not None:
            scores = (scores.view(b, h, t, s) + bias.unsqueeze(1)).view(b * h, t, s)
        y = torch.bmm(drop(scores.softmax(dim=-1), self.dropout), split(values, s))
        return self.output(y.view(b, h, t, d // h).transpose(1, 2).reshape(b, t, d))

    @torch.jit.export
    def remember(self, memory: Tensor) -> Tensor:
        """memory: [B, S, d] -> keys and values [B, S, 2, d]."""
        b, s, d = memory.shape
        return self.key_value(memory).view(b, s, 2, d)

    @torch.jit.export
    def step(self, x: Tensor, pool: Tensor, blocks: Tensor, lengths: Tensor) -> Tensor:
        """x: [R, d], pool: [N, P, 2, d], blocks: [R, M], lengths: [R] -> [R, d]."""
        return self.output(
            torch.ops.linnet.source_attention(self.query(x), pool, blocks, lengths, self.heads)
        )


class FeedForward(nn.Module):
    def __init__(self, width: int, hidden: int, dropout: float):
        super().__init__()
        self.dropout = dropout
        self.fc1 = linear(width, hidden)
        self.fc2 = linear(hidden, width)

    @torch.jit.unused
    def forward(self, x: Tensor, drop: Dropout) -> Tensor:
        return self.fc2(drop(F.relu(self.fc1(x)), self.dropout))

    @torch.jit.export
    def apply_to(self, x: Tensor) -> Tensor:
        return self.fc2(F.relu(self.fc1(x)))


def linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
