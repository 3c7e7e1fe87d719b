"""The model: an encoder-decoder or, without encoder layers, a language model.

`forward` is the training path, `encode` and `step` are the serving path. The scripted module keeps
no state. An engine requires these methods of it (arguments and shapes: the methods below):

  encode(source, lengths)    -> keys and values of the source, per decoder layer
  encode_blocks(source, ...) -> the same of sources in blocks, if the module `packs_sources`
  features(tokens, ...)      -> input of the output table, per row; changes `state` in place
  step(tokens, ...)          -> logits, per row; changes `state` in place
  step_best(tokens, ...)     -> the highest logits and the log normalizer, per row; CPU only
  logits_of(features)        -> logits, per row
  best_of(features, ...)     -> what step_best returns
  output_rows(tokens)        -> rows of the output table that give the logits of these tokens
  align(tokens, ...)         -> attention weights of the source's tokens in one decoder layer
  align_features(tokens, ...) -> features and align together; without it and best_of the engine
                                decodes a target once more for its alignment
  new_state(slots)           -> decoder state, per layer, in the module's type and device
  new_encoder_cache(...)     -> encoder KV cache in blocks, per layer with a source
  min_backpointers()         -> minimum number of columns of `backpointers`
  pack(kind)                 -> nothing; packs the weights for the CPU, once, after loading
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linnet_model.network.dropout import Dropout, KeepAll
from linnet_model.network.input_embedding import InputEmbedding, normal
from linnet_model.network.layers import DecoderLayer, EncoderLayer, Norm
from linnet_model.network.linear import Embedding, Linear, Projection
from linnet_model.network.mixers import SSRU
from linnet_model.network.model_config import ModelConfig

BOS, PAD, EOS, UNK = 0, 1, 2, 3


class EncoderDecoder(nn.Module):
    def __init__(self, config: ModelConfig):
        super().__init__()
        self.width, self.dropout = config.width, config.dropout
        self.norm_epsilon = config.norm_epsilon
        self.has_source = len(config.encoder_kernels) > 0
        # A shared table is one attribute: with several, a loaded and converted module would hold
        # copies.
        self.embed_source = (
            normal(Embedding(config.vocabulary, config.width))
            if self.has_source or config.sharing == "all"
            else None
        )
        self.embed_target = (
            None
            if config.sharing == "all"
            else normal(Embedding(config.target_vocabulary, config.width))
        )
        self.output = (
            normal(Embedding(config.target_vocabulary, config.width))
            if config.sharing == "none"
            else None
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
        self.packs_sources = self.has_source and all(
            layer.mixer.takes_blocks for layer in self.encoder
        )
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = config.norm_epsilon
            elif isinstance(module, (Linear, SSRU)):
                module.norm_epsilon = config.norm_epsilon

    @torch.jit.export
    def target_table(self) -> Tensor:
        """The embedding of target tokens [V, d]."""
        if self.embed_target is not None:
            return self.embed_target.weight
        assert self.embed_source is not None
        return self.embed_source.weight

    @torch.jit.export
    def output_table(self) -> Tensor:
        """The table [V, d] that gives logits when multiplied with features."""
        if self.output is not None:
            return self.output.weight
        return self.target_table()

    @torch.jit.export
    def output_scales(self) -> Tensor | None:
        """The scales [V] of an output table that is stored as int8."""
        if self.output is not None:
            return self.output.scales
        if self.embed_target is not None:
            return self.embed_target.scales
        assert self.embed_source is not None
        return self.embed_source.scales

    @torch.jit.export
    def project(self, features: Tensor) -> Tensor:
        """features: [..., d] -> logits [..., V]."""
        return F.linear(features, self.output_table(), self.output_bias)

    # The training path.

    @torch.jit.unused
    def encode_whole(
        self, source: Tensor, lengths: Tensor, drop: Dropout, padded: bool | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """source: int64 [B, S], lengths: [B] -> encoder output [B, S, d] and the attention's bias
        [B, 1, S], None if no source is padded. `padded`: whether one is; None reads it from
        `lengths`, which waits for a GPU."""
        positions = torch.arange(source.size(1), device=source.device)
        embedded = self.embed_source(source)
        x = drop(self.enter_source(embedded, positions), self.dropout)
        valid = bias = None
        if padded is None:
            padded = int(lengths.min()) < source.size(1)
        if padded:
            valid = positions < lengths.unsqueeze(1)
            bias = torch.zeros_like(valid, dtype=x.dtype).masked_fill_(~valid, -math.inf)
            bias = bias.unsqueeze(1)
        for layer in self.encoder:
            x = layer(x, valid, drop)
        return self.encoder_norm(x), bias

    @torch.jit.unused
    def decode_whole(
        self, previous: Tensor, encoded: Tensor | None, bias: Tensor | None, drop: Dropout
    ) -> Tensor:
        """previous: int64 [B, T], the end token and the target without its last token -> features
        [B, T, d]. encode_whole returns encoded and bias; both are None in a language model."""
        positions = torch.arange(previous.size(1), device=previous.device)
        embedded = F.embedding(previous, self.target_table())
        x = drop(self.enter_target(embedded, positions), self.dropout)
        for layer in self.decoder:
            x = layer(x, encoded, bias, drop)
        return self.decoder_norm(x)

    @torch.jit.unused
    def forward(
        self,
        source: Tensor,
        lengths: Tensor,
        previous: Tensor,
        drop: Dropout,
        padded: bool | None = None,
    ) -> Tensor:
        """Returns features [B, T, d]. The loss calls `project` on slices of them, so that the
        logits of a whole batch never exist at once."""
        encoded, bias = self.encode_whole(source, lengths, drop, padded)
        return self.decode_whole(previous, encoded, bias, drop)

    # The serving path.

    @torch.jit.export
    def source_rows(self, tokens: Tensor) -> Tensor:
        """tokens: int64 [...] -> their embeddings on the source's side [..., d]."""
        if self.embed_target is None:
            return self.target_rows(tokens)
        assert self.embed_source is not None
        return self.embed_source(tokens)

    @torch.jit.export
    def target_rows(self, tokens: Tensor) -> Tensor:
        """tokens: int64 [...] -> their embeddings on the target's side [..., d]."""
        if self.output is None:
            return self.projection.embed(self.target_table(), tokens)
        return F.embedding(tokens, self.target_table())

    @torch.jit.export
    def encode(self, source: Tensor, lengths: Tensor) -> list[Tensor]:
        """source: int64 [B, S], lengths: int32 [B] -> keys and values [B, S, 2, d] per decoder
        layer; an empty list in a language model."""
        keys_values: list[Tensor] = []
        if self.enter_source is not None and self.embed_source is not None:
            positions = torch.arange(source.size(1), device=source.device)
            x = self.enter_source.serve(self.source_rows(source), positions)
            keys_values = self.encode_rows(x, lengths, None)
        return keys_values

    @torch.jit.export
    def encode_blocks(self, source: Tensor, lengths: Tensor, starts: Tensor) -> list[Tensor]:
        """source: int64 [N, P], blocks of any number of sources, lengths: int32 [N], starts: int32
        [N] (first_position.h) -> keys and values [N, P, 2, d] per decoder layer. Requires
        `packs_sources`. All shapes follow from N, so a GPU can record the call."""
        keys_values: list[Tensor] = []
        if self.enter_source is not None and self.embed_source is not None:
            block = source.size(1)
            within = torch.arange(block, dtype=torch.int32, device=source.device)
            positions = (starts.unsqueeze(1) + within).flatten()
            if self.enter_source.table is not None:  # it may end with the longest source
                last = self.enter_source.table.weight.size(0) - 1 - self.enter_source.first
                positions = positions.clamp(max=last)
            tokens = source.flatten()
            if source.is_cuda:
                x = self.enter_source.step(tokens, positions, self.embed_source.weight)
            else:  # the table may have been dropped
                x = self.enter_source.serve(self.source_rows(tokens), positions)
            keys_values = self.encode_rows(x.view(-1, block, self.width), lengths, starts)
        return keys_values

    @torch.jit.export
    def encode_rows(self, x: Tensor, lengths: Tensor, starts: Tensor | None) -> list[Tensor]:
        """The encoder behind its embedding: x: [B, S, d] -> what `encode` returns."""
        for layer in self.encoder:
            x = layer.encode(x, lengths, starts)
        x = self.encoder_norm(x)
        keys_values: list[Tensor] = []
        for layer in self.decoder:
            if layer.attention is not None:
                keys_values.append(layer.attention.keys_values(x))
        return keys_values

    @torch.jit.export
    def features(
        self,
        tokens: Tensor,
        positions: Tensor,
        backpointers: Tensor,
        blocks: Tensor,
        source_lengths: Tensor,
        cache: list[Tensor],
        state: list[Tensor],
    ) -> Tensor:
        """Decodes one token of every row.

        tokens: int64 [R], positions: int32 [R] steps already taken, backpointers: int32 [R, A],
        blocks: int32 [R, M], source_lengths: int32 [R], cache: encoder KV cache [N, P, 2, d] per
        layer, state: a ring [window, slots, ...] per layer  ->  features [R, d], the input of the
        output table.
        """
        return self.align_features(
            tokens, positions, backpointers, blocks, source_lengths, cache, state, -1
        )[0]

    @torch.jit.export
    def align_features(
        self,
        tokens: Tensor,
        positions: Tensor,
        backpointers: Tensor,
        blocks: Tensor,
        source_lengths: Tensor,
        cache: list[Tensor],
        state: list[Tensor],
        layer: int,
    ) -> tuple[Tensor, Tensor]:
        """Returns `features` and, if there is such a decoder layer with attention, `align`."""
        x, normed, norms = self.start_step(tokens, positions)
        weights = normed
        for i, decoder in enumerate(self.decoder):
            pool = cache[i] if self.has_source else x
            x, normed, rows = decoder.step(
                x,
                normed,
                state[i],
                positions,
                backpointers,
                pool,
                blocks,
                source_lengths,
                norms[i + 1],
                i == layer,
            )
            if i == layer:
                weights = rows
        return normed, weights

    @torch.jit.export
    def start_step(self, tokens: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, list[Norm]]:
        """Returns the inputs of the first decoder layer (DecoderLayer.step) and the first norm of
        each layer, followed by the last norm of the decoder."""
        table = self.target_table()
        if table.is_cuda:
            x = self.enter_target.step(tokens, positions, table)
        else:  # the table may have been dropped
            x = self.enter_target.serve(self.target_rows(tokens), positions)
        norms: list[Norm] = []
        for layer in self.decoder:
            norms.append(layer.first_norm())
        norms.append((x, x))  # not read in a post-norm model
        normed = x
        if hasattr(self.decoder_norm, "weight"):
            last: Norm = (self.decoder_norm.weight, self.decoder_norm.bias)  # type: ignore[assignment]
            norms[-1] = last
            normed = F.layer_norm(x, [self.width], norms[0][0], norms[0][1], self.norm_epsilon)
        return x, normed, norms

    @torch.jit.export
    def step(
        self,
        tokens: Tensor,
        positions: Tensor,
        backpointers: Tensor,
        blocks: Tensor,
        source_lengths: Tensor,
        cache: list[Tensor],
        state: list[Tensor],
    ) -> Tensor:
        """As `features` -> logits [R, V]."""
        x = self.features(tokens, positions, backpointers, blocks, source_lengths, cache, state)
        return self.projection.serve(x, self.output_table(), self.output_bias)

    @torch.jit.export
    def step_best(
        self,
        tokens: Tensor,
        positions: Tensor,
        backpointers: Tensor,
        blocks: Tensor,
        source_lengths: Tensor,
        cache: list[Tensor],
        state: list[Tensor],
        counts: Tensor,
        also: Tensor,
        temperatures: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `step`, but returns of each row only the counts[r] highest logits and the logit of
        token also[r]: logits and tokens [R, N], and the log normalizers [R] (best_logits.h)."""
        x = self.features(tokens, positions, backpointers, blocks, source_lengths, cache, state)
        return self.best_of(x, counts, also, temperatures)

    @torch.jit.export
    def best_of(
        self, features: Tensor, counts: Tensor, also: Tensor, temperatures: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """features: [R, d] -> what `step_best` returns."""
        table = self.output_table()
        return self.projection.best(features, table, self.output_bias, counts, also, temperatures)

    @torch.jit.export
    def logits_of(self, features: Tensor) -> Tensor:
        """features: [R, d] -> logits [R, V], the same as those of `step`."""
        return self.projection.serve(features, self.output_table(), self.output_bias)

    @torch.jit.export
    def output_rows(self, tokens: Tensor) -> tuple[Tensor, Tensor | None]:
        """tokens: int32 [N] -> weight [N, d] and bias [N] of their logits, in the form that
        best_logits reads."""
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
        cache: list[Tensor],
        state: list[Tensor],
        layer: int,
    ) -> Tensor:
        """As `features` up to the attention of decoder layer `layer`; returns that attention's
        weights of the source tokens, of the alignment head or averaged over the heads: float32
        [R, M * P], zero past the end of a source. The state of later layers does not change."""
        x, normed, norms = self.start_step(tokens, positions)
        weights = torch.zeros([0], dtype=torch.float32, device=x.device)
        for i, decoder in enumerate(self.decoder):
            if i < layer:
                pool = cache[i] if self.has_source else x
                x, normed, _ = decoder.step(
                    x,
                    normed,
                    state[i],
                    positions,
                    backpointers,
                    pool,
                    blocks,
                    source_lengths,
                    norms[i + 1],
                    False,
                )
            elif i == layer and decoder.attention is not None:
                weights = decoder.source_weights(
                    x, normed, state[i], positions, backpointers, cache[i], blocks, source_lengths
                )
        return weights

    @torch.jit.export
    def pack(self, kind: str) -> None:
        """Packs the weights of the linear layers for the CPU (linear.py). A packed module serves;
        it cannot be trained or saved."""
        self.projection.pack(self.output_table(), kind, self.output_scales())
        # Drop what only the packed copy is read for. oneDNN's copy of bfloat16 cannot be read.
        if self.output is not None:
            self.output.drop()
        elif kind != "bfloat16":
            if self.embed_target is not None:
                self.embed_target.drop()
            elif self.embed_source is not None:
                self.embed_source.drop()
        for encoder_layer in self.encoder:
            encoder_layer.pack(kind)
        for decoder_layer in self.decoder:
            decoder_layer.pack(kind)

    @torch.jit.export
    def new_state(self, slots: int) -> list[Tensor]:
        """Returns rings [window, slots, ...], one per decoder layer."""
        state: list[Tensor] = []
        for layer in self.decoder:
            state.append(layer.mixer.new_state(slots, self.target_table()))
        return state

    @torch.jit.export
    def min_backpointers(self) -> int:
        """Returns the minimum number of columns of `backpointers`. Rows that have taken more steps
        need one column more than their steps, at most the positions of the widest ring."""
        minimum = 1
        for layer in self.decoder:
            minimum = max(minimum, layer.mixer.min_backpointers())
        return minimum

    @torch.jit.export
    def new_encoder_cache(self, blocks: int, block_tokens: int) -> list[Tensor]:
        """Returns zeroed pools [blocks, block_tokens, 2, d], one per decoder layer with a
        source."""
        cache: list[Tensor] = []
        for layer in self.decoder:
            if layer.attention is not None:
                cache.append(self.target_table().new_zeros([blocks, block_tokens, 2, self.width]))
        return cache


def final_norm(config: ModelConfig) -> nn.Module:
    return nn.LayerNorm(config.width) if config.pre_norm else nn.Identity()


def forced_logits(
    model: EncoderDecoder, source: Tensor, lengths: Tensor, target: Tensor, start: int = EOS
) -> Tensor:
    """Returns the logits [B, T, V] of the training path for a given target [B, T], without dropout;
    `start` is the first input of the decoder."""
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
]
