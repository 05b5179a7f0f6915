"""Is a captured program what the model computes as it is written? Outputs, all gradients, buffers afterwards."""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch.export import ExportedProgram

from renkei.capture.operators import take_violations
from renkei.capture.preserve import preserved

__all__ = ["Difference", "Result", "difference_of", "eager_result", "program_result"]

TOLERANCE = 1e-4  # relative to the largest value of a tensor: the same operators, in the same order
_FLOOR = 1e-2  # of the largest gradient: below, a gradient is nothing but rounding


@dataclasses.dataclass
class Result:
    """Of one forward and backward pass."""

    outputs: list[torch.Tensor]
    gradients: dict[str, torch.Tensor | None]
    buffers: dict[str, torch.Tensor]


@dataclasses.dataclass
class Difference:
    what: str  # which value, in words
    name: str  # of the parameter or buffer; empty: an output
    amount: float  # relative to the largest value

    def __str__(self) -> str:
        return f"{self.what} differs by {self.amount:.2g} of its largest value"


def eager_result(model: torch.nn.Module, tensors: list[torch.Tensor], gradients: bool) -> Result:
    """Of the model as it is written; it stays as it is."""
    return _result(model, model, tensors, gradients)


def program_result(model: torch.nn.Module, program: ExportedProgram, tensors: list[torch.Tensor],
                   gradients: bool) -> tuple[Result, list[str]]:
    """Of the program, run as PyTorch runs it, and the assumptions that do not hold for this batch."""
    take_violations()
    module: Any = program.module(check_guards=False)
    result = _result(model, module, tensors, gradients)
    return result, take_violations()


def _result(model: torch.nn.Module, run: Callable[..., Any], tensors: list[torch.Tensor], with_gradients: bool) -> Result:
    """Both draw the same random numbers: those that come next."""
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    with preserved(model), torch.set_grad_enabled(with_gradients):
        outputs = list(run(*tensors))
        gradients: dict[str, torch.Tensor | None] = {}
        roots = [o for o in outputs if o.requires_grad] if with_gradients else []
        if roots:
            for parameter in trained.values():
                parameter.grad = None
            torch.autograd.backward(roots, [_weights_of(root) for root in roots])
            gradients = {name: parameter.grad for name, parameter in trained.items()}
        buffers = {name: b.detach().clone() for name, b in model.named_buffers()}
        return Result([o.detach().clone() for o in outputs], gradients, buffers)


def _weights_of(output: torch.Tensor) -> torch.Tensor:
    """A gradient for an output that no symmetry of it cancels."""
    return torch.cos(torch.arange(output.numel(), dtype=torch.float64)).view(output.shape).to(output.dtype)


def difference_of(here: Result, wanted: Result) -> Difference | None:
    """The first difference; None: there is none."""
    if len(here.outputs) != len(wanted.outputs):
        return Difference(f"the number of outputs ({len(here.outputs)} for {len(wanted.outputs)})", "", 1)
    for i, (a, b) in enumerate(zip(here.outputs, wanted.outputs, strict=True)):
        if (amount := _distance(a, b, 0)) > TOLERANCE:
            return Difference("the output" if len(here.outputs) == 1 else f"output {i}", "", amount)
    for name, buffer in wanted.buffers.items():
        if (amount := _distance(here.buffers[name], buffer, 0)) > TOLERANCE:
            return Difference(f"the buffer {_shown(name)}", name, amount)
    floor = _FLOOR * max((_largest(g) for g in wanted.gradients.values() if g is not None), default=0.0)
    for name, gradient in wanted.gradients.items():
        other = here.gradients.get(name)
        if gradient is None and other is None:
            continue
        if gradient is None or other is None:
            there = gradient if gradient is not None else other
            if there is not None and _largest(there) == 0:
                continue
            words = "no gradient" if other is None else "a gradient"
            return Difference(f"{_shown(name)} has {words} in the capture only; its gradient", name, 1)
        if (amount := _distance(other, gradient, floor)) > TOLERANCE:
            return Difference(f"the gradient of {_shown(name)}", name, amount)
    return None


def _distance(a: torch.Tensor, b: torch.Tensor, floor: float) -> float:
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if not a.numel():
        return 0.0
    if a.dtype is torch.bool or not (a.is_floating_point() or a.is_complex()):
        return 0.0 if torch.equal(a, b) else 1.0
    if not torch.equal(torch.isfinite(a), torch.isfinite(b)):
        return float("inf")
    a, b = torch.nan_to_num(a.detach()), torch.nan_to_num(b.detach())
    narrow = a.dtype in (torch.float16, torch.bfloat16)
    return _largest(a - b) / max(_largest(b), floor, 1e-12) * (1e-2 if narrow else 1)


def _largest(tensor: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(torch.nan_to_num(tensor), torch.inf)) if tensor.numel() else 0.0


def _shown(name: str) -> str:
    return name.removeprefix("model.")
