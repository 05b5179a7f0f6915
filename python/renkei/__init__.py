"""Trains PyTorch models on the many devices of a supercomputer, and explains the result."""

import renkei_backend as _renkei_backend
import torch as _torch  # noqa: F401  # before the extension, which uses its libraries

from renkei.errors import RenkeiError
from renkei.parallel import Parallel, parallelize
from renkei.train_step import TrainStep, train_step
from renkei.world import (
    allgather_object,
    allreduce,
    barrier,
    broadcast,
    init,
    is_initialized,
    local_rank,
    rank,
    size,
)

_renkei_backend.register()

__all__ = [
    "Parallel",
    "RenkeiError",
    "TrainStep",
    "allgather_object",
    "allreduce",
    "barrier",
    "broadcast",
    "init",
    "is_initialized",
    "local_rank",
    "parallelize",
    "rank",
    "size",
    "train_step",
]
