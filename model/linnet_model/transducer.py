"""The encoder-decoder: `forward` trains it, `encode` and `step` serve it.

The scripted module keeps no state. What it offers to an engine:

  encode(source, lengths)  -> per decoder layer the keys and values of the encoder attention
  step(tokens, ...)        -> logits of every row; `state` is changed in place by the step operators
  new_state, new_memory    -> zeroed state and memory pools of the module's type and device
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linnet_model.config import ModelConfig
from linnet_model.dropout import Dropout, KeepAll
from linnet_model.layers import ConvBlock, EncoderAttention, FeedForward

BOS, PAD, EOS, UNK = 0, 1, 2, 3


def sinusoids(positions: Tensor, width: int) -> Tensor:
    """positions: integers of any shape [...] -> float32 [..., width], the halves [sin | cos].

    Frequencies are 10000^(-i / (width/2 - 1)). They are computed in float32 in the graph, not kept
    as a weight, so that a module converted to bfloat16 still tells position 1000 from 1001.
    """
    half = width // 2
    steps = torch.arange(half, dtype=torch.float32, device=positions.device)
    frequencies = torch.exp(steps * (-math.log(10000.0) / (half - 1)))
    angles = positions.to(torch.float32).unsqueeze(-1) * frequencies
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=-1)


class EncoderLayer(nn.Module):
    def __init__(self, config: ModelConfig, mixer: str, kernel: int):
        super().__init__()
        self.pre_norm, self.dropout = config.pre_norm, config.dropout
        self.conv = ConvBlock(
            mixer,
            config.width,
            config.heads,
            kernel,
            kernel // 2,
            config.glu,
            config.input_dropout,
            config.weight_dropout,
        )
        self.ffn = FeedForward(config.width, config.ffn_width, config.relu_dropout)
        self.conv_norm = nn.LayerNorm(config.width)
        self.ffn_norm = nn.LayerNorm(config.width)

    @torch.jit.unused
    def forward(self, x: Tensor, valid: Tensor | None, drop: Dropout) -> Tensor:
        """x: [B, S, d], valid: [B, S, 1] or None -> [B, S, d]."""
        if self.pre_norm:
            x = x + drop(self.conv(self.conv_norm(x), valid, drop), self.dropout)
            return x + drop(self.ffn(self.ffn_norm(x), drop), self.dropout)
        x = self.conv_norm(x + drop(self.conv(x, valid, drop), self.dropout))
        return self.ffn_norm(x + drop(self.ffn(x, drop), self.dropout))

    @torch.jit.export
    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        if self.pre_norm:
            x = x + self.conv.encode(self.conv_norm(x), lengths)
            return x + self.ffn.apply_to(self.ffn_norm(x))
        x = self.conv_norm(x + self.conv.encode(x, lengths))
        return self.ffn_norm(x + self.ffn.apply_to(x))


class DecoderLayer(nn.Module):
    def __init__(self, config: ModelConfig, mixer: str, kernel: int):
        super().__init__()
        self.pre_norm, self.dropout, self.kernel = config.pre_norm, config.dropout, kernel
        self.conv = ConvBlock(
            mixer,
            config.width,
            config.heads,
            kernel,
            kernel - 1,
            config.glu,
            config.input_dropout,
            config.weight_dropout,
        )
        self.attention = EncoderAttention(config.width, config.heads, config.attention_dropout)
        self.ffn = FeedForward(config.width, config.ffn_width, config.relu_dropout)
        self.conv_norm = nn.LayerNorm(config.width)
        self.attention_norm = nn.LayerNorm(config.width)
        self.ffn_norm = nn.LayerNorm(config.width)

    @torch.jit.unused
    def forward(self, x: Tensor, memory: Tensor, bias: Tensor | None, drop: Dropout) -> Tensor:
        """x: [B, T, d], memory: [B, S, d], bias: [B, 1, S] or None -> [B, T, d]. Padding of x
        stands at its end."""
        if self.pre_norm:
            x = x + drop(self.conv(self.conv_norm(x), None, drop), self.dropout)
            x = x + drop(self.attention(self.attention_norm(x), memory, bias, drop), self.dropout)
            return x + drop(self.ffn(self.ffn_norm(x), drop), self.dropout)
        x = self.conv_norm(x + drop(self.conv(x, None, drop), self.dropout))
        x = self.attention_norm(x + drop(self.attention(x, memory, bias, drop), self.dropout))
        return self.ffn_norm(x + drop(self.ffn(x, drop), self.dropout))

    @torch.jit.export
    def step(
        self,
        x: Tensor,
        window: Tensor,
        positions: Tensor,
        ancestry: Tensor,
        pool: Tensor,
        blocks: Tensor,
        source_lengths: Tensor,
    ) -> Tensor:
        if self.pre_norm:
            x = x + self.conv.step(self.conv_norm(x), window, positions, ancestry)
            x = x + self.attention.step(self.attention_norm(x), pool, blocks, source_lengths)
            return x + self.ffn.apply_to(self.ffn_norm(x))
        x = self.conv_norm(x + self.conv.step(x, window, positions, ancestry))
        x = self.attention_norm(x + self.attention.step(x, pool, blocks, source_lengths))
        return self.ffn_norm(x + self.ffn.apply_to(x))


class Transducer(nn.Module):
    def __init__(self, config: ModelConfig):
        super().__init__()
        self.width = config.width
        self.pre_norm = config.pre_norm
        self.dropout = config.dropout
        # A table that is shared exists once: a module that is loaded and converted would otherwise
        # hold copies of it.
        self.embed_source = embedding(config.vocabulary, config.width)
        self.embed_target = (
            None if config.sharing == "all" else embedding(config.target_vocabulary, config.width)
        )
        self.output = (
            embedding(config.target_vocabulary, config.width) if config.sharing == "none" else None
        )
        self.encoder = nn.ModuleList(
            [
                EncoderLayer(config, m, k)
                for m, k in zip(config.encoder_mixers, config.encoder_kernels, strict=True)
            ]
        )
        self.decoder = nn.ModuleList(
            [
                DecoderLayer(config, m, k)
                for m, k in zip(config.decoder_mixers, config.decoder_kernels, strict=True)
            ]
        )
        self.encoder_norm = nn.LayerNorm(config.width) if config.pre_norm else nn.Identity()
        self.decoder_norm = nn.LayerNorm(config.width) if config.pre_norm else nn.Identity()

    @torch.jit.export
    def target_table(self) -> Tensor:
        """The embedding of target tokens [V, d]."""
        if self.embed_target is not None:
            return self.embed_target.weight
        return self.embed_source.weight

    @torch.jit.export
    def output_table(self) -> Tensor:
        """The rows that features are multiplied with to give logits [V, d]."""
        if self.output is not None:
            return self.output.weight
        return self.target_table()

    @torch.jit.export
    def project(self, features: Tensor) -> Tensor:
        """features: [..., d] -> logits [..., V]."""
        return F.linear(features, self.output_table())

    # The training path.

    @torch.jit.unused
    def encode_whole(
        self, source: Tensor, lengths: Tensor, drop: Dropout
    ) -> tuple[Tensor, Tensor | None]:
        """source: int64 [B, S], lengths: [B] -> memory [B, S, d] and the attention's bias [B, 1, S]
        or None."""
        x = drop(
            enter(self.embed_source(source), torch.arange(source.size(1), device=source.device)),
            self.dropout,
        )
        valid = bias = None
        if int(lengths.min()) < source.size(1):
            inside = torch.arange(source.size(1), device=source.device) < lengths.unsqueeze(1)
            valid = inside.unsqueeze(-1).to(x.dtype)
            bias = (
                torch.zeros_like(inside, dtype=x.dtype)
                .masked_fill_(~inside, -math.inf)
                .unsqueeze(1)
            )
        for layer in self.encoder:
            x = layer(x, valid, drop)
        return self.encoder_norm(x), bias

    @torch.jit.unused
    def decode_whole(
        self, previous: Tensor, memory: Tensor, bias: Tensor | None, drop: Dropout
    ) -> Tensor:
        """previous: int64 [B, T], the target shifted right behind the end token -> features [B, T,
        d]."""
        x = drop(
            enter(
                F.embedding(previous, self.target_table()),
                torch.arange(previous.size(1), device=previous.device),
            ),
            self.dropout,
        )
        for layer in self.decoder:
            x = layer(x, memory, bias, drop)
        return self.decoder_norm(x)

    @torch.jit.unused
    def forward(self, source: Tensor, lengths: Tensor, previous: Tensor, drop: Dropout) -> Tensor:
        """Features [B, T, d]; `project` makes logits of them, which the loss does piece by
        piece."""
        memory, bias = self.encode_whole(source, lengths, drop)
        return self.decode_whole(previous, memory, bias, drop)

    # The serving path.

    @torch.jit.export
    def encode(self, source: Tensor, lengths: Tensor) -> list[Tensor]:
        """source: int64 [B, S], lengths: int32 [B] -> per decoder layer keys and values [B, S, 2,
        d]."""
        x = enter(self.embed_source(source), torch.arange(source.size(1), device=source.device))
        for layer in self.encoder:
            x = layer.encode(x, lengths)
        x = self.encoder_norm(x)
        memory: list[Tensor] = []
        for layer in self.decoder:
            memory.append(layer.attention.remember(x))
        return memory

    @torch.jit.export
    def step(
        self,
        tokens: Tensor,
        positions: Tensor,
        ancestry: Tensor,
        blocks: Tensor,
        source_lengths: Tensor,
        memory: list[Tensor],
        state: list[Tensor],
    ) -> Tensor:
        """One token of every row.

        tokens: int64 [R], positions: int32 [R] steps already taken, ancestry: int32 [R, A], blocks:
        int32 [R, M], source_lengths: int32 [R], memory: pools [N, P, 2, d], state: windows [K,
        lanes, d]  ->  logits [R, V].
        """
        x = enter(F.embedding(tokens, self.target_table()), positions)
        for i, layer in enumerate(self.decoder):
            x = layer.step(x, state[i], positions, ancestry, memory[i], blocks, source_lengths)
        return self.project(self.decoder_norm(x))

    @torch.jit.export
    def new_state(self, lanes: int) -> list[Tensor]:
        """Zeroed windows [K, lanes, d], one per decoder layer."""
        weight = self.embed_source.weight
        state: list[Tensor] = []
        for layer in self.decoder:
            state.append(
                torch.zeros(
                    [layer.kernel, lanes, self.width], dtype=weight.dtype, device=weight.device
                )
            )
        return state

    @torch.jit.export
    def new_memory(self, blocks: int, block_tokens: int) -> list[Tensor]:
        """Zeroed pools [blocks, block_tokens, 2, d], one per decoder layer."""
        weight = self.embed_source.weight
        memory: list[Tensor] = []
        for _layer in self.decoder:
            memory.append(
                torch.zeros(
                    [blocks, block_tokens, 2, self.width], dtype=weight.dtype, device=weight.device
                )
            )
        return memory


def embedding(rows: int, width: int) -> nn.Embedding:
    table = nn.Embedding(rows, width)
    nn.init.normal_(table.weight, std=width**-0.5)
    return table


def enter(embedded: Tensor, positions: Tensor) -> Tensor:
    """sqrt(d) * embedding + position, added in float32.

    embedded: [..., d], positions: from 0, broadcast to [...]. The first token has number 2, as in
    fairseq, where positions are counted from the padding id + 1.
    """
    width = embedded.size(-1)
    x = embedded.to(torch.float32) * math.sqrt(float(width)) + sinusoids(positions + 2, width)
    return x.to(embedded.dtype)


def forced_logits(model: Transducer, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
    """Logits [B, T, V] of the training path for target [B, T], without dropout."""
    previous = torch.cat([torch.full_like(target[:, :1], EOS), target[:, :-1]], dim=1)
    return model.project(model(source, lengths, previous, KeepAll()))


def parameter_count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "UNK",
    "Transducer",
    "forced_logits",
    "parameter_count",
    "sinusoids",
]
