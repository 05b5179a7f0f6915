"""Eager runs of the model as it is written: what its parts take and return, which branches it takes, and what it does that
an export freezes or loses without a word."""

import collections
import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from renkei.capture import patches
from renkei.capture.keys import Key, Names, frames_now
from renkei.capture.preserve import attributes_of, preserved, random_states
from renkei.capture.sites import CallRecord, leaf_of

__all__ = ["Line", "Probe", "kept_hooks"]

Line = tuple[str, str, int]  # module, file, line

_SILENT = ("seed", "getstate", "setstate", "get_state", "set_state", "getrandbits")


class _Uses(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Which parameters and buffers the calls under way use."""

    def __init__(self, watched: set[int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.under_way: list[set[int]] = []
        self._watched = watched

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.under_way:
            for leaf in pytree.tree_leaves((args, kwargs or {})):
                if isinstance(leaf, torch.Tensor) and id(leaf) in self._watched:
                    for used in self.under_way:
                        used.add(id(leaf))
        return func(*args, **(kwargs or {}))


class Probe:
    """One run. `mark(key, why)` is called for what must be opaque."""

    def __init__(self, model: torch.nn.Module, names: Names, mark: Callable[[Key, str], None], first: bool) -> None:
        self.calls: dict[Key, list[CallRecord]] = collections.defaultdict(list)
        self.draws = False  # random numbers of any kind
        self.truths: dict[Line, list[bool]] = collections.defaultdict(list)
        self._model, self._names, self._mark, self._first = model, names, mark, first
        self._stack: list[Key] = []
        self._records: list[CallRecord] = []
        self._random: Any = None
        self._uses = _Uses({id(t) for t in (*model.parameters(), *model.buffers())})

    def run(self, tensors: list[torch.Tensor], functions: dict[Key, tuple[Any, list[dict[str, Any]]]],
            methods: dict[Key, tuple[torch.nn.Module, str]]) -> tuple[torch.Tensor, ...]:
        """The model's outputs; its attributes are left as they are, so that the next run sees what it keeps."""
        items: list[tuple[dict[str, Any], str, Any]] = [
            (vars(module), "_call_impl", self._watched_call(name, module)) for name, module in self._model.named_modules()
        ]
        for key, (module, method) in methods.items():
            items.append((vars(module), method, self._recorded(key, getattr(module, method))))
        for key, (function, places) in functions.items():
            items += [(place, function.__name__, self._recorded(key, function)) for place in places]
        items += list(self._watched_random())
        trained = [p.requires_grad for p in self._model.parameters()]
        register = torch.Tensor.register_hook
        torch.Tensor.register_hook = self._watched_hook  # type: ignore[method-assign]
        self._random = random_states()
        generator = torch.get_rng_state()
        try:
            with preserved(self._model, attributes=False), patches.patched(items), self._patched_torch(), self._uses:
                outputs: tuple[torch.Tensor, ...] = self._model(*tensors)
                self.draws |= not torch.equal(generator, torch.get_rng_state())
                if trained != [p.requires_grad for p in self._model.parameters()]:
                    self._mark(Key("module", "model"), "requires_grad changes while it computes")
        finally:
            torch.Tensor.register_hook = register  # type: ignore[method-assign]
        return outputs

    def _patched_torch(self) -> contextlib.AbstractContextManager[None]:
        return patches.patched_torch(lambda tensor: self._truth(tensor), lambda *a, **n: self._apply(*a, **n))

    # Calls of parts.

    def _recorded(self, key: Key, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments, **named: self._record(key, function, arguments, named)

    def _record(self, key: Key, function: Callable[..., Any], arguments: Any, named: Any) -> Any:
        leaves = pytree.tree_leaves((arguments, named))
        record = CallRecord([leaf_of(leaf) for leaf in leaves])
        versions = [(leaf, leaf._version) for leaf in leaves if isinstance(leaf, torch.Tensor) and not leaf.is_inference()]
        self.calls[key].append(record)
        self._records.append(record)
        self._uses.under_way.append(record.touched)
        try:
            outputs = function(*arguments, **named)
        finally:
            self._records.pop()
            self._uses.under_way.pop()
        if any(leaf._version != version for leaf, version in versions):
            record.changes = "it changes an argument in place"
        results, record.spec = pytree.tree_flatten(outputs)
        record.results = [leaf_of(result) for result in results]
        return outputs

    def _watched_call(self, name: str, module: torch.nn.Module) -> Callable[..., Any]:
        key, original = Key("module", name), module._call_impl

        def call(*arguments: Any, **named: Any) -> Any:
            self._look_at_random()
            self._stack.append(key)
            buffers, attributes = {n: id(b) for n, b in module._buffers.items()}, attributes_of(module)
            try:
                outputs = self._record(key, original, arguments, named)
            finally:
                self._look_at_random()
                self._stack.pop()
            if buffers != {n: id(b) for n, b in module._buffers.items()}:
                self._mark(key, "it assigns a buffer")
            changed = _changed(attributes, attributes_of(module))
            if changed and not self._first and name:
                self._mark(key, f"its attribute {changed} changes with each call")
            return outputs

        return call

    # What is frozen or lost.

    def _truth(self, tensor: torch.Tensor) -> bool:
        value = patches.real_bool(tensor)
        self.truths[self._names.line_of(frames_now())].append(value)
        return value

    def _apply(self, kind: Any, *arguments: Any, **named: Any) -> Any:
        def real(*a: Any, **n: Any) -> Any:
            return patches.real_apply(kind, *a, **n)

        if kind.__module__.startswith(("torch.", "renkei.")):
            return real(*arguments, **named)
        return self._record(Key("apply", f"{kind.__module__}.{kind.__qualname__}"), real, arguments, named)

    def _look_at_random(self) -> None:
        """Numbers that were drawn since the last look were drawn by the module on top."""
        now = random_states()
        if now != self._random:
            self._drawn(self._stack[-1] if self._stack else Key("module", ""))
        self._random = now

    def _drawn(self, key: Key) -> None:
        self.draws = True
        for record in self._records:
            record.drew = True
        self._mark(key, "it draws random numbers of Python or numpy")

    def _watched_random(self) -> Iterator[tuple[dict[str, Any], str, Any]]:
        for library in (random, numpy.random):
            for name, function in list(vars(library).items()):
                owner = getattr(function, "__self__", None)
                if name[0] == "_" or name in _SILENT or owner is None or isinstance(owner, (type, type(random))):
                    continue
                yield vars(library), name, self._watched_draw(function)

    def _watched_draw(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def draw(*arguments: Any, **named: Any) -> Any:
            self._drawn(self._names.keys_of(frames_now())[-1])
            drawn = function(*arguments, **named)
            self._random = random_states()
            return drawn

        return draw

    def _watched_hook(self, *_: Any) -> Any:
        self._mark(self._names.keys_of(frames_now())[-1], "it puts a hook on a tensor")
        return torch.utils.hooks.RemovableHandle(collections.OrderedDict())


def _changed(before: dict[str, Any], after: dict[str, Any]) -> str:
    return next((name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)), "")


def kept_hooks(model: torch.nn.Module) -> Iterator[tuple[Key, str, bool]]:
    """Modules with hooks, and whether these are of the backward pass, where an export loses them."""
    for name, module in model.named_modules():
        for kind, words in (("_backward_hooks", "backward hook"), ("_backward_pre_hooks", "backward hook"),
                            ("_forward_hooks", "forward hook"), ("_forward_pre_hooks", "forward hook")):
            if getattr(module, kind, None):
                yield Key("module", name), f"it has a {words}", "backward" in kind
        for parameter in module._parameters.values():
            if parameter is None or parameter.grad_fn is not None:
                continue
            if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
                yield Key("module", name), "it has a hook on a parameter", True
