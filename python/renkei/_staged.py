"""A model in stages, each on some of the ranks, called as if it were whole.

At the first call the model is captured, planned and placed, and what the engine computes is compared with the model as
it is written. From then on a call hands this rank's batch over and gets its outputs; backward gives the gradients of
outputs back, which autograd computes as it does for any function. A rank keeps the parameters of its stages only.
"""

import contextlib
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from renkei import _agreement, _engine, _norms, _staged_state, world
from renkei._calls import Signature
from renkei._comparison import gradients_differ, outputs_differ
from renkei._run import Run
from renkei.capture import (
    Call,
    Captured,
    FlatModel,
    capture_flat,
    preserved,
    preserved_attributes,
    preserved_random,
    take_violations,
)
from renkei.errors import RenkeiError

__all__ = ["Staged"]


Mode = tuple[bool, ...]


class _Program:
    """The model in one mode, for calls of one kind."""

    def __init__(self, signature: Signature, mode: Mode, captured: Captured) -> None:
        self.mode = mode
        self.signature = signature.without_tensors()
        self.number = 0
        self.captured = captured

    def named(self, tensors: list[torch.Tensor]) -> dict[str, torch.Tensor]:
        return dict(zip(self.captured.inputs, self.captured.flat.as_samples(tensors), strict=True))

    def computing(self) -> contextlib.AbstractContextManager[None]:
        """The engine's random numbers are its own: those of the program go on as before."""
        own = self.captured.draws or self.captured.opaque
        return preserved_random() if own else contextlib.nullcontext()


class Staged:
    """The stages of a model on the ranks."""

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer | None,
        *,
        buffers: str,
        micro_batches: int | None,
        check: bool,
        settings: dict[str, str],
        run: Run | None = None,
    ) -> None:
        if hasattr(model, "_orig_mod"):
            raise RenkeiError(
                "the model went through torch.compile, and a model in stages is compiled by Renkei",
                "give parallelize() the model as it was before",
            )
        self.model = model
        self.run = run
        self.synchronise = True  # False within no_sync()
        self._optimizer = optimizer
        self._buffers, self._micro_batches, self._check, self._settings = buffers, micro_batches, check, settings
        self._programs: list[_Program] = []
        self._training: _engine.StagedModel | None = None
        self._closed = False
        self._begin = 0  # the call that is the first one
        self._modules = list(model.modules())
        self._parameters = list(model.parameters())
        self._was_trained: list[bool] = []
        self._first_names: dict[str, str] = {}  # of each tensor's names that by which the engine knows it
        self._placed: set[str] = set()
        self._shapes = {f"model.{name}": tensor.shape for name, tensor in _named(model)}
        # Outputs that have a gradient hang on something that has one.
        self._anchor = torch.zeros((), requires_grad=True)
        world.add_user(self)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        signature = Signature(arguments, named)
        gradients = torch.is_grad_enabled()
        self._refuse(signature.tensors, gradients)
        if self._training is None:
            self._place(signature, (arguments, named))
        elif gradients and [p.requires_grad for p in self._parameters] != self._was_trained:
            raise RenkeiError(
                "requires_grad of a parameter has changed since the model was placed",
                "freeze layers before the first call, or use plan='data'",
            )
        program = self._program_for(signature, (arguments, named))
        if gradients and self.run is not None:
            self.run.forward(signature.tensors)
        if program.captured.assumptions:
            outputs = self._where_assumptions_hold(program, signature.tensors, gradients)
        else:
            outputs = self._forward(program, signature.tensors, gradients)
        return program.captured.structured(outputs, signature.tensors)

    def _forward(self, program: _Program, tensors: list[torch.Tensor], gradients: bool) -> Sequence[torch.Tensor]:
        inputs = program.named(tensors)
        if gradients:
            return _Stages.apply(self, program, inputs, self.synchronise, self._anchor)  # type: ignore[no-untyped-call, no-any-return]
        with program.computing():
            return self._engine().forward(program.number, inputs, False)[0]

    def _where_assumptions_hold(
        self, program: _Program, tensors: list[torch.Tensor], gradients: bool
    ) -> Sequence[torch.Tensor]:
        """Where one does not, nothing of the call is kept, and it is done again with another capture."""
        take_violations()
        while True:
            begin, held = self.calls, self._held_buffers()
            before = [buffer.detach().clone() for buffer in held]
            outputs = self._forward(program, tensors, gradients)
            violated = sorted({line for lines in world.allgather_object(take_violations()) for line in lines})
            if not violated:
                return outputs
            for buffer, value in zip(held, before, strict=True):
                buffer.data.copy_(value)
            self._engine().step = begin
            if world.rank() == 0:
                print(f"note: another capture is made: the branch at {violated[0].split(chr(9))[1:]} went another way",
                      file=sys.stderr)
            every = world.allgather_object([t.detach() for t in program.captured.flat.as_samples(tensors)])
            try:
                with self._whole():
                    self._add(program, program.captured.without(violated, every))
            except RenkeiError as error:
                raise RenkeiError(
                    f"the model went another way than when it was captured, at {violated[0].split(chr(9))[1:]}, and its "
                    f"stages can't: {error}",
                    "mark the module that decides with renkei.opaque(module): it stays in one stage then",
                    code="check",
                ) from error

    @staticmethod
    def _refuse(tensors: list[torch.Tensor], gradients: bool) -> None:
        if torch.is_autocast_enabled("cpu"):
            raise RenkeiError(
                "the model is called within torch.autocast, which a model in stages does not see",
                "leave it out and give precision='bf16', or use plan='data'",
            )
        if gradients and any(t.requires_grad for t in tensors):
            raise RenkeiError(
                "an input of the model has requires_grad, and gradients of inputs do not leave the stages",
                "detach() it, put what computes it into the model, or use plan='data'",
            )

    # --- captures ---

    def _place(self, signature: Signature, call: Call) -> None:
        """At the first call."""
        if self._closed:
            raise RenkeiError("the training of this model was closed", "call parallelize() again")
        self._agree(signature)
        for tensor in itertools.chain(self.model.parameters(), self.model.buffers()):
            tensor.data.copy_(world.broadcast(tensor.data))
        before = self._mode()
        with _engine.HostMemory():
            self.model.train()
            wanted, captured = self._capture(signature, call)
            self.model.eval()
            wanted_of_evaluation, in_evaluation = self._capture(signature, call)
        self._set_mode(before)
        self._first_names = dict(captured.tied)
        self._was_trained = [p.requires_grad for p in self._parameters]
        samples = next((t.shape[0] for t in signature.tensors if t.dim()), 1)
        buffers = {name: buffer.detach().clone() for name, buffer in self.model.named_buffers()}
        with preserved_random(), preserved_attributes(self.model):  # operators are run to be measured
            training = _engine.StagedModel(
                world.world(), _as_text(captured), samples, self._programs[0].named(signature.tensors),
                self._micro_batches, self._buffers, self._settings,
            )
            captured.check_plan(json.loads(training.plan))
            self._training = training
            self._placed = set(training.names)
            self._programs[1].number = training.add(_as_text(in_evaluation))
        self._release_others()
        for name, buffer in self.model.named_buffers():
            if self.is_held(name):
                buffer.data.copy_(buffers[name])
        _norms.watch(self)
        if self._optimizer is not None:
            _staged_state.attach_optimizer(self, self._optimizer)
        if self.run is not None:
            self.run.record.set_plan(self._training.plan)
            self.run.record.phase("capture and planning")
        if wanted is not None and wanted_of_evaluation is not None:
            self._compare(wanted, wanted_of_evaluation, signature.tensors)
        # Not before: a comparison has gradients of all outputs, and training of those that the loss depends on.
        training.limit_device()
        if self.run is not None:
            self.run.record.phase("comparison with the model as written")
            self._training.record(self.run.record)

    def _capture(self, signature: Signature, call: Call) -> "tuple[_Wanted | None, Captured]":
        """All ranks look at the batches of all."""
        flat = FlatModel(self.model, call)
        mine = [t.detach() for t in flat.flatten(call)]
        captured = capture_flat(flat, world.allgather_object(mine), gradients=True)
        self._check_capture(captured)
        wanted = _Wanted(flat, mine) if self._check and self._training is None else None
        self._programs.append(_Program(signature, self._mode(), captured))
        return wanted, captured

    @staticmethod
    def _check_capture(captured: Captured) -> None:
        _agreement.check_same_program(captured.text)
        if captured.whole:
            raise RenkeiError(
                f"the model can't be cut into stages: {captured.whole}",
                "change that line of the model, or train it data parallel: plan='data'",
                code="data",
            )

    def _program_for(self, signature: Signature, call: Call) -> _Program:
        mode = self._mode()
        for program in self._programs:
            if program.mode == mode and program.signature.matches(signature):
                return program
        self.meet(_engine.Purpose.capture)  # ranks that know this kind of call learn who does not
        self._agree(signature)
        with self._whole():
            _, captured = self._capture(signature, call)
            self._add(self._programs[-1], captured)
        if self._check and world.rank() == 0:
            print("note: the model was captured again, for a new kind of batch or a new mode; its stages were not "
                  "compared with the model as it is written", file=sys.stderr)
        return self._programs[-1]

    def _add(self, program: _Program, captured: Captured) -> None:
        """To what the engine can compute; it is this program from now on."""
        self._check_capture(captured)
        captured.check_plan(self.plan)
        program.captured = captured
        program.number = self._engine().add(_as_text(captured))

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """Inside, every rank has all of the model, as it had before the first call: in the host's memory."""
        with _engine.HostMemory():
            for name, tensor in self.named_state():
                holders = self.holders(name)
                if len(holders) < world.size():
                    value = world.broadcast(tensor.data, holders[0])
                    if world.rank() not in holders:
                        tensor.data = value
            try:
                yield
            finally:
                self._release_others()

    def _mode(self) -> Mode:
        return tuple(module.training for module in self._modules)

    def _set_mode(self, mode: Mode) -> None:
        for module, training in zip(self._modules, mode, strict=True):
            module.training = training

    def _agree(self, signature: Signature) -> None:
        mine = [list(t.shape) for t in signature.tensors]
        every = world.allgather_object((mine, [str(t.dtype) for t in signature.tensors]))
        for rank, other in enumerate(every):
            if other != every[0]:
                raise RenkeiError(
                    f"the batch of rank {rank} has other sizes or types than that of rank 0: {other[0]} and "
                    f"{every[0][0]}",
                    "give all ranks batches of one size: drop the last, smaller one (drop_last=True)",
                    rank=rank,
                )
        if not signature.tensors:
            raise RenkeiError("the model is called without a tensor", "give it the batch as an argument")

    def _release_others(self) -> None:
        """What other ranks hold takes no memory here; whoever looks at it sees that it is not a number."""
        for name, tensor in self.named_state():
            if world.rank() in self.holders(name):
                continue
            nothing = float("nan") if tensor.is_floating_point() or tensor.is_complex() else 0
            tensor.data = torch.full((), nothing, dtype=tensor.dtype).expand(self._shapes[name])
            if self._optimizer is not None:
                self._optimizer.state.pop(tensor, None)

    def _compare(self, wanted: "_Wanted", of_evaluation: "_Wanted", tensors: list[torch.Tensor]) -> None:
        """Both modes, in stages and as written; all ranks come to the same end."""
        training, evaluation = self._programs
        held = self._held_buffers()
        with _engine.HostMemory():
            before = [b.detach().clone() for b in held]
        with preserved_attributes(self.model):
            difference = self._difference_in_evaluation(evaluation, of_evaluation, tensors)
            difference = self._difference_in_training(training, wanted, tensors) or difference
        for parameter in self._parameters:
            parameter.grad = None
        for buffer, value in zip(held, before, strict=True):
            buffer.data.copy_(value)
        self._engine().step = self._begin
        found = next((text for text in world.allgather_object(difference) if text), "")
        if found:
            raise RenkeiError(
                f"in stages the model does not compute what it computes as written: {found}",
                "does a layer mix samples (batch norm)? micro_batches=1 keeps each rank's batch in one piece",
                code="check",
            )

    def _difference_in_evaluation(self, program: _Program, wanted: "_Wanted", tensors: list[torch.Tensor]) -> str:
        with program.computing():
            outputs, _ = self._engine().forward(program.number, program.named(tensors), False)
        with _engine.HostMemory():
            return "" if program.captured.draws else outputs_differ(outputs, wanted.outputs)

    def _difference_in_training(self, program: _Program, wanted: "_Wanted", tensors: list[torch.Tensor]) -> str:
        with program.computing():
            outputs, call = self._engine().forward(program.number, program.named(tensors), True)
            assert call is not None
            self._engine().backward(call, wanted.seeds, True)
        if program.captured.draws:
            if world.rank() == 0:
                print("note: the model draws random numbers; its capture was compared, its stages were not in training "
                      "mode", file=sys.stderr)
            return ""
        with _engine.HostMemory():
            names = {f"model.{name}": parameter for name, parameter in self.model.named_parameters()}
            return outputs_differ(outputs, wanted.outputs) or gradients_differ(
                names, wanted.gradients, lambda name: world.rank() in self.holders(name)
            )

    def _held_buffers(self) -> list[torch.Tensor]:
        return [
            tensor
            for name, tensor in self.named_state()
            if not isinstance(tensor, torch.nn.Parameter) and world.rank() in self.holders(name)
        ]

    # --- state ---

    def named_state(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors that the engine placed, by its names."""
        every = dict(_named(self.model))
        for name in self._engine().names:
            if name.removeprefix("model.") in every:
                yield name, every[name.removeprefix("model.")]

    def holders(self, name: str) -> list[int]:
        """The ranks that have a tensor, by the engine's name."""
        return self._engine().holders(name)

    def owner(self, name: str) -> int | None:
        """The first rank that has a tensor of the model; None: all have it."""
        found = self._found(name)
        if found is None:
            return None
        holders = self.holders(found)
        return holders[0] if len(holders) < world.size() else None

    def is_held(self, name: str) -> bool:
        """Whether this rank has a tensor of the model."""
        found = self._found(name)
        return found is None or world.rank() in self.holders(found)

    def _found(self, name: str) -> str | None:
        """By the engine's name; None: it was not placed, and every rank has it."""
        if self._training is None:
            return None
        known = self._first_names.get(f"model.{name}", f"model.{name}")
        return known if known in self._placed else None

    @property
    def calls(self) -> int:
        """In training so far: random numbers depend on it."""
        return self._training.step if self._training is not None else self._begin

    @calls.setter
    def calls(self, number: int) -> None:
        self._begin = number
        if self._training is not None:
            self._training.step = number

    def meet(self, purpose: _engine.Purpose) -> None:
        """Throws an error unless all ranks come for the same."""
        if self._training is not None:
            self._training.meet(purpose)

    def state_dict(self, on_rank: int | None, *arguments: Any, **named: Any) -> Any:
        """All ranks together."""
        return _staged_state.gathered(self, on_rank, *arguments, **named)

    def load_state_dict(self, state: Mapping[str, Any], strict: bool) -> Any:
        """All ranks together: they take the values of rank 0."""
        if self._training is None:
            return self.model.load_state_dict(state, strict)
        return _staged_state.load(self, state, strict)

    # --- norms of gradients (_norms.py) ---

    def gradients(self) -> list[torch.Tensor]:
        """Those that this rank has."""
        return [p.grad for p in self._parameters if p.grad is not None]

    def counted_here(self) -> list[torch.Tensor]:
        """Those of parameters that no rank before this one has."""
        found = []
        for name, parameter in self.model.named_parameters():
            if parameter.grad is not None and world.rank() == (self.owner(name) or 0):
                found.append(parameter.grad)
        return found

    def meet_for_norm(self) -> None:
        """Throws an error unless all ranks come for the same."""
        self.meet(_engine.Purpose.norm)

    @property
    def plan(self) -> dict[str, Any]:
        """Who computes what, as in plan.json."""
        return dict(json.loads(self._engine().plan))

    # --- the end ---

    def close(self) -> None:
        """All ranks together."""
        if self._training is not None:
            self._training.meet(_engine.Purpose.close)
            self._training.close()
        self.release()

    def release(self) -> None:
        """At the end of the program."""
        _norms.unwatch(self)
        self._training, self._closed = None, True

    def _engine(self) -> _engine.StagedModel:
        if self._training is None:
            what = "was closed" if self._closed else "has not begun"
            raise RenkeiError(f"the training of this model {what}", "call the model first")
        return self._training


class _Wanted:
    """What the model as written gives: outputs, and gradients for some gradients of these."""

    def __init__(self, flat: FlatModel, tensors: list[torch.Tensor]) -> None:
        self.gradients: dict[str, torch.Tensor | None] = {}
        self.seeds: list[torch.Tensor | None] = []
        with preserved(flat), torch.set_grad_enabled(flat.model.training):
            outputs = flat(*tensors)
            self.outputs = [t.detach() for t in outputs]
            if flat.model.training:
                self._differentiate(flat, outputs)

    def _differentiate(self, flat: FlatModel, outputs: tuple[torch.Tensor, ...]) -> None:
        generator = torch.Generator().manual_seed(1 + world.rank())
        self.seeds = [
            torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t.dtype) if t.requires_grad else None
            for t in outputs
        ]
        pairs = [(t, s) for t, s in zip(outputs, self.seeds, strict=True) if s is not None]
        if not pairs:
            raise RenkeiError("no output of the model depends on a parameter that is trained", "check requires_grad")
        trained = {name: p for name, p in flat.named_parameters() if p.requires_grad}
        found = torch.autograd.grad(
            [t for t, _ in pairs], list(trained.values()), [s for _, s in pairs], allow_unused=True
        )
        for (name, parameter), gradient in zip(trained.items(), found, strict=True):
            reached = bool(world.allreduce(torch.tensor(gradient is not None), "max"))
            self.gradients[name] = None
            if reached:
                self.gradients[name] = world.allreduce(torch.zeros_like(parameter) if gradient is None else gradient)


class _Stages(torch.autograd.Function):
    """Forward and backward of all stages, as one function."""

    @staticmethod
    def forward(
        ctx: Any, job: Staged, program: _Program, inputs: dict[str, torch.Tensor], synchronise: bool, anchor: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        with program.computing():
            outputs, ctx.call = job._engine().forward(program.number, inputs, True)
        ctx.job, ctx.program, ctx.synchronise = job, program, synchronise
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(t for t in outputs if not t.is_floating_point() and not t.is_complex()))
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[None, ...]:
        with ctx.program.computing():
            ctx.job._engine().backward(ctx.call, list(gradients), ctx.synchronise)
        if ctx.job.run is not None and ctx.synchronise:
            ctx.job.run.reduced()
        return None, None, None, None, None


def _named(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)


def _as_text(captured: Captured) -> tuple[str, list[tuple[str, str]], dict[str, torch.Tensor]]:
    return captured.text, captured.tied, captured.state
