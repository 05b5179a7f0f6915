"""What the arguments of a call of a model are like."""

import copy
from typing import Any

import torch
from torch.utils import _pytree as pytree

__all__ = ["Signature"]

class Signature:
    """Everything about the arguments of a call but the values of its tensors."""

    def __init__(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        leaves, self.spec = pytree.tree_flatten((arguments, named))
        self.is_tensor = [isinstance(leaf, torch.Tensor) for leaf in leaves]
        self.constants = [None if t else leaf for leaf, t in zip(leaves, self.is_tensor, strict=True)]
        self.tensors: list[torch.Tensor] = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        # The batch may have any size.
        self.shapes = [(tuple(t.shape[1:]), t.dim(), t.dtype) for t in self.tensors]

    def matches(self, other: "Signature") -> bool:
        """Whether a capture for one holds for the other."""
        return self.shapes == other.shapes and self.is_tensor == other.is_tensor and (
            self.constants == other.constants and self.spec == other.spec
        )

    def without_tensors(self) -> "Signature":
        """Only what tensors are like."""
        kept = copy.copy(self)
        kept.tensors = []
        return kept
