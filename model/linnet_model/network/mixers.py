"""The mixers: the part of a layer that combines positions (convolution, self-attention or a
recurrent unit).

    forward(x, valid, drop)                  training, whole sequences: plain PyTorch
    encode(x, lengths, closing)              serving, whole sequences of an encoder
    mix(x, state, positions, backpointers)   serving, one position of every row, up to
    close(y, residual, norm, …)              the last linear layer, the residual sum and a norm
    step(x, state, positions, backpointers)  the same with the last linear layer alone
    new_state(slots, like)                   the state that `step` reads and writes
    min_backpointers()                       minimum number of columns of `backpointers`
    pack(kind)                               lays the weights out for serving (linear.py)

All mixers have these methods (SSRU, which only a decoder has, lacks `encode`), so a layer does not
depend on which one it holds. `forward`, `encode` and `step` compute the same function of the same
weights. `encode` and `close` also apply the residual sum and the norm that follow the mixer, fused
into its last linear layer where it ends with one. The methods for serving are scripted into the
bundle and use the operators torch.ops.linnet.*.

A mixer keeps nothing between calls. The caller passes the state, [window, slots, ...], a ring over
the last `window` positions; the step operators change it in place. `backpointers` [R, A] gives for
each row and past position the slot that holds it. A is one more than the largest number of steps
that a row has taken, at most the window, and at least `min_backpointers`.

Names of sizes: B sequences, T positions, R decoder rows, A columns of backpointers, d = C channels,
H heads, K taps.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linnet_model.network.dropout import Dropout
from linnet_model.network.linear import Closing, linear
from linnet_model.network.model_config import CONVOLUTIONS, ModelConfig


def band_matrix(taps: Tensor, padding_left: int) -> Tensor:
    """Lays the taps of every position out as the rows of a matrix over positions.

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

    x: [B, T, C], taps: [B, T, H, K] normalised  ->  [B, T, C]. Computed as a band matrix and one
    batched gemm: for the short sequences of training that is cheaper than gathering windows.
    """
    b, t, c = x.shape
    h, k = taps.shape[2], taps.shape[3]
    band = band_matrix(taps.transpose(1, 2).reshape(b * h, t, k), padding_left)
    heads = x.view(b, t, h, c // h).transpose(1, 2).reshape(b * h, t, c // h)
    return torch.bmm(band, heads).view(b, h, t, c // h).transpose(1, 2).reshape(b, t, c)


def windows(x: Tensor, lengths: Tensor, kernel: int, padding_left: int) -> Tensor:
    """x: [B, S, C], lengths: int32 [B] -> [B, S, K, C], the inputs under the taps of each position,
    zero outside its sequence."""
    taken = []
    for k in range(kernel):
        tap = x.new_zeros([kernel, x.size(-1)])
        tap[k].fill_(1.0)  # a depthwise convolution that shifts
        taken.append(torch.ops.linnet.depthwise_conv(x, tap.t(), lengths, padding_left, 1))
    return torch.stack(taken, dim=2)


def windows_step(
    x: Tensor, kernel: int, state: Tensor, positions: Tensor, backpointers: Tensor
) -> Tensor:
    """x: [R, C], state: [K, slots, C] changed in place, positions: [R], backpointers: [R, A] -> [R,
    K, C], the last K inputs of each row, oldest first, zero before its start."""
    taken = []
    for k in range(kernel):  # each writes the same input to the same place of `state`
        tap = x.new_zeros([kernel, x.size(-1)])
        tap[k].fill_(1.0)
        taken.append(
            torch.ops.linnet.depthwise_conv_step(x, tap.t(), state, positions, backpointers, 1)
        )
    return torch.stack(taken, dim=1)


class DynamicConv(nn.Module):
    """Convolution with taps predicted from the position they are centred on, softmax over K.

    Wu et al. 2019, Pay Less Attention with Lightweight and Dynamic Convolutions, section 4. Without
    the softmax it is a row of their ablation (table 3), and slow.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        kernel: int,
        padding_left: int,
        weight_dropout: float,
        softmax: bool = True,
    ):
        super().__init__()
        self.heads, self.kernel, self.padding_left = heads, kernel, padding_left
        self.softmax = softmax
        self.window = kernel
        self.weight_dropout = weight_dropout
        self.weight_linear = linear(width, heads * kernel, bias=False)

    @torch.jit.unused
    def forward(self, x: Tensor, drop: Dropout) -> Tensor:
        """x: [B, T, C], zero at padded positions -> [B, T, C]."""
        b, t, _ = x.shape
        taps = self.weight_linear(x).view(b, t, self.heads, self.kernel)
        if self.softmax:
            taps = taps.softmax(dim=-1)
        return convolve(x, drop(taps, self.weight_dropout), self.padding_left)

    def sum_of(self, x: Tensor, taps: Tensor) -> Tensor:
        """x: [..., K, C], taps: [..., H, K] -> [..., C], without a softmax."""
        split = x.unflatten(-1, [self.heads, x.size(-1) // self.heads])
        return (split * taps.transpose(-1, -2).unsqueeze(-1)).sum(dim=-3).flatten(-2)

    @torch.jit.export
    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x: [B, S, C], lengths: int32 [B] -> [B, S, C], zero from lengths[b] on."""
        weight = self.weight_linear.serve(x).view(x.size(0), x.size(1), self.heads, self.kernel)
        if not self.softmax:
            return self.sum_of(windows(x, lengths, self.kernel, self.padding_left), weight)
        return torch.ops.linnet.dynamic_conv(x, weight, lengths, self.padding_left)

    @torch.jit.export
    def step(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        """x: [R, C], state: [K, slots, C] changed in place, positions: [R], backpointers: [R, A]
        -> [R, C]."""
        weight = self.weight_linear.serve(x).view(x.size(0), self.heads, self.kernel)
        if not self.softmax:
            return self.sum_of(windows_step(x, self.kernel, state, positions, backpointers), weight)
        return torch.ops.linnet.dynamic_conv_step(x, weight, state, positions, backpointers)

    @torch.jit.export
    def step_after(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        activation: str,
        state: Tensor,
        positions: Tensor,
        backpointers: Tensor,
    ) -> Tensor:
        """`step` of the linear layer's output: x: [R, d] -> [R, C]."""
        if not self.softmax:
            y = torch.ops.linnet.linear(x, weight, bias, activation)
            return self.step(y, state, positions, backpointers)
        return torch.ops.linnet.dynamic_conv_layer_step(
            x,
            weight,
            bias,
            activation,
            self.weight_linear.weight,
            self.heads,
            state,
            positions,
            backpointers,
        )

    @torch.jit.export
    def pack(self, kind: str) -> None:
        self.weight_linear.pack(kind)


class LightConv(nn.Module):
    """Convolution with learned taps, shared by all positions and by the channels of a head, softmax
    over K.

    Wu et al. 2019, section 3; without the softmax it is a row of their ablation (table 3).
    """

    def __init__(
        self,
        width: int,
        heads: int,
        kernel: int,
        padding_left: int,
        weight_dropout: float,
        softmax: bool = True,
    ):
        super().__init__()
        self.width, self.heads, self.kernel = width, heads, kernel
        self.padding_left, self.softmax = padding_left, softmax
        self.window = kernel
        self.weight_dropout = weight_dropout
        self.weight = nn.Parameter(torch.empty(heads, kernel))
        nn.init.xavier_uniform_(self.weight)

    @torch.jit.unused
    def forward(self, x: Tensor, drop: Dropout) -> Tensor:
        """x: [B, T, C], zero at padded positions -> [B, T, C]."""
        b, t, _ = x.shape
        taps = self.weight.softmax(dim=-1) if self.softmax else self.weight
        taps = drop(taps, self.weight_dropout)
        return convolve(x, taps.expand(b, t, self.heads, self.kernel), self.padding_left)

    def taps_of_channels(self) -> Tensor:
        """[C, K]: without a softmax the convolution is a depthwise one."""
        return self.weight.t().repeat_interleave(self.width // self.heads, dim=1).t()

    @torch.jit.export
    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x: [B, S, C], lengths: int32 [B] -> [B, S, C], zero from lengths[b] on."""
        if not self.softmax:
            return torch.ops.linnet.depthwise_conv(
                x, self.taps_of_channels(), lengths, self.padding_left, 1
            )
        return torch.ops.linnet.light_conv(x, self.weight, lengths, self.padding_left)

    @torch.jit.export
    def step(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        """x: [R, C], state: [K, slots, C] changed in place, positions: [R], backpointers: [R, A]
        -> [R, C]."""
        if not self.softmax:
            return torch.ops.linnet.depthwise_conv_step(
                x, self.taps_of_channels(), state, positions, backpointers, 1
            )
        return torch.ops.linnet.light_conv_step(x, self.weight, state, positions, backpointers)

    @torch.jit.export
    def step_after(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        activation: str,
        state: Tensor,
        positions: Tensor,
        backpointers: Tensor,
    ) -> Tensor:
        """`step` of the linear layer's output: x: [R, d] -> [R, C]."""
        y = torch.ops.linnet.linear(x, weight, bias, activation)
        return self.step(y, state, positions, backpointers)

    @torch.jit.export
    def pack(self, kind: str) -> None:
        pass  # no gemm to pack


class DepthwiseConv(nn.Module):
    """Convolution with learned taps per channel, without softmax, `dilation` positions apart.

    With dilation 1 it is the depthwise separable convolution of Wu et al. 2019, section 2 (the
    linear layer after it is the pointwise half); with dilations that grow over the layers it is the
    dilated convolution of Tay et al. 2021, Are Pre-trained Convolutions Better than Pre-trained
    Transformers?
    """

    def __init__(
        self, width: int, kernel: int, padding_left: int, dilation: int, weight_dropout: float
    ):
        super().__init__()
        self.width, self.padding_left, self.dilation = width, padding_left, dilation
        self.window = (kernel - 1) * dilation + 1
        self.weight_dropout = weight_dropout
        # [K, C]: the operators read its transpose without a copy.
        self.weight = nn.Parameter(torch.empty(kernel, width))
        nn.init.uniform_(self.weight, -(kernel**-0.5), kernel**-0.5)  # a fan-in of K

    @torch.jit.unused
    def forward(self, x: Tensor, drop: Dropout) -> Tensor:
        """x: [B, T, C], zero at padded positions -> [B, T, C]."""
        taps = drop(self.weight, self.weight_dropout).t().unsqueeze(1)
        padded = F.pad(x.transpose(1, 2), (self.padding_left, self.window - 1 - self.padding_left))
        return F.conv1d(padded, taps, dilation=self.dilation, groups=self.width).transpose(1, 2)

    @torch.jit.export
    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x: [B, S, C], lengths: int32 [B] -> [B, S, C], zero from lengths[b] on."""
        return torch.ops.linnet.depthwise_conv(
            x, self.weight.t(), lengths, self.padding_left, self.dilation
        )

    @torch.jit.export
    def step(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        """x: [R, C], state: [window, slots, C] changed in place, positions: [R], backpointers:
        [R, A] -> [R, C]."""
        return torch.ops.linnet.depthwise_conv_step(
            x, self.weight.t(), state, positions, backpointers, self.dilation
        )

    @torch.jit.export
    def step_after(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        activation: str,
        state: Tensor,
        positions: Tensor,
        backpointers: Tensor,
    ) -> Tensor:
        """`step` of the linear layer's output: x: [R, d] -> [R, C]."""
        y = torch.ops.linnet.linear(x, weight, bias, activation)
        return self.step(y, state, positions, backpointers)

    @torch.jit.export
    def pack(self, kind: str) -> None:
        pass  # no gemm to pack


class FullConv(nn.Module):
    """Convolution with a matrix C x C per tap: the first row of the ablation of Wu et al. 2019
    (table 3), from which the depthwise one differs by its number of parameters."""

    def __init__(self, width: int, kernel: int, padding_left: int, weight_dropout: float):
        super().__init__()
        self.kernel, self.padding_left = kernel, padding_left
        self.window = kernel
        self.weight_dropout = weight_dropout
        self.taps = linear(kernel * width, width, bias=False)  # columns: taps, then channels

    @torch.jit.unused
    def forward(self, x: Tensor, drop: Dropout) -> Tensor:
        """x: [B, T, C], zero at padded positions -> [B, T, C]."""
        padded = F.pad(x, (0, 0, self.padding_left, self.kernel - 1 - self.padding_left))
        seen = torch.cat([padded[:, k : k + x.size(1)] for k in range(self.kernel)], dim=-1)
        return F.linear(seen, drop(self.taps.weight, self.weight_dropout))

    @torch.jit.export
    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x: [B, S, C], lengths: int32 [B] -> [B, S, C], zero from lengths[b] on."""
        seen = windows(x, lengths, self.kernel, self.padding_left)
        return self.taps.serve(seen.flatten(-2))

    @torch.jit.export
    def step(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        """x: [R, C], state: [K, slots, C] changed in place, positions: [R], backpointers: [R, A]
        -> [R, C]."""
        seen = windows_step(x, self.kernel, state, positions, backpointers)
        return self.taps.serve(seen.flatten(-2))

    @torch.jit.export
    def step_after(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        activation: str,
        state: Tensor,
        positions: Tensor,
        backpointers: Tensor,
    ) -> Tensor:
        """`step` of the linear layer's output: x: [R, d] -> [R, C]."""
        y = torch.ops.linnet.linear(x, weight, bias, activation)
        return self.step(y, state, positions, backpointers)

    @torch.jit.export
    def pack(self, kind: str) -> None:
        self.taps.pack(kind)


class GatedConvolution(nn.Module):
    """linear d -> 2d, GLU (or d -> d), convolution, linear d -> d: Wu et al. 2019, figure 2."""

    def __init__(self, config: ModelConfig, mixer: str, kernel: int, dilation: int, causal: bool):
        super().__init__()
        width, heads, dropout = config.width, config.heads, config.weight_dropout
        softmax = config.weight_softmax
        self.width, self.glu, self.input_dropout = width, config.glu, config.input_dropout
        span = (kernel - 1) * dilation
        padding_left = span if causal else span // 2
        self.linear1 = linear(width, 2 * width if config.glu else width)
        if mixer == "dynamic":
            self.conv: nn.Module = DynamicConv(width, heads, kernel, padding_left, dropout, softmax)
        elif mixer == "light":
            self.conv = LightConv(width, heads, kernel, padding_left, dropout, softmax)
        elif mixer == "full":
            self.conv = FullConv(width, kernel, padding_left, dropout)
        else:
            self.conv = DepthwiseConv(width, kernel, padding_left, dilation, dropout)
        self.linear2 = linear(width, width)
        self.window = span + 1

    @torch.jit.unused
    def forward(self, x: Tensor, valid: Tensor | None, drop: Dropout) -> Tensor:
        """x: [B, T, d], valid: bool [B, T] or None where nothing is padded -> [B, T, d]."""
        x = self.linear1(drop(x, self.input_dropout))
        if self.glu:
            x = F.glu(x, dim=-1)
        if valid is not None:
            x = x * valid.unsqueeze(-1).to(x.dtype)
        return self.linear2(self.conv(x, drop))

    @torch.jit.export
    def encode(self, x: Tensor, lengths: Tensor, closing: Closing | None = None) -> Tensor:
        x = self.linear1.serve(x, "glu" if self.glu else "none")
        return self.linear2.close(self.conv.encode(x, lengths), closing)

    @torch.jit.export
    def mix(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        """x: [R, d], state: [window, slots, d] changed in place, positions: [R], backpointers: [R,
        A] -> [R, d]."""
        return self.conv.step_after(
            x,
            self.linear1.weight,
            self.linear1.bias,
            "glu" if self.glu else "none",
            state,
            positions,
            backpointers,
        )

    @torch.jit.export
    def close(
        self, y: Tensor, residual: Tensor, norm: Tensor, norm_bias: Tensor, pre_norm: bool
    ) -> tuple[Tensor, Tensor]:
        """Linear.close_step of the last linear layer, y: [R, d]."""
        return self.linear2.close_step(y, residual, norm, norm_bias, pre_norm)

    @torch.jit.export
    def step(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        return self.linear2.serve(self.mix(x, state, positions, backpointers))

    @torch.jit.export
    def pack(self, kind: str) -> None:
        self.linear1.pack(kind)
        self.conv.pack(kind)
        self.linear2.pack(kind)

    @torch.jit.export
    def new_state(self, slots: int, like: Tensor) -> Tensor:
        """Zeroed [window, slots, d] in the type and on the device of `like`."""
        return like.new_zeros([self.window, slots, self.width])

    @torch.jit.export
    def min_backpointers(self) -> int:
        return self.window


class SelfAttention(nn.Module):
    """Multi-head self-attention over the whole sequence, over a window of positions, or over a
    window of positions and neighbouring heads with one softmax over both.

    y[i,h] = sum_{j,g} p[i,h,j,g] v[j,g],  p = softmax over (j, g) of q[i,h] . k[j,g] / sqrt(d / H)
    with g = h - n/2 .. h + n/2 as far as these heads exist. Vaswani et al. 2017, section 3.2; Yang
    et al. 2019, Convolutional Self-Attention Networks: 1D (n = 1) and 2D. In the decoder j <= i.
    """

    def __init__(self, config: ModelConfig, window: int, neighbour_heads: int, causal: bool):
        super().__init__()
        self.heads, self.neighbour_heads = config.heads, neighbour_heads
        self.dropout = config.attention_dropout
        self.unbounded, self.causal = window == 0, causal
        self.window = window if window > 0 else config.max_positions
        self.width = config.width
        self.query_key_value = linear(config.width, 3 * config.width)  # rows in this order
        self.output = linear(config.width, config.width)

    def split(self, projected: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Output of query_key_value [B, T, 3 d] -> queries, keys and values [B, H, T, d/H]."""
        b, t, d = projected.size(0), projected.size(1), self.width
        parts = projected.view(b, t, 3, self.heads, d // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        return q, k, v

    def neighbours(self, y: Tensor) -> Tensor:
        """[B, H, T, d/H] -> [B, H, n*T, d/H]: each head with the n - 1 heads around it, zero where
        a head does not exist."""
        b, h, t, c = y.shape
        n = self.neighbour_heads
        if n == 1:
            return y
        around = F.pad(y, [0, 0, 0, 0, n // 2, n // 2]).unfold(1, n, 1)
        return around.permute(0, 1, 4, 2, 3).reshape(b, h, n * t, c)

    def mask(self, like: Tensor, valid: Tensor | None) -> Tensor:
        """Attention mask for queries shaped `like`: bool [1 or B, 1 or H, T, n*T].

        A position always attends to itself, so that no softmax is empty, not even in padding.
        """
        t, n = like.size(2), self.neighbour_heads
        index = torch.arange(t, device=like.device)
        back = index.unsqueeze(1) - index.unsqueeze(0)  # distance from query i back to key j
        maximum = t if self.unbounded else self.window - 1 if self.causal else self.window // 2
        minimum = 0 if self.causal else -maximum
        seen = ((back <= maximum) & (back >= minimum)).unsqueeze(0)
        if valid is not None:
            seen = (seen & valid.unsqueeze(1)) | (back == 0)
        seen = seen.unsqueeze(1)
        if n == 1:
            return seen
        heads = torch.arange(self.heads, device=like.device).unsqueeze(1)
        around = heads + torch.arange(n, device=like.device) - n // 2
        exists = ((around >= 0) & (around < self.heads)).view(1, self.heads, 1, n, 1)
        return (seen.unsqueeze(3) & exists).reshape(seen.size(0), self.heads, t, n * t)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, valid: Tensor | None) -> Tensor:
        """Queries, keys and values [B, H, T, d/H], valid: bool [B, T] or None -> [B, H, T, d/H]."""
        if self.unbounded and valid is None:
            return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return F.scaled_dot_product_attention(
            q, self.neighbours(k), self.neighbours(v), attn_mask=self.mask(q, valid)
        )

    def join(self, y: Tensor) -> Tensor:
        """[B, H, T, d/H] -> [B, T, d], the input of `output`."""
        b, h, t, c = y.shape
        return y.transpose(1, 2).reshape(b, t, h * c)

    @torch.jit.unused
    def forward(self, x: Tensor, valid: Tensor | None, drop: Dropout) -> Tensor:
        """x: [B, T, d], valid: bool [B, T] or None where nothing is padded -> [B, T, d]."""
        q, k, v = self.split(self.query_key_value(x))
        if self.dropout == 0.0:
            return self.output(self.join(self.attend(q, k, v, valid)))
        scores = (q * q.size(-1) ** -0.5) @ self.neighbours(k).transpose(-2, -1)
        if valid is not None or self.causal or not self.unbounded:
            scores = scores.masked_fill(~self.mask(q, valid), -torch.inf)
        weights = drop(scores.softmax(dim=-1), self.dropout).to(v.dtype)
        return self.output(self.join(weights @ self.neighbours(v)))

    @torch.jit.export
    def encode(self, x: Tensor, lengths: Tensor, closing: Closing | None = None) -> Tensor:
        """x: [B, S, d], lengths: int32 [B] -> [B, S, d], undefined from lengths[b] on.

        On the CPU each sequence is computed by itself, cut to its own length: another padded length
        changes the last bits of the sums, which breaks batch invariance. Lengths are rounded up to
        multiples of 8, where MKL's gemms gave the same bits with 1, 2 and 3 threads; odd lengths of
        narrow heads did not. A GPU computes the whole batch.
        """
        q, k, v = self.split(self.query_key_value.serve(x))
        valid = torch.arange(x.size(1), device=x.device) < lengths.unsqueeze(1)
        if x.is_cuda:
            y = self.join(self.attend(q, k, v, valid))
            return self.output.close(y, closing)
        y = torch.zeros_like(q)
        for b in range(x.size(0)):
            one = slice(b, b + 1)
            n = min((int(lengths[b]) + 7) // 8 * 8, x.size(1))
            if n > 0:
                y[one, :, :n] = self.attend(
                    q[one, :, :n], k[one, :, :n], v[one, :, :n], valid[one, :n]
                )
        return self.output.close(self.join(y), closing)

    @torch.jit.export
    def mix(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        """x: [R, d], state: [window, slots, 2, d] changed in place, positions: [R], backpointers:
        [R, A] -> [R, d]."""
        query, key, value = self.query_key_value.serve(x).chunk(3, dim=-1)
        # No row has reached a later position: the first positions are a smaller ring.
        if backpointers.size(1) < state.size(0):
            state = state[: backpointers.size(1)]
        return torch.ops.linnet.self_attention_step(
            query, key, value, state, positions, backpointers, self.heads, self.neighbour_heads
        )

    @torch.jit.export
    def close(
        self, y: Tensor, residual: Tensor, norm: Tensor, norm_bias: Tensor, pre_norm: bool
    ) -> tuple[Tensor, Tensor]:
        """Linear.close_step of the last linear layer, y: [R, d]."""
        return self.output.close_step(y, residual, norm, norm_bias, pre_norm)

    @torch.jit.export
    def step(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        return self.output.serve(self.mix(x, state, positions, backpointers))

    @torch.jit.export
    def pack(self, kind: str) -> None:
        self.query_key_value.pack(kind)
        self.output.pack(kind)

    @torch.jit.export
    def new_state(self, slots: int, like: Tensor) -> Tensor:
        """Keys and values [window, slots, 2, d] in the type and on the device of `like`.

        Not zeroed, because nothing is read before it is written. On a CPU the system then allocates
        pages only for the positions that some target has reached, so the window may be long.
        """
        return like.new_empty([self.window, slots, 2, self.width])

    @torch.jit.export
    def min_backpointers(self) -> int:
        return 1


class SSRU(nn.Module):
    """Simpler simple recurrent unit, for decoders; it ends without a linear layer.

    c[t] = f[t] c[t-1] + (1 - f[t]) z[t],  c[-1] = 0,  z = x W,  f = sigmoid(x W_f + b_f),
    y = max(0, c). Kim et al. 2019, From Research to Production and Back, section 2.3, which has no
    bias in z; here it has one, so that both products are one.
    """

    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self.norm_epsilon = 1e-5  # of the norm behind it; EncoderDecoder sets it
        self.candidate_gate = linear(width, 2 * width)  # rows: candidates z, then gates f

    @torch.jit.unused
    def forward(self, x: Tensor, valid: Tensor | None, drop: Dropout) -> Tensor:
        """x: [B, T, d] -> [B, T, d]; nothing reads the future, so no mask is needed. The recurrence
        is a loop over positions, in float32 at least."""
        projected = self.candidate_gate(x)
        wide = projected.to(torch.promote_types(projected.dtype, torch.float32))
        z, f = wide.chunk(2, dim=-1)
        c, cells = torch.zeros_like(z[:, 0]), []
        for candidate, forget in zip(z.unbind(1), f.sigmoid().unbind(1), strict=True):
            c = torch.lerp(candidate, c, forget)
            cells.append(c)
        return torch.stack(cells, dim=1).relu().to(projected.dtype)

    @torch.jit.export
    def mix(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        """x: [R, d], state: float32 [2, slots, d] changed in place, positions: [R], backpointers:
        [R, A] -> [R, d]."""
        projected = self.candidate_gate.serve(x)
        return torch.ops.linnet.ssru_step(projected, state, positions, backpointers)

    @torch.jit.export
    def close(
        self, y: Tensor, residual: Tensor, norm: Tensor, norm_bias: Tensor, pre_norm: bool
    ) -> tuple[Tensor, Tensor]:
        """As Linear.close_step, without a linear layer: y: [R, d]."""
        if pre_norm:
            return torch.ops.linnet.add_norm_sum(y, residual, norm, norm_bias, self.norm_epsilon)
        y = torch.ops.linnet.add_norm(y, residual, norm, norm_bias, self.norm_epsilon)
        return y, y

    @torch.jit.export
    def step(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        return self.mix(x, state, positions, backpointers)

    @torch.jit.export
    def pack(self, kind: str) -> None:
        self.candidate_gate.pack(kind)

    @torch.jit.export
    def new_state(self, slots: int, like: Tensor) -> Tensor:
        """Cells [2, slots, d] of this step and the last one, on the device of `like`; float32 for
        every type, since a cell carries the whole prefix."""
        return torch.zeros([2, slots, self.width], dtype=torch.float32, device=like.device)

    @torch.jit.export
    def min_backpointers(self) -> int:
        return 2


def make_mixer(
    config: ModelConfig, mixer: str, kernel: int, dilation: int, causal: bool
) -> nn.Module:
    """Returns the mixer of one layer: causal in the decoder, centred in the encoder."""
    if mixer in CONVOLUTIONS:
        return GatedConvolution(config, mixer, kernel, dilation, causal)
    if mixer == "ssru":
        return SSRU(config.width)
    return SelfAttention(
        config, kernel, config.neighbour_heads if mixer == "csan_2d" else 1, causal
    )
