"""A model with its loss as one exported program; what an export would get wrong is refused by name.

A capture is a claim: `eager()` gives loss and gradients of the model as it is written, to compare with.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.utils import _pytree as pytree

from renkei._tensors import tensors_of
from renkei.errors import RenkeiError

__all__ = ["Captured", "LossModel", "capture", "eager"]

HINT = "renkei.parallelize() trains it as it is written, data parallel"


class LossModel(torch.nn.Module):
    """From the tensors of a call to its loss."""

    def __init__(self, model: torch.nn.Module, loss: Callable[..., torch.Tensor] | None) -> None:
        super().__init__()
        self.model = model
        self._loss = loss
        self._spec: Any = None
        self._constants: list[Any] = []

    def flatten(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> list[torch.Tensor]:
        """The tensors of a call; all else must be what it was in the first call."""
        leaves, spec = pytree.tree_flatten((arguments, named))
        constants = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        if self._spec is None:
            self._spec, self._constants = spec, constants
        elif spec != self._spec or constants != self._constants:
            raise RenkeiError("a step is called with other arguments than the first one", "make a train_step for each kind")
        return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        """The loss, one number or one for each sample."""
        given = iter(tensors)
        places = [self._is_tensor(i) for i in range(self._spec.num_leaves)]
        leaves = [next(given) if tensor else self._constants[i] for i, tensor in enumerate(places)]
        arguments, named = pytree.tree_unflatten(leaves, self._spec)
        if self._loss is not None:
            return self._loss(self.model(*arguments[:-1], **named), arguments[-1])
        output = self.model(*arguments, **named)
        found = getattr(output, "loss", output)
        if isinstance(found, dict):
            found = found.get("loss")
        if not isinstance(found, torch.Tensor):
            found = next(iter(tensors_of(found)), None)
        if not isinstance(found, torch.Tensor):
            raise RenkeiError("the model returns no loss", "give one: train_step(model, optimizer, loss=function)")
        return found

    def _is_tensor(self, leaf: int) -> bool:
        return self._constants[leaf] is None and leaf in self._tensor_leaves

    def note_tensors(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Which leaves are tensors, and not None."""
        leaves = pytree.tree_leaves((arguments, named))
        self._tensor_leaves = {i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}


class Captured:
    """An exported program, as the engine reads it."""

    def __init__(self, model: LossModel, program: ExportedProgram) -> None:
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


def capture(model: LossModel, tensors: list[torch.Tensor], loss: torch.Tensor, gradients: Gradients) -> Captured:
    """Throws an error that names what stands in the way, or differs from loss and gradients of eager()."""
    shapes = (tuple({0: Dim.AUTO} for _ in tensors),)
    try:
        with torch.random.fork_rng(devices=[]):
            program = torch.export.export(model, tuple(tensors), dynamic_shapes=shapes, strict=False)
    except RenkeiError:
        raise
    except Exception as error:
        line = next((text.strip() for text in str(error).splitlines() if text.strip()), type(error).__name__)
        raise RenkeiError(f"torch.export can't capture the model: {line}", HINT, code="data") from error
    _compare(program, tensors, loss, gradients)
    return Captured(model, program)


def _compare(program: ExportedProgram, tensors: list[torch.Tensor], loss: torch.Tensor, gradients: Gradients) -> None:
    """The export, run as PyTorch runs it, draws the random numbers that the model has drawn."""
    exported = program.module()
    before = {name: buffer.clone() for name, buffer in exported.named_buffers()}
    with torch.random.fork_rng(devices=[]):
        found = exported(*tensors).mean()
    names = [name for name, p in exported.named_parameters() if p.requires_grad]
    parameters = dict(exported.named_parameters())
    computed = torch.autograd.grad(found, [parameters[name] for name in names], allow_unused=True)
    with torch.no_grad():
        for name, buffer in exported.named_buffers():
            buffer.copy_(before[name])
    pairs: list[tuple[str, torch.Tensor | None, torch.Tensor | None]] = [("the loss", found.detach(), loss)]
    pairs += [(f"the gradient of {n}", g, gradients.get(n)) for n, g in zip(names, computed, strict=True)]
    for what, here, wanted in pairs:
        same = here is None and wanted is None
        if not same and (here is None or wanted is None or not torch.allclose(here, wanted, rtol=1e-3, atol=1e-6)):
            raise RenkeiError(f"the capture of the model is wrong: {what} differs", HINT, code="check")


def eager(model: LossModel, tensors: list[torch.Tensor]) -> tuple[torch.Tensor, Gradients]:
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
