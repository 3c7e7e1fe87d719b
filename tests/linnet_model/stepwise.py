"""The serving path of a model, step by step for a given target."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch

from linnet_model.network.encoder_decoder import EOS


def stepwise(
    module,
    method: str,
    source,
    lengths,
    target,
    *more,
    block_tokens=4,
    start: int = EOS,
    runs: Sequence[int] = (),
) -> torch.Tensor:
    """Runs the target through encode and step (or align), after the token `start`: as many tokens
    in each step as `runs` has, by default one. The encoder cache has its blocks in reverse order; a
    language model has no encoder cache."""
    rows, maximum = target.shape
    runs = runs or [1] * maximum
    assert sum(runs) == maximum
    with torch.no_grad():
        memory = module.encode(source, lengths)
        per_row = -(-source.size(1) // block_tokens)
        pools = module.new_encoder_cache(rows * per_row, block_tokens)
        blocks = torch.arange(rows * per_row - 1, -1, -1, dtype=torch.int32).view(rows, per_row)
        for pool, whole in zip(pools, memory, strict=True):
            for row in range(rows):
                for s in range(int(lengths[row])):
                    pool[int(blocks[row, s // block_tokens]), s % block_tokens] = whole[row, s]
        state = module.new_state(rows)
        reach = max(ring.size(0) for ring in state)
        backpointers = torch.arange(rows, dtype=torch.int32).unsqueeze(1).repeat(1, reach)
        previous = torch.cat([torch.full((rows, 1), start), target[:, :-1]], dim=1)
        steps = [
            getattr(module, method)(
                previous[:, end - n : end].flatten(),
                torch.arange(end - n, end, dtype=torch.int32).repeat(rows),
                backpointers.repeat_interleave(n, 0),
                blocks.repeat_interleave(n, 0),
                lengths.repeat_interleave(n),
                pools,
                state,
                *more,
            ).unflatten(0, (rows, n))
            for n, end in zip(runs, accumulate(runs), strict=True)
        ]
    return torch.cat(steps, dim=1)
