"""One row of the table: a model, what it is called with, and what is expected of it."""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Batch = tuple[tuple[Any, ...], dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[], nn.Module]
    batch: Callable[[torch.Generator], Batch]  # of one rank; the last argument is the target where there is a loss
    loss: Callable[..., torch.Tensor] | None
    sample: bool = False  # part of `make test`
    mixes: bool = False  # samples (batch norm): no micro-batches
    opaque: str = ""  # a part of the words about what must be opaque; "none": nothing may be
    whole: bool = False  # all of it is opaque, so that it can't be cut
    error: str = ""  # the words of the expected error
    random: bool = False  # draws numbers, so that only plans can be compared with one another
    samples: int = 4  # of each rank
    rate: float = 0.01


def distance(output: Any, target: torch.Tensor) -> torch.Tensor:
    """A loss of whatever a model gives: a mean over the samples of all outputs that have them."""
    from renkei._tensors import tensors_of

    parts = [
        functional.smooth_l1_loss((o.abs() if o.is_complex() else o.float()).flatten(1), target[:, None].expand(
            -1, o.flatten(1).shape[1]))
        for o in tensors_of(output)
        if o.requires_grad and o.dim() > 0 and o.shape[0] == target.shape[0]
    ]
    return torch.stack(parts).sum()


def rows(*sizes: int, samples: int = 4) -> Callable[[torch.Generator], Batch]:
    """Real numbers, and a target."""
    return lambda g: ((torch.randn(samples, *sizes, generator=g), torch.randn(samples, generator=g)), {})


def words(length: int = 6, below: int = 11, samples: int = 4) -> Callable[[torch.Generator], Batch]:
    """Whole numbers, and a target."""
    return lambda g: (
        (torch.randint(1, below, (samples, length), generator=g), torch.randn(samples, generator=g)), {})


def without_dropout(model: nn.Module) -> nn.Module:
    """What draws can only be compared with itself."""
    for module in model.modules():
        for name, value in vars(module).items():
            dropout = isinstance(module, nn.modules.dropout._DropoutNd) and name == "p"
            if isinstance(value, float) and (dropout or "drop" in name):
                setattr(module, name, 0.0)
    return model
