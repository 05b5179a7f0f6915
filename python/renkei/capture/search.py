"""How a capture is found: try, see what stands in the way, make the smallest thing around it opaque, try again.

    probe      eager runs: sizes, branches, what an export would freeze or lose (probe.py)
    trace      an export, in which what is opaque is one operator (trace.py)
    compare    outputs, gradients and buffers against the eager runs (compare.py)

An exception of the export names frames; the innermost part of the model among them becomes opaque, or the next one
outwards where that can't be an operator. A difference without an exception is looked for by halving the model.
"""

import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Literal

import torch

from renkei.capture.compare import Difference, Result, difference_of, eager_result, program_result
from renkei.capture.keys import ROOT, Key, Names, is_inside, is_users
from renkei.capture.operators import unkeyed
from renkei.capture.preserve import preserved, seeded
from renkei.capture.probe import Probe, kept_hooks
from renkei.capture.sites import NotOpaque
from renkei.capture.trace import Decisions, Trace, Traced
from renkei.errors import RenkeiError

__all__ = ["MODEL", "Search"]

MODEL = Key("module", "model")
_MOST_TRIES = 60
_SMALL = 0.25  # of the parameters: what is smaller is rather opaque than assumed
_COMPARED = 2  # batches

OnDifference = Literal["opaque", "error"]


class Search:
    """For a capture of a flat model, on batches of several sizes; the first batch is traced."""

    def __init__(self, model: torch.nn.Module, batches: list[list[torch.Tensor]], by_hand: list[Key], *,
                 gradients: bool, on_difference: OnDifference) -> None:
        self._model, self._batches = model, batches
        self._names = Names(model)
        self._gradients, self._on_difference = gradients, on_difference
        self.decisions = Decisions()
        self._probes: list[Probe] = []
        self._from_hooks: set[Key] = set()
        self._eager: list[Result] = []
        self._tries = 0
        self.draws = False
        limit = _SMALL * sum(p.numel() for p in model.parameters())
        # Looked up while an export has other tensors in the places of the parameters.
        self._large = {n for n, m in self._names.modules.items() if sum(p.numel() for p in m.parameters()) > limit}
        for key in by_hand:
            self._mark(key, "asked for")

    def run(self) -> Traced:
        """The program, or an error that says what stands in the way."""
        if any(p.is_meta for p in self._model.parameters()):
            return self._run_without_values()
        self._look()
        while True:
            self._tries += 1
            try:
                self._probe_what_is_new()
                traced = self._trace()
                difference = self._compare(traced)
                if difference is None:
                    return traced
                if self._relent(difference):
                    continue
                return self._halve(difference)
            except RenkeiError:
                raise
            except Exception as error:
                if self._tries > _MOST_TRIES or not self._give_way(error):
                    raise RenkeiError(
                        f"the model can't be captured: {_first_line(error)}{_where(error)}",
                        "renkei.parallelize(model, plan='data') trains it as it is written", code="data",
                    ) from error

    def _run_without_values(self) -> Traced:
        """Of a model on "meta": nothing can be run, so nothing can be opaque, and nothing is compared."""
        hooks = next(kept_hooks(self._model), None)
        try:
            if hooks is not None:
                raise NotOpaque(hooks[0], hooks[1])
            return self._trace()
        except Exception as error:
            raise RenkeiError(f"the model can't be captured without its values: {_first_line(error)}{_where(error)}",
                              "build it with values, on the CPU", code="data") from error

    # Looking at the model as it is.

    def _look(self) -> None:
        for key, why, backward in kept_hooks(self._model):
            self._mark(key, why)
            if not backward:
                self._from_hooks.add(key)
        for number, batch in enumerate(self._batches[:_COMPARED]):
            with seeded(number):
                self._eager.append(eager_result(self._model, batch, self._gradients))
        self._probe()

    def _probe(self) -> None:
        methods = {
            key: (self._names.modules[key.name.rpartition(".")[0]], key.name.rpartition(".")[2])
            for key in self.decisions.opaque
            if key.kind == "method"
        }
        self._probes = []
        with preserved(self._model), torch.set_grad_enabled(self._gradients):
            for number, batch in enumerate(self._batches):
                probe = Probe(self._model, self._names, self._mark, first=number == 0)
                with seeded(number):
                    probe.run(batch, self._names.functions, methods)
                self._probes.append(probe)
                self.draws |= probe.draws

    def _probe_what_is_new(self) -> None:
        """Functions and methods are recorded once somebody asks for them."""
        if any(k.kind in ("function", "method") and k not in self._probes[0].calls for k in self.decisions.opaque):
            self._probe()
            for key in [k for k in self.decisions.opaque if k.kind in ("function", "method")]:
                if key not in self._probes[0].calls:
                    self._ban(key, "it is not called by its name")

    def _trace(self) -> Traced:
        trace = Trace(self._model, self._names, self._probes, self.decisions, self._is_large)
        trace.note_tensors()
        with torch.set_grad_enabled(self._gradients):
            return trace.run(self._batches)

    def _is_large(self, name: str) -> bool:
        return name in self._large

    # Decisions.

    def _mark(self, key: Key, why: str) -> None:
        if key.kind == "apply":  # always opaque
            return
        if key in self.decisions.banned or any(is_inside(key, known) for known in self.decisions.opaque):
            return
        for known in [k for k in self.decisions.opaque if is_inside(k, key)]:
            del self.decisions.opaque[known]
        self.decisions.opaque[key] = why

    def _ban(self, key: Key, why: str) -> None:
        self.decisions.banned[key] = why
        self.decisions.opaque.pop(key, None)

    def _give_way(self, error: Exception) -> bool:
        """After an exception: whether there is something to try."""
        if self._flip_a_size() or self._trace_hooks():
            return True
        if isinstance(error, NotOpaque) and error.key is not None:
            self._ban(error.key, error.why)
        around = error.around if isinstance(error, NotOpaque) else []
        keys = around or max((self._names.keys_of(f) for f in _frames(error)), key=len, default=[ROOT])
        key = next((k for k in reversed(keys) if k.kind != "apply" and k not in self.decisions.opaque
                    and k not in self.decisions.banned), None)
        if key is None:
            return False
        before = dict(self.decisions.opaque)
        self._mark(key, f"{_first_line(error)}{_where(error)}")
        if before == self.decisions.opaque:  # it is inside of what is opaque already
            self._ban(key, _first_line(error))
        return True

    def _flip_a_size(self) -> bool:
        """Conditions on sizes are the first to doubt: the newest is taken for its opposite, then for none."""
        line = next((at for at in reversed(self.decisions.sizes) if self.decisions.sizes[at]), None)
        if line is None:
            return False
        self.decisions.sizes[line].pop(0)
        return True

    # Comparing.

    def _compare(self, traced: Traced) -> Difference | None:
        for number, (batch, wanted) in enumerate(zip(self._batches, self._eager, strict=False)):
            with unkeyed(), seeded(number):
                here, violations = program_result(self._model, traced.program, batch, self._gradients)
            if violations:
                return Difference(f"an assumption ({violations[0].replace(chr(9), ':')})", "", 1)
            if (difference := difference_of(here, wanted)) is not None:
                return difference
        return None

    def _relent(self, difference: Difference) -> bool:
        """Whether a decision that was made without need can be taken back."""
        if self._on_difference == "error":
            raise RenkeiError(f"the capture is not what the model computes as written: {difference}",
                              "allow parts of it to run as written: difference='opaque'", code="check")
        return self._flip_a_size() or self._trace_hooks()

    def _trace_hooks(self) -> bool:
        """What a forward hook keeps may be used elsewhere in the model: then it must be traced."""
        taken = [key for key in self.decisions.opaque if key in self._from_hooks]
        for key in taken:
            del self.decisions.opaque[key]
        self._from_hooks.clear()
        return bool(taken)

    def _halve(self, difference: Difference) -> Traced:
        """The innermost module that makes the difference go away when it is opaque."""
        kept = dict(self.decisions.opaque)
        best: tuple[Key, Traced] | None = None

        def attempt(key: Key) -> bool:
            nonlocal best
            self.decisions.opaque = dict(kept)
            self._mark(key, str(difference))
            self._tries += 1
            try:
                traced = self._trace()
                good = self._compare(traced) is None
            except Exception:
                good = False
            if good:
                best = key, traced
            return good

        at = Key("module", "") if attempt(ROOT) else MODEL
        if best is None and not attempt(MODEL):
            raise RenkeiError(f"the capture is not what the model computes as written: {difference}",
                              "renkei.parallelize(model, plan='data') trains it as it is written", code="check")
        while self._tries < _MOST_TRIES:
            inner = next((key for key in self._children(at) if attempt(key)), None)
            if inner is None:
                break
            at = inner
        assert best is not None
        self.decisions.opaque = dict(kept)
        self._mark(best[0], str(difference))
        return best[1]

    def _children(self, key: Key) -> Iterator[Key]:
        containers = (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.Sequential)
        for name, child in self._names.modules[key.name].named_children():
            inner = Key("module", f"{key.name}.{name}" if key.name else name)
            if isinstance(child, containers) and not isinstance(child, torch.nn.Sequential):
                yield from self._children(inner)
            else:
                yield inner

    def look_at(self, batches: list[list[torch.Tensor]]) -> None:
        """Further batches, in the place of the last ones."""
        self._batches = [*self._batches[:_COMPARED], *batches]
        self._tries = 0
        self._eager = []

    def forbid(self, lines: list[str]) -> None:
        """Assumptions that were violated: they are none in another capture."""
        for text in lines:
            _, file, number = text.split("\t")
            self.decisions.varying.add((file, int(number)))


def _frames(error: BaseException) -> Iterator[list[FrameType]]:
    """Of an exception and of those that led to it."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield [frame for frame, _ in traceback.walk_tb(at.__traceback__)]
        at = at.__cause__ or at.__context__


def _first_line(error: Exception) -> str:
    text = error.why if isinstance(error, NotOpaque) else str(error)
    line = next((t.strip() for t in text.splitlines() if t.strip()), type(error).__name__)
    return line if len(line) < 160 else line[:157] + "…"


def _where(error: BaseException) -> str:
    """The innermost line that is the user's."""
    for frames in _frames(error):
        for frame in reversed(frames):
            file = frame.f_code.co_filename
            if is_users(file):
                return f" ({file.rpartition('/')[2]}:{frame.f_lineno})"
    return ""
