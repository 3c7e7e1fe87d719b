"""Token embeddings with their positions: what enters the encoder and the decoder."""

from __future__ import annotations

import math
from typing import TypeVar

import torch
from torch import Tensor, nn

from linnet_model.network.model_config import ModelConfig

Table = TypeVar("Table", bound=nn.Embedding)


def normal(table: Table) -> Table:
    nn.init.normal_(table.weight, std=table.embedding_dim**-0.5)
    return table


def sinusoids(positions: Tensor, width: int, steps: float) -> Tensor:
    """positions: integers of any shape [...] -> float32 [..., width], the halves [sin | cos].

    Frequencies are 10000^(-i / steps) for i < width/2: steps is width/2 - 1 in fairseq, width/2 in
    Marian. They are computed in float32 in the graph and not stored as a weight, because in
    bfloat16 positions 1000 and 1001 would be equal.
    """
    i = torch.arange(width // 2, dtype=torch.float32, device=positions.device)
    frequencies = torch.exp(i * (-math.log(10000.0) / steps))
    angles = positions.to(torch.float32).unsqueeze(-1) * frequencies
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=-1)


class InputEmbedding(nn.Module):
    """Scales token embeddings, adds position embeddings, and normalises the sum if the model
    does."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.width, self.first = config.width, config.first_position
        self.scale = math.sqrt(config.width) if config.scale_embedding else 1.0
        self.sinusoidal = config.positions.startswith("sinusoidal")
        self.steps = float(config.width // 2 - (1 if config.positions == "sinusoidal" else 0))
        # Row p is position p: rows below first_position are unused, as in fairseq's tables.
        self.table = (
            normal(nn.Embedding(config.first_position + config.max_positions, config.width))
            if config.positions == "learned"
            else None
        )
        self.norm = nn.LayerNorm(config.width) if config.embedding_norm else None

    def forward(self, embedded: Tensor, positions: Tensor) -> Tensor:
        """embedded: [..., d], positions: integers from 0, broadcast to [...] -> [..., d], summed in
        float32."""
        x = embedded.to(torch.promote_types(embedded.dtype, torch.float32)) * self.scale
        if self.table is not None:
            x = x + self.table(positions + self.first)
        elif self.sinusoidal:
            x = x + sinusoids(positions + self.first, self.width, self.steps)
        x = x.to(embedded.dtype)
        if self.norm is not None:
            x = self.norm(x)
        return x

    @torch.jit.export
    def serve(self, embedded: Tensor, positions: Tensor) -> Tensor:
        """The same, in one operator on the CPU. embedded: [..., R, d], positions: [R]."""
        if embedded.is_cuda:
            return self(embedded, positions)
        x = torch.ops.linnet.add_positions(
            embedded,
            positions.to(torch.int32),
            self.position_table(),
            self.scale,
            self.first,
            self.steps if self.sinusoidal else 0.0,
        )
        if self.norm is not None:
            x = self.norm(x)
        return x

    @torch.jit.export
    def position_table(self) -> Tensor | None:
        return None if self.table is None else self.table.weight

    @torch.jit.export
    def step(self, tokens: Tensor, positions: Tensor, table: Tensor) -> Tensor:
        """The same for decoder rows, in one kernel on a GPU: tokens: int64 [R], positions: int32
        [R], table: [V, d] -> [R, d]."""
        x = torch.ops.linnet.embed_tokens(
            tokens,
            positions,
            table,
            self.position_table(),
            self.scale,
            self.first,
            self.steps if self.sinusoidal else 0.0,
        )
        if self.norm is not None:
            x = self.norm(x)
        return x
