"""Numbers, texts, tensors, and lists, tuples and dictionaries of these, as JSON that gives them back as they were.

JSON has no tuples, and its keys are texts. So what it does not have is a dictionary with one key, `@`, that says what it
is: {"@": "tuple", "of": […]}, {"@": "dict", "of": [[key, value], …]}, {"@": "tensor", "of": name}.
"""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["decoded", "encoded"]

KIND = "@"


def encoded(value: Any, name: str) -> tuple[Any, dict[str, torch.Tensor]]:
    """As JSON, and the tensors, by names that begin with `name`. A TypeError for what would not come back.

    >>> encoded({30: (1, 2)}, "milestones")
    ({'@': 'dict', 'of': [[30, {'@': 'tuple', 'of': [1, 2]}]]}, {})
    """
    tensors: dict[str, torch.Tensor] = {}

    def tag(kind: str, of: Any) -> dict[str, Any]:
        return {KIND: kind, "of": of}

    def encode(value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, torch.Tensor):
            tensors[f"{name}/{len(tensors)}"] = value
            return tag("tensor", f"{name}/{len(tensors) - 1}")
        if isinstance(value, list):
            return [encode(item) for item in value]
        if isinstance(value, tuple):
            return tag("tuple", [encode(item) for item in value])
        if not isinstance(value, dict):
            raise TypeError(f"{type(value).__name__} is not a plain value")
        if isinstance(value, Counter):  # the milestones of MultiStepLR
            return tag("counter", [[encode(key), count] for key, count in value.items()])
        if all(type(key) is str for key in value) and KIND not in value:
            return {key: encode(item) for key, item in value.items()}
        return tag("dict", [[encode(key), encode(item)] for key, item in value.items()])

    text = json.dumps(encode(value))
    found = json.loads(text)
    if not _same(decoded(found, tensors.__getitem__), value):
        raise TypeError(f"{type(value).__name__} would come back as something else")
    return found, tensors


def decoded(value: Any, tensor: Callable[[str], torch.Tensor]) -> Any:
    """What encoded() was given; `tensor` gives one by its name."""
    if isinstance(value, list):
        return [decoded(item, tensor) for item in value]
    if not isinstance(value, dict):
        return value
    if KIND not in value:
        return {key: decoded(item, tensor) for key, item in value.items()}
    kind, of = value[KIND], value["of"]
    if kind == "tensor":
        return tensor(of)
    items = [decoded(item, tensor) for item in of]
    if kind == "tuple":
        return tuple(items)
    return Counter(dict(items)) if kind == "counter" else dict(items)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return one is other
    if isinstance(one, (list, tuple)):
        return isinstance(other, type(one)) and len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(one == other) or one != one and other != other  # no numbers
