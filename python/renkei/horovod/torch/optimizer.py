"""Any optimizer, with gradients that are reduced over the ranks beside backward."""

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from renkei.errors import RenkeiError
from renkei.horovod.torch import _basics
from renkei.horovod.torch import _ops as ops
from renkei.horovod.torch._basics import ProcessSet, global_process_set
from renkei.horovod.torch._compression import Compression, Compressor
from renkei.horovod.torch._ops import Adasum, Average, Handle, Max, ReduceOp, Sum

__all__ = ["DistributedOptimizer"]

Parameter = torch.Tensor


class _Distributed:
    """What is added to the class of the optimizer."""

    _names: dict[Parameter, str]
    _waits: dict[Parameter, int]  # backward passes until the gradient is reduced
    _handles: dict[Parameter, Handle]
    _group_of: dict[Parameter, tuple[Parameter, ...]]
    _removable: list[Any]
    _how: tuple[ReduceOp, float, float, type[Compressor]]
    _sparse_as_dense: bool
    _synchronized: bool
    _should_synchronize: bool
    backward_passes_per_step: int

    def set_backward_passes_per_step(self, passes: int) -> None:
        """How many backward passes add up before the gradients are reduced."""
        self.backward_passes_per_step = passes
        self._waits = dict.fromkeys(self._waits, passes)

    def synchronize(self) -> None:
        """When it returns, gradients are those of all ranks. A gradient that no rank has stays None."""
        if _basics.size() > 1:
            self._ask_for_the_rest()
            for handle in self._handles.values():
                handle.wait()
        self._handles.clear()
        self._waits = dict.fromkeys(self._waits, self.backward_passes_per_step)
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """For a step() after synchronize()."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Waits for the gradients of all ranks, then updates."""
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn(
                    "optimizer.step() reduces the gradients a second time after optimizer.synchronize(): "
                    "call it within `with optimizer.skip_synchronize():`",
                    stacklevel=2,
                )
            self.synchronize()
        self._synchronized = False
        return super().step(closure)  # type: ignore[misc]

    def zero_grad(self, *arguments: Any, **named: Any) -> None:
        """Not while gradients are on their way."""
        if self._handles:
            raise RenkeiError(
                "optimizer.zero_grad() was called after backward() and before optimizer.step() or synchronize()",
                "gradients are on their way to other ranks: call step() or synchronize() first",
            )
        super().zero_grad(*arguments, **named)  # type: ignore[misc]

    def load_state_dict(self, *arguments: Any, **named: Any) -> None:
        """Of the optimizer; what was under way is forgotten."""
        self._handles.clear()
        self._waits = dict.fromkeys(self._waits, self.backward_passes_per_step)
        self._synchronized, self._should_synchronize = False, True
        super().load_state_dict(*arguments, **named)  # type: ignore[misc]

    def _on_gradient(self, parameter: Parameter) -> None:
        if self._waits[parameter] <= 0:
            raise RenkeiError(
                f"the gradient of {self._names[parameter]} was computed more than backward_passes_per_step times",
                "call step() in between, or give DistributedOptimizer a larger backward_passes_per_step",
            )
        self._waits[parameter] -= 1
        group = self._group_of[parameter]
        if all(self._waits[member] == 0 for member in group):
            for member in group:
                self._ask(member)

    def _ask(self, parameter: Parameter) -> None:
        gradient = parameter.grad
        assert gradient is not None
        if gradient.is_sparse:
            if not self._sparse_as_dense:
                raise RenkeiError(
                    f"the gradient of {self._names[parameter]} is sparse",
                    "give DistributedOptimizer sparse_as_dense=True, or make the layer with sparse=False",
                )
            gradient = parameter.grad = gradient.to_dense()
        op, before, after, compression = self._how
        self._handles[parameter] = ops.ask_allreduce(
            gradient, gradient, f"gradient.{self._names[parameter]}", op, before, after, compression
        )

    def _ask_for_the_rest(self) -> None:
        """Gradients that this rank's backward has not reached: zero, where another rank's has."""
        reached = torch.tensor([p.grad is not None for p in self._waits], dtype=torch.int64)
        flags = ops.ask_allreduce(reached, None, "gradients that there are", Max).wait()
        for parameter, anywhere in zip(self._waits, flags.tolist(), strict=True):
            if not anywhere or parameter in self._handles:
                continue
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            self._ask(parameter)


def DistributedOptimizer(  # noqa: N802  # Horovod's name
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, Parameter]] | None = None,
    compression: type[Compressor] = Compression.none,
    backward_passes_per_step: int = 1,
    op: ReduceOp = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: int | Sequence[Sequence[Parameter]] | None = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """The optimizer, an instance of its own class still, whose step() uses the gradients of all ranks.

    >>> _basics.init()
    >>> layer = torch.nn.Linear(2, 1)
    >>> opt = DistributedOptimizer(torch.optim.SGD(layer.parameters(), lr=0.1), layer.named_parameters())
    >>> isinstance(opt, torch.optim.SGD)
    True
    """
    if op is Adasum:
        raise RenkeiError("Adasum is not part of renkei.horovod.torch", "use op=hvd.Average")
    if op not in (Average, Sum):
        raise RenkeiError(f"gradients are not reduced by {op}", "use hvd.Average or hvd.Sum")
    if gradient_predivide_factor != 1.0 and op is not Average:
        raise RenkeiError("gradient_predivide_factor goes with op=hvd.Average only", "leave it out")
    _basics.queue()
    made: Any = _same_object_of(optimizer)
    trained = [p for group in made.param_groups for p in group["params"]]
    names = _names_of(trained, named_parameters)
    trained = [p for p in trained if p.requires_grad]
    # Gradients get ready from the last layer to the first, on every rank.
    made._names, made._waits = names, dict.fromkeys(reversed(trained), backward_passes_per_step)
    made._group_of = _groups(trained, groups if groups is not None else num_groups)
    made._handles, made.backward_passes_per_step = {}, backward_passes_per_step
    made._how = (op, 1.0 / gradient_predivide_factor, gradient_predivide_factor, compression)
    made._sparse_as_dense = sparse_as_dense
    made._synchronized, made._should_synchronize = False, True
    if _basics.size() > 1:
        made._removable = [p.register_post_accumulate_grad_hook(made._on_gradient) for p in trained]
    return made


def _same_object_of(optimizer: torch.optim.Optimizer) -> Any:
    """Groups and state are those of the optimizer, so that schedulers made for it go on working."""
    if isinstance(optimizer, _Distributed):
        raise RenkeiError("the optimizer is distributed already", "call DistributedOptimizer once")
    kind: Any = type(type(optimizer).__name__, (_Distributed, type(optimizer)), {})
    made = kind.__new__(kind)
    made.__dict__.update({key: value for key, value in vars(optimizer).items() if key != "step"})
    return made


def _names_of(trained: list[Parameter], named: Iterable[tuple[str, Parameter]] | None) -> dict[Parameter, str]:
    if named is None:
        return {parameter: f"parameter {i}" for i, parameter in enumerate(trained)}
    pairs = list(named)
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise RenkeiError(
            "named_parameters should be pairs of name and parameter", "give it model.named_parameters()"
        )
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RenkeiError(f"two parameters have the name {twice[0]}", "names in named_parameters must be unique")
    found = {parameter: name for name, parameter in pairs}
    missing = sum(parameter not in found for parameter in trained)
    if missing:
        raise RenkeiError(
            f"{missing} of the optimizer's parameters are not among named_parameters",
            "give all: model.named_parameters()",
        )
    return found


def _groups(trained: list[Parameter], asked: int | Sequence[Sequence[Parameter]]) -> dict[Parameter, tuple[Parameter, ...]]:
    """Which parameters are reduced together, when all are ready."""
    groups: dict[Parameter, tuple[Parameter, ...]] = {parameter: (parameter,) for parameter in trained}
    if isinstance(asked, int):
        if asked < 0:
            raise RenkeiError(f"num_groups is {asked}", "give how many groups there are, or 0 for none")
        share = -(-len(trained) // asked) if asked else 1
        together: Iterable[Sequence[Parameter]] = (trained[i : i + share] for i in range(0, len(trained), share))
    else:
        together = asked
    for members in together:
        known = tuple(p for p in members if p in groups)
        groups.update(dict.fromkeys(known, known))
    return groups
