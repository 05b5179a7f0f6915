"""A call of a model as flat tensors: what it takes, what it returns, and how its outputs look."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from renkei._tensors import map_tensors, tensors_of
from renkei.errors import RenkeiError

__all__ = ["FlatModel", "Signature", "Structure"]

PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size)


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

    def arguments(self, tensors: tuple[torch.Tensor, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Those of such a call with these tensors."""
        given = iter(tensors)
        leaves = [next(given) if t else c for t, c in zip(self.is_tensor, self.constants, strict=True)]
        arguments, named = pytree.tree_unflatten(leaves, self.spec)
        return arguments, named


class FlatModel(torch.nn.Module):
    """The model from the tensors of a call to the tensors that it computes."""

    def __init__(self, model: torch.nn.Module, signature: Signature) -> None:
        super().__init__()
        self.model = model
        self._signature = signature
        self._seen = _Seen()

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        arguments, named = self._signature.arguments(tensors)
        returned = self.model(*arguments, **named)
        self._seen.structure = Structure(returned, list(tensors))
        return tuple(t for t in tensors_of(returned) if not any(t is given for given in tensors))

    @property
    def structure(self) -> "Structure":
        """Of what the last call returned."""
        assert self._seen.structure is not None
        return self._seen.structure


class _Seen:
    """Not an attribute of the module: a capture watches those."""

    structure: "Structure | None" = None


class Structure:
    """What a model returns, without the values of its tensors."""

    def __init__(self, returned: Any, given: list[torch.Tensor]) -> None:
        self._places: list[int | None] = []  # of each tensor, the input that it is, or None: it was computed
        for tensor in tensors_of(returned):
            self._places.append(next((i for i, one in enumerate(given) if one is tensor), None))
        self._is_tensor = isinstance(returned, torch.Tensor)
        self._template = None if self._is_tensor else _without_values(returned)

    def filled(self, computed: Sequence[torch.Tensor], given: list[torch.Tensor]) -> Any:
        """The same with these tensors."""
        if self._is_tensor and self._places == [None]:
            return computed[0]
        values = iter(computed)
        every: Iterator[torch.Tensor] = (next(values) if place is None else given[place] for place in self._places)
        if self._is_tensor:
            return next(every)
        return map_tensors(self._template, lambda _: next(every))


class _NotBrought:
    """Stands for an object in a model's output that stages do not hand on."""

    def __init__(self, kind: str) -> None:
        self.__dict__["_kind"] = kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RenkeiError(
            f"the model returns an object of the type {self._kind}, which a model in stages does not hand on",
            "return tensors, in tuples, dictionaries or data classes; of a Hugging Face model use_cache=False",
        )


def _without_values(returned: Any) -> Any:
    emptied = map_tensors(returned, lambda t: torch.empty(0))
    return _without_objects(emptied)


def _without_objects(value: Any) -> Any:
    if isinstance(value, (torch.Tensor, *PLAIN)):
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
