"""The linear layers of the model, and how they serve.

Training calls them as torch's own. Serving goes through torch.ops.linnet.linear, which takes along
the activation before, and the residual sum and the norm behind; `pack` lays the weights out for the
CPU, when an engine has loaded the module: in its memory alone, a packed module cannot be saved.
"""

import torch
from torch import Tensor, nn


class Linear(nn.Linear):
    @torch.jit.export
    def serve(self, x: Tensor, activation: str = "none") -> Tensor:
        """x: [..., inputs] -> [..., outputs], half of them for "glu"."""
        return torch.ops.linnet.linear(x, self.weight, self.bias, activation)

    @torch.jit.export
    def close(
        self,
        x: Tensor,
        residual: Tensor | None,
        norm_weight: Tensor | None,
        norm_bias: Tensor | None,
    ) -> Tensor:
        """The end of a block: norm(residual + linear(x)), as far as these are given."""
        return torch.ops.linnet.linear(
            x, self.weight, self.bias, "none", residual, norm_weight, norm_bias
        )

    @torch.jit.export
    def pack(self, kind: str) -> None:
        """kind: "float32", "bfloat16" or "int8"; linear.h says what they are."""
        self.weight = torch.ops.linnet.pack_linear(self.weight, kind)


class Projection(nn.Module):
    """Multiplies with a table that is not its own, such as that of the embeddings: packed, it holds
    a copy."""

    packed: Tensor | None  # TorchScript reads this, as a type and not as a string

    def __init__(self) -> None:
        super().__init__()
        self.packed = None

    @torch.jit.export
    def serve(self, x: Tensor, table: Tensor, bias: Tensor | None) -> Tensor:
        """x: [..., d], table: [V, d], bias: [V] -> [..., V]."""
        packed = self.packed
        return torch.ops.linnet.linear(x, table if packed is None else packed, bias)

    @torch.jit.export
    def best(
        self,
        x: Tensor,
        table: Tensor,
        bias: Tensor | None,
        counts: Tensor,
        also: Tensor,
        temperatures: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """x: [R, d] -> of the logits that `serve` gives the highest, their tokens, and the log
        normalizers: best_logits.h."""
        packed = self.packed
        return torch.ops.linnet.best_logits(
            x, table if packed is None else packed, bias, counts, also, temperatures
        )

    @torch.jit.export
    def rows(self, table: Tensor, tokens: Tensor) -> Tensor:
        """Of the table those rows alone, as `best` takes them: tokens int32 [N]."""
        packed = self.packed
        if packed is None:
            return table[tokens.to(torch.int64)]
        return torch.ops.linnet.take_outputs(packed, tokens)

    @torch.jit.export
    def pack(self, table: Tensor, kind: str) -> None:
        self.packed = torch.ops.linnet.pack_linear(table, kind)


def linear(inputs: int, outputs: int, bias: bool = True) -> Linear:
    layer = Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
