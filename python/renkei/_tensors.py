"""Tensors in whatever a model takes and returns."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch

__all__ = ["map_tensors", "tensors_of"]


def map_tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same structure with every tensor changed; objects that hold none are handed on as they are.

    >>> map_tensors({"a": (torch.tensor(1), 2)}, lambda t: t + 1)
    {'a': (tensor(2), 2)}
    """
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, Mapping) and dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _changed_copy(value, {key: map_tensors(item, change) for key, item in value.items()})
    if isinstance(value, dict):
        return type(value)((key, map_tensors(item, change)) for key, item in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tensors(item, change) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(map_tensors(item, change) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _changed_copy(value, {name: map_tensors(item, change) for name, item in fields.items()})
    return value


def _changed_copy(value: Any, fields: dict[str, Any]) -> Any:
    """Of a dataclass; those of Hugging Face are mappings as well, without what is None."""
    changed = dataclasses.replace(value)
    for name, item in fields.items():
        if item is not getattr(value, name):
            setattr(changed, name, item)
    return changed


def tensors_of(value: Any) -> list[torch.Tensor]:
    """All tensors in a structure, in order.

    >>> tensors_of([torch.tensor(1), {"b": torch.tensor(2)}])
    [tensor(1), tensor(2)]
    """
    found: list[torch.Tensor] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        found.append(tensor)
        return tensor

    map_tensors(value, note)
    return found
