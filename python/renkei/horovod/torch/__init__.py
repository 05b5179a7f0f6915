"""Horovod's interface for PyTorch on Renkei's collectives: `import renkei.horovod.torch as hvd`.

Names and meanings are Horovod's; docs/peers.md says where they differ.
"""

from renkei._missing import missing_names
from renkei.horovod.torch import elastic
from renkei.horovod.torch._basics import (
    ProcessSet,
    barrier,
    cross_rank,
    cross_size,
    global_process_set,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    mpi_threads_supported,
    rank,
    shutdown,
    size,
)
from renkei.horovod.torch._compression import Compression
from renkei.horovod.torch._ops import Adasum, Average, Max, Min, Product, Sum, join, poll, synchronize
from renkei.horovod.torch.functions import (
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from renkei.horovod.torch.mpi_ops import (
    allgather,
    allgather_async,
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall,
    alltoall_async,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allgather,
    grouped_allgather_async,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter,
    grouped_reducescatter_async,
    reducescatter,
    reducescatter_async,
)
from renkei.horovod.torch.optimizer import DistributedOptimizer
from renkei.sync_batch_norm import SyncBatchNorm

__all__ = [
    "Adasum",
    "Average",
    "Compression",
    "DistributedOptimizer",
    "Max",
    "Min",
    "ProcessSet",
    "Product",
    "Sum",
    "SyncBatchNorm",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall",
    "alltoall_async",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "cross_rank",
    "cross_size",
    "elastic",
    "global_process_set",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "init",
    "is_homogeneous",
    "is_initialized",
    "join",
    "local_rank",
    "local_size",
    "mpi_threads_supported",
    "poll",
    "rank",
    "reducescatter",
    "reducescatter_async",
    "shutdown",
    "size",
    "synchronize",
]


def mpi_built() -> bool:
    """Renkei is built on MPI."""
    return True


def mpi_enabled() -> bool:
    """Renkei is built on MPI."""
    return True


def _not_built() -> bool:
    return False


gloo_built = gloo_enabled = nccl_built = ddl_built = ccl_built = cuda_built = rocm_built = _not_built

_SETS = "all ranks exchange together; torch.distributed.new_group has sets of ranks"
_TIMELINE = "renkei train records timelines"

__getattr__ = missing_names(
    __name__,
    "Horovod",
    {
        "add_process_set": _SETS,
        "remove_process_set": _SETS,
        "is_process_set_included": _SETS,
        "process_set_included": _SETS,
        "start_timeline": _TIMELINE,
        "stop_timeline": _TIMELINE,
        "sparse_allreduce_async": "gradients travel dense: DistributedOptimizer(…, sparse_as_dense=True)",
        "check_extension": "there is one extension, renkei._engine",
    },
)
