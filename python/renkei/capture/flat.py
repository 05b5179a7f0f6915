"""A model as a function from flat tensors to flat tensors, which is what an export is."""

from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from renkei._tensors import map_tensors, tensors_of
from renkei.errors import RenkeiError

__all__ = ["Call", "FlatModel", "PREFIX"]

Call = tuple[tuple[Any, ...], dict[str, Any]]  # positional and named arguments

PREFIX = "model."  # of the names of parameters, buffers and modules in a capture

# Samples travel as whole and real numbers: others are seen as such, and turned back inside.
_SEEN_AS = {torch.complex64: torch.float32, torch.complex128: torch.float64, torch.bfloat16: torch.int16}


class FlatModel(torch.nn.Module):
    """The user's model, `model`, between flat inputs and flat outputs; with a loss, the loss is the only output."""

    def __init__(self, model: torch.nn.Module, call: Call, loss: Callable[..., torch.Tensor] | None = None,
                 only_loss: bool = False) -> None:
        super().__init__()
        self.model = model
        self.training = model.training
        self._loss = loss
        self._only_loss = only_loss or loss is not None
        leaves, self._spec = pytree.tree_flatten(call)
        self._constants = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self._kinds = {i: leaf.dtype for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}
        self._outputs: list[Any] = []  # their structure, as the last real run had it

    def flatten(self, call: Call) -> list[torch.Tensor]:
        """The tensors of a call; all else must be what it was in the first one."""
        leaves, spec = pytree.tree_flatten(call)
        constants = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        if spec != self._spec or tensors != list(self._kinds) or not _same(constants, self._constants):
            raise RenkeiError("a step is called with other arguments than the first one", "make a train_step for each kind")
        return [_as_samples(leaves[i]) for i in tensors]

    def structured(self, outputs: list[torch.Tensor]) -> Any:
        """Flat outputs in the structure that the model returns; a cache of keys and values in it is None."""
        given = iter(outputs)
        return map_tensors(self._outputs[0], lambda _: next(given))

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        leaves = list(self._constants)
        for (place, kind), tensor in zip(self._kinds.items(), tensors, strict=True):
            leaves[place] = _from_samples(tensor, kind)
        arguments, named = pytree.tree_unflatten(leaves, self._spec)
        if self._loss is not None:
            return (self._loss(self.model(*arguments[:-1], **named), arguments[-1]),)
        outputs = self.model(*arguments, **named)
        if not self._only_loss:
            if not any(isinstance(t, FakeTensor) for t in tensors):
                self._outputs[:] = [_without_caches(map_tensors(outputs, lambda _: torch.empty(0)))]
            return tuple(tensors_of(outputs))
        found = getattr(outputs, "loss", outputs)
        if isinstance(found, dict):
            found = found.get("loss")
        found = next(iter(tensors_of(found)), None)
        if found is None:
            raise RenkeiError("the model returns no loss", "give one: train_step(model, optimizer, loss=function)")
        return (found,)


def _without_caches(value: Any) -> Any:
    for name, item in vars(value).items() if hasattr(value, "__dict__") else ():
        if type(item).__name__.endswith("Cache"):
            setattr(value, name, None)
    return value


def _same(these: list[Any], those: list[Any]) -> bool:
    return len(these) == len(those) and all(a is b or a == b for a, b in zip(these, those, strict=True))


def _as_samples(tensor: torch.Tensor) -> torch.Tensor:
    kind = _SEEN_AS.get(tensor.dtype)
    if kind is None:
        return tensor
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor.view(kind)


def _from_samples(tensor: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    if kind not in _SEEN_AS or tensor.dtype is kind:
        return tensor
    return torch.view_as_complex(tensor) if kind.is_complex else tensor.view(kind)
