"""A model as one exported program, without opaque parts; what an export would get wrong is refused by name.

A capture is a claim: `eager()` gives loss and gradients of the model as it is written, to compare with.
"""

import random
from collections.abc import Iterator
from typing import Any

import torch
from torch.export import ExportedProgram

from renkei.errors import RenkeiError

__all__ = ["Captured", "eager", "export"]

HINT = "renkei.parallelize() trains it as it is written, data parallel"


class Captured:
    """An exported program, as the engine reads it."""

    def __init__(self, model: torch.nn.Module, program: ExportedProgram) -> None:
        from torch._export.serde.serialize import serialize

        self.inputs = list(program.graph_signature.user_inputs)
        self.text = serialize(program).exported_program.decode()
        self.tied: list[tuple[str, str]] = []
        self.state: dict[str, torch.Tensor] = {}
        first: dict[int, str] = {}
        for name, tensor in _all_tensors(model):
            known = first.setdefault(id(tensor), name)
            if known != name:
                self.tied.append((name, known))
            self.state[name] = tensor
        for name, constant in program.constants.items():
            if isinstance(constant, torch.Tensor):
                self.state.setdefault(name, constant)


Gradients = dict[str, torch.Tensor | None]


def export(flat: torch.nn.Module, tensors: list[torch.Tensor]) -> Captured:
    """An error names what stands in the way. `flat` goes from tensors to tensors, its first dimension is the batch."""
    shapes = (tuple({0: torch.export.Dim.AUTO} if t.dim() else {} for t in tensors),)
    examples = [torch.cat([t, t]) if t.dim() and t.shape[0] == 1 else t for t in tensors]
    try:
        with torch.random.fork_rng(devices=[]):
            program = torch.export.export(flat, tuple(examples), dynamic_shapes=shapes, strict=False)
    except RenkeiError:
        raise
    except Exception as error:
        line = next((text.strip() for text in str(error).splitlines() if text.strip()), type(error).__name__)
        raise RenkeiError(f"torch.export can't capture the model: {line}", HINT, code="data") from error
    return Captured(flat, program)


def eager(model: torch.nn.Module, tensors: list[torch.Tensor]) -> tuple[torch.Tensor, Gradients]:
    """Loss and gradients of the model as it is written; refuses what captures freeze or lose without a word."""
    _refuse_hooks(model)
    functions: set[str] = set()
    original = torch.autograd.Function.__dict__["apply"]

    def apply(kind: Any, *arguments: Any, **named: Any) -> Any:
        if not kind.__module__.startswith("torch."):
            functions.add(f"{kind.__module__}.{kind.__qualname__}")
        return original.__func__(kind, *arguments, **named)

    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    objects, attributes = {n: id(b) for n, b in model.named_buffers()}, _attributes(model)
    drawn = _random_states()
    torch.autograd.Function.apply = classmethod(apply)  # type: ignore[assignment, method-assign]
    try:
        with torch.random.fork_rng(devices=[]):
            loss = model(*tensors)
    finally:
        torch.autograd.Function.apply = original  # type: ignore[method-assign]
    _refuse("a torch.autograd.Function of its own, whose backward is lost", ", ".join(sorted(functions)))
    _refuse("a buffer that is assigned", _changed(objects, {n: id(b) for n, b in model.named_buffers()}))
    _refuse("an attribute that changes", _changed(attributes, _attributes(model)))
    _refuse("random numbers of Python or NumPy", "random" if drawn != _random_states() else "")
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    if not loss.requires_grad:
        raise RenkeiError("the loss does not depend on a parameter that is trained", "check requires_grad")
    gradients = torch.autograd.grad(loss.mean(), [p for _, p in trained], allow_unused=True)
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            buffer.copy_(before[name])
    return loss.detach().mean(), dict(zip((name for name, _ in trained), gradients, strict=True))


def _refuse(what: str, where: str) -> None:
    if where:
        raise RenkeiError(f"a capture of the model would be wrong: it has {what} ({where})", HINT, code="data")


def _refuse_hooks(model: torch.nn.Module) -> None:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    for name, module in model.named_modules():
        _refuse("hooks", name if any(getattr(module, kind, None) for kind in kinds) else "")
    for name, tensor in model.named_parameters():
        hooks = tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None)
        _refuse("hooks", name if hooks else "")


def _all_tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)


def _attributes(model: torch.nn.Module) -> dict[str, Any]:
    return {
        f"{name}.{key}": value if isinstance(value, (int, float, bool, str)) else id(value)
        for name, module in model.named_modules()
        for key, value in vars(module).items()
        if not key.startswith("_")
    }


def _changed(before: dict[str, Any], after: dict[str, Any]) -> str:
    names = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    return ", ".join(sorted(names)[:3]).removeprefix("model.")


def _random_states() -> tuple[Any, ...]:
    import numpy

    state: Any = numpy.random.get_state()
    return random.getstate(), state[1].tobytes(), state[2:]
