"""Do all ranks have the same model?"""

import hashlib
import re

import torch

from renkei import world
from renkei.errors import RenkeiError

__all__ = ["check_same_model", "check_same_program"]


def check_same_model(model: torch.nn.Module) -> None:
    """Throws an error that names the first difference between this rank's model and that of rank 0."""
    mine = [
        (name, tuple(tensor.shape), str(tensor.dtype), tensor.requires_grad)
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]
    ]
    every = world.allgather_object(mine)
    for rank, other in enumerate(every):
        if other == every[0]:
            continue
        places = max(len(other), len(every[0]))
        at = next(i for i in range(places) if other[i : i + 1] != every[0][i : i + 1])
        raise RenkeiError(
            f"rank {rank} has another model than rank 0: {_shown(other, at)} in the place of {_shown(every[0], at)}",
            "build the same model on all ranks, with the same requires_grad",
            rank=rank,
        )


def check_same_program(text: str) -> None:
    """Throws an error unless all ranks have captured this program."""
    # Where in memory a parameter lies is the rank's own affair.
    mine = hashlib.sha256(re.sub(r'"storage_offset": \{[^}]*\}', "", text).encode()).hexdigest()
    if any(other != mine for other in world.allgather_object(mine)):
        raise RenkeiError(
            "the ranks have captured different programs of the model",
            "does it depend on the rank, on time or on files? build it from the same seed everywhere",
            code="check",
        )


def _shown(tensors: list[tuple[str, tuple[int, ...], str, bool]], at: int) -> str:
    if at >= len(tensors):
        return "nothing"
    name, shape, kind, trained = tensors[at]
    return f"{name} {list(shape)} {kind.removeprefix('torch.')}{'' if trained else ' (no gradient)'}"
