"""The mixers: the part of a layer that combines positions (convolution, self-attention or a
recurrent unit).

    forward(x, valid, drop)                  training, whole sequences: plain PyTorch
    encode(x, lengths, closing, starts)      serving, whole sequences of an encoder
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

With `starts` [B] the rows of x are blocks of sequences (first_position.h) instead of padded ones;
mixers without `takes_blocks` refuse them.

A mixer keeps nothing between calls. The caller passes the state, [window, slots, ...], a ring over
the last `window` positions; the step operators change it in place. `backpointers` [R, A] gives for
each row and past position the slot that holds it. A is one more than the largest number of steps
that a row has taken, at most the window, and at least `min_backpointers`.

On the CPU neighbouring rows may be a run, successive positions of one target (convolution_step.h).
A run may begin anywhere, except in a mixer that calls a step operator several times for a step
(windows_step): there it begins at the first position, as the engine's runs do.

Names of sizes: B sequences, T positions, R decoder rows, A columns of backpointers, d = C channels,
H heads, K taps.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linnet_model.network.convolutions import GatedConvolution
from linnet_model.network.dropout import Dropout
from linnet_model.network.linear import Closing, linear
from linnet_model.network.model_config import CONVOLUTIONS, ModelConfig


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
        self.takes_blocks = self.unbounded and neighbour_heads == 1 and not causal
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
    def encode(
        self,
        x: Tensor,
        lengths: Tensor,
        closing: Closing | None = None,
        starts: Tensor | None = None,
    ) -> Tensor:
        """x: [B, S, d], lengths: int32 [B] -> [B, S, d], undefined from lengths[b] on.

        On the CPU plain self-attention is one operator. Windows are computed sequence by sequence,
        each cut to its own length: another padded length changes the last bits of the sums, which
        breaks batch invariance. Lengths are rounded up to multiples of 8, where MKL's gemms gave
        the same bits with 1, 2 and 3 threads; odd lengths of narrow heads did not. A GPU computes
        the whole batch.
        """
        projected = self.query_key_value.serve(x)
        if self.takes_blocks and (starts is not None or not x.is_cuda):
            y = torch.ops.linnet.self_attention(projected, lengths, self.heads, starts)
            return self.output.close(y, closing)
        assert starts is None, "this self-attention takes no blocks"
        q, k, v = self.split(projected)
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
