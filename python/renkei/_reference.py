"""The first step as the model is written, to compare the engine's with.

Where samples are mixed (batch norm) or buffers change, it matters which samples are together: so the samples of all ranks
are cut into one part for each replica of the plan, and the parts are divided among the ranks. Micro-batches are no part of
what the model computes as written: a plan that cuts mixed samples into some differs, and is refused.
"""

import dataclasses
import functools
from typing import Any

import torch

from renkei import world
from renkei._comparison import TOLERANCE, largest
from renkei.capture import FlatModel, preserved
from renkei.errors import RenkeiError

__all__ = ["Reached", "Reference", "bring_everything_here", "compute"]


@dataclasses.dataclass
class Reference:
    """Of all samples: the mean loss and its gradients; and the buffers that each replica ends with."""

    loss: float
    gradients: dict[str, torch.Tensor | None]
    buffers: list[dict[str, torch.Tensor]]  # of each replica
    replica: int  # this rank's

    def compare(self, loss: float, parameters: dict[str, torch.nn.Parameter], buffers: dict[str, torch.Tensor],
                held: set[str]) -> None:
        """All ranks come to the same end: a difference on one is one of all. Uses up the gradients."""
        every = world.allgather_object(self._difference(loss, parameters, buffers, held))
        found = next((text for text in every if text), "")
        if found:
            raise RenkeiError(
                f"the step is not what the model computes as written: {found}",
                "is the loss a mean over the samples, and does no layer mix them (batch norm)? micro_batches=1 with "
                "plan='data' keeps each rank's batch in one piece",
                code="check",
            )

    def _difference(self, loss: float, parameters: dict[str, torch.nn.Parameter], buffers: dict[str, torch.Tensor],
                    held: set[str]) -> str:
        if abs(loss - self.loss) > TOLERANCE * max(abs(self.loss), 1e-6):
            return f"the loss is {loss:.7g} and not {self.loss:.7g}"
        scale = max((largest(g) for g in self.gradients.values() if g is not None), default=0.0)
        for name, gradient in self.gradients.items():
            if name not in held or gradient is None:
                continue
            here = parameters[name].grad
            limit = TOLERANCE * max(largest(gradient), 1e-2 * scale)
            # In place: the memory of the device may be full.
            worst = largest(gradient.sub_(here)) if here is not None else float("inf")
            if not worst <= limit:
                return f"the gradient of {name.removeprefix('model.')} differs by {worst:.3g}"
        wanted = self.buffers[self.replica] if self.buffers else {}
        for name, buffer in wanted.items():
            if name in held and not torch.allclose(buffers[name], buffer, rtol=TOLERANCE, atol=1e-5, equal_nan=True):
                return f"the buffer {name.removeprefix('model.')} differs"
        return ""


def compute(flat: FlatModel, every: list[list[torch.Tensor]], plan: dict[str, Any]) -> Reference:
    """All ranks together, for a plan; the model stays as it is."""
    parts, replica = _lanes(plan)
    joined = [torch.cat(tensors) for tensors in zip(*every, strict=True)]
    samples = joined[0].shape[0]
    trained = {name: p for name, p in flat.named_parameters() if p.requires_grad}
    total, buffers = torch.zeros((), dtype=torch.float64), {}
    with preserved(flat):
        for parameter in trained.values():
            parameter.grad = None
        before = {name: b.clone() for name, b in flat.named_buffers()}
        for part in range(world.rank(), parts, world.size()):
            for name, buffer in flat.named_buffers():
                buffer.data.copy_(before[name])
            begin, end = part * samples // parts, (part + 1) * samples // parts
            loss = flat(*[t[begin:end] for t in joined])[0].mean() * ((end - begin) / samples)
            if not loss.requires_grad:
                raise RenkeiError("the loss does not depend on a parameter that is trained", "check requires_grad")
            loss.backward()
            total += loss.detach().double()
            buffers[part] = {name: b.detach().clone() for name, b in flat.named_buffers()}
        gradients = {name: p.grad for name, p in trained.items()}
    found = {name: _apart(_summed(gradients.pop(name), p)) for name, p in trained.items()}
    of_part = {part: of for some in world.allgather_object(buffers) for part, of in some.items()}
    return Reference(float(world.allreduce(total, "sum")), found, [of_part[i] for i in range(parts)], replica)


def _lanes(plan: dict[str, Any]) -> tuple[int, int]:
    """How many replicas there are, and which one this rank is."""
    stages = plan.get("stage_list") or []
    if not stages:
        return world.size(), world.rank()
    counts = {len(stage["ranks"]) for stage in stages}
    if len(counts) > 1:
        return max(counts), 0
    mine = next(stage["ranks"] for stage in stages if world.rank() in stage["ranks"])
    return len(mine), mine.index(world.rank())


def _summed(gradient: torch.Tensor | None, parameter: torch.Tensor) -> torch.Tensor | None:
    if not bool(world.allreduce(torch.tensor(gradient is not None), "max")):
        return None
    return world.allreduce(gradient if gradient is not None else torch.zeros_like(parameter), "sum")


def _apart(tensor: torch.Tensor | None) -> torch.Tensor | None:
    """In memory that is not the device's, whose limit is for the training."""
    plain = tensor is not None and tensor.dtype in (torch.float32, torch.float64)
    return torch.from_numpy(tensor.numpy().copy()) if plain and tensor is not None else tensor


class Reached:
    """Which of some parameters got a gradient in a step, on whichever rank: the others have none, as in PyTorch."""

    def __init__(self, parameters: list[torch.Tensor]) -> None:
        self._parameters = parameters
        self._flags = torch.zeros(len(parameters), dtype=torch.uint8)
        self._handles = [
            p.register_post_accumulate_grad_hook(functools.partial(self._note, i))  # type: ignore[no-untyped-call]
            for i, p in enumerate(parameters)
        ]

    def _note(self, number: int, _: torch.Tensor) -> None:
        self._flags[number] = 1

    def begin(self) -> None:
        """Of a step."""
        self._flags.zero_()

    def not_reached(self) -> list[torch.Tensor]:
        """All ranks together."""
        if not self._parameters:
            return []
        flags = world.allreduce(self._flags, "max")
        return [p for p, flag in zip(self._parameters, flags.tolist(), strict=True) if not flag]

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()


def bring_everything_here(flat: FlatModel, optimizer: torch.optim.Optimizer, held: set[str]) -> None:
    """All ranks together: each gets the tensors, and what the optimizer keeps of them, from the first rank that has them."""
    holders = world.allgather_object(held)
    for name, tensor in [*flat.named_parameters(), *flat.named_buffers()]:
        owner = next((rank for rank, names in enumerate(holders) if name in names), None)
        if owner is None:
            continue
        here = (tensor.detach(), dict(optimizer.state.get(tensor, {}))) if world.rank() == owner else None
        found: Any = world.allgather_object(here)[owner]
        value, kept = found
        if world.rank() != owner:
            tensor.data = value.clone()
            if kept:
                optimizer.state[tensor] = kept
