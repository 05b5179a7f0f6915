"""What an opaque operator runs, and how large its outputs are.

An export must know the sizes of all outputs as functions of the input's sizes. They are learnt from probes, eager runs of
the model on batches of several sizes: a size is constant, or a · (a size of an input) + b.
"""

import dataclasses
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy
import torch
from torch.utils import _pytree as pytree

from renkei.capture.keys import Key
from renkei.capture.operators import is_keyed
from renkei.errors import RenkeiError

__all__ = ["CallRecord", "Leaf", "NotOpaque", "Place", "Site", "leaf_of"]

_PLAIN = (type(None), bool, str, float, complex, torch.dtype, torch.device, torch.layout, torch.memory_format, slice,
          type(...), torch.Size)


class NotOpaque(Exception):
    """A part can't be one operator; what is around it may."""

    def __init__(self, key: Key | None, why: str) -> None:
        super().__init__(f"{key}: {why}" if key else why)
        self.key = key
        self.why = why
        self.around: list[Key] = []  # where it happened, outermost first


@dataclasses.dataclass(frozen=True)
class Leaf:
    """An argument or a result, as a probe saw it."""

    kind: str  # tensor, int, plain, or other: an object that may hold tensors
    sizes: tuple[int, ...] = ()
    dtype: torch.dtype | None = None
    value: Any = None
    gradient: bool = False


def leaf_of(value: Any) -> Leaf:
    if isinstance(value, torch.Tensor):
        return Leaf("tensor", tuple(value.shape), value.dtype, gradient=value.requires_grad)
    if isinstance(value, int) and not isinstance(value, bool):
        return Leaf("int", (value,))
    if isinstance(value, _PLAIN) or callable(value) or type(value).__name__.endswith("Config"):
        return Leaf("plain", value=value)
    return Leaf("other", value=type(value).__name__)


@dataclasses.dataclass
class CallRecord:
    """One call of a part in a probe."""

    arguments: list[Leaf]
    results: list[Leaf] = dataclasses.field(default_factory=list)
    spec: Any = None
    changes: str = ""  # what it does that an operator can't: empty is nothing
    touched: set[int] = dataclasses.field(default_factory=set)  # ids of parameters and buffers that it used
    drew: bool = False  # numbers of Python's or numpy's


@dataclasses.dataclass(frozen=True)
class Place:
    """A parameter or buffer that a site uses."""

    holder: dict[str, Any]  # _parameters or _buffers of a module
    name: str


Size = tuple[tuple[int, int] | None, int, int]  # (input, dimension), a, b: a · size + b; None: a


def _fit(seen: Sequence[int], candidates: list[tuple[tuple[int, int], list[int]]], key: Key) -> Size:
    if len(set(seen)) == 1:
        return None, seen[0], 0
    for at, sizes in candidates:
        if sizes == list(seen):
            return at, 1, 0
    for at, sizes in candidates:
        other = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
        if other is None or (seen[other] - seen[0]) % (sizes[other] - sizes[0]):
            continue
        a = (seen[other] - seen[0]) // (sizes[other] - sizes[0])
        b = seen[0] - a * sizes[0]
        if all(a * size + b == wanted for size, wanted in zip(sizes, seen, strict=True)):
            return at, a, b
    raise NotOpaque(key, f"the sizes {list(seen)} of a result do not follow from the sizes of its arguments")


class Site:
    """One call of an opaque part, at one place of the program."""

    def __init__(self, key: Key, function: Callable[..., Any], records: list[CallRecord | None],
                 call: tuple[tuple[Any, ...], dict[str, Any]], parameters: list[list[Place]], buffers: list[list[Place]]):
        self.key, self._function = key, function
        self._parameters, self._buffers = parameters, buffers
        leaves, self._spec = pytree.tree_flatten(call)
        known = [record for record in records if record is not None]
        self._check(records, known, len(leaves))
        self.draws_python = any(record.drew for record in known)
        self._tensor_at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self._int_at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.SymInt)]
        taken = {*self._tensor_at, *self._int_at}
        self._leaves = [None if i in taken else leaf for i, leaf in enumerate(leaves)]
        self._result_spec = known[0].spec
        self._results = self._learn(known)

    def _check(self, records: Sequence[CallRecord | None], known: list[CallRecord], count: int) -> None:
        if len(known) != len(records) or not known:
            raise NotOpaque(self.key, "it was not called as often in every probe")
        for record in known:
            other = next((leaf for leaf in record.arguments + record.results if leaf.kind == "other"), None)
            if other is not None:
                raise NotOpaque(self.key, f"it takes or returns an object ({other.value})")
            if record.changes:
                raise NotOpaque(self.key, record.changes)
            if len(record.arguments) != count or record.spec != known[0].spec:
                raise NotOpaque(self.key, "what it takes or returns has another structure in another probe")

    def _learn(self, known: list[CallRecord]) -> list[tuple[Leaf, list[Size]]]:
        candidates: list[tuple[tuple[int, int], list[int]]] = []
        for j, i in enumerate(self._tensor_at):
            for d in range(len(known[0].arguments[i].sizes)):
                if all(r.arguments[i].kind == "tensor" and len(r.arguments[i].sizes) > d for r in known):
                    candidates.append(((j, d), [r.arguments[i].sizes[d] for r in known]))
        candidates += [((-1, j), [r.arguments[i].sizes[0] for r in known]) for j, i in enumerate(self._int_at)]
        results: list[tuple[Leaf, list[Size]]] = []
        for seen in zip(*(r.results for r in known), strict=True):
            first = seen[0]
            for other in seen[1:]:
                if other.kind != first.kind or other.dtype != first.dtype or len(other.sizes) != len(first.sizes):
                    raise NotOpaque(self.key, "a result has another type or rank in another probe")
                if first.kind == "plain" and other.value is not first.value and other.value != first.value:
                    raise NotOpaque(self.key, f"it returns {first.value!r} and then {other.value!r}")
            sizes = [_fit(side, candidates, self.key) for side in zip(*(leaf.sizes for leaf in seen), strict=True)]
            results.append((first, sizes))
        return results

    def parameters(self) -> Iterator[torch.Tensor]:
        """That it may use; which ones, only a run tells."""
        for places in self._parameters:
            yield places[0].holder[places[0].name]
        yield from (leaf for leaf in self._leaves if isinstance(leaf, torch.nn.Parameter))

    # While the model is traced.

    def trace(self, call: tuple[tuple[Any, ...], dict[str, Any]], number: int) -> Any:
        """Calls the operator on what the part was called with, and gives what the part would."""
        leaves = pytree.tree_leaves(call)
        xs = [leaves[i] for i in self._tensor_at]
        ints = [leaves[i] for i in self._int_at]
        parameters = [places[0].holder[places[0].name] for places in self._parameters]
        buffers = [places[0].holder[places[0].name] for places in self._buffers]
        if not xs and not parameters and not buffers:
            raise NotOpaque(self.key, "it takes no tensor")
        given = iter(torch.ops.renkei.opaque(xs + parameters, buffers, ints, number))
        results = [
            next(given) if leaf.kind == "tensor" else leaf.value if leaf.kind == "plain" else self._size(sizes[0], xs, ints)
            for leaf, sizes in self._results
        ]
        return pytree.tree_unflatten(results, self._result_spec)

    @staticmethod
    def _size(size: Size, xs: Sequence[torch.Tensor], ints: Sequence[int]) -> int:
        at, a, b = size
        if at is None:
            return a
        return a * (ints[at[1]] if at[0] < 0 else xs[at[0]].shape[at[1]]) + b

    def fake(self, xs: Sequence[torch.Tensor], ints: Sequence[int]) -> list[torch.Tensor]:
        return [
            torch.empty([self._size(size, xs, ints) for size in sizes], dtype=leaf.dtype)
            for leaf, sizes in self._results
            if leaf.kind == "tensor"
        ]

    # While the program runs.

    def run(self, xs: Sequence[torch.Tensor], state: Sequence[torch.Tensor], ints: Sequence[int]) -> list[torch.Tensor]:
        count = len(self._tensor_at)
        leaves = list(self._leaves)
        for place, value in zip(self._tensor_at + self._int_at, [*xs[:count], *ints], strict=True):
            leaves[place] = value
        arguments, named = pytree.tree_unflatten(leaves, self._spec)
        swapped = list(_put(self._parameters, xs[count:])) + list(_put(self._buffers, state))
        keyed = self.draws_python and is_keyed()
        states: Any = (random.getstate(), numpy.random.get_state()) if keyed else None
        if keyed:  # as torch's numbers are, by whoever runs the operator
            seed = int(torch.randint(2**31, ()))
            random.seed(seed)
            numpy.random.seed(seed)
        try:
            results, spec = pytree.tree_flatten(self._function(*arguments, **named))
            self._write_through(state)
        finally:
            for at, before in swapped:
                at.holder[at.name] = before
            if keyed:
                random.setstate(states[0])
                numpy.random.set_state(states[1])
        self._check_results(results, spec, xs, ints)
        return [_own(r, xs) for r in results if isinstance(r, torch.Tensor)]

    def _write_through(self, state: Sequence[torch.Tensor]) -> None:
        """`self.buffer = new` gives the module another object, and the engine has the first one."""
        for places, given in zip(self._buffers, state, strict=True):
            for place in places:
                new = place.holder.get(place.name)
                if new is not None and new is not given:
                    given.data.copy_(new.detach())
                    place.holder[place.name] = given

    def _check_results(self, results: list[Any], spec: Any, xs: Sequence[torch.Tensor], ints: Sequence[int]) -> None:
        if spec != self._result_spec:
            raise RenkeiError(f"{self.key} returned another structure than when it was captured", code="check")
        for result, (leaf, sizes) in zip(results, self._results, strict=True):
            wanted = tuple(self._size(size, xs, ints) for size in sizes)
            if leaf.kind == "tensor":
                same = tuple(result.shape) == wanted and result.dtype == leaf.dtype
            else:
                same = result == wanted[0] if leaf.kind == "int" else result is leaf.value or result == leaf.value
            if not same:
                shown = f"{list(result.shape)} {result.dtype}" if isinstance(result, torch.Tensor) else repr(result)
                raise RenkeiError(
                    f"{self.key} returned {shown} where the capture has {list(wanted) or leaf.value} {leaf.dtype or ''}",
                    "make a larger part opaque: renkei.opaque(module)", code="check",
                )


def _put(parts: list[list[Place]], given: Sequence[torch.Tensor]) -> Iterator[tuple[Place, Any]]:
    """The engine's tensors in the places of the model's own, where they are not the same: a stage that computes again."""
    for places, tensor in zip(parts, given, strict=True):
        for place in places:
            before = place.holder[place.name]
            if before is not tensor:
                place.holder[place.name] = tensor
                yield place, before


def _own(result: torch.Tensor, xs: Sequence[torch.Tensor]) -> torch.Tensor:
    """In one piece, as the trace took it for, and not one of the arguments itself."""
    result = result.contiguous()
    return result.view_as(result) if any(result is x for x in xs) else result
