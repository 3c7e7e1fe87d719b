"""The layers of encoder and decoder: a mixer, the attention to the source, a feed-forward block.

`forward` is the training path: plain differentiable PyTorch over whole sequences. `encode` and
`step` are the serving path, scripted into the bundle. Both compute the same function. A layer keeps
nothing between calls and does not depend on which mixer it holds (mixers.py).

Names of sizes: B sources, S source tokens, T target tokens, R decoder rows, d channels, H heads.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linnet_model.network.dropout import Dropout
from linnet_model.network.linear import Closing, linear
from linnet_model.network.mixers import make_mixer
from linnet_model.network.model_config import ModelConfig

Norm = tuple[Tensor, Tensor]  # weight and bias


class EncoderAttention(nn.Module):
    """Multi-head attention from a decoder position to all positions of its source.
    `alignment_head` is the head whose weights are the alignment; -1: the mean of all."""

    def __init__(self, width: int, heads: int, dropout: float, alignment_head: int = -1):
        super().__init__()
        self.heads, self.dropout, self.alignment_head = heads, dropout, alignment_head
        self.query = linear(width, width)
        self.key_value = linear(width, 2 * width)  # rows: keys, then values
        self.output = linear(width, width)

    @torch.jit.unused
    def forward(self, x: Tensor, encoded: Tensor, bias: Tensor | None, drop: Dropout) -> Tensor:
        """x: [B, T, d], encoded: [B, S, d], bias: [B, 1, S] of 0 and -inf or None -> [B, T, d]."""
        b, t, d = x.shape
        s, h = encoded.shape[1], self.heads

        def split(y: Tensor, length: int) -> Tensor:
            return y.reshape(b, length, h, d // h).transpose(1, 2).reshape(b * h, length, d // h)

        keys, values = self.key_value(encoded).split(d, dim=-1)
        scores = torch.bmm(
            split(self.query(x) * (d // h) ** -0.5, t), split(keys, s).transpose(1, 2)
        )
        if bias is not None:
            scores = (scores.view(b, h, t, s) + bias.unsqueeze(1)).view(b * h, t, s)
        y = torch.bmm(drop(scores.softmax(dim=-1), self.dropout), split(values, s))
        return self.output(y.view(b, h, t, d // h).transpose(1, 2).reshape(b, t, d))

    @torch.jit.export
    def keys_values(self, encoded: Tensor) -> Tensor:
        """encoded: [B, S, d] -> keys and values [B, S, 2, d]."""
        b, s, d = encoded.shape
        return self.key_value.serve(encoded).view(b, s, 2, d)

    @torch.jit.export
    def step(self, x: Tensor, pool: Tensor, blocks: Tensor, lengths: Tensor) -> Tensor:
        """x: [R, d], pool: [N, P, 2, d], blocks: [R, M], lengths: [R] -> [R, d]."""
        return self.output.serve(self.mix(self.query.serve(x), pool, blocks, lengths))

    @torch.jit.export
    def mix(self, query: Tensor, pool: Tensor, blocks: Tensor, lengths: Tensor) -> Tensor:
        """`step` without the first and the last linear layer."""
        return torch.ops.linnet.source_attention(query, pool, blocks, lengths, self.heads)

    @torch.jit.export
    def weights(self, query: Tensor, pool: Tensor, blocks: Tensor, lengths: Tensor) -> Tensor:
        """Arguments as of `mix` -> attention weights of the source tokens, of the alignment head
        or averaged over the heads: float32 [R, M * P], zero past the end of a source.

        On a GPU each row is computed by itself in the shape of its source, for batch invariance.
        """
        if not query.is_cuda:
            return torch.ops.linnet.source_attention_weights(
                query, pool, blocks, lengths, self.heads, self.alignment_head
            )
        query = query.to(torch.float32)
        r, d = query.shape
        block, h = pool.size(1), self.heads
        counts = torch.zeros([r, blocks.size(1) * block], dtype=torch.float32, device=query.device)
        sizes: list[int] = lengths.to(torch.int64).tolist()
        for i in range(r):
            size = sizes[i]
            if size > 0:
                own = blocks[i, : (size + block - 1) // block].to(torch.int64)
                keys = pool[own][:, :, 0].reshape(-1, h, d // h)[:size].to(torch.float32)
                scores = (keys * query[i].view(h, d // h)).sum(-1) * (d // h) ** -0.5
                shares = scores.softmax(0)
                head = self.alignment_head
                counts[i, :size] = shares.mean(1) if head < 0 else shares[:, head]
        return counts

    @torch.jit.export
    def pack(self, kind: str) -> None:
        self.query.pack(kind)
        self.key_value.pack(kind)
        self.output.pack(kind)


class FeedForward(nn.Module):
    def __init__(self, width: int, hidden: int, activation: str, dropout: float):
        super().__init__()
        self.activation, self.dropout = activation, dropout
        self.fc1 = linear(width, hidden)
        self.fc2 = linear(hidden, width)

    @torch.jit.unused
    def hidden(self, x: Tensor) -> Tensor:
        x = self.fc1(x)
        if self.activation == "relu":
            return F.relu(x)
        if self.activation == "swish":
            return F.silu(x)
        return F.gelu(x)

    @torch.jit.unused
    def forward(self, x: Tensor, drop: Dropout) -> Tensor:
        return self.fc2(drop(self.hidden(x), self.dropout))

    @torch.jit.export
    def serve(self, x: Tensor, closing: Closing | None = None) -> Tensor:
        """x: [..., d] -> [..., d], including the residual sum and the norm if given."""
        y = self.fc1.serve(x, self.activation)
        return self.fc2.close(y, closing)

    @torch.jit.export
    def step(
        self, x: Tensor, residual: Tensor, norm: Tensor, norm_bias: Tensor, pre_norm: bool
    ) -> tuple[Tensor, Tensor]:
        """x: [R, d] -> Linear.close_step."""
        y = self.fc1.serve(x, self.activation)
        return self.fc2.close_step(y, residual, norm, norm_bias, pre_norm)

    @torch.jit.export
    def pack(self, kind: str) -> None:
        self.fc1.pack(kind)
        self.fc2.pack(kind)


class EncoderLayer(nn.Module):
    def __init__(self, config: ModelConfig, mixer: str, kernel: int, dilation: int):
        super().__init__()
        self.pre_norm, self.dropout = config.pre_norm, config.dropout
        self.mixer = make_mixer(config, mixer, kernel, dilation, causal=False)
        self.ffn = FeedForward(
            config.width, config.ffn_width, config.activation, config.relu_dropout
        )
        self.mixer_norm = nn.LayerNorm(config.width)
        self.ffn_norm = nn.LayerNorm(config.width)

    @torch.jit.unused
    def forward(self, x: Tensor, valid: Tensor | None, drop: Dropout) -> Tensor:
        """x: [B, S, d], valid: bool [B, S] or None -> [B, S, d]."""
        if self.pre_norm:
            x = x + drop(self.mixer(self.mixer_norm(x), valid, drop), self.dropout)
            return x + drop(self.ffn(self.ffn_norm(x), drop), self.dropout)
        x = self.mixer_norm(x + drop(self.mixer(x, valid, drop), self.dropout))
        return self.ffn_norm(x + drop(self.ffn(x, drop), self.dropout))

    @torch.jit.export
    def encode(self, x: Tensor, lengths: Tensor, starts: Tensor | None = None) -> Tensor:
        if self.pre_norm:
            x = self.mixer.encode(self.mixer_norm(x), lengths, (x, None, None), starts)
            return self.ffn.serve(self.ffn_norm(x), (x, None, None))
        x = self.mixer.encode(x, lengths, (x, self.mixer_norm.weight, self.mixer_norm.bias), starts)
        return self.ffn.serve(x, (x, self.ffn_norm.weight, self.ffn_norm.bias))

    @torch.jit.export
    def pack(self, kind: str) -> None:
        self.mixer.pack(kind)
        self.ffn.pack(kind)


class DecoderLayer(nn.Module):
    """A decoder layer; in a language model it has no attention to a source."""

    def __init__(
        self, config: ModelConfig, mixer: str, kernel: int, dilation: int, has_source: bool
    ):
        super().__init__()
        self.pre_norm, self.dropout = config.pre_norm, config.dropout
        self.mixer = make_mixer(config, mixer, kernel, dilation, causal=True)
        self.attention = (
            EncoderAttention(
                config.width, config.heads, config.attention_dropout, config.alignment_head
            )
            if has_source
            else None
        )
        self.ffn = FeedForward(
            config.width, config.ffn_width, config.activation, config.relu_dropout
        )
        self.mixer_norm = nn.LayerNorm(config.width)
        self.attention_norm = nn.LayerNorm(config.width) if has_source else None
        self.ffn_norm = nn.LayerNorm(config.width)

    @torch.jit.unused
    def forward(
        self, x: Tensor, encoded: Tensor | None, bias: Tensor | None, drop: Dropout
    ) -> Tensor:
        """x: [B, T, d], padded at the end; encoded: [B, S, d] or None without a source; bias: [B,
        1, S] or None -> [B, T, d]."""
        if self.pre_norm:
            x = x + drop(self.mixer(self.mixer_norm(x), None, drop), self.dropout)
            if self.attention is not None:
                attended = self.attention(self.attention_norm(x), encoded, bias, drop)
                x = x + drop(attended, self.dropout)
            return x + drop(self.ffn(self.ffn_norm(x), drop), self.dropout)
        x = self.mixer_norm(x + drop(self.mixer(x, None, drop), self.dropout))
        if self.attention is not None:
            x = self.attention_norm(x + drop(self.attention(x, encoded, bias, drop), self.dropout))
        return self.ffn_norm(x + drop(self.ffn(x, drop), self.dropout))

    @torch.jit.export
    def first_norm(self) -> Norm:
        """The norm of the first block."""
        return self.mixer_norm.weight, self.mixer_norm.bias

    @torch.jit.export
    def step(
        self,
        x: Tensor,
        normed: Tensor,
        state: Tensor,
        positions: Tensor,
        backpointers: Tensor,
        pool: Tensor,
        blocks: Tensor,
        source_lengths: Tensor,
        next_norm: Norm,
        align: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Decodes one position of every row; reads `pool` only with a source.

        x: [R, d] and normed: [R, d] are the residual and the input of the first block: first_norm
        of x in a pre-norm model, otherwise x. Returns the same two of the layer after this one,
        whose first norm is `next_norm`; a post-norm model does not read it. So each norm shares a
        kernel with the residual sum before it. With `align` the third is EncoderAttention.weights;
        otherwise it has no meaning.
        """
        mixed = self.mixer.mix(normed, state, positions, backpointers)
        norm, bias = self.norm_after_mixer()
        x, normed = self.mixer.close(mixed, x, norm, bias, self.pre_norm)
        weights = normed
        if self.attention is not None:
            query = self.attention.query.serve(normed)
            if align:
                weights = self.attention.weights(query, pool, blocks, source_lengths)
            attended = self.attention.mix(query, pool, blocks, source_lengths)
            norm, bias = self.norm_after_attention()
            x, normed = self.attention.output.close_step(attended, x, norm, bias, self.pre_norm)
        norm, bias = next_norm if self.pre_norm else (self.ffn_norm.weight, self.ffn_norm.bias)
        x, normed = self.ffn.step(normed, x, norm, bias, self.pre_norm)
        return x, normed, weights

    @torch.jit.export
    def norm_after_mixer(self) -> Norm:
        if not self.pre_norm:
            return self.mixer_norm.weight, self.mixer_norm.bias
        if self.attention_norm is not None:
            return self.attention_norm.weight, self.attention_norm.bias
        return self.ffn_norm.weight, self.ffn_norm.bias

    @torch.jit.export
    def norm_after_attention(self) -> Norm:
        if not self.pre_norm and self.attention_norm is not None:
            return self.attention_norm.weight, self.attention_norm.bias
        return self.ffn_norm.weight, self.ffn_norm.bias

    @torch.jit.export
    def source_weights(
        self,
        x: Tensor,
        normed: Tensor,
        state: Tensor,
        positions: Tensor,
        backpointers: Tensor,
        pool: Tensor,
        blocks: Tensor,
        source_lengths: Tensor,
    ) -> Tensor:
        """As `step` up to the attention; returns EncoderAttention.weights."""
        mixed = self.mixer.mix(normed, state, positions, backpointers)
        norm, bias = self.norm_after_mixer()
        _, normed = self.mixer.close(mixed, x, norm, bias, self.pre_norm)
        assert self.attention is not None
        query = self.attention.query.serve(normed)
        return self.attention.weights(query, pool, blocks, source_lengths)

    @torch.jit.export
    def pack(self, kind: str) -> None:
        self.mixer.pack(kind)
        if self.attention is not None:
            self.attention.pack(kind)
        self.ffn.pack(kind)
