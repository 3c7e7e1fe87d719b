"""Dropout with masks from a pool.

On the CPU, drawing a mask takes about fifty times as long as applying it (7 ms and .15 ms for
768,000 values on one Zen 3 core), a quarter of a training step. Therefore a pool of masks is drawn
every REFRESH_UPDATES updates, and each use multiplies by a slice of it with a random offset. The
pool has the type of what it multiplies: a float32 mask would turn bfloat16 into float32.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

POOL = 1 << 23  # values; in float32 32 MiB per rate in use
REFRESH_UPDATES = 500


class Dropout:
    """Multiplies by masks of 0 and 1/(1-p). Not a module: the training path passes it as an
    argument.

    The masks depend on (seed, update) alone: a resumed training draws the same ones.
    """

    def __init__(self, seed: int, device: torch.device | str = "cpu", pool: int = POOL):
        self.seed, self.pool_size = seed, pool
        self.pooled = torch.device(device).type == "cpu"
        self.pools: dict[tuple[float, torch.dtype], Tensor] = {}
        self.era = -1
        self.offsets = torch.Generator()

    def begin(self, update: int) -> None:
        """Seeds the masks of an update; call it before each forward pass of training."""
        self.offsets.manual_seed(self.seed * 1_000_003 + update)
        torch.manual_seed(self.seed * 1_000_003 + update)  # for masks that are not pooled
        if update // REFRESH_UPDATES != self.era:
            self.era = update // REFRESH_UPDATES
            self.pools.clear()

    def __call__(self, x: Tensor, p: float) -> Tensor:
        if p == 0.0:
            return x
        if not self.pooled or x.numel() > self.pool_size // 2:  # too large: too few offsets
            return F.dropout(x, p, training=True)
        key = (p, x.dtype)
        if key not in self.pools:
            draw = torch.Generator().manual_seed(self.seed * 7919 + self.era)
            kept = torch.rand(self.pool_size, generator=draw) >= p
            self.pools[key] = kept.to(x.dtype).div_(1.0 - p)
        begin = int(torch.randint(self.pool_size - x.numel(), (1,), generator=self.offsets))
        return x * self.pools[key][begin : begin + x.numel()].view(x.shape)


class KeepAll(Dropout):
    """No dropout: for validation and decoding."""

    def __init__(self) -> None:
        super().__init__(0, pool=0)

    def __call__(self, x: Tensor, p: float) -> Tensor:
        return x
