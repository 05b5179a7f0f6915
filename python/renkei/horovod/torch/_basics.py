"""Who am I? As Horovod's programs ask it."""

import itertools
import os
from typing import Any

from renkei import _queue, world
from renkei.errors import RenkeiError

__all__ = [
    "ProcessSet",
    "barrier",
    "cross_rank",
    "cross_size",
    "global_process_set",
    "init",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "mpi_threads_supported",
    "queue",
    "rank",
    "shutdown",
    "size",
]

_queues: list[_queue.Queue] = []  # at most one, made by the first init()
_initialized = False
_barriers = itertools.count()


class ProcessSet:
    """Some ranks; Renkei has the set of all, `global_process_set`."""

    process_set_id = 0

    def __init__(self, ranks: Any = None) -> None:
        if ranks is not None and sorted(ranks) != list(range(size())):
            raise RenkeiError(
                "a ProcessSet of some of the ranks is not part of renkei.horovod.torch",
                "use torch.distributed.new_group with the backend renkei",
            )

    def included(self) -> bool:
        """All ranks are."""
        return True

    def size(self) -> int:
        """Of the job."""
        return size()

    def rank(self) -> int:
        """In the job."""
        return rank()

    @property
    def ranks(self) -> list[int]:
        """All of the job."""
        return list(range(size()))


global_process_set = ProcessSet()


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Joins the job's ranks. All ranks together.

    >>> init()
    >>> rank(), size(), local_rank()
    (0, 1, 0)
    """
    global _initialized
    if comm not in (None, []) or process_sets not in (None, []):
        raise RenkeiError("init() takes all ranks of the job here", "leave comm and process_sets out")
    world.init()
    if not _queues:
        _queues.append(_queue.Queue(float(os.environ.get("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "0"))))
    _initialized = True


def shutdown() -> None:
    """Nothing can be exchanged until the next init()."""
    global _initialized
    _initialized = False


def is_initialized() -> bool:
    """Whether init() was called, and shutdown() not since."""
    return _initialized


def queue() -> _queue.Queue:
    """Where collectives are asked for."""
    if not _initialized:
        raise RenkeiError("Horovod has not been initialized", "call hvd.init() first")
    return _queues[0]


def _world() -> Any:
    queue()
    return world.world()


def rank() -> int:
    """The number of this process in the job, from 0."""
    found: int = _world().rank
    return found


def size() -> int:
    """How many processes the job has."""
    found: int = _world().size
    return found


def local_rank() -> int:
    """The number of this process among those of its host, from 0."""
    found: int = _world().local_rank
    return found


def local_size() -> int:
    """How many processes this host has."""
    found: int = _world().local_size
    return found


def cross_rank() -> int:
    """The number of this host among those of the job, from 0."""
    found: int = _world().host_number
    return found


def cross_size() -> int:
    """How many hosts the job has."""
    found: int = _world().hosts
    return found


def is_homogeneous() -> bool:
    """Whether all hosts have as many ranks."""
    return len(set(_world().ranks_of_hosts)) == 1


def mpi_threads_supported() -> bool:
    """Renkei asks MPI for several threads."""
    return True


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Waits until all ranks are here."""
    asked = _queue.Request(f"barrier.{next(_barriers)}", "barrier", (), lambda ranks: ranks.barrier("barrier"))
    queue().submit(asked).wait()
