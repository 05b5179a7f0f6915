"""One export of the model, in which opaque parts are one operator each and branches that never varied are assumptions."""

import collections
import contextlib
import dataclasses
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import Dim, ExportedProgram
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv
from torch.utils.checkpoint import CheckpointFunction

from renkei.capture import patches
from renkei.capture.keys import ROOT, Key, Names, frames_now
from renkei.capture.operators import add_site
from renkei.capture.preserve import preserved
from renkei.capture.probe import Line, Probe
from renkei.capture.readable import make_readable, text_of
from renkei.capture.sites import NotOpaque, Place, Site

__all__ = ["Decisions", "Trace", "Traced"]


@dataclasses.dataclass
class Decisions:
    """What was decided so far about a model."""

    opaque: dict[Key, str] = dataclasses.field(default_factory=dict)  # and why
    banned: dict[Key, str] = dataclasses.field(default_factory=dict)  # what can't be one operator, and why
    sizes: dict[Line, list[bool]] = dataclasses.field(default_factory=dict)  # what to take a condition on sizes for
    varying: set[tuple[str, int]] = dataclasses.field(default_factory=set)  # lines whose branches are no assumptions


@dataclasses.dataclass
class Traced:
    program: ExportedProgram
    sites: list[Site]
    assumptions: list[str]
    fixed_sizes: bool


class Trace:
    """Of a model whose probes were made."""

    def __init__(self, model: torch.nn.Module, names: Names, probes: list[Probe], decisions: Decisions,
                 is_large: Callable[[str], bool]) -> None:
        self._model, self._names, self._probes, self._decisions = model, names, probes, decisions
        self._is_large = is_large  # of a module: too large to be opaque because of one branch
        self._counts: collections.Counter[Any] = collections.Counter()
        self._sites: list[Site] = []
        self._assumptions: list[str] = []
        self._specialised: list[list[Key]] = []
        self._strict = False  # conditions are not taken for granted

    def run(self, batches: list[list[torch.Tensor]]) -> Traced:
        """Sizes that differ between the batches stay open; the first one is traced."""
        tensors = batches[0]
        varying = [
            {d: Dim.AUTO for d in range(tensor.dim()) if len({other.shape[d] for other in column}) > 1}
            for tensor, column in zip(tensors, zip(*batches, strict=True), strict=True)
        ]
        with preserved(self._model), patches.patched(self._items()):
            torch_too = patches.patched_torch(lambda tensor: self._truth(tensor), lambda *a, **n: self._apply(*a, **n))
            with torch_too, _quiet(), _patched_shapes(self._guard, self._replaced), self._no_kept_applies():
                program = torch.export.export(
                    self._model, tuple(tensors), dynamic_shapes=(tuple(varying),), strict=False
                )
        self._check_open(program, varying)
        make_readable(program, self._names)
        return Traced(program, self._sites, self._assumptions, not any(varying))

    # Opaque parts.

    def _items(self) -> list[tuple[dict[str, Any], str, Any]]:
        items: list[tuple[dict[str, Any], str, Any]] = []
        for key in self._decisions.opaque:
            if key.kind == "module":
                module = self._names.modules[key.name]
                items.append((module.__dict__, "_call_impl", self._node(key, module._call_impl, module)))
            elif key.kind == "method":
                owner, _, method = key.name.rpartition(".")
                module = self._names.modules[owner]
                items.append((module.__dict__, method, self._node(key, getattr(module, method), None)))
            elif key.kind == "function":
                function, places = self._names.functions[key]
                items += [(place, function.__name__, self._node(key, function, None)) for place in places]
        return items

    def _node(self, key: Key, function: Callable[..., Any], owner: torch.nn.Module | None) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            number = self._counts[key]
            self._counts[key] += 1
            records = [p.calls[key][number] if number < len(p.calls[key]) else None for p in self._probes]
            touched = set().union(*(record.touched for record in records if record is not None))
            parameters = self._places("_parameters", owner, touched)
            buffers = self._places("_buffers", owner, touched)
            try:
                site = Site(key, function, records, (arguments, named), parameters, buffers)
                self._sites.append(site)
                return site.trace((arguments, named), add_site(site))
            except NotOpaque as refused:
                raise _at(refused, self._names) from None

        return call

    def _places(self, kind: str, owner: torch.nn.Module | None, touched: set[int]) -> list[list[Place]]:
        """Of a module all its tensors; of a function or a method those that it used."""
        real = self._real_ids[kind]
        found: dict[int, list[Place]] = {}
        mine = {id(vars(m)) for m in owner.modules()} if owner is not None else set()
        for module in self._model.modules():
            for name in getattr(module, kind):
                tensor = real.get((id(vars(module)), name))
                if tensor is not None and (id(vars(module)) in mine if owner is not None else tensor in touched):
                    found.setdefault(tensor, []).append(Place(getattr(module, kind), name))
        return list(found.values())

    @property
    def _real_ids(self) -> dict[str, dict[tuple[int, str], int]]:
        return self._ids

    def note_tensors(self) -> None:
        """Before an export puts fake ones in their places."""
        self._ids = {
            kind: {
                (id(vars(module)), name): id(tensor)
                for module in self._model.modules()
                for name, tensor in getattr(module, kind).items()
                if tensor is not None
            }
            for kind in ("_parameters", "_buffers")
        }

    def _apply(self, kind: Any, *arguments: Any, **named: Any) -> Any:
        if kind is CheckpointFunction:  # recomputing is the planner's to decide, and changes no value
            return arguments[0](*arguments[2:])
        key = Key("apply", f"{kind.__module__}.{kind.__qualname__}")
        if kind.__module__.startswith(("torch.", "renkei.")):  # while it traces
            return patches.real_apply(kind, *arguments, **named)
        if key in self._decisions.banned:
            raise NotOpaque(None, f"{key}, whose backward an export loses: {self._decisions.banned[key]}")
        return self._node(key, lambda *a, **n: patches.real_apply(kind, *a, **n), None)(*arguments, **named)

    @contextlib.contextmanager
    def _no_kept_applies(self) -> Iterator[None]:
        """`f = Function.apply` was looked up before it was patched: what calls it must be opaque."""
        kinds = patches.functions_with_backward()
        before = [(kind, vars(kind)["forward"]) for kind in kinds]

        def refuse(kind: type) -> Callable[..., Any]:
            def forward(*_: Any, **__: Any) -> Any:
                raise NotOpaque(None, f"the autograd.Function {kind.__qualname__}, whose backward an export loses")

            return forward

        try:
            for kind in kinds:
                kind.forward = staticmethod(refuse(kind))  # type: ignore[method-assign]
            yield
        finally:
            for kind, forward in before:
                kind.forward = forward  # type: ignore[method-assign]

    # Assumptions.

    def _truth(self, tensor: torch.Tensor) -> bool:
        line = self._names.line_of(frames_now())
        number = self._counts[line]
        self._counts[line] += 1
        if not isinstance(tensor, FakeTensor) or tensor.constant is not None:
            return patches.real_bool(tensor)
        seen = {p.truths[line][number] if number < len(p.truths[line]) else None for p in self._probes}
        if len(seen) != 1 or None in seen or line[1:] in self._decisions.varying or not self._is_large(line[0]):
            self._strict = True
            try:
                return patches.real_bool(tensor)
            except Exception as refused:  # the part around it becomes opaque
                raise _at(NotOpaque(None, "a branch depends on values"), self._names) from refused
            finally:
                self._strict = False
        value = bool(seen.pop())
        torch.ops.renkei.assume(tensor, value, text_of(line))
        self._assumptions.append(f"{_shown(line)} is {value}")
        return value

    def _guard(self, original: Callable[..., bool], node: Any, file: str, number: int) -> bool:
        try:
            return original(node, file, number)
        except GuardOnDataDependentSymNode:
            line = self._names.line_of(frames_now())
            strict = self._strict or line[1:] in self._decisions.varying or not self._is_large(line[0])
            if strict or not node.expr.free_symbols:
                raise
            wanted = self._decisions.sizes.setdefault(line, [True, False])
            if not wanted:
                raise
            any_torch: Any = torch
            condition = any_torch.SymBool(node)
            any_torch._check(condition if wanted[0] else any_torch.sym_not(condition))
            self._assumptions.append(f"{_shown(line)}: {node.expr} is {wanted[0]}")
            return wanted[0]

    # Sizes that stay open.

    def _replaced(self, symbol: Any, target: Any) -> None:
        if target.is_number and str(symbol)[0] == "s":
            self._specialised.append(self._names.keys_of(frames_now()))

    def _check_open(self, program: ExportedProgram, varying: list[dict[int, Any]]) -> None:
        inputs = set(program.graph_signature.user_inputs)
        values = [n.meta["val"] for n in program.graph.nodes if n.op == "placeholder" and n.name in inputs]
        for sizes, value in zip(varying, values, strict=True):
            for d in sizes:
                size = value.shape[d]
                if isinstance(size, torch.SymInt) and not size.node.expr.is_number:
                    continue
                error = NotOpaque(None, "a size of the input, such as the number of samples, is used as a number")
                error.around = max(self._specialised, key=len, default=[ROOT])
                raise error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What torch says about what it can't trace: we say it in our words, if at all."""
    loggers = [logging.getLogger(f"torch.{name}") for name in ("fx.experimental.symbolic_shapes", "_subclasses.fake_tensor")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _at(error: NotOpaque, names: Names) -> NotOpaque:
    error.around = names.keys_of(frames_now())
    return error


@contextlib.contextmanager
def _patched_shapes(guard: Callable[..., bool], replaced: Callable[[Any, Any], None]) -> Iterator[None]:
    guard_bool, replace = SymNode.guard_bool, ShapeEnv._set_replacement

    def watched(env: Any, symbol: Any, target: Any, *rest: Any, **named: Any) -> Any:
        replaced(symbol, target)
        return replace(env, symbol, target, *rest, **named)

    SymNode.guard_bool = lambda node, file, line: guard(guard_bool, node, file, line)  # type: ignore[method-assign, assignment]
    ShapeEnv._set_replacement = watched  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        SymNode.guard_bool = guard_bool  # type: ignore[method-assign]
        ShapeEnv._set_replacement = replace  # type: ignore[method-assign]


def _shown(line: Line) -> str:
    return f"{line[0].removeprefix('model.')} ({line[1].rpartition('/')[2]}:{line[2]})"
