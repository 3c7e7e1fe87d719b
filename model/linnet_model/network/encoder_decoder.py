"""The model: an encoder-decoder or, without encoder layers, a language model.

`forward` trains it, `encode` and `step` serve it. The scripted module keeps no state. What it
offers to an engine:

  encode(source, lengths)  -> per decoder layer the keys and values of the encoder attention
  step(tokens, ...)        -> logits of every row; `state` is changed in place by the step operators
  step_best(tokens, ...)   -> the highest of them and what makes probabilities of them; CPU only
  logits_of(features)      -> logits of every row; `features` are those of the method of that name
  output_rows(tokens)      -> the rows of the output table that give the logits of these tokens
  align(tokens, ...)       -> how much each token of the source counts in one decoder layer
  new_state, new_encoder_cache    -> state and memory pools of the module's type and device
  min_backpointers()         -> columns that `ancestry` must have for the shortest targets
  pack(kind)               -> nothing; lays the weights out for the CPU, once, after loading
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linnet_model.network.dropout import Dropout, KeepAll
from linnet_model.network.layers import DecoderLayer, EncoderLayer
from linnet_model.network.linear import Projection
from linnet_model.network.model_config import ModelConfig

BOS, PAD, EOS, UNK = 0, 1, 2, 3


def sinusoids(positions: Tensor, width: int, steps: float) -> Tensor:
    """positions: integers of any shape [...] -> float32 [..., width], the halves [sin | cos].

    Frequencies are 10000^(-i / steps) for i < width/2: steps is width/2 - 1 in fairseq, width/2 in
    Marian. They are computed in float32 in the graph, not kept as a weight, so that a module
    converted to bfloat16 still tells position 1000 from 1001.
    """
    i = torch.arange(width // 2, dtype=torch.float32, device=positions.device)
    frequencies = torch.exp(i * (-math.log(10000.0) / steps))
    angles = positions.to(torch.float32).unsqueeze(-1) * frequencies
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=-1)


class InputEmbedding(nn.Module):
    """Makes the input of the first layer from embeddings: scaled, and told their positions."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.width, self.first = config.width, config.first_position
        self.scale = math.sqrt(config.width) if config.scale_embedding else 1.0
        self.sinusoidal = config.positions.startswith("sinusoidal")
        self.steps = float(config.width // 2 - (1 if config.positions == "sinusoidal" else 0))
        # Row p is number p, so rows below the first are not used; fairseq's tables have them too.
        self.table = (
            embedding(config.first_position + config.max_positions, config.width)
            if config.positions == "learned"
            else None
        )

    def forward(self, embedded: Tensor, positions: Tensor) -> Tensor:
        """embedded: [..., d], positions: integers from 0, broadcast to [...]; added in float32."""
        x = embedded.to(torch.promote_types(embedded.dtype, torch.float32)) * self.scale
        if self.table is not None:
            x = x + self.table(positions + self.first)
        elif self.sinusoidal:
            x = x + sinusoids(positions + self.first, self.width, self.steps)
        return x.to(embedded.dtype)


class EncoderDecoder(nn.Module):
    def __init__(self, config: ModelConfig):
        super().__init__()
        self.width, self.dropout = config.width, config.dropout
        self.has_source = len(config.encoder_kernels) > 0
        # A table that is shared exists once: a module that is loaded and converted would otherwise
        # hold copies of it.
        self.embed_source = (
            embedding(config.vocabulary, config.width)
            if self.has_source or config.sharing == "all"
            else None
        )
        self.embed_target = (
            None if config.sharing == "all" else embedding(config.target_vocabulary, config.width)
        )
        self.output = (
            embedding(config.target_vocabulary, config.width) if config.sharing == "none" else None
        )
        self.output_bias = (
            nn.Parameter(torch.zeros(config.target_vocabulary)) if config.output_bias else None
        )
        self.enter_source = InputEmbedding(config) if self.has_source else None
        self.enter_target = InputEmbedding(config)
        self.encoder = nn.ModuleList(
            EncoderLayer(config, *layer)
            for layer in zip(
                config.encoder_mixers,
                config.encoder_kernels,
                config.encoder_dilations,
                strict=True,
            )
        )
        self.decoder = nn.ModuleList(
            DecoderLayer(config, *layer, self.has_source)
            for layer in zip(
                config.decoder_mixers,
                config.decoder_kernels,
                config.decoder_dilations,
                strict=True,
            )
        )
        self.encoder_norm = final_norm(config) if self.has_source else nn.Identity()
        self.decoder_norm = final_norm(config)
        self.projection = Projection()

    @torch.jit.export
    def target_table(self) -> Tensor:
        """The embedding of target tokens [V, d]."""
        if self.embed_target is not None:
            return self.embed_target.weight
        assert self.embed_source is not None
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
        return F.linear(features, self.output_table(), self.output_bias)

    # The training path.

    @torch.jit.unused
    def encode_whole(
        self, source: Tensor, lengths: Tensor, drop: Dropout
    ) -> tuple[Tensor, Tensor | None]:
        """source: int64 [B, S], lengths: [B] -> memory [B, S, d] and the attention's bias [B, 1, S]
        or None."""
        places = torch.arange(source.size(1), device=source.device)
        x = drop(self.enter_source(self.embed_source(source), places), self.dropout)
        valid = bias = None
        if int(lengths.min()) < source.size(1):
            valid = places < lengths.unsqueeze(1)
            bias = torch.zeros_like(valid, dtype=x.dtype).masked_fill_(~valid, -math.inf)
            bias = bias.unsqueeze(1)
        for layer in self.encoder:
            x = layer(x, valid, drop)
        return self.encoder_norm(x), bias

    @torch.jit.unused
    def decode_whole(
        self, previous: Tensor, memory: Tensor | None, bias: Tensor | None, drop: Dropout
    ) -> Tensor:
        """previous: int64 [B, T], the target shifted right behind the end token -> features [B, T,
        d]. memory and bias are those of encode_whole, None in a language model."""
        places = torch.arange(previous.size(1), device=previous.device)
        x = self.enter_target(F.embedding(previous, self.target_table()), places)
        x = drop(x, self.dropout)
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
        d]; nothing in a language model."""
        memory: list[Tensor] = []
        if self.enter_source is not None and self.embed_source is not None:
            places = torch.arange(source.size(1), device=source.device)
            x = self.enter_source(self.embed_source(source), places)
            for layer in self.encoder:
                x = layer.encode(x, lengths)
            x = self.encoder_norm(x)
            for layer in self.decoder:
                if layer.attention is not None:
                    memory.append(layer.attention.remember(x))
        return memory

    @torch.jit.export
    def features(
        self,
        tokens: Tensor,
        positions: Tensor,
        backpointers: Tensor,
        blocks: Tensor,
        source_lengths: Tensor,
        memory: list[Tensor],
        state: list[Tensor],
    ) -> Tensor:
        """One token of every row.

        tokens: int64 [R], positions: int32 [R] steps already taken, ancestry: int32 [R, A], blocks:
        int32 [R, M], source_lengths: int32 [R], memory: pools [N, P, 2, d], state: a ring [window,
        lanes, ...] per layer  ->  what the output table is multiplied with, [R, d].
        """
        x = self.enter_target(F.embedding(tokens, self.target_table()), positions)
        for i, layer in enumerate(self.decoder):
            pool = memory[i] if self.has_source else x
            x = layer.step(x, state[i], positions, backpointers, pool, blocks, source_lengths)
        return self.decoder_norm(x)

    @torch.jit.export
    def step(
        self,
        tokens: Tensor,
        positions: Tensor,
        backpointers: Tensor,
        blocks: Tensor,
        source_lengths: Tensor,
        memory: list[Tensor],
        state: list[Tensor],
    ) -> Tensor:
        """As `features` -> logits [R, V]."""
        x = self.features(tokens, positions, backpointers, blocks, source_lengths, memory, state)
        return self.projection.serve(x, self.output_table(), self.output_bias)

    @torch.jit.export
    def step_best(
        self,
        tokens: Tensor,
        positions: Tensor,
        backpointers: Tensor,
        blocks: Tensor,
        source_lengths: Tensor,
        memory: list[Tensor],
        state: list[Tensor],
        counts: Tensor,
        also: Tensor,
        temperatures: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `step`, but of each row's logits only the counts[r] highest and that of token also[r]:
        logits and tokens [R, N], and the log normalizers [R] (best_logits.h)."""
        x = self.features(tokens, positions, backpointers, blocks, source_lengths, memory, state)
        table = self.output_table()
        return self.projection.best(x, table, self.output_bias, counts, also, temperatures)

    @torch.jit.export
    def logits_of(self, features: Tensor) -> Tensor:
        """features: [R, d] -> logits [R, V], those of `step`."""
        return self.projection.serve(features, self.output_table(), self.output_bias)

    @torch.jit.export
    def output_rows(self, tokens: Tensor) -> tuple[Tensor, Tensor | None]:
        """tokens: int32 [N] -> weight [N, d] and bias [N] of their logits, as best_logits takes
        them."""
        bias: Tensor | None = self.output_bias
        if bias is not None:
            bias = bias[tokens.to(torch.int64)]
        return self.projection.rows(self.output_table(), tokens), bias

    @torch.jit.export
    def align(
        self,
        tokens: Tensor,
        positions: Tensor,
        backpointers: Tensor,
        blocks: Tensor,
        source_lengths: Tensor,
        memory: list[Tensor],
        state: list[Tensor],
        layer: int,
    ) -> Tensor:
        """As `features`, but only as far as the attention of decoder layer `layer`, and what that
        gives each token of the source: the mean of its heads, float32 [R, M * P], zero behind a
        source's end. Layers above keep no state of the step."""
        x = self.enter_target(F.embedding(tokens, self.target_table()), positions)
        weights = torch.zeros([0], dtype=torch.float32, device=x.device)
        for i, decoder in enumerate(self.decoder):
            if i < layer:
                pool = memory[i] if self.has_source else x
                x = decoder.step(x, state[i], positions, backpointers, pool, blocks, source_lengths)
            elif i == layer and decoder.attention is not None:
                weights = decoder.source_weights(
                    x, state[i], positions, backpointers, memory[i], blocks, source_lengths
                )
        return weights

    @torch.jit.export
    def pack(self, kind: str) -> None:
        """Lays the weights of linear layers out for the CPU (linear.py): for serving alone, in
        memory alone."""
        self.projection.pack(self.output_table(), kind)
        if self.output is not None:
            self.output.weight = self.output.weight.new_zeros([0])  # nobody reads it any more
        for encoder_layer in self.encoder:
            encoder_layer.pack(kind)
        for decoder_layer in self.decoder:
            decoder_layer.pack(kind)

    @torch.jit.export
    def new_state(self, slots: int) -> list[Tensor]:
        """Rings [window, lanes, ...], one per decoder layer."""
        state: list[Tensor] = []
        for layer in self.decoder:
            state.append(layer.mixer.new_state(slots, self.target_table()))
        return state

    @torch.jit.export
    def min_backpointers(self) -> int:
        """Columns that `ancestry` has at least, however few steps the rows have taken; beyond that
        one more than the furthest row has taken, or as many as the widest ring has positions."""
        minimum = 1
        for layer in self.decoder:
            minimum = max(minimum, layer.mixer.min_backpointers())
        return minimum

    @torch.jit.export
    def new_encoder_cache(self, blocks: int, block_tokens: int) -> list[Tensor]:
        """Zeroed pools [blocks, block_tokens, 2, d], one per decoder layer with a source."""
        memory: list[Tensor] = []
        for layer in self.decoder:
            if layer.attention is not None:
                memory.append(self.target_table().new_zeros([blocks, block_tokens, 2, self.width]))
        return memory


def embedding(rows: int, width: int) -> nn.Embedding:
    table = nn.Embedding(rows, width)
    nn.init.normal_(table.weight, std=width**-0.5)
    return table


def final_norm(config: ModelConfig) -> nn.Module:
    return nn.LayerNorm(config.width) if config.pre_norm else nn.Identity()


def forced_logits(
    model: EncoderDecoder, source: Tensor, lengths: Tensor, target: Tensor, start: int = EOS
) -> Tensor:
    """Logits [B, T, V] of the training path for target [B, T], without dropout; `start` is the
    decoder's first input."""
    previous = torch.cat([torch.full_like(target[:, :1], start), target[:, :-1]], dim=1)
    return model.project(model(source, lengths, previous, KeepAll()))


def parameter_count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "UNK",
    "EncoderDecoder",
    "forced_logits",
    "parameter_count",
    "sinusoids",
]
