"""Process groups of torch.distributed: who is on which host, and what the group communicates through."""

import os
import socket
from typing import Any

import torch.distributed as dist

from renkei import _engine, _launch, world
from renkei.errors import RenkeiError

__all__ = ["create", "set_rank_variables"]


def create(options: Any, _: Any) -> Any:
    """The backend of one process group; called by all its ranks, through init_process_group or new_group."""
    store, rank, size = options.store, options.group_rank, options.group_size
    seconds = options.timeout.total_seconds() if hasattr(options.timeout, "total_seconds") else float(options.timeout)
    ranks = list(options.global_ranks_in_group) or list(range(size))
    store.set(f"host/{rank}", _host_identity())
    hosts = [_host_of(store, other, ranks[other], seconds) for other in range(size)]
    if len(set(hosts)) == 1:
        return _engine.make_host_backend(store, rank, size, ranks, socket.gethostname(), seconds)
    if not _launch.is_of_mpi():
        raise RenkeiError(_several_hosts(hosts), _right_command(hosts))
    job = world.world()
    if job.rank != ranks[rank]:
        raise RenkeiError(
            f"rank {ranks[rank]} of torch.distributed is rank {job.rank} of the MPI job",
            "let mpirun or srun number the ranks: init_process_group without rank and world_size",
        )
    made = _engine.make_job_backend(job, ranks, _free_number(store, rank, size), seconds)
    _over_mpi.groups.append(made)
    world.add_user(_over_mpi)
    return made


class _OverMpi:
    """Groups that must end before MPI does, though the program keeps them until Python itself ends."""

    def __init__(self) -> None:
        self.groups: list[Any] = []

    def release(self) -> None:
        """At the end of the program."""
        for group in self.groups:
            group.shutdown()
        self.groups.clear()


_over_mpi = _OverMpi()


def set_rank_variables() -> None:
    """RANK, WORLD_SIZE, MASTER_ADDR … of this process of mpirun or srun, where rank 0 is found by MPI."""
    if _launch.is_of_mpi():
        world.init()


def _host_identity() -> str:
    """Equal for processes that can reach each other's memory."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    return " ".join([socket.gethostname(), boot, os.readlink("/proc/self/ns/pid"), str(os.getuid())])


def _host_of(store: Any, rank: int, job_rank: int, seconds: float) -> str:
    from datetime import timedelta

    try:
        store.wait([f"host/{rank}"], timedelta(seconds=seconds))
    except dist.DistStoreError as error:
        raise RenkeiError(
            f"rank {job_rank} has not come to its process group within {seconds:g} s",
            "look at the log of that rank",
            code="communication",
            rank=job_rank,
        ) from error
    return str(store.get(f"host/{rank}").decode())


def _several_hosts(hosts: list[str]) -> str:
    names = list(dict.fromkeys(identity.split()[0] for identity in hosts))
    return (
        f"the ranks are on {len(set(hosts))} hosts ({', '.join(names)}), between which renkei communicates over MPI, "
        "and no MPI launcher has started them"
    )


def _right_command(hosts: list[str]) -> str:
    names = [identity.split()[0] for identity in hosts]
    counts = ",".join(f"{name}:{names.count(name)}" for name in dict.fromkeys(names))
    return f"start them with mpirun -n {len(hosts)} --host {counts} python SCRIPT, or srun -n {len(hosts)} python SCRIPT"


def _free_number(store: Any, rank: int, size: int) -> int:
    """The smallest number that no group of any member has, a model's neither."""
    store.set(f"taken/{rank}", ",".join(map(str, _engine.taken_group_numbers(world.world()))))
    taken = {number for other in range(size) for number in store.get(f"taken/{other}").decode().split(",")}
    number = 0
    while str(number) in taken:
        number += 1
    return number
