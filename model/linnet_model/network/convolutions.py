"""The convolutions among the mixers (mixers.py), which all stand behind a linear layer and a gate.

A convolution has these methods; K is its number of taps, and it serves one position like a mixer:

    forward(x, drop)                               training: plain PyTorch
    encode(x, lengths, starts)                     serving, whole sequences
    step(x, state, positions, backpointers)        serving, one position of every row
    step_after(x, weight, bias, activation, …)     the same with the linear layer before it
    pack(kind)                                     lays its own linear layer out for serving
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linnet_model.network.dropout import Dropout
from linnet_model.network.linear import Closing, linear
from linnet_model.network.model_config import ModelConfig


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


def shift(x: Tensor, kernel: int, tap: int) -> Tensor:
    """Returns taps [C, K] of a depthwise convolution that shifts x [..., C]: all ones at `tap`."""
    taps = x.new_zeros([kernel, x.size(-1)])
    taps[tap].fill_(1.0)
    return taps.t()


def windows(
    x: Tensor, lengths: Tensor, kernel: int, padding_left: int, starts: Tensor | None
) -> Tensor:
    """x: [B, S, C], lengths: int32 [B] -> [B, S, K, C], the inputs under the taps of each position,
    zero outside its sequence."""
    taken = [
        torch.ops.linnet.depthwise_conv(x, shift(x, kernel, k), lengths, padding_left, 1, starts)
        for k in range(kernel)
    ]
    return torch.stack(taken, dim=2)


def windows_step(
    x: Tensor, kernel: int, state: Tensor, positions: Tensor, backpointers: Tensor
) -> Tensor:
    """x: [R, C], state: [K, slots, C] changed in place, positions: [R], backpointers: [R, A] -> [R,
    K, C], the last K inputs of each row, oldest first, zero before its start."""
    taken = [  # each writes the same input to the same place of `state`
        torch.ops.linnet.depthwise_conv_step(
            x, shift(x, kernel, k), state, positions, backpointers, 1
        )
        for k in range(kernel)
    ]
    return torch.stack(taken, dim=1)


class Convolution(nn.Module):
    """The methods that most convolutions share."""

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


class RawDynamicConv(Convolution):
    """DynamicConv without the softmax: a row of the ablation of Wu et al. 2019 (table 3), and
    slow."""

    def __init__(
        self, width: int, heads: int, kernel: int, padding_left: int, weight_dropout: float
    ):
        super().__init__()
        self.heads, self.kernel, self.padding_left = heads, kernel, padding_left
        self.window = kernel
        self.weight_dropout = weight_dropout
        self.weight_linear = linear(width, heads * kernel, bias=False)

    @torch.jit.unused
    def normalise(self, taps: Tensor) -> Tensor:
        return taps

    @torch.jit.unused
    def forward(self, x: Tensor, drop: Dropout) -> Tensor:
        """x: [B, T, C], zero at padded positions -> [B, T, C]."""
        b, t, _ = x.shape
        taps = self.normalise(self.weight_linear(x).view(b, t, self.heads, self.kernel))
        return convolve(x, drop(taps, self.weight_dropout), self.padding_left)

    def apply_taps(self, x: Tensor, seen: Tensor) -> Tensor:
        """x: [..., C], seen: [..., K, C], the inputs under its taps -> [..., C]."""
        taps = self.weight_linear.serve(x).unflatten(-1, [self.heads, self.kernel])
        split = seen.unflatten(-1, [self.heads, x.size(-1) // self.heads])
        return (split * taps.transpose(-1, -2).unsqueeze(-1)).sum(dim=-3).flatten(-2)

    @torch.jit.export
    def encode(self, x: Tensor, lengths: Tensor, starts: Tensor | None = None) -> Tensor:
        """x: [B, S, C], lengths: int32 [B] -> [B, S, C], zero from lengths[b] on."""
        return self.apply_taps(x, windows(x, lengths, self.kernel, self.padding_left, starts))

    @torch.jit.export
    def step(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        """x: [R, C], state: [K, slots, C] changed in place, positions: [R], backpointers: [R, A]
        -> [R, C]."""
        return self.apply_taps(x, windows_step(x, self.kernel, state, positions, backpointers))

    @torch.jit.export
    def pack(self, kind: str) -> None:
        self.weight_linear.pack(kind)


class DynamicConv(RawDynamicConv):
    """Convolution with taps predicted from the position they are centred on, softmax over K.

    Wu et al. 2019, Pay Less Attention with Lightweight and Dynamic Convolutions, section 4.
    """

    @torch.jit.unused
    def normalise(self, taps: Tensor) -> Tensor:
        return taps.softmax(dim=-1)

    @torch.jit.export
    def encode(self, x: Tensor, lengths: Tensor, starts: Tensor | None = None) -> Tensor:
        """x: [B, S, C], lengths: int32 [B] -> [B, S, C], zero from lengths[b] on."""
        weight = self.weight_linear.serve(x).view(x.size(0), x.size(1), self.heads, self.kernel)
        return torch.ops.linnet.dynamic_conv(x, weight, lengths, self.padding_left, starts)

    @torch.jit.export
    def step(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        """x: [R, C], state: [K, slots, C] changed in place, positions: [R], backpointers: [R, A]
        -> [R, C]."""
        weight = self.weight_linear.serve(x).view(x.size(0), self.heads, self.kernel)
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
        """`step` of the linear layer's output, in one operator: x: [R, d] -> [R, C]."""
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


class RawLightConv(Convolution):
    """LightConv without the softmax, a depthwise convolution whose taps the channels of a head
    share: a row of the ablation of Wu et al. 2019 (table 3)."""

    def __init__(
        self, width: int, heads: int, kernel: int, padding_left: int, weight_dropout: float
    ):
        super().__init__()
        self.width, self.heads, self.kernel = width, heads, kernel
        self.padding_left = padding_left
        self.window = kernel
        self.weight_dropout = weight_dropout
        self.weight = nn.Parameter(torch.empty(heads, kernel))
        nn.init.xavier_uniform_(self.weight)

    @torch.jit.unused
    def normalise(self, taps: Tensor) -> Tensor:
        return taps

    @torch.jit.unused
    def forward(self, x: Tensor, drop: Dropout) -> Tensor:
        """x: [B, T, C], zero at padded positions -> [B, T, C]."""
        b, t, _ = x.shape
        taps = drop(self.normalise(self.weight), self.weight_dropout)
        return convolve(x, taps.expand(b, t, self.heads, self.kernel), self.padding_left)

    def taps_of_channels(self) -> Tensor:
        """[C, K]."""
        return self.weight.t().repeat_interleave(self.width // self.heads, dim=1).t()

    @torch.jit.export
    def encode(self, x: Tensor, lengths: Tensor, starts: Tensor | None = None) -> Tensor:
        """x: [B, S, C], lengths: int32 [B] -> [B, S, C], zero from lengths[b] on."""
        taps = self.taps_of_channels()
        return torch.ops.linnet.depthwise_conv(x, taps, lengths, self.padding_left, 1, starts)

    @torch.jit.export
    def step(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        """x: [R, C], state: [K, slots, C] changed in place, positions: [R], backpointers: [R, A]
        -> [R, C]."""
        taps = self.taps_of_channels()
        return torch.ops.linnet.depthwise_conv_step(x, taps, state, positions, backpointers, 1)


class LightConv(RawLightConv):
    """Convolution with learned taps, shared by all positions and by the channels of a head, softmax
    over K.

    Wu et al. 2019, section 3.
    """

    @torch.jit.unused
    def normalise(self, taps: Tensor) -> Tensor:
        return taps.softmax(dim=-1)

    @torch.jit.export
    def encode(self, x: Tensor, lengths: Tensor, starts: Tensor | None = None) -> Tensor:
        """x: [B, S, C], lengths: int32 [B] -> [B, S, C], zero from lengths[b] on."""
        return torch.ops.linnet.light_conv(x, self.weight, lengths, self.padding_left, starts)

    @torch.jit.export
    def step(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        """x: [R, C], state: [K, slots, C] changed in place, positions: [R], backpointers: [R, A]
        -> [R, C]."""
        return torch.ops.linnet.light_conv_step(x, self.weight, state, positions, backpointers)


class DepthwiseConv(Convolution):
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
    def encode(self, x: Tensor, lengths: Tensor, starts: Tensor | None = None) -> Tensor:
        """x: [B, S, C], lengths: int32 [B] -> [B, S, C], zero from lengths[b] on."""
        return torch.ops.linnet.depthwise_conv(
            x, self.weight.t(), lengths, self.padding_left, self.dilation, starts
        )

    @torch.jit.export
    def step(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        """x: [R, C], state: [window, slots, C] changed in place, positions: [R], backpointers:
        [R, A] -> [R, C]."""
        return torch.ops.linnet.depthwise_conv_step(
            x, self.weight.t(), state, positions, backpointers, self.dilation
        )


class FullConv(Convolution):
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
    def encode(self, x: Tensor, lengths: Tensor, starts: Tensor | None = None) -> Tensor:
        """x: [B, S, C], lengths: int32 [B] -> [B, S, C], zero from lengths[b] on."""
        seen = windows(x, lengths, self.kernel, self.padding_left, starts)
        return self.taps.serve(seen.flatten(-2))

    @torch.jit.export
    def step(self, x: Tensor, state: Tensor, positions: Tensor, backpointers: Tensor) -> Tensor:
        """x: [R, C], state: [K, slots, C] changed in place, positions: [R], backpointers: [R, A]
        -> [R, C]."""
        seen = windows_step(x, self.kernel, state, positions, backpointers)
        return self.taps.serve(seen.flatten(-2))

    @torch.jit.export
    def pack(self, kind: str) -> None:
        self.taps.pack(kind)


class GatedConvolution(nn.Module):
    """linear d -> 2d, GLU (or d -> d), convolution, linear d -> d: Wu et al. 2019, figure 2."""

    def __init__(self, config: ModelConfig, mixer: str, kernel: int, dilation: int, causal: bool):
        super().__init__()
        width, heads, dropout = config.width, config.heads, config.weight_dropout
        self.width, self.glu, self.input_dropout = width, config.glu, config.input_dropout
        span = (kernel - 1) * dilation
        padding_left = span if causal else span // 2
        self.linear1 = linear(width, 2 * width if config.glu else width)
        if mixer == "dynamic":
            dynamic = DynamicConv if config.weight_softmax else RawDynamicConv
            self.conv: nn.Module = dynamic(width, heads, kernel, padding_left, dropout)
        elif mixer == "light":
            light = LightConv if config.weight_softmax else RawLightConv
            self.conv = light(width, heads, kernel, padding_left, dropout)
        elif mixer == "full":
            self.conv = FullConv(width, kernel, padding_left, dropout)
        else:
            self.conv = DepthwiseConv(width, kernel, padding_left, dilation, dropout)
        self.linear2 = linear(width, width)
        self.window = span + 1
        self.takes_blocks = True  # `encode` takes `starts`

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
    def encode(
        self,
        x: Tensor,
        lengths: Tensor,
        closing: Closing | None = None,
        starts: Tensor | None = None,
    ) -> Tensor:
        x = self.linear1.serve(x, "glu" if self.glu else "none")
        return self.linear2.close(self.conv.encode(x, lengths, starts), closing)

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
