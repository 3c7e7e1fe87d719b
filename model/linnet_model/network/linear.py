"""The linear layers of the model.

Training uses nn.Linear.forward. Serving uses torch.ops.linnet.linear, which fuses the activation
before the gemm, and the residual sum and the norm after it. After loading a module for the CPU the
engine calls `pack`, which replaces the weights by packed ones; a packed module cannot be saved.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# A block ends with these after its last linear layer: the residual, the norm's weight and bias.
Closing = tuple[Tensor, Tensor | None, Tensor | None]


class Linear(nn.Linear):
    # A bundle may store int8 weights, whose scales [outputs] these are (stored_weights.py).
    scales: Tensor | None

    def __init__(self, inputs: int, outputs: int, bias: bool = True):
        super().__init__(inputs, outputs, bias=bias)
        self.scales = None
        self.norm_epsilon = 1e-5  # of the norm that `close` applies; EncoderDecoder sets it

    @torch.jit.export
    def serve(self, x: Tensor, activation: str = "none") -> Tensor:
        """x: [..., inputs] -> [..., outputs], or [..., outputs / 2] for "glu"."""
        return torch.ops.linnet.linear(x, self.weight, self.bias, activation)

    @torch.jit.export
    def close(self, x: Tensor, closing: Closing | None) -> Tensor:
        """The end of a block: norm(residual + linear(x)), as far as they are given."""
        if closing is None:
            return self.serve(x, "none")
        residual, weight, bias = closing
        return torch.ops.linnet.linear(
            x, self.weight, self.bias, "none", residual, weight, bias, self.norm_epsilon
        )

    @torch.jit.export
    def close_step(
        self, x: Tensor, residual: Tensor, norm: Tensor, norm_bias: Tensor, pre_norm: bool
    ) -> tuple[Tensor, Tensor]:
        """The end of a block of a decoder step: the residual and the input of the next block.

        With s = residual + linear(x) these are s and norm(s) in a pre-norm model, where `norm` is
        that of the next block, and otherwise norm(s) twice.
        """
        if pre_norm:
            return torch.ops.linnet.linear_norm(
                x, self.weight, self.bias, residual, norm, norm_bias, self.norm_epsilon
            )
        y = torch.ops.linnet.linear(
            x, self.weight, self.bias, "none", residual, norm, norm_bias, self.norm_epsilon
        )
        return y, y

    @torch.jit.export
    def pack(self, kind: str) -> None:
        """kind: "float32", "bfloat16" or "int8", as described in linear.h."""
        self.weight = torch.ops.linnet.pack_linear(self.weight, kind, self.scales)
        self.scales = None


class Projection(nn.Module):
    """Multiplies with a table that another module owns, such as the embedding. After `pack` it
    holds a packed copy of it, and reads embeddings from that copy if the table was dropped."""

    packed: Tensor | None  # TorchScript reads the annotation; it must not be a string

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
        """x: [R, d] -> the highest of the logits of `serve`, their tokens, and the log normalizers
        (best_logits.h)."""
        packed = self.packed
        return torch.ops.linnet.best_logits(
            x, table if packed is None else packed, bias, counts, also, temperatures
        )

    @torch.jit.export
    def rows(self, table: Tensor, tokens: Tensor) -> Tensor:
        """tokens: int32 [N] -> these rows of the table, in the form that `best` reads."""
        packed = self.packed
        if packed is None:
            return table[tokens.to(torch.int64)]
        return torch.ops.linnet.take_outputs(packed, tokens)

    @torch.jit.export
    def embed(self, table: Tensor, tokens: Tensor) -> Tensor:
        """table: the same [V, d], empty once it was dropped; tokens: int64 [...] -> [..., d]."""
        packed = self.packed
        if packed is None or table.numel() > 0:
            return F.embedding(tokens, table)
        return torch.ops.linnet.unpack_outputs(packed, tokens)

    @torch.jit.export
    def pack(self, table: Tensor, kind: str, scales: Tensor | None) -> None:
        self.packed = torch.ops.linnet.pack_linear(table, kind, scales)


class Embedding(nn.Embedding):
    """A table of tokens [V, d]."""

    scales: Tensor | None  # [V], as in Linear

    def __init__(self, rows: int, width: int):
        super().__init__(rows, width)
        self.scales = None

    @torch.jit.export
    def drop(self) -> None:
        """Gives the table back; `weight` is empty from now on."""
        self.weight = torch.zeros([0], device=self.weight.device)
        self.scales = None


def linear(inputs: int, outputs: int, bias: bool = True) -> Linear:
    layer = Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
