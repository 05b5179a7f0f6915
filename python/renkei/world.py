"""The ranks of a job: who am I, and collectives for those who need them."""

import atexit
import ctypes
import os
import pickle
import sys
import traceback
import weakref
from types import TracebackType
from typing import Protocol, TypeVar

import torch

from renkei import _launch
from renkei.errors import EXIT_CODES, RenkeiError

try:
    from renkei import _engine
except ImportError as error:  # another torch than it was built with, or no MPI
    raise ImportError(
        f"Renkei's engine does not load: {error}. It belongs to the PyTorch that it was built with: "
        f"build it again here (torch {torch.__version__}) with pip install --no-build-isolation"
    ) from error

__all__ = [
    "User",
    "add_user",
    "allgather_object",
    "allreduce",
    "barrier",
    "broadcast",
    "broadcast_object",
    "check_on_cpu",
    "fail_job",
    "init",
    "is_initialized",
    "local_rank",
    "local_size",
    "rank",
    "size",
    "world",
]

Value = TypeVar("Value")
WAIT_SECONDS = 300.0

_world: _engine.World | None = None
_users: "weakref.WeakSet[User]" = weakref.WeakSet()


class User(Protocol):
    """Something that uses the engine's memory."""

    def release(self) -> None:
        """Gives up what the engine made; does not communicate."""


def add_user(user: User) -> None:
    """It will be released before the job is left."""
    _users.add(user)


def init(*, timeout: float = WAIT_SECONDS) -> None:
    """Joins the job's ranks; everything else does so by itself. `timeout`: seconds that a wait may take.

    >>> init()
    >>> rank(), size()
    (0, 1)
    """
    global _world
    if _world is not None:
        return
    if torch.__version__.split("+")[0] != _engine.torch_version:
        raise RenkeiError(
            f"Renkei was built with PyTorch {_engine.torch_version}, and this is {torch.__version__}",
            "build it again here with pip install --no-build-isolation",
        )
    # Plug-ins of MPI libraries look for its symbols among those of the whole process.
    ctypes.CDLL(str(_engine.__file__), mode=ctypes.RTLD_GLOBAL)
    chosen = _launch.is_chosen("MASTER_ADDR")
    _launch.set_torchrun_variables()
    _world = _engine.World(timeout)
    if not chosen and _world.size > 1:
        _share_address(_world)
    if _world.size > 1 and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(_world.threads)  # the cores of a host over its ranks
    sys.excepthook = _fail_job
    atexit.register(_close)


def _share_address(ranks: _engine.World) -> None:
    """MASTER_ADDR and MASTER_PORT, where rank 0 can be found: only it knows."""
    mine = (_launch.own_address() if ranks.hosts > 1 else "127.0.0.1", _launch.free_port())
    address, port = pickle.loads(ranks.allgather(pickle.dumps(mine), "address of rank 0")[0])
    _launch.choose("MASTER_ADDR", address)
    _launch.choose("MASTER_PORT", str(port))


def world() -> _engine.World:
    """The engine's view of the job; joins it where nobody has."""
    init()
    assert _world is not None
    return _world


def is_initialized() -> bool:
    """Whether this process has joined its job."""
    return _world is not None


def rank() -> int:
    """The number of this process in the job, from 0."""
    return world().rank


def size() -> int:
    """How many processes the job has."""
    return world().size


def local_rank() -> int:
    """The number of this process among those of its host, from 0."""
    return world().local_rank


def local_size() -> int:
    """How many processes of the job this host has."""
    return world().local_size


def barrier() -> None:
    """Waits until all ranks are here."""
    world().barrier("barrier")


def allreduce(tensor: torch.Tensor, op: str = "mean") -> torch.Tensor:
    """The mean, sum, max or min of all ranks' tensors, on every rank; `tensor` stays as it is.

    >>> allreduce(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    check_on_cpu(tensor)
    kind = tensor.dtype
    if kind.is_complex:
        return torch.view_as_complex(allreduce(torch.view_as_real(tensor), op))
    if not kind.is_floating_point:
        if op == "mean":
            raise RenkeiError(f"a mean of {kind} would be rounded", "convert the tensor to float, or use op='sum'")
        result = tensor.detach().to(torch.int64, copy=True, memory_format=torch.contiguous_format)
    else:
        result = tensor.detach().clone(memory_format=torch.contiguous_format)
    world().allreduce(result, op, "allreduce")
    return result.to(kind)


def broadcast(tensor: torch.Tensor, root: int = 0) -> torch.Tensor:
    """The tensor of rank `root`, on every rank; all give one of the same shape and type.

    >>> broadcast(torch.arange(3))
    tensor([0, 1, 2])
    """
    check_on_cpu(tensor)
    result = tensor.detach().clone(memory_format=torch.contiguous_format)
    world().broadcast(result, root, "broadcast")
    return result


def allgather_object(value: Value) -> list[Value]:
    """The values of all ranks, by rank; anything that pickle takes.

    >>> allgather_object({"host": "n1"})
    [{'host': 'n1'}]
    """
    texts = world().allgather(pickle.dumps(value), "allgather of objects")
    return [pickle.loads(text) for text in texts]


def broadcast_object(value: Value | None) -> Value:
    """The value of rank 0, on every rank."""
    found = allgather_object(value if rank() == 0 else None)[0]
    assert found is not None
    return found


def check_on_cpu(tensor: torch.Tensor) -> None:
    """Throws an error for a tensor that ranks can't exchange."""
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        raise RenkeiError(
            f"the tensor is on {tensor.device} ({tensor.layout}), and ranks exchange plain tensors on the CPU",
            "move it there first: tensor.cpu(), tensor.to_dense()",
        )


def fail_job(error: BaseException) -> None:
    """Ends all ranks; the traceback is told once, as the last thing."""
    text = "".join(traceback.format_exception(type(error), error, _own_frames(error.__traceback__))).rstrip()
    hint = error.hint if isinstance(error, RenkeiError) else ""
    if hint:
        text = text.removesuffix(f"\n  hint: {hint}")
    code = EXIT_CODES[error.code] if isinstance(error, RenkeiError) else 1
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        code = error.code
    sys.stdout.flush()
    sys.stderr.flush()
    world().fail(f"rank {rank()} failed\n{text}", hint, code)


def _own_frames(trace: TracebackType | None) -> TracebackType | None:
    """Without those of whoever has started the script."""
    while trace is not None and trace.tb_frame.f_code.co_filename.endswith(("renkei/_rank.py", "<frozen runpy>")):
        trace = trace.tb_next
    return trace


def _fail_job(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if size() == 1:
        sys.__excepthook__(kind, error, trace)
        return
    fail_job(error)


def _close() -> None:
    global _world
    if _world is None:
        return
    for user in list(_users):
        user.release()
    ended, _world = _world, None
    ended.close()
