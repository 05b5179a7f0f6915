"""Horovod's helpers: everything of one rank on all ranks."""

import pickle
from collections.abc import Mapping
from typing import Any

import torch

from renkei._tensors import map_tensors, tensors_of
from renkei.errors import RenkeiError
from renkei.horovod.torch import _basics
from renkei.horovod.torch import _ops as ops
from renkei.horovod.torch._basics import ProcessSet, global_process_set

__all__ = ["allgather_object", "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters"]


def broadcast_parameters(params: Any, root_rank: int, prefix: str | None = None) -> None:
    """The tensors of a state dict, or of model.named_parameters(), become those of the rank `root_rank`."""
    if isinstance(params, Mapping):
        pairs = sorted(params.items())
    elif isinstance(params, torch.Tensor):
        raise RenkeiError("broadcast_parameters() was given one tensor", "give a state dict, or model.named_parameters()")
    else:
        pairs = [p if isinstance(p, tuple) else (None, p) for p in params]
    begin = f"{prefix}." if prefix else ""
    asked = [
        ops.ask_broadcast(tensor, tensor, root_rank, f"parameters.{begin}{name}" if name else None)
        for name, tensor in pairs
        if isinstance(tensor, torch.Tensor)
    ]
    for handle in asked:
        handle.wait()


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int, prefix: str | None = None) -> None:
    """Options and state of the optimizer become those of the rank `root_rank`."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise RenkeiError("the state of LBFGS can't be broadcast", "use another optimizer")
    mine = optimizer.state_dict()
    is_root = _basics.rank() == root_rank
    skeleton = broadcast_object(map_tensors(mine, _without_values) if is_root else None, root_rank)
    received = mine if is_root else map_tensors(skeleton, lambda t: torch.empty(t.shape, dtype=t.dtype))
    for tensor in tensors_of(received):
        ops.ask_broadcast(tensor, tensor, root_rank, None).wait()
    if not is_root:
        optimizer.load_state_dict(received)


def _without_values(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")


def broadcast_object(
    obj: Any, root_rank: int = 0, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """The object of the rank `root_rank`, on every rank; anything that pickle takes.

    >>> _basics.init()
    >>> broadcast_object({"epoch": 3})
    {'epoch': 3}
    """
    is_root = _basics.rank() == root_rank
    text = torch.frombuffer(bytearray(pickle.dumps(obj if is_root else None)), dtype=torch.uint8)
    length = ops.ask_broadcast(torch.tensor([len(text)]), None, root_rank, name and f"{name}.length").wait()
    if not is_root:
        text = torch.empty(int(length), dtype=torch.uint8)
    received = ops.ask_broadcast(text, text, root_rank, name).wait()
    return obj if is_root else pickle.loads(received.numpy().tobytes())


def allgather_object(obj: Any, name: str | None = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """The objects of all ranks, by rank.

    >>> _basics.init()
    >>> allgather_object("here")
    ['here']
    """
    text = torch.frombuffer(bytearray(pickle.dumps(obj)), dtype=torch.uint8)
    lengths = ops.ask_allgather(torch.tensor([len(text)]), name and f"{name}.length").wait().tolist()
    parts = torch.split(ops.ask_allgather(text, name).wait(), lengths)
    return [pickle.loads(part.numpy().tobytes()) for part in parts]
