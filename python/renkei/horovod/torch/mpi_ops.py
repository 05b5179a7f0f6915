"""Horovod's collectives as its programs call them. Those without an underscore at the end give new tensors, and a
gradient passes through them; those with one replace what is in their argument."""

from collections.abc import Sequence
from typing import Any

import torch

from renkei.errors import RenkeiError
from renkei.horovod.torch import _basics
from renkei.horovod.torch import _ops as ops
from renkei.horovod.torch._basics import ProcessSet, global_process_set
from renkei.horovod.torch._compression import Compression, Compressor
from renkei.horovod.torch._ops import Average, Handle, ReduceOp, Sum, synchronize

__all__ = [
    "allgather",
    "allgather_async",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "alltoall",
    "alltoall_async",
    "broadcast",
    "broadcast_",
    "broadcast_async",
    "broadcast_async_",
    "grouped_allgather",
    "grouped_allgather_async",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_allreduce_async",
    "grouped_allreduce_async_",
    "grouped_reducescatter",
    "grouped_reducescatter_async",
    "reducescatter",
    "reducescatter_async",
]

Tensors = Sequence[torch.Tensor]


def allreduce(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: ReduceOp | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """The mean (or what `op` says) of all ranks' tensors, on every rank.

    >>> _basics.init()
    >>> allreduce(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    chosen = ops.resolved_op(op, average)
    result: torch.Tensor = _Allreduce.apply(  # type: ignore[no-untyped-call]
        tensor, name, chosen, prescale_factor, postscale_factor, compression
    )
    return result


def allreduce_async(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: ReduceOp | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Begins an allreduce; synchronize() gives its result."""
    return ops.ask_allreduce(tensor, None, name, ops.resolved_op(op, average), prescale_factor, postscale_factor)


def allreduce_async_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: ReduceOp | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Begins an allreduce in place; the tensor may be used after synchronize()."""
    return ops.ask_allreduce(tensor, tensor, name, ops.resolved_op(op, average), prescale_factor, postscale_factor)


def allreduce_(tensor: torch.Tensor, *arguments: Any, **named: Any) -> torch.Tensor:
    """An allreduce in place; arguments as of allreduce_async_()."""
    result: torch.Tensor = synchronize(allreduce_async_(tensor, *arguments, **named))
    return result


def grouped_allreduce(
    tensors: Tensors,
    average: bool | None = None,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: ReduceOp | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """allreduce() of each tensor, in one piece."""
    chosen = ops.resolved_op(op, average)
    return list(
        _GroupedAllreduce.apply(  # type: ignore[no-untyped-call]
            name, chosen, prescale_factor, postscale_factor, compression, *tensors
        )
    )


def grouped_allreduce_async(
    tensors: Tensors,
    average: bool | None = None,
    name: str | None = None,
    op: ReduceOp | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Begins an allreduce of each tensor."""
    chosen = ops.resolved_op(op, average)
    return _together(
        [ops.ask_allreduce(t, None, n, chosen, prescale_factor, postscale_factor) for t, n in _named(tensors, name)]
    )


def grouped_allreduce_async_(
    tensors: Tensors,
    average: bool | None = None,
    name: str | None = None,
    op: ReduceOp | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Begins an allreduce of each tensor in place."""
    chosen = ops.resolved_op(op, average)
    return _together(
        [ops.ask_allreduce(t, t, n, chosen, prescale_factor, postscale_factor) for t, n in _named(tensors, name)]
    )


def grouped_allreduce_(tensors: Tensors, *arguments: Any, **named: Any) -> list[torch.Tensor]:
    """An allreduce of each tensor in place; arguments as of grouped_allreduce_async_()."""
    result: list[torch.Tensor] = synchronize(grouped_allreduce_async_(tensors, *arguments, **named))
    return result


def allgather(
    tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """The rows of all ranks, in rank order; their numbers may differ.

    >>> _basics.init()
    >>> allgather(torch.tensor([[1, 2]]))
    tensor([[1, 2]])
    """
    result: torch.Tensor = _Allgather.apply(tensor, name)  # type: ignore[no-untyped-call]
    return result


def allgather_async(
    tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Handle:
    """Begins an allgather; synchronize() gives its result."""
    return ops.ask_allgather(tensor, name)


def grouped_allgather_async(
    tensors: Tensors, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Handle:
    """Begins an allgather of each tensor."""
    return _together([ops.ask_allgather(tensor, n) for tensor, n in _named(tensors, name)])


def grouped_allgather(
    tensors: Tensors, name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[torch.Tensor]:
    """allgather() of each tensor."""
    return [allgather(tensor, n) for tensor, n in _named(tensors, name)]


def broadcast(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """The tensor of the rank `root_rank`, on every rank.

    >>> _basics.init()
    >>> broadcast(torch.arange(3), root_rank=0)
    tensor([0, 1, 2])
    """
    result: torch.Tensor = _Broadcast.apply(tensor, root_rank, name)  # type: ignore[no-untyped-call]
    return result


def broadcast_async(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Handle:
    """Begins a broadcast; synchronize() gives its result."""
    return ops.ask_broadcast(tensor, None, root_rank, name)


def broadcast_async_(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Handle:
    """Begins a broadcast in place."""
    return ops.ask_broadcast(tensor, tensor, root_rank, name)


def broadcast_(
    tensor: torch.Tensor, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """A broadcast in place."""
    result: torch.Tensor = synchronize(broadcast_async_(tensor, root_rank, name))
    return result


def alltoall(
    tensor: torch.Tensor,
    splits: torch.Tensor | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """splits[q] rows go to rank q (evenly without splits). With splits: what has come, and the rows of each rank.

    >>> _basics.init()
    >>> alltoall(torch.tensor([1, 2]))
    tensor([1, 2])
    """
    received, counts = _Alltoall.apply(tensor, splits, name)  # type: ignore[no-untyped-call]
    return received if splits is None else (received, counts)


def alltoall_async(
    tensor: torch.Tensor,
    splits: torch.Tensor | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Handle:
    """Begins an alltoall; synchronize() gives its result."""
    return ops.ask_alltoall(tensor, splits, name)


def reducescatter(
    tensor: torch.Tensor,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """This rank's rows of the mean or sum of all ranks' tensors.

    >>> _basics.init()
    >>> reducescatter(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    smaller, ctx = compression.compress(tensor)
    reduced: torch.Tensor = _Reducescatter.apply(  # type: ignore[no-untyped-call]
        smaller, name, op, prescale_factor, postscale_factor
    )
    return compression.decompress(reduced, ctx)


def reducescatter_async(
    tensor: torch.Tensor,
    name: str | None = None,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handle:
    """Begins a reducescatter; synchronize() gives its result."""
    return ops.ask_reducescatter(tensor, name, op, prescale_factor, postscale_factor)


def grouped_reducescatter_async(
    tensors: Tensors,
    name: str | None = None,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Handle:
    """Begins a reducescatter of each tensor."""
    return _together(
        [ops.ask_reducescatter(t, n, op, prescale_factor, postscale_factor) for t, n in _named(tensors, name)]
    )


def grouped_reducescatter(tensors: Tensors, *arguments: Any, **named: Any) -> list[torch.Tensor]:
    """reducescatter() of each tensor; arguments as of grouped_reducescatter_async()."""
    result: list[torch.Tensor] = synchronize(grouped_reducescatter_async(tensors, *arguments, **named))
    return result


def _named(tensors: Tensors, name: str | None) -> list[tuple[torch.Tensor, str | None]]:
    if isinstance(tensors, torch.Tensor):
        raise RenkeiError("a grouped operation was given one tensor", "give a list of tensors")
    return [(tensor, f"{name}.{i}" if name else None) for i, tensor in enumerate(tensors)]


def _together(handles: list[Handle]) -> Handle:
    requests = [request for handle in handles for request in handle._requests]
    return Handle(requests, lambda results: [handle.wait() for handle in handles])


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, tensor: torch.Tensor, name: str | None, op: ReduceOp, pre: float, post: float, compression: Any
    ) -> Any:
        ctx.how = (op, pre, post)
        return ops.ask_allreduce(tensor, None, name, op, pre, post, compression).wait()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        op, pre, post = ctx.how
        return (ops.ask_allreduce(gradient, None, None, _passing(op), pre, post).wait(), *[None] * 5)


class _GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, name: str | None, op: ReduceOp, pre: float, post: float, compression: Any, *tensors: torch.Tensor
    ) -> Any:
        ctx.how = (op, pre, post)
        asked = [ops.ask_allreduce(t, None, n, op, pre, post, compression) for t, n in _named(tensors, name)]
        return tuple(handle.wait() for handle in asked)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        op, pre, post = ctx.how
        asked = [ops.ask_allreduce(gradient, None, None, _passing(op), pre, post) for gradient in gradients]
        return (*[None] * 5, *(handle.wait() for handle in asked))


def _passing(op: ReduceOp) -> ReduceOp:
    if op not in (Average, Sum):
        raise RenkeiError(f"a gradient does not pass through an allreduce with {op}", "use hvd.Average or hvd.Sum")
    return op


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, name: str | None) -> Any:
        ctx.rows, ctx.single = (1 if tensor.dim() == 0 else len(tensor)), tensor.dim() == 0
        return ops.ask_allgather(tensor, name).wait()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        total = ops.ask_allreduce(gradient, None, None, Average).wait()
        rows = ops.ask_allgather(torch.tensor([ctx.rows]), None).wait()
        begin = int(rows[: _basics.rank()].sum())
        mine = total.narrow(0, begin, ctx.rows)
        return (mine.reshape(()) if ctx.single else mine), None


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, root: int, name: str | None) -> Any:
        ctx.root = root
        return ops.ask_broadcast(tensor, None, root, name).wait()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        total = ops.ask_allreduce(gradient, None, None, Average).wait()
        return (total if _basics.rank() == ctx.root else total * 0), None, None


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, splits: Any, name: str | None) -> Any:
        if splits is None:
            received = ops.ask_alltoall(tensor, None, name).wait()
            counts = torch.full((_basics.size(),), len(tensor) // _basics.size(), dtype=torch.int32)
        else:
            received, counts = ops.ask_alltoall(tensor, splits, name).wait()
        ctx.counts = counts
        ctx.mark_non_differentiable(counts)
        return received, counts

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, _: Any) -> Any:
        back, _rows = ops.ask_alltoall(gradient, ctx.counts, None).wait()
        return back, None, None


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, name: str | None, op: ReduceOp, pre: float, post: float) -> Any:
        ctx.scale = pre * post / (_basics.size() if op is Average else 1)
        return ops.ask_reducescatter(tensor, name, op, pre, post).wait()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return ops.ask_allgather(gradient, None).wait() * ctx.scale, None, None, None, None
