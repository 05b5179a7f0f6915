"""Trains PyTorch models on the many devices of a supercomputer, and explains the result."""

import renkei_backend as _renkei_backend
import torch as _torch  # noqa: F401  # before the extension, which uses its libraries

from renkei import data
from renkei.capture import opaque
from renkei.checkpoint import Saving, load, save
from renkei.datasets import evaluate_all, scatter_dataset
from renkei.errors import RenkeiError
from renkei.parallel import Parallel, parallelize
from renkei.sync_batch_norm import SyncBatchNorm
from renkei.train_step import TrainStep, train_step
from renkei.world import (
    allgather_object,
    allreduce,
    barrier,
    broadcast,
    init,
    is_initialized,
    local_rank,
    local_size,
    rank,
    size,
)

_renkei_backend.register()

__all__ = [
    "Parallel",
    "RenkeiError",
    "Saving",
    "SyncBatchNorm",
    "TrainStep",
    "allgather_object",
    "allreduce",
    "barrier",
    "broadcast",
    "data",
    "evaluate_all",
    "init",
    "is_initialized",
    "load",
    "local_rank",
    "local_size",
    "opaque",
    "parallelize",
    "rank",
    "save",
    "scatter_dataset",
    "size",
    "train_step",
]
