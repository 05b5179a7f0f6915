"""One batch that all ranks have: each computes its part, and all get all outputs."""

from typing import Any

import torch

from renkei import world
from renkei._tensors import map_tensors, tensors_of
from renkei.errors import RenkeiError

__all__ = ["joined", "own_part"]


def own_part(arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any], int]:
    """This rank's samples of all tensors that have as many as the first, and how many these are."""
    samples = next((t.shape[0] for t in tensors_of([arguments, named]) if t.dim()), 0)
    if samples == 0 or samples % world.size():
        raise RenkeiError(
            f"a batch of {samples} samples is not the same for each of {world.size()} ranks",
            "choose a multiple of the ranks as the batch, and drop the last, smaller one",
        )
    count = samples // world.size()

    def part(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() == 0 or tensor.shape[0] != samples:
            return tensor
        return tensor.narrow(0, world.rank() * count, count)

    return map_tensors(arguments, part), map_tensors(named, part), count


def joined(outputs: Any, samples: int) -> Any:
    """Rows of all ranks one after the other; what has no rows as its mean."""
    if world.size() == 1:
        return outputs

    def join(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() and tensor.shape[0] == samples:
            return _Joined.apply(tensor)  # type: ignore[no-any-return, no-untyped-call]
        if tensor.is_floating_point():
            return _Mean.apply(tensor)  # type: ignore[no-any-return, no-untyped-call]
        return tensor

    return map_tensors(outputs, join)


class _Joined(torch.autograd.Function):
    """Every rank computes the same from it, so that the sum over its parts is a mean of as many times more."""

    @staticmethod
    def forward(ctx: Any, mine: torch.Tensor) -> torch.Tensor:
        ctx.samples = mine.shape[0]
        whole = mine.new_zeros(mine.shape[0] * world.size(), *mine.shape[1:])
        whole.narrow(0, world.rank() * mine.shape[0], mine.shape[0]).copy_(mine)
        return world.allreduce(whole, "sum")

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient.narrow(0, world.rank() * ctx.samples, ctx.samples) * world.size()


class _Mean(torch.autograd.Function):
    """Gradients become their mean over the ranks anyway."""

    @staticmethod
    def forward(ctx: Any, mine: torch.Tensor) -> torch.Tensor:
        return world.allreduce(mine)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient
