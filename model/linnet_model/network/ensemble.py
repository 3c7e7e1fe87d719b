"""Several models of one task behind the methods of one.

    log p(y | x) = log (1/N sum_i p_i(y | x))

as fairseq averages its ensembles (Ott et al. 2019, sequence_generator.py, EnsembleModel). The
logits of `step` are these log-probabilities. A temperature divides them, whereas fairseq divides
the logits of each model. Members may differ in everything but their vocabularies.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from linnet_model.network.encoder_decoder import EncoderDecoder
from linnet_model.network.model_config import ModelConfig, require

MAX_MEMBERS = 16


class Ensemble(nn.Module):
    """The serving path of its members, with the methods of EncoderDecoder: the lists of encoder
    cache and state are theirs, one after the other."""

    def __init__(self, members: list[EncoderDecoder]):
        super().__init__()
        self.members = nn.ModuleList(members)
        self.layers = [len(member.decoder) for member in members]
        self.widths = [member.width for member in members]
        self.picks_best = False
        self.packs_sources = all(member.packs_sources for member in members)

    @torch.jit.export
    def encode(self, source: Tensor, lengths: Tensor) -> list[Tensor]:
        """As EncoderDecoder.encode, for the decoder layers of all members."""
        keys_values: list[Tensor] = []
        for member in self.members:
            keys_values += member.encode(source, lengths)
        return keys_values

    @torch.jit.export
    def encode_blocks(self, source: Tensor, lengths: Tensor, starts: Tensor) -> list[Tensor]:
        """As EncoderDecoder.encode_blocks, for the decoder layers of all members."""
        keys_values: list[Tensor] = []
        for member in self.members:
            keys_values += member.encode_blocks(source, lengths, starts)
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
        """As EncoderDecoder.features -> [R, sum of widths]."""
        parts: list[Tensor] = []
        begin = 0
        for i, member in enumerate(self.members):
            end = begin + self.layers[i]
            parts.append(
                member.features(
                    tokens,
                    positions,
                    backpointers,
                    blocks,
                    source_lengths,
                    cache[begin:end],
                    state[begin:end],
                )
            )
            begin = end
        return torch.cat(parts, dim=-1)

    @torch.jit.export
    def logits_of(self, features: Tensor) -> Tensor:
        """features: [R, sum of widths] -> log-probabilities [R, V], float32."""
        parts: list[Tensor] = []
        begin = 0
        for i, member in enumerate(self.members):
            own = features[:, begin : begin + self.widths[i]].contiguous()
            parts.append(member.logits_of(own).float().log_softmax(-1))
            begin += self.widths[i]
        return torch.stack(parts).logsumexp(0) - math.log(len(parts))

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
        """As EncoderDecoder.step -> log-probabilities [R, V]."""
        return self.logits_of(
            self.features(tokens, positions, backpointers, blocks, source_lengths, cache, state)
        )

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
        """Refuses, and picks_best says so: the engine normalises whole rows itself, so that an
        answer does not depend on what another row of the step needs."""
        assert False, "an ensemble has no step_best: take all log-probabilities from step"  # noqa: B011, PT015
        return tokens, tokens, tokens

    @torch.jit.export
    def output_rows(self, tokens: Tensor) -> tuple[Tensor, Tensor | None]:
        """Refuses: the average over members is not linear in their features."""
        assert False, "an ensemble has no table of outputs: serve it without a shortlist, on a CPU"  # noqa: B011, PT015
        return tokens, None

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
        """The mean of the members' EncoderDecoder.align; of one with fewer layers its last."""
        parts: list[Tensor] = []
        begin = 0
        for i, member in enumerate(self.members):
            end = begin + self.layers[i]
            parts.append(
                member.align(
                    tokens,
                    positions,
                    backpointers,
                    blocks,
                    source_lengths,
                    cache[begin:end],
                    state[begin:end],
                    min(layer, self.layers[i] - 1),
                )
            )
            begin = end
        return torch.stack(parts).mean(0)

    @torch.jit.export
    def pack(self, kind: str) -> None:
        for member in self.members:
            member.pack(kind)

    @torch.jit.export
    def new_state(self, slots: int) -> list[Tensor]:
        state: list[Tensor] = []
        for member in self.members:
            state += member.new_state(slots)
        return state

    @torch.jit.export
    def min_backpointers(self) -> int:
        minimum = 1
        for member in self.members:
            minimum = max(minimum, member.min_backpointers())
        return minimum

    @torch.jit.export
    def new_encoder_cache(self, blocks: int, block_tokens: int) -> list[Tensor]:
        cache: list[Tensor] = []
        for member in self.members:
            cache += member.new_encoder_cache(blocks, block_tokens)
        return cache


def check_members(configs: list[ModelConfig]) -> None:
    """Refuses models that no ensemble can hold."""
    require(
        2 <= len(configs) <= MAX_MEMBERS,
        f"an ensemble of {len(configs)} models, there must be from 2 to {MAX_MEMBERS}",
    )
    first = configs[0]
    for number, config in enumerate(configs[1:], start=2):
        sizes = (config.vocabulary, config.target_vocabulary)
        require(
            sizes == (first.vocabulary, first.target_vocabulary),
            f"model {number} of the ensemble has vocabularies of {sizes[0]} and {sizes[1]} tokens, "
            f"the first of {first.vocabulary} and {first.target_vocabulary}",
        )
        require(
            bool(config.encoder_kernels) and bool(first.encoder_kernels),
            f"model {number} of the ensemble is a language model, and the others read a source",
        )
