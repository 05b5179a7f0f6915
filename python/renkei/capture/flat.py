"""A model as a function from flat tensors to flat tensors, which is what an export is."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from renkei._tensors import map_tensors, tensors_of
from renkei.errors import RenkeiError

__all__ = ["Call", "FlatModel", "PREFIX"]

Call = tuple[tuple[Any, ...], dict[str, Any]]  # positional and named arguments

PREFIX = "model."  # of the names of parameters, buffers and modules in a capture

_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size)

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
        self._outputs: list[Structure] = []  # as the last real run had it

    def flatten(self, call: Call) -> list[torch.Tensor]:
        """The tensors of a call; all else must be what it was in the first one."""
        leaves, spec = pytree.tree_flatten(call)
        constants = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        if spec != self._spec or tensors != list(self._kinds) or not _same(constants, self._constants):
            raise RenkeiError("a step is called with other arguments than the first one", "make a train_step for each kind")
        return [_as_samples(leaves[i]) for i in tensors]

    def as_samples(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Those of a call that is known to be like the first."""
        return [_as_samples(tensor) for tensor in tensors]

    def structured(self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor] = ()) -> Any:
        """Flat outputs in the structure that the model returns; what it returns as it was given is taken from `inputs`."""
        return self._outputs[0].filled(outputs, inputs)

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        leaves = list(self._constants)
        given = [_from_samples(tensor, kind) for tensor, kind in zip(tensors, self._kinds.values(), strict=True)]
        for place, tensor in zip(self._kinds, given, strict=True):
            leaves[place] = tensor
        arguments, named = pytree.tree_unflatten(leaves, self._spec)
        if self._loss is not None:
            return (self._loss(self.model(*arguments[:-1], **named), arguments[-1]),)
        outputs = self.model(*arguments, **named)
        if not self._only_loss:
            if not any(isinstance(t, FakeTensor) for t in tensors):
                self._outputs[:] = [Structure(outputs, given)]
            return tuple(t for t in tensors_of(outputs) if not any(t is one for one in given))
        found = getattr(outputs, "loss", outputs)
        if isinstance(found, dict):
            found = found.get("loss")
        found = next(iter(tensors_of(found)), None)
        if found is None:
            raise RenkeiError("the model returns no loss", "give one: train_step(model, optimizer, loss=function)")
        return (found,)


class Structure:
    """What a model returns, without the values of its tensors."""

    def __init__(self, returned: Any, given: Sequence[torch.Tensor]) -> None:
        self._places: list[int | None] = []  # of each tensor, the input that it is, or None: it was computed
        for tensor in tensors_of(returned):
            self._places.append(next((i for i, one in enumerate(given) if one is tensor), None))
        self._template = _without_objects(map_tensors(returned, lambda _: torch.empty(0)))

    def filled(self, computed: Sequence[torch.Tensor], given: Sequence[torch.Tensor]) -> Any:
        """The same with these tensors."""
        values = iter(computed)
        every = (next(values) if place is None else given[place] for place in self._places)
        return map_tensors(self._template, lambda _: next(every))


class _NotBrought:
    """Stands for an object in a model's output, such as a cache, that a program does not compute."""

    def __init__(self, kind: str) -> None:
        self.__dict__["_kind"] = kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RenkeiError(
            f"the model returns an object of the type {self._kind}, which its capture does not hand on",
            "return tensors, in tuples, dictionaries or data classes; of a Hugging Face model use_cache=False",
        )


def _without_objects(value: Any) -> Any:
    if isinstance(value, (torch.Tensor, *_PLAIN)):
        return value
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(_without_objects(item) for item in value)
    if isinstance(value, dict):
        changed = copy.copy(value)
        for key, item in list(value.items()):
            kept = _without_objects(item)
            if kept is not item:
                changed[key] = kept
        return changed
    if tensors_of(value) or hasattr(value, "_fields"):
        return value
    return _NotBrought(type(value).__name__)


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
