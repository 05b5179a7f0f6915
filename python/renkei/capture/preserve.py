"""A model can be run for a look and be afterwards as it was."""

import collections
import contextlib
import copy
import random
from collections.abc import Iterator
from typing import Any

import numpy
import torch

__all__ = ["attributes_of", "preserved", "preserved_attributes", "preserved_random", "random_states", "seeded"]

_CONTAINERS = (list, dict, set, collections.deque, bytearray)


def random_states() -> tuple[Any, ...]:
    """Of Python and numpy, to compare."""
    state: Any = numpy.random.get_state()
    return random.getstate(), state[1].tobytes(), state[2:]


def attributes_of(module: torch.nn.Module) -> dict[str, Any]:
    """What a module keeps beside its tensors and modules, in a form to compare."""
    return {
        name: (id(value), len(value)) if isinstance(value, _CONTAINERS) else _comparable(value)
        for name, value in vars(module).items()
        if not name.startswith("_") and name != "training"
    }


def _comparable(value: Any) -> Any:
    if isinstance(value, (int, float, bool, str)):
        return value
    if isinstance(value, torch.Tensor):
        return id(value), value._version
    return id(value)


@contextlib.contextmanager
def preserved_random() -> Iterator[None]:
    """Random numbers go on afterwards as if nothing was drawn."""
    states = torch.get_rng_state(), random.getstate(), numpy.random.get_state()
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        numpy.random.set_state(states[2])


@contextlib.contextmanager
def seeded(number: int) -> Iterator[None]:
    """Random numbers that are the same on all ranks; afterwards they go on as before."""
    with preserved_random():
        torch.manual_seed(number)
        random.seed(number)
        numpy.random.seed(number)
        yield


@contextlib.contextmanager
def preserved(model: torch.nn.Module, *, attributes: bool = True) -> Iterator[None]:
    """Buffers, attributes of modules, gradients and random numbers are what they were before."""
    buffers = [
        (module._buffers, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    gradients = [(p, p.grad) for p in model.parameters()]
    with preserved_random(), preserved_attributes(model) if attributes else contextlib.nullcontext():
        try:
            yield
        finally:
            with torch.no_grad():
                for holder, name, buffer, value in buffers:
                    buffer.copy_(value)
                    holder[name] = buffer
            for parameter, gradient in gradients:
                parameter.grad = gradient


@contextlib.contextmanager
def preserved_attributes(model: torch.nn.Module) -> Iterator[None]:
    """What modules keep beside their tensors is what it was before."""
    kept = [(module, _copied(vars(module))) for module in model.modules()]
    try:
        yield
    finally:
        for module, before in kept:
            _put_back(vars(module), before)


def _copied(attributes: dict[str, Any]) -> dict[str, Any]:
    """Containers as (container, copy); tensors as (tensor, clone)."""
    kept: dict[str, Any] = {}
    for name, value in attributes.items():
        if name in ("_parameters", "_buffers", "_modules"):
            continue
        if isinstance(value, _CONTAINERS) and not name.startswith("_"):
            kept[name] = (value, copy.copy(value))
        elif isinstance(value, torch.Tensor) and not value.requires_grad:
            kept[name] = (value, value.clone())
        else:
            kept[name] = (value, None)
    return kept


def _put_back(attributes: dict[str, Any], kept: dict[str, Any]) -> None:
    for name in [n for n in attributes if n not in kept and n not in ("_parameters", "_buffers", "_modules")]:
        del attributes[name]
    for name, (value, content) in kept.items():
        attributes[name] = value
        if isinstance(value, torch.Tensor) and content is not None:
            value.data.copy_(content)
        elif content is not None:
            value.clear()
            value.update(content) if isinstance(value, (dict, set)) else value.extend(content)
