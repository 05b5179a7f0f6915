"""What a launcher says about this process, as the variables that torchrun sets."""

import os
import socket
import zlib
from collections.abc import Mapping, MutableMapping

__all__ = [
    "choose",
    "free_port",
    "is_chosen",
    "is_of_mpi",
    "own_address",
    "set_torchrun_variables",
]

# Rank, size and rank on the host, of Open MPI, of MPICH and of Slurm.
LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),
)
JOB_NAMES = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID", "PMI_JOBID")
LAUNCH_NODES = ("SLURM_LAUNCH_NODE_IPADDR", "SLURMD_NODENAME")


def is_of_mpi(environment: Mapping[str, str] | None = None) -> bool:
    """Whether mpirun or srun has started this process, as one of several or alone.

    >>> is_of_mpi({"PMI_RANK": "0", "PMI_SIZE": "2"}), is_of_mpi({"RANK": "0", "WORLD_SIZE": "2"})
    (True, False)
    """
    variables = os.environ if environment is None else environment
    if "TORCHELASTIC_RUN_ID" in variables:  # torchrun, perhaps inside a job of the queue
        return False
    return any(rank in variables and size in variables for rank, size, _ in LAUNCHERS)


def set_torchrun_variables(environment: MutableMapping[str, str] | None = None) -> None:
    """Sets RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT where nobody has.

    >>> variables = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
    >>> set_torchrun_variables(variables)
    >>> variables["RANK"], variables["WORLD_SIZE"]
    ('1', '2')
    """
    variables = os.environ if environment is None else environment
    rank, size, local = "0", "1", "0"
    for rank_name, size_name, local_name in LAUNCHERS:
        if rank_name in variables and size_name in variables:
            rank, size = variables[rank_name], variables[size_name]
            local = variables.get(local_name, rank)
            break
    for name, value in (("RANK", rank), ("WORLD_SIZE", size), ("LOCAL_RANK", local)):
        if not is_chosen(name, variables):
            choose(name, value, variables)
    job = next((variables[name] for name in JOB_NAMES if name in variables), "")
    if not is_chosen("MASTER_ADDR", variables):
        choose("MASTER_ADDR", next((variables[n] for n in LAUNCH_NODES if n in variables), "127.0.0.1"), variables)
    if not is_chosen("MASTER_PORT", variables):
        choose("MASTER_PORT", str(20000 + zlib.crc32(job.encode()) % 10000), variables)


# What Renkei sets reaches the programs that a process starts, and means nothing in them.
def is_chosen(name: str, variables: Mapping[str, str] | None = None) -> bool:
    """Whether somebody has set this variable, other than Renkei in this process or in one that started it."""
    known = os.environ if variables is None else variables
    return name in known and known.get(f"RENKEI_SET_{name}") != known[name]


def choose(name: str, value: str, variables: MutableMapping[str, str] | None = None) -> None:
    """Sets a variable of torchrun's, for scripts that read it."""
    known = os.environ if variables is None else variables
    known[name] = known[f"RENKEI_SET_{name}"] = value


def own_address() -> str:
    """Where other hosts find this one."""
    name = socket.gethostname()
    try:
        address = socket.gethostbyname(name)
    except OSError:
        return name
    return name if address.startswith("127.") else address


def free_port() -> int:
    """That nobody listens to now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
