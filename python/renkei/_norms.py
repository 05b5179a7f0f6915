"""What PyTorch computes of all gradients, where each rank has those of its own stages.

torch.nn.utils.clip_grad_norm_ would see the gradients of this rank only, and so would a GradScaler that looks for those
that are not finite. While there is a model in stages, the functions by which they do that are of all ranks together;
each gradient counts once.
"""

import functools
import math
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import torch
from torch.nn.utils import clip_grad

from renkei import world

__all__ = ["Part", "unwatch", "watch"]


class Part(Protocol):
    """A model of which this rank has a part."""

    def counted_here(self) -> list[torch.Tensor]:
        """The gradients of parameters that no rank before this one has."""

    def gradients(self) -> list[torch.Tensor]:
        """All that this rank has."""

    def meet_for_norm(self) -> None:
        """Throws an error unless all ranks come for the same."""


_watched: "list[weakref.ref[Part]]" = []  # in the order in which all ranks made them
_original: Callable[..., torch.Tensor] = clip_grad._get_total_norm
_unscale: Callable[..., dict[torch.device, torch.Tensor]] = torch.amp.GradScaler._unscale_grads_


def watch(part: Part) -> None:
    """From now on norms are of all ranks together."""
    _watched.append(weakref.ref(part))
    clip_grad._get_total_norm = _total_norm
    torch.nn.utils.get_total_norm = _total_norm
    torch.amp.GradScaler._unscale_grads_ = _unscale_together  # type: ignore[method-assign]


def unwatch(part: Part) -> None:
    """At the end of its training, on all ranks."""
    _watched[:] = [known for known in _watched if known() not in (part, None)]


def _parts() -> list[Part]:
    """The newest first: of those that nobody closed, some ranks may still have one that others do not."""
    return [part for known in reversed(_watched) if (part := known()) is not None]


@functools.wraps(_original)
def _total_norm(
    tensors: torch.Tensor | Iterable[torch.Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> torch.Tensor:
    given = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    parts = _parts()
    if not parts:
        return _original(given, norm_type, error_if_nonfinite, foreach)
    parts[0].meet_for_norm()
    in_stages = {id(g): None for part in parts for g in part.gradients()}
    counted = {id(g): None for part in parts for g in part.counted_here()}
    mine = [g for g in given if id(g) in counted]
    others = [g for g in given if id(g) not in in_stages]
    norm = float(norm_type)
    here = _original(mine, norm, False, foreach).double().reshape(())
    elsewhere = _original(others, norm, False, foreach).double().reshape(())
    total = _joined(here, elsewhere, norm).to(torch.float32)
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise RuntimeError(f"The total norm of order {norm} for gradients from `parameters` is non-finite")
    return total


@functools.wraps(_unscale)
def _unscale_together(*arguments: Any, **named: Any) -> dict[torch.device, torch.Tensor]:
    found = _unscale(*arguments, **named)
    parts = _parts()
    if parts:
        parts[0].meet_for_norm()
        here = torch.stack([flag.float() for flag in found.values()] or [torch.zeros(1)]).max()
        anywhere = world.allreduce(here, "max")
        for flag in found.values():
            flag.fill_(anywhere)
    return found


def _joined(here: torch.Tensor, elsewhere: torch.Tensor, norm: float) -> torch.Tensor:
    """Of the parts of all ranks, and of what every rank has."""
    if math.isinf(norm):
        return torch.maximum(world.allreduce(here, "max"), elsewhere)
    total: Any = world.allreduce(here**norm, "sum") + elsewhere**norm
    return torch.as_tensor(total ** (1 / norm))
