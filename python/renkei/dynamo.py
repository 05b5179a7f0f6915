"""torch.compile(model, backend="renkei"): what Dynamo captures runs with Renkei's rewrites and kernels, under autograd.

Guards and graph breaks are Dynamo's. A graph is taken when it is called first: exported, read by the engine, made
faster, and compared with the graph as it is, forward, with the same random numbers. A graph that can't be taken runs as
it is, and a warning says why. Random numbers are those that the model would draw without torch.compile.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from renkei import _engine
from renkei.errors import RenkeiError

__all__ = ["backend"]

MOST_SHAPES = 16  # of one graph whose sizes change; further ones run as they are


def backend(
    graph: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **_: Any
) -> Callable[..., Any]:
    """What torch.compile calls. `options` are settings of docs/settings.md: {"compute.winograd": False}.

    >>> model = torch.compile(torch.nn.Linear(3, 1), backend="renkei")
    >>> model(torch.ones(2, 3)).shape
    torch.Size([2, 1])
    """
    return _Graph(graph, {name: _as_text(value) for name, value in (options or {}).items()})


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Graph:
    """A graph of Dynamo's, and a program for each of the shapes that it was called with."""

    def __init__(self, graph: torch.fx.GraphModule, settings: dict[str, str]) -> None:
        self._graph, self._settings = graph, settings
        self._inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._changing = [i for i, node in enumerate(self._inputs) if _changes(node.meta.get("example_value"))]
        self._programs: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        key = tuple(tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in map(arguments.__getitem__, self._changing))
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = self._take(arguments) if len(self._programs) < MOST_SHAPES else self._graph
        return found(*arguments)

    def _take(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        kinds = [_kind_of(node, argument) for node, argument in zip(self._inputs, arguments, strict=True)]
        try:
            program = _Program(self._graph, arguments, kinds, self._settings)
            _compare(self._graph, program, arguments, kinds)
        except Exception as error:
            line = next((text.strip() for text in str(error).splitlines() if text.strip()), type(error).__name__)
            warnings.warn(f"renkei: a graph runs as it is, without Renkei's kernels: {line}", stacklevel=4)
            return self._graph
        return program


class _Program:
    """The graph for one set of sizes, as the engine runs it."""

    def __init__(
        self, graph: torch.fx.GraphModule, arguments: tuple[Any, ...], kinds: list[str], settings: dict[str, str]
    ) -> None:
        from torch._export.serde.serialize import serialize
        from torch.export.graph_signature import OutputKind, TensorArgument

        held = _Held(graph, arguments, kinds)
        with torch.random.fork_rng(devices=[]):
            program = torch.export.export(held, held.tensors, strict=False)
        signature = program.graph_signature
        if any(spec.kind is not OutputKind.USER_OUTPUT for spec in signature.output_specs):
            raise RenkeiError("it changes its inputs")
        self._outputs = [(isinstance(s.arg, TensorArgument), getattr(s.arg, "value", None)) for s in signature.output_specs]
        own = {**program.constants, **dict(held.named_parameters()), **dict(held.named_buffers())}
        self._places = held.places  # of the call's arguments, in the order of the names
        further = {n: t for n, t in own.items() if isinstance(t, torch.Tensor) and n not in held.names}
        self._own = list(further.values())
        names = [*signature.user_inputs, *held.names, *further]
        training = torch.is_grad_enabled()
        self.engine = _engine.CompiledGraph(
            serialize(program).exported_program.decode(),
            [],
            names,
            training,
            training and any(t.requires_grad for t in held.tensors),
            settings,
        )

    def __call__(self, *arguments: Any) -> Any:
        results = iter(self.engine.run([*(arguments[i] for i in self._places), *self._own]))
        return tuple(next(results) if computed else constant for computed, constant in self._outputs)


class _Held(torch.nn.Module):
    """The graph with its parameters and buffers as a module has them; the other tensors are its inputs."""

    def __init__(self, graph: torch.fx.GraphModule, arguments: tuple[Any, ...], kinds: list[str]) -> None:
        super().__init__()
        self.graph = graph
        self.names: list[str] = []
        inputs, state = [], []
        for i, (argument, kind) in enumerate(zip(arguments, kinds, strict=True)):
            if not isinstance(argument, torch.Tensor):
                continue
            if kind == "input":
                inputs.append(i)
                continue
            state.append(i)
            self.names.append(f"{kind}_{i}")
            if kind == "parameter" and isinstance(argument, torch.nn.Parameter):
                self.register_parameter(self.names[-1], argument)
            else:
                self.register_buffer(self.names[-1], argument)
        self.tensors = tuple(arguments[i] for i in inputs)
        self.places = [*inputs, *state]
        self._arguments = arguments
        self._inputs = inputs
        self._state = dict(zip(state, self.names, strict=True))

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = dict(zip(self._inputs, tensors, strict=True))
        state = {i: getattr(self, name) for i, name in self._state.items()}
        everything = {**dict(enumerate(self._arguments)), **given, **state}
        return self.graph(*(everything[i] for i in range(len(self._arguments))))


def _kind_of(node: torch.fx.Node, argument: Any) -> str:
    """input, parameter or buffer; Dynamo names a tensor after where it has found it."""
    if isinstance(argument, torch.nn.Parameter):
        return "parameter"
    return "buffer" if "_buffers_" in node.name else "input"


def _changes(value: Any) -> bool:
    """Whether its sizes are not the same in every call, as far as is known."""
    return not isinstance(value, torch.Tensor) or any(not isinstance(size, int) for size in value.shape)


def _compare(graph: Callable[..., Any], program: Callable[..., Any], arguments: tuple[Any, ...], kinds: list[str]) -> None:
    """Both compute forward, on copies of whatever they may change; a difference is an error."""
    before = torch.get_rng_state()
    found = []
    try:
        for compute in (graph, program):
            torch.set_rng_state(before)
            copies = [
                a.detach().clone() if kind != "parameter" and isinstance(a, torch.Tensor) else a
                for a, kind in zip(arguments, kinds, strict=True)
            ]
            versions = [c._version if isinstance(c, torch.Tensor) else 0 for c in copies]
            with torch.no_grad():
                outputs = compute(*copies)
            for copy, version, kind in zip(copies, versions, kinds, strict=True):
                if kind == "input" and isinstance(copy, torch.Tensor) and copy._version != version:
                    raise RenkeiError("it changes its inputs")
            found.append([*outputs, *(c for c, kind in zip(copies, kinds, strict=True) if kind == "buffer")])
    finally:
        torch.set_rng_state(before)
    wanted, ours = found
    if len(wanted) != len(ours):
        raise RenkeiError("the capture of the graph is wrong: it has other outputs")
    for i, (a, b) in enumerate(zip(wanted, ours, strict=True)):
        if not _same(a, b):
            raise RenkeiError(f"the capture of the graph is wrong: output {i} differs")


def _same(wanted: Any, ours: Any) -> bool:
    if not isinstance(wanted, torch.Tensor):
        return bool(wanted == ours)
    if wanted.shape != ours.shape or wanted.dtype != ours.dtype:
        return False
    if not wanted.is_floating_point() or wanted.numel() == 0:
        return torch.equal(wanted, ours)
    size = float(wanted.abs().nan_to_num(0.0, 0.0, 0.0).max())
    return torch.allclose(wanted, ours, rtol=1e-3, atol=1e-3 * size + 1e-7, equal_nan=True)


def _register() -> None:
    """By name, also where the package's entry points are not installed."""
    from importlib.metadata import EntryPoint

    from torch._dynamo.backends import registry

    entry = EntryPoint(name="renkei", value="renkei.dynamo:backend", group="torch_dynamo_backends")
    registry._BACKENDS.setdefault("renkei", entry)


_register()
