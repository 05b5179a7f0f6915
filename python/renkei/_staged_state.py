"""What a model in stages has, as a whole: its state and its optimizer's, gathered and dealt out again.

A rank has the tensors of its own stages. Gathering and loading are done by all ranks together; a rank that comes alone
is told so, because all that a model in stages does begins with a word about what it is.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import torch

from renkei import _engine, world
from renkei.errors import RenkeiError

__all__ = ["attach_optimizer", "gathered", "load"]

Unmatched = tuple[list[str], list[str], list[str]]  # missing, unexpected, of another shape


class Placed(Protocol):
    """A model whose tensors are on some ranks each."""

    model: torch.nn.Module

    def meet(self, purpose: _engine.Purpose) -> None:
        """Throws an error unless all ranks come for the same."""

    def owner(self, name: str) -> int | None:
        """The first rank that has a tensor of the model; None: all have it."""

    def is_held(self, name: str) -> bool:
        """Whether this rank has it."""


def gathered(job: Placed, on_rank: int | None, *arguments: Any, **named: Any) -> dict[str, Any]:
    """The model's state_dict, complete on every rank, or on one only and empty on the others.

    What other ranks have is the host's here: a device needs no room for it.
    """
    job.meet(_engine.Purpose.state_dict)
    state: dict[str, Any] = job.model.state_dict(*arguments, **named)
    prefix = named.get("prefix", "")
    wanted = on_rank is None or on_rank == world.rank()
    with _engine.HostMemory():
        for key, value in list(state.items()):
            owner = job.owner(key.removeprefix(prefix)) if isinstance(value, torch.Tensor) else None
            if owner is not None:
                whole = world.broadcast(value, owner)
                if not job.is_held(key.removeprefix(prefix)):
                    state[key] = whole
            if not wanted:
                del state[key]
    return state


def load(job: Placed, given: Mapping[str, Any], strict: bool) -> Any:
    """All ranks take the values of rank 0; what it can't take ends all of them with PyTorch's own words."""
    job.meet(_engine.Purpose.load_state_dict)
    mine = job.model.state_dict(keep_vars=True)
    missing, unexpected, other = world.broadcast_object(_unmatched(mine, given))
    words = other + ([f"missing: {', '.join(missing)}"] if strict and missing else [])
    words += [f"unexpected: {', '.join(unexpected)}"] if strict and unexpected else []
    if words:
        raise RuntimeError(f"the state does not belong to {type(job.model).__name__}: {'; '.join(words)}")
    with _engine.HostMemory():
        for key, tensor in mine.items():
            if key in missing or not isinstance(tensor, torch.Tensor):
                continue
            source = given[key].detach() if world.rank() == 0 else torch.empty(tensor.shape, dtype=tensor.dtype)
            value = world.broadcast(source.to(tensor.dtype))
            if job.is_held(key):
                tensor.data.copy_(value)
    return torch.nn.modules.module._IncompatibleKeys(missing, unexpected)


def _unmatched(mine: dict[str, Any], given: Mapping[str, Any]) -> Unmatched:
    tensors = {key: value for key, value in mine.items() if isinstance(value, torch.Tensor)}
    other = [
        f"{key} has the shape {list(given[key].shape)} and not {list(value.shape)}"
        for key, value in tensors.items()
        if key in given and given[key].shape != value.shape
    ]
    return [key for key in tensors if key not in given], [key for key in given if key not in mine], other


def attach_optimizer(job: Placed, optimizer: torch.optim.Optimizer) -> None:
    """From now on its state_dict() is complete, by all ranks together, and it loads what belongs to this rank."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise RenkeiError(
            "LBFGS looks at all parameters at once, and in stages each rank has a part of them",
            "use an optimizer that treats each parameter by itself, or plan='data'",
        )
    names = {id(parameter): name for name, parameter in job.model.named_parameters()}

    def numbered() -> list[str | None]:
        return [names.get(id(p)) for group in optimizer.param_groups for p in group["params"]]

    def complete(_: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        job.meet(_engine.Purpose.state_dict)
        mine = {
            number: state["state"].pop(number)
            for number, name in enumerate(numbered())
            if name is not None and number in state["state"]
        }
        owned = {number: value for number, value in mine.items() if _gives(job, numbered()[number])}
        found: dict[int, Any] = {}
        with _engine.HostMemory():
            for part in world.allgather_object(owned):
                found.update(part)
        # Of what this rank has itself, its own tensors, as an optimizer gives them.
        state["state"].update({number: mine.get(number, found[number]) for number in sorted(found)})

    def keep_own(_: torch.optim.Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        own = {number for number, name in enumerate(numbered()) if name is None or job.is_held(name)}
        return {**state, "state": {number: value for number, value in state["state"].items() if number in own}}

    optimizer.register_state_dict_post_hook(complete)
    optimizer.register_load_state_dict_pre_hook(keep_own)


def _gives(job: Placed, name: str | None) -> bool:
    owner = job.owner(name) if name is not None else None
    return world.rank() == (0 if owner is None else owner)
