"""The tensors of a model, each of which an importer takes once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from linnet_model.network.model_config import require


def refuse_expanded(file: Path, name: str, tensor: Tensor) -> None:
    """Refuses a tensor that repeats numbers of its file: a few bytes could ask for any memory."""
    wanted, stored = tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes()
    require(
        wanted <= stored,
        f"{file}: {name} has the shape {list(tensor.shape)} and {stored} bytes, it needs {wanted}",
    )


class WithoutRandomNumbers(TorchFunctionMode):
    """Inside this context a new module has no numbers: memory that nothing writes takes no room
    until the numbers of a file replace it. (torch.device("meta") does the same, and imports 100 MB
    of torch.)"""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if getattr(func, "__name__", "") in ("uniform_", "normal_"):
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))


class Source:
    """The tensors of a file, or of a folder, that have not been used yet."""

    def __init__(self, file: Path, weights: dict[str, Tensor]):
        self.file, self.weights, self.missing = file, dict(weights), list[str]()

    def take(self, name: str, *shape: int) -> Tensor:
        """Removes and returns a tensor; records it and returns an empty one if it is missing."""
        tensor = self.weights.pop(name, None)
        if tensor is None:
            self.missing.append(name)
            return torch.empty(0)
        require(
            tuple(tensor.shape) == shape,
            f"{self.file}: {name} has shape {list(tensor.shape)}, the configuration asks for "
            f"{list(shape)}",
        )
        return tensor

    def drop_copy(self, name: str, of: str, original: Tensor) -> None:
        """Removes an optional copy of `original`, and checks that they are equal."""
        if name in self.weights and original.numel() > 0:
            copy = self.take(name, *original.shape)
            require(
                torch.equal(copy, original),
                f"{self.file}: {name} differs from {of}, though the configuration ties them",
            )

    def finish(self) -> None:
        for problem, names in (("lacks", self.missing), ("has unknown", sorted(self.weights))):
            require(not names, f"{self.file} {problem} weights: {', '.join(names)}")
