"""Do all ranks have the same model?"""

import torch

from renkei import world
from renkei.errors import RenkeiError

__all__ = ["check_same_model"]


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


def _shown(tensors: list[tuple[str, tuple[int, ...], str, bool]], at: int) -> str:
    if at >= len(tensors):
        return "nothing"
    name, shape, kind, trained = tensors[at]
    return f"{name} {list(shape)} {kind.removeprefix('torch.')}{'' if trained else ' (no gradient)'}"
