"""Trains PyTorch models on the many devices of a supercomputer, and explains the result."""

import torch as _torch  # noqa: F401  # before the extension, which uses its libraries

from renkei import data
from renkei.checkpoint import Saving, load, save
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

__all__ = [
    "Parallel",
    "RenkeiError",
    "Saving",
    "TrainStep",
    "allgather_object",
    "allreduce",
    "barrier",
    "broadcast",
    "data",
    "init",
    "is_initialized",
    "load",
    "local_rank",
    "parallelize",
    "rank",
    "save",
    "size",
    "train_step",
]
