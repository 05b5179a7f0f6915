"""What is put in the place of something else for a while."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

__all__ = ["functions_with_backward", "patched", "patched_torch", "real_apply", "real_bool"]

_MISSING = object()

real_bool = torch.Tensor.__bool__
_APPLY = torch.autograd.Function.__dict__["apply"]


def real_apply(kind: Any, *arguments: Any, **named: Any) -> Any:
    """What `Function.apply` does when nothing is in its place."""
    return _APPLY.__func__(kind, *arguments, **named)


@contextlib.contextmanager
def patched(items: list[tuple[dict[str, Any], str, Any]]) -> Iterator[None]:
    """Entries of dictionaries: of a module, of a file's names."""
    before: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for place, name, value in items:
            before.append((place, name, place.get(name, _MISSING)))
            place[name] = value
        yield
    finally:
        for place, name, value in reversed(before):
            if value is _MISSING:
                place.pop(name, None)
            else:
                place[name] = value


@contextlib.contextmanager
def patched_torch(truth: Callable[[torch.Tensor], bool], apply: Callable[..., Any]) -> Iterator[None]:
    """bool(tensor) and autograd.Function.apply are these."""
    torch.Tensor.__bool__ = truth  # type: ignore[assignment, method-assign]
    torch.autograd.Function.apply = classmethod(apply)  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        del torch.Tensor.__bool__  # that of the class below
        torch.autograd.Function.apply = _APPLY  # type: ignore[method-assign]


def functions_with_backward() -> list[type[torch.autograd.Function]]:
    """All that users and their libraries have written."""
    found: list[type[torch.autograd.Function]] = []
    left: list[type] = [torch.autograd.Function]
    while left:
        kinds: list[Any] = left.pop().__subclasses__()
        for kind in kinds:
            left.append(kind)
            if not kind.__module__.startswith(("torch.", "renkei.")) and "forward" in vars(kind):
                found.append(kind)
    return found
