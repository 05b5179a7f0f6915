"""The operators that stand in an exported program for what is not exported.

    renkei::opaque   runs Python as it is written, under autograd: a module, a method, a function of the model
    renkei::assume   notes that a tensor was not what the capture took it for; the step is then done again
    renkei::assume_number, the same for a condition on sizes

A site says what an opaque operator runs. Sites live in the process; every rank makes the same ones in the same order,
because every rank captures the same model on the same batches.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

__all__ = ["Runs", "add_site", "is_keyed", "take_violations", "unkeyed"]

Tensors = Sequence[torch.Tensor]


class Runs(Protocol):
    """What an opaque operator does."""

    def run(self, xs: Tensors, state: Tensors, ints: Sequence[int]) -> list[torch.Tensor]:
        """The real thing."""

    def fake(self, xs: Tensors, ints: Sequence[int]) -> list[torch.Tensor]:
        """Tensors of the sizes that it will give."""


_sites: dict[int, Runs] = {}
_violations: list[str] = []
_keyed = [True]

_library: Any = torch.library.Library("renkei", "FRAGMENT")  # type: ignore[no-untyped-call]
_library.define("opaque(Tensor[] xs, Tensor[] state, SymInt[] ints, int site) -> Tensor[]")
_library.define("assume(Tensor x, bool value, str place) -> ()")
_library.define("assume_number(Scalar condition, str place) -> ()")


def add_site(site: Runs) -> int:
    """Its number, which is part of the program."""
    _sites[len(_sites)] = site
    return len(_sites) - 1


def take_violations() -> list[str]:
    """Places of the assumptions that did not hold since the last call."""
    found, _violations[:] = list(_violations), []
    return found


@contextlib.contextmanager
def unkeyed() -> Iterator[None]:
    """Inside, operators draw the random numbers that come next, as the model as written does; else those of a key."""
    _keyed.append(False)
    try:
        yield
    finally:
        _keyed.pop()


def is_keyed() -> bool:
    """Whether the engine runs the operators."""
    return _keyed[-1]


class _Traced(torch.autograd.Function):
    """While tracing: outputs need a gradient and are no leaves, as in eager."""

    @staticmethod
    def forward(ctx: Any, count: int, ints: Sequence[int], site: int, *tensors: torch.Tensor) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return tuple(torch.ops.renkei.opaque(list(tensors[:count]), list(tensors[count:]), ints, site))


_apply = torch.autograd.Function.__dict__["apply"].__func__  # whatever a capture puts in its place


def _opaque(xs: Tensors, state: Tensors, ints: Sequence[int], site: int) -> list[torch.Tensor]:
    if any(isinstance(t, (FakeTensor, FunctionalTensor)) for t in (*xs, *state)):
        return list(_apply(_Traced, len(xs), ints, site, *xs, *state))
    return _sites[site].run(xs, state, ints)


def _assume(x: torch.Tensor, value: bool, place: str) -> None:
    if not isinstance(x, FakeTensor) and bool(x.item()) != value:
        _violations.append(place)


def _assume_number(condition: Any, place: str) -> None:
    if isinstance(condition, (bool, int, float)) and not condition:
        _violations.append(place)


for _key in ("Autograd", "CPU"):
    _library.impl("opaque", _opaque, _key)
_library.impl("assume", _assume, "CPU")
_library.impl("assume_number", _assume_number, "CompositeExplicitAutograd")
torch.library.register_fake("renkei::opaque", lambda xs, state, ints, site: _sites[site].fake(xs, ints), lib=_library)
torch.library.register_fake("renkei::assume", lambda x, value, place: None, lib=_library)
for _name in ("opaque", "assume", "assume_number"):
    torch.fx.node.has_side_effect(getattr(torch.ops.renkei, _name).default)  # stays in a graph though nobody uses it
