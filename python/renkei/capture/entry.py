"""From a model and what it is called with to a program."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch._export.serde.serialize import serialize

from renkei.capture.flat import PREFIX, Call, FlatModel
from renkei.capture.keys import ROOT, Key
from renkei.capture.preserve import preserved
from renkei.capture.search import MODEL, OnDifference, Search
from renkei.capture.trace import Traced
from renkei.errors import RenkeiError

__all__ = ["Captured", "capture", "capture_flat", "opaque", "probe_batches"]

_ROWS = 8  # of a batch: as many are enough to look at a model
_MARK = "_renkei_opaque"

Module = TypeVar("Module", bound=torch.nn.Module)


def opaque(module: Module) -> Module:
    """Marks a module as one that runs as it is written, in one piece; returns it.

    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), opaque(torch.nn.Tanh()))
    """
    setattr(module, _MARK, True)
    return module


class Captured:
    """A program that computes what the model computes, for the engine."""

    def __init__(self, flat: FlatModel, traced: Traced, search: Search) -> None:
        self.flat, self.program = flat, traced.program
        self.inputs = list(traced.program.graph_signature.user_inputs)
        self.outputs = [str(name) for name in traced.program.graph_signature.user_outputs]
        self.text = serialize(traced.program).exported_program.decode()
        self.opaque = {str(key): why for key, why in _found(search, traced)}
        self.assumptions = traced.assumptions
        self.draws = search.draws  # random numbers
        self.fixed_batch = traced.fixed_sizes
        why = search.decisions.opaque
        self.stateful = [str(site.key) for site in traced.sites if "changes with" in why.get(site.key, "")]
        whole = next((key for key in (ROOT, MODEL) if key in search.decisions.opaque), None)
        self.whole = search.decisions.opaque[whole] if whole is not None else ""  # why all of it is one operator
        # What opaque parts may use: whether a step did, its gradients tell.
        self.maybe_used = list({id(p): p for site in traced.sites for p in site.parameters() if p.requires_grad}.values())
        self.tied: list[tuple[str, str]] = []
        self.state: dict[str, torch.Tensor] = {}
        self._search = search
        first: dict[int, str] = {}
        for name, tensor in _all_tensors(flat):
            known = first.setdefault(id(tensor), name)
            if known != name:
                self.tied.append((name, known))
            self.state[name] = tensor
        for name, constant in traced.program.constants.items():
            if isinstance(constant, torch.Tensor):
                self.state.setdefault(name, constant)

    def flatten(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> list[torch.Tensor]:
        """The tensors of a call, in the order of `inputs`; an error where it differs from the first in other things."""
        return self.flat.flatten((arguments, named))

    def structured(self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor] = ()) -> Any:
        """Outputs in the structure in which the model returns them, with the inputs that are among them."""
        return self.flat.structured(outputs, inputs)

    def check_plan(self, plan: dict[str, Any]) -> None:
        """An error where a plan would call a part several times in a step that changes with each call."""
        micro = int(plan["micro_batches"])
        again = any(stage.get("recompute") for stage in plan.get("stage_list") or [])
        if self.stateful and (micro > 1 or again):
            raise RenkeiError(
                f"{self.stateful[0]} changes with each call, and this plan calls it {'twice' if again else micro} "
                "times in a step", "plan with micro_batches=1 and without recomputation", code="data",
            )

    def without(self, violated: list[str], batches: list[list[torch.Tensor]]) -> "Captured":
        """Another capture, in which these assumptions are none; `batches` are looked at too."""
        search = self._search
        search.forbid(violated)
        search.look_at(batches)
        return Captured(self.flat, search.run(), search)


def capture(
    model: torch.nn.Module,
    arguments: tuple[Any, ...],
    named: dict[str, Any] | None = None,
    *,
    loss: Callable[..., torch.Tensor] | None = None,
    only_loss: bool = False,
    further: Iterable[Call] = (),
    opaque: Sequence[str] = (),
    difference: OnDifference = "opaque",
    gradients: bool = True,
) -> Captured:
    """The model, called like this, as a program; an error names what stands in the way.

    With `loss` the last argument is its target, and the loss the only output; `only_loss`: the model returns it. `further`
    calls, such as those of other ranks, are looked at as well. `opaque`: names of modules that shall run as written.
    `difference`: what is done where the capture is not what the model computes.

    >>> captured = capture(torch.nn.Linear(3, 2), (torch.ones(4, 3),))
    >>> len(captured.inputs), len(captured.outputs), sorted(captured.state)
    (1, 1, ['model.bias', 'model.weight'])
    """
    call = (arguments, named or {})
    flat = FlatModel(model, call, loss, only_loss)
    return capture_flat(flat, [flat.flatten(one) for one in (call, *further)], opaque=opaque, difference=difference,
                        gradients=gradients and model.training)


def capture_flat(flat: FlatModel, calls: list[list[torch.Tensor]], *, opaque: Sequence[str] = (),
                 difference: OnDifference = "opaque", gradients: bool | None = None) -> Captured:
    """The same of a flat model, on the tensors of one or more calls. A model on "meta" is not compared."""
    if any(p.is_meta for p in flat.parameters()):
        batches = probe_batches([[t.to("meta") for t in call] for call in calls])
    else:
        batches = _that_work(flat, probe_batches(calls))
    if gradients is None:
        gradients = flat.model.training
    search = Search(flat, batches, list(_by_hand(flat, opaque)), gradients=gradients, on_difference=difference)
    return Captured(flat, search.run(), search)


def probe_batches(calls: list[list[torch.Tensor]]) -> list[list[torch.Tensor]]:
    """Few rows of a call, one more of them, and other ones, of other calls where there are some."""
    first = calls[0]
    samples = next((t.shape[0] for t in first if t.dim() > 0), 0)
    batched = [t.dim() > 0 and t.shape[0] == samples and samples > 0 for t in first]
    rows = min(samples, _ROWS)
    other = calls[-1] if len(calls) > 1 else [t.roll(1, 0) if b else t for t, b in zip(first, batched, strict=True)]

    def some(tensors: list[torch.Tensor], count: int, end: bool = False) -> list[torch.Tensor]:
        return [
            (torch.cat([t, *([t[:1]] * max(0, count - t.shape[0]))])[-count:] if end else _rows(t, count)) if b else t
            for t, b in zip(tensors, batched, strict=True)
        ]

    if not any(batched):
        return [first]
    return [some(first, max(2, rows + 1)), some(first, rows), some(other, rows, end=True)]


def _rows(tensor: torch.Tensor, count: int) -> torch.Tensor:
    missing = count - tensor.shape[0]
    return torch.cat([tensor, tensor[:1].expand(missing, *tensor.shape[1:])]) if missing > 0 else tensor[:count]


def _that_work(flat: FlatModel, batches: list[list[torch.Tensor]]) -> list[list[torch.Tensor]]:
    """A model that takes one number of samples only is captured for that one."""
    if len(batches) == 1:
        return batches
    try:
        with preserved(flat):
            flat(*batches[0])
    except Exception:
        return batches[1:]
    return batches


def _by_hand(flat: FlatModel, names: Sequence[str]) -> Iterator[Key]:
    modules = dict(flat.named_modules())
    for name in names:
        if PREFIX + name not in modules:
            raise RenkeiError(f"there is no module {name} to be opaque", "names are those of model.named_modules()")
        yield Key("module", PREFIX + name)
    for name, module in modules.items():
        if getattr(module, _MARK, False):
            yield Key("module", name)


def _found(search: Search, traced: Traced) -> Iterator[tuple[Key, str]]:
    for key in dict.fromkeys(site.key for site in traced.sites):
        yield key, search.decisions.opaque.get(key, "it has a backward of its own")


def _all_tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)
