"""Each rank computes the whole model as it is written, on a batch of its own; gradients become their mean.

Outputs that have a gradient pass through a node of autograd that changes nothing. Backward meets it first, so it is
where the reduction of gradients begins; when backward is over, autograd calls back and the reduction is waited for.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from renkei import _engine, world
from renkei._run import Run
from renkei._tensors import map_tensors, tensors_of
from renkei.errors import RenkeiError

__all__ = ["DataParallel"]


class DataParallel:
    """The replicas of a model, one on each rank."""

    def __init__(self, model: torch.nn.Module, *, buffers: str, run: Run | None = None) -> None:
        self.model = model
        self.run = run
        self._began = 0.0  # the backward pass under way
        self.synchronise = True  # False within no_sync()
        self.calls = 0  # random numbers are PyTorch's
        self._buffers = buffers
        self._loaded = False  # values by load_state_dict() since the last step
        self._backward: int | None = None  # the pass of autograd that is under way
        trained = [p for p in model.parameters() if p.requires_grad and p.dtype is torch.float32]
        self._known = {id(p) for p in trained}
        self._replicas: _engine.Replicas | None = _engine.Replicas(world.world(), list(trained), 0)
        self._take_values(itertools.chain(self._others(frozen=True), model.buffers()))
        world.add_user(self)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self.model.training and torch.is_grad_enabled() and self.synchronise and world.size() > 1:
            self._take_loaded()
            self.exchange_buffers()
        recorded = self.run if torch.is_grad_enabled() else None
        began = recorded.forward(tensors_of([arguments, named])) if recorded else 0.0
        outputs = self.model(*arguments, **named)
        if recorded:
            recorded.record.add("forward", "compute", began)
        watched = [t for t in tensors_of(outputs) if t.requires_grad]
        if not watched or not torch.is_grad_enabled():
            return outputs
        passed = iter(_Watch.apply(self, self.synchronise, *watched))  # type: ignore[no-untyped-call]
        return map_tensors(outputs, lambda t: next(passed) if t.requires_grad else t)

    def exchange_buffers(self) -> None:
        """All ranks get the buffers of rank 0, or their mean."""
        if self._buffers == "own":
            return
        for same in _by_kind(self.model.buffers()):
            flat = torch.cat([b.detach().reshape(-1) for b in same])
            mean = self._buffers == "mean" and flat.dtype.is_floating_point
            flat = world.allreduce(flat) if mean else world.broadcast(flat)
            for buffer, new in zip(same, torch.split(flat, [b.numel() for b in same]), strict=True):
                buffer.data.copy_(new.view_as(buffer))

    def state_dict(self, on_rank: int | None, *arguments: Any, **named: Any) -> Any:
        """Any rank may ask for it alone."""
        return self.model.state_dict(*arguments, **named) if on_rank in (None, world.rank()) else {}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool) -> Any:
        """Before the next step all ranks take the values of rank 0."""
        self._loaded = True
        return self.model.load_state_dict(state, strict)

    def _take_loaded(self) -> None:
        if bool(world.allreduce(torch.tensor(self._loaded), "max")):
            self._take_values(itertools.chain(self.model.parameters(), self.model.buffers()))
        self._loaded = False

    def _take_values(self, tensors: Iterator[torch.Tensor]) -> None:
        for tensor in tensors:
            tensor.data.copy_(world.broadcast(tensor.data))

    def begin_backward(self) -> None:
        """Called by autograd, once for each output."""
        under_way = torch._C._current_graph_task_id()
        if self._backward == under_way:
            return
        if self._backward is not None:
            raise RenkeiError(
                "the backward pass before this one did not come to its end, and its gradients are lost",
                "let its exception end the program",
            )
        self._backward = under_way
        self._began = self.run.record.seconds() if self.run else 0.0
        self._engine().begin_backward()
        torch.autograd.Variable._execution_engine.queue_callback(self._finish_backward)

    def _finish_backward(self) -> None:
        if self.run:
            self.run.record.add("backward", "compute", self._began)
            self._began = self.run.record.seconds()
        self._engine().finish_backward()
        for parameter in self._others():
            self._reduce(parameter)
        if self.run:
            self.run.record.add("reduce", "communication", self._began)
            self.run.reduced()
        self._backward = None

    def _others(self, frozen: bool = False) -> Iterator[torch.nn.Parameter]:
        """Parameters that the engine does not know: of another type than f32, or trained only since later."""
        for parameter in self.model.parameters():
            if id(parameter) not in self._known and (frozen or parameter.requires_grad):
                yield parameter

    def _reduce(self, parameter: torch.nn.Parameter) -> None:
        reached = world.allreduce(torch.tensor(parameter.grad is not None), "max")
        if not bool(reached):
            return
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad.copy_(world.allreduce(parameter.grad))

    def owner(self, name: str) -> int | None:
        """Every rank has every tensor."""
        return None

    def is_held(self, name: str) -> bool:
        """Every rank has every tensor."""
        return True

    def meet(self, purpose: _engine.Purpose) -> None:
        """Collectives of a model that all ranks have find out by themselves who is missing."""

    @property
    def plan(self) -> dict[str, Any]:
        """As in plan.json."""
        return {"kind": "data", "stages": 1, "replicas": world.size()}

    def close(self) -> None:
        """Parameters get memory of their own again."""
        self._engine().close()
        self.release()

    def release(self) -> None:
        """At the end of the program."""
        self._replicas = None

    def _engine(self) -> _engine.Replicas:
        if self._replicas is None:
            raise RenkeiError("the training of this model was closed", "call parallelize() again")
        return self._replicas


class _Watch(torch.autograd.Function):
    """Changes nothing; tells when backward begins."""

    @staticmethod
    def forward(ctx: Any, job: DataParallel, synchronise: bool, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.job = job if synchronise else None
        ctx.set_materialize_grads(False)
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[Any, ...]:
        if ctx.job is not None:
            ctx.job.begin_backward()
        return (None, None, *gradients)


def _by_kind(tensors: Iterator[torch.Tensor]) -> list[list[torch.Tensor]]:
    kinds: dict[torch.dtype, list[torch.Tensor]] = {}
    for tensor in tensors:
        kinds.setdefault(tensor.dtype, []).append(tensor)
    return list(kinds.values())
