"""Horovod's collectives, with its names and meanings; each is done on the queue's thread."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from renkei import _engine, world
from renkei._queue import Facts, Reduction, Request
from renkei.errors import RenkeiError
from renkei.horovod.torch import _basics
from renkei.horovod.torch._compression import Compression, Compressor

__all__ = [
    "Adasum",
    "Average",
    "Handle",
    "Max",
    "Min",
    "Product",
    "Sum",
    "ask_allgather",
    "ask_allreduce",
    "ask_alltoall",
    "ask_broadcast",
    "ask_reducescatter",
    "join",
    "poll",
    "synchronize",
]


class ReduceOp(str):
    """What becomes of the values of all ranks."""


Average, Sum, Adasum = ReduceOp("Average"), ReduceOp("Sum"), ReduceOp("Adasum")
Min, Max, Product = ReduceOp("Min"), ReduceOp("Max"), ReduceOp("Product")

_numbers: dict[str, Iterator[int]] = defaultdict(itertools.count)
_EXCHANGED = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64)


class Handle:
    """A collective under way, or several."""

    def __init__(self, requests: Sequence[Request], finish: Callable[[list[Any]], Any]) -> None:
        self._requests = list(requests)
        self._finish: Callable[[list[Any]], Any] | None = finish
        self._result: Any = None

    def done(self) -> bool:
        """Whether wait() would return at once."""
        return all(request.ended.is_set() for request in self._requests)

    def wait(self) -> Any:
        """What the collective gives."""
        results = [request.wait() for request in self._requests]
        if self._finish is not None:
            self._result, self._finish = self._finish(results), None
        return self._result


def poll(handle: Handle) -> bool:
    """Whether synchronize() would return at once."""
    return handle.done()


def synchronize(handle: Handle) -> Any:
    """Waits for an asynchronous operation and gives its result."""
    return handle.wait()


def join(device: int = -1) -> int:
    """For a rank that has no more data: takes part in the others' sums with zeros; gives the rank that joined last."""
    return _basics.queue().join()


def ask(kind: str, name: str | None, facts: Facts, work: Reduction | Callable[[_engine.Collectives], Any]) -> Request:
    """Puts it into the queue; without a name it meets the others' n-th without a name."""
    full = f"{kind}.{name}" if name else f"{kind}.noname.{next(_numbers[kind])}"
    return _basics.queue().submit(Request(full, kind, facts, work))


def resolved_op(op: ReduceOp | None, average: bool | None) -> ReduceOp:
    """Horovod's older argument `average` says the same as `op`."""
    if average is not None:
        if op is not None:
            raise RenkeiError("both op and average are given", "give op only: it has replaced average")
        return Average if average else Sum
    chosen = Average if op is None else op
    if chosen is Adasum:
        raise RenkeiError("Adasum is not part of renkei.horovod.torch", "use op=hvd.Average")
    if chosen not in (Average, Sum, Min, Max, Product):
        raise RenkeiError(f"there is no reduction {op!r}", "choose hvd.Average, Sum, Min, Max or Product")
    return chosen


def ask_allreduce(
    tensor: torch.Tensor,
    into: torch.Tensor | None,
    name: str | None,
    op: ReduceOp,
    prescale: float = 1.0,
    postscale: float = 1.0,
    compression: type[Compressor] = Compression.none,
) -> Handle:
    """The result is a new tensor, or replaces what is in `into`."""
    world.check_on_cpu(tensor)
    ranks = _basics.size()
    smaller, ctx = compression.compress(tensor.detach())
    if smaller.is_complex() and op in (Min, Max):
        raise RenkeiError(f"complex numbers have no {op}", "choose hvd.Average, Sum or Product")
    copy = into is None and smaller.data_ptr() == tensor.data_ptr()
    buffer = smaller.clone() if op is Product else _exchanged(smaller, copy)
    if prescale != 1.0:
        buffer = _scaled(buffer, prescale)
    reduction = {Average: "mean" if buffer.is_floating_point() else "sum", Sum: "sum", Min: "min", Max: "max"}
    facts: Facts = (buffer.dtype, tuple(buffer.shape), reduction.get(op, "product"))
    if op is Product:
        request = ask("allreduce", name, facts, lambda group: _product(group, buffer))
    else:
        request = ask("allreduce", name, facts, Reduction(buffer, reduction[op]))
    scale = postscale / ranks if op is Average and reduction[op] == "sum" else postscale

    def finish(results: list[torch.Tensor]) -> torch.Tensor:
        result = _scaled(results[0], scale) if scale != 1.0 else results[0]
        restored = result if op is Product else _restored(result, smaller)
        result = compression.decompress(restored, ctx)
        if into is None:
            return result
        if into.data_ptr() != result.data_ptr() or into.stride() != result.stride():
            with torch.no_grad():
                into.copy_(result)
        return into

    return Handle([request], finish)


def ask_allgather(tensor: torch.Tensor, name: str | None) -> Handle:
    """The rows of all ranks; their numbers may differ."""
    world.check_on_cpu(tensor)
    rows = tensor.detach().reshape(1) if tensor.dim() == 0 else tensor.detach().contiguous()
    facts: Facts = (rows.dtype, ("any", *rows.shape[1:]))
    asked = ask("allgather", name, facts, lambda ranks: ranks.allgather_rows(rows, "allgather"))
    return Handle([asked], lambda results: results[0])


def ask_broadcast(tensor: torch.Tensor, into: torch.Tensor | None, root: int, name: str | None) -> Handle:
    """The root's tensor, as a new one or in `into`."""
    world.check_on_cpu(tensor)
    if not 0 <= root < _basics.size():
        raise RenkeiError(f"there is no rank {root} to broadcast from", f"ranks are 0 to {_basics.size() - 1}")
    buffer = tensor.detach()
    buffer = buffer.contiguous() if into is not None else buffer.clone(memory_format=torch.contiguous_format)

    def work(ranks: _engine.Collectives) -> torch.Tensor:
        ranks.broadcast(buffer, root, "broadcast")
        return buffer

    def finish(results: list[torch.Tensor]) -> torch.Tensor:
        if into is None:
            return results[0]
        if into.data_ptr() != buffer.data_ptr():
            with torch.no_grad():
                into.copy_(buffer)
        return into

    return Handle([ask("broadcast", name, (buffer.dtype, tuple(buffer.shape), root), work)], finish)


def ask_alltoall(tensor: torch.Tensor, splits: Any, name: str | None) -> Handle:
    """splits[q] rows go to rank q; gives what has come, and how many rows from each rank."""
    world.check_on_cpu(tensor)
    ranks = _basics.size()
    rows = tensor.detach().contiguous()
    if rows.dim() == 0:
        raise RenkeiError("alltoall of a single number", "give a tensor with a first dimension")
    if splits is None:
        if len(rows) % ranks:
            raise RenkeiError(
                f"alltoall of {len(rows)} rows on {ranks} ranks: they do not divide evenly", "say how with splits"
            )
        parts = [len(rows) // ranks] * ranks
    else:
        parts = [int(part) for part in splits]
        if len(parts) != ranks or sum(parts) != len(rows) or min(parts) < 0:
            raise RenkeiError(f"alltoall of {len(rows)} rows in {parts} on {ranks} ranks", "a split for each, all rows")

    def finish(results: list[Any]) -> Any:
        received, counts = results[0]
        return received if splits is None else (received, torch.tensor(counts, dtype=torch.int32))

    facts: Facts = (rows.dtype, ("any", *rows.shape[1:]))
    return Handle([ask("alltoall", name, facts, lambda group: group.alltoall(rows, parts, "alltoall"))], finish)


def ask_reducescatter(
    tensor: torch.Tensor, name: str | None, op: ReduceOp, prescale: float = 1.0, postscale: float = 1.0
) -> Handle:
    """The rows of the sum or mean that belong to this rank: the first ranks have one more where they do not divide."""
    world.check_on_cpu(tensor)
    if op not in (Average, Sum):
        raise RenkeiError(f"reducescatter has no {op}", "choose hvd.Average or hvd.Sum")
    if tensor.dim() == 0:
        raise RenkeiError("reducescatter of a single number", "give a tensor with a first dimension")
    buffer = _exchanged(tensor.detach(), copy=True)
    if prescale != 1.0:
        buffer = _scaled(buffer, prescale)
    scale = postscale / _basics.size() if op is Average else postscale

    def finish(results: list[torch.Tensor]) -> torch.Tensor:
        return _restored(_scaled(results[0], scale) if scale != 1.0 else results[0], tensor)

    def work(ranks: _engine.Collectives) -> torch.Tensor:
        return ranks.reduce_scatter(buffer, "sum", "reducescatter")

    return Handle([ask("reducescatter", name, (buffer.dtype, tuple(buffer.shape), str(op)), work)], finish)


def _exchanged(tensor: torch.Tensor, copy: bool) -> torch.Tensor:
    """A contiguous tensor of a type that the engine reduces."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    kind = tensor.dtype if tensor.dtype in _EXCHANGED else torch.int64
    return tensor.to(kind, copy=copy, memory_format=torch.contiguous_format).contiguous()


def _restored(result: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(result.contiguous()) if like.is_complex() else result.to(like.dtype)


def _scaled(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    """Whole numbers are rounded to zero, as Horovod does it."""
    return tensor.mul_(factor) if tensor.is_floating_point() or tensor.is_complex() else (tensor * factor).to(tensor.dtype)


def _product(ranks: _engine.Collectives, tensor: torch.Tensor) -> torch.Tensor:
    parts = ranks.allgather_rows(tensor.unsqueeze(0).contiguous(), "allreduce (product)")
    return parts.prod(0, dtype=tensor.dtype)
