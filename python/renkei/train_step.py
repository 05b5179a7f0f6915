"""The whole step of a model whose loss is given, as one schedule: data parallel or in stages."""

import contextlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from renkei import _agreement, _engine, _reference, parallel, world
from renkei._run import Run
from renkei.capture import Captured, FlatModel, capture_flat, preserved, preserved_random, take_violations
from renkei.capture.flat import PREFIX
from renkei.errors import RenkeiError

__all__ = ["TrainStep", "train_step"]


def train_step(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Callable[..., torch.Tensor] | None = None,
    *,
    plan: str = "auto",
    device_memory: str | None = None,
    micro_batches: int | None = None,
    settings: dict[str, str] | None = None,
    seed: int = 1,
    opaque: Sequence[str] = (),
    difference: Literal["opaque", "error"] = "opaque",
    run_dir: str | Path | None = None,
) -> "TrainStep":
    """A step: `step(x, y)` computes loss(model(x), y), its gradients, and updates the parameters; returns the loss.

    Each rank brings its own batch, of the same size in every step; the loss is a mean over the samples. Without `loss`
    the model returns it. `plan` is data, auto (searched, for `device_memory` such as "2GiB"), or a plan file. Modules named
    in `opaque` run as they are written, in one piece, as do those that can't be captured; `difference="error"` refuses a
    model whose capture is not what it computes, instead of making a part of it opaque. `run_dir` is where settings, plan,
    losses and timeline are kept, for renkei report and renkei watch.

    >>> model = torch.nn.Linear(3, 1)
    >>> step = train_step(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.nn.functional.mse_loss, plan="data")
    >>> step(torch.ones(4, 3), torch.ones(4, 1)) > step(torch.ones(4, 3), torch.ones(4, 1))
    True
    """
    parallel.check_model(model, optimizer)
    chosen = parallel.engine_settings(plan, device_memory, None, seed, optimizer, settings)
    chosen["train.loss"] = "model"
    if micro_batches is not None:
        chosen["train.micro_batches"] = str(micro_batches)
    world.init()
    _agreement.check_same_model(model)
    run = Run(run_dir, model, chosen) if run_dir is not None else None
    return TrainStep(model, optimizer, loss, chosen, opaque, difference, run)


class TrainStep:
    """A training under way; made by train_step()."""

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        loss: Callable[..., torch.Tensor] | None,
        settings: dict[str, str],
        opaque: Sequence[str],
        difference: Literal["opaque", "error"],
        run: Run | None = None,
    ) -> None:
        self._optimizer = optimizer
        self._run = run
        self._model = model
        self._loss = loss
        self._settings = settings
        self._opaque, self._difference = opaque, difference
        self._flat: FlatModel | None = None
        self._captured: Captured | None = None
        self._unused: list[torch.Tensor] = []
        self._reached = _reference.Reached([])
        self._was_trained: list[bool] = []
        self._keys: list[str] = []
        self._training: _engine.StagedTraining | None = None

    def __call__(self, *arguments: Any, **named: Any) -> float:
        if self._flat is None:
            self._flat = FlatModel(self._model, (arguments, named), self._loss, only_loss=True)
        every = _gathered(self._flat.flatten((arguments, named)))
        if self._training is None:
            return self._recorded(self._first_step(self._flat, every), every)
        if not self._model.training or self._trained() != self._was_trained:
            raise RenkeiError(
                "the model is in evaluation mode, or requires_grad of a parameter has changed since the first step",
                "call model.train(), and make a new train_step for other parameters",
            )
        loss = self._step(every)
        self._update()
        return self._recorded(loss, every)

    def _recorded(self, loss: float, every: list[list[torch.Tensor]]) -> float:
        if self._run is not None:
            self._run.log_step(loss, sum(len(tensors[0]) for tensors in every))
        return loss

    def _trained(self) -> list[bool]:
        return [p.requires_grad for p in self._model.parameters()]

    def _update(self) -> None:
        """What the loss does not depend on has no gradient, as in PyTorch: optimizers leave it alone."""
        for parameter in (*self._unused, *self._reached.not_reached()):
            parameter.grad = None
        self._optimizer.step()

    @property
    def plan(self) -> dict[str, Any]:
        """Who computes what, as in plan.json."""
        return dict(json.loads(self._engine().plan))

    @property
    def opaque(self) -> dict[str, str]:
        """The parts of the model that run as they are written, and why."""
        return dict(self._captured.opaque) if self._captured is not None else {}

    @property
    def assumptions(self) -> list[str]:
        """What the capture takes for granted, and each step checks."""
        return list(self._captured.assumptions) if self._captured is not None else []

    def state_dict(self) -> dict[str, torch.Tensor]:
        """All ranks together: parameters and buffers of the model, complete on rank 0 and empty elsewhere."""
        found: dict[str, torch.Tensor] = {}
        for name in self._engine().names:
            tensor = self._engine().fetch(name)
            if tensor is not None and world.rank() == 0:
                found[name] = tensor.clone()
        if world.rank() == 0 and self._captured is not None:
            found.update({alias: found[name] for alias, name in self._captured.tied if name in found})
        persistent = set(self._keys)
        return {name.removeprefix(PREFIX): t for name, t in found.items() if name.removeprefix(PREFIX) in persistent}

    def close(self) -> None:
        """Ends the training, on all ranks together."""
        self._engine().close()
        self._reached.close()
        if self._run is not None:
            self._run.close()
        self.release()

    def release(self) -> None:
        """At the end of the program."""
        self._training = None

    def _engine(self) -> _engine.StagedTraining:
        if self._training is None:
            raise RenkeiError("there was no step yet, or the training was closed", "call step(…) first")
        return self._training

    def _first_step(self, flat: FlatModel, every: list[list[torch.Tensor]]) -> float:
        """Computed twice, as written and as captured, on whatever ranks."""
        if not self._model.training:
            raise RenkeiError("the model is in evaluation mode", "call model.train() before the first step")
        self._keys = list(self._model.state_dict())
        for tensor in (*flat.parameters(), *flat.buffers()):
            tensor.data.copy_(world.broadcast(tensor.data))
        self._was_trained = self._trained()
        captured = capture_flat(flat, every, opaque=self._opaque, difference=self._difference)
        self._start(captured, every)
        reference = _reference.compute(flat, every, self.plan)
        unused = [p for name, p in flat.named_parameters() if reference.gradients.get(name, p) is None]
        self._unused = [p for p in unused if all(p is not other for other in captured.maybe_used)]
        loss = self._step(every)
        if captured.draws:
            if world.rank() == 0:
                print("note: the model draws random numbers; its capture was compared, its first step was not",
                      file=sys.stderr)
        else:
            assert self._captured is not None
            reference.compare(loss, dict(flat.named_parameters()), dict(flat.named_buffers()), set(self._engine().held))
        self._update()
        return loss

    def _start(self, captured: Captured, every: list[list[torch.Tensor]]) -> None:
        """Plans, and gives the program to the engine."""
        _agreement.check_same_program(captured.text)
        self._tell(captured)
        self._captured = captured
        self._reached.close()
        self._reached = _reference.Reached(captured.maybe_used)
        self._unused = [p for p in self._unused if all(p is not other for other in captured.maybe_used)]
        with preserved(captured.flat):  # operators are run to be measured
            self._training = _engine.StagedTraining(
                world.world(), captured.text, captured.tied, captured.state, self._joined(every), self._settings,
                self._run.record if self._run is not None else None,
            )
        if self._run is not None:
            self._run.record.set_plan(self._training.plan)
            self._run.record.phase("capture and planning")
        world.add_user(self)
        captured.check_plan(self.plan)

    def _tell(self, captured: Captured) -> None:
        partition = self._settings["train.plan"] not in ("auto", "data") or "train.device_memory" in self._settings
        partition |= self._settings.get("plan.stages", "1") not in ("1", "auto")
        if captured.whole and partition:
            raise RenkeiError(f"the model can't be cut into stages: {captured.whole}",
                              "change that line of the model, or train it data parallel: plan='data'", code="data")
        if captured.whole and world.rank() == 0:
            print(f"note: the model runs as it is written, in one piece, data parallel only: {captured.whole}",
                  file=sys.stderr)

    def _step(self, every: list[list[torch.Tensor]]) -> float:
        """The loss; where an assumption of the capture does not hold, the step is done again with another capture."""
        assert self._captured is not None
        self._reached.begin()
        if not self._captured.assumptions:
            return self._computed(self._captured, every)
        take_violations()
        kept = [(b, b.clone()) for b in self._captured.flat.buffers()]
        loss = self._computed(self._captured, every)
        violated = sorted({line for lines in world.allgather_object(take_violations()) for line in lines})
        if not violated:
            return loss
        with torch.no_grad():
            for buffer, before in kept:
                if buffer.shape == before.shape:  # it is still on this rank
                    buffer.copy_(before)
        _reference.bring_everything_here(self._captured.flat, self._optimizer, set(self._engine().held))
        self._engine().close()
        self._training = None
        if world.rank() == 0:
            print(f"note: another capture is made: the branch at {violated[0].split(chr(9))[1:]} went another way",
                  file=sys.stderr)
        self._settings["run.seed"] = str(int(self._settings["run.seed"]) + 1)  # steps are counted from 0 again
        self._start(self._captured.without(violated, every), every)
        return self._step(every)

    def _computed(self, captured: Captured, every: list[list[torch.Tensor]]) -> float:
        """By the engine, whose random numbers are its own: those of the program go on as before."""
        with preserved_random() if captured.draws or captured.opaque else contextlib.nullcontext():
            return self._engine().step(self._joined(every))

    def _joined(self, every: list[list[torch.Tensor]]) -> dict[str, torch.Tensor]:
        """The batches of all ranks, one after the other."""
        assert self._captured is not None
        joined = [torch.cat(parts) if len(parts) > 1 else parts[0] for parts in zip(*every, strict=True)]
        return dict(zip(self._captured.inputs, joined, strict=True))


def _gathered(tensors: list[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Of each rank."""
    if world.size() == 1:
        return [[t.detach() for t in tensors]]
    every = world.allgather_object([t.detach() for t in tensors])
    for rank, other in enumerate(every):
        for mine, theirs in zip(every[0], other, strict=True):
            if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
                raise RenkeiError(
                    f"rank {rank} has a batch of {list(theirs.shape)} {theirs.dtype}, and rank 0 of "
                    f"{list(mine.shape)} {mine.dtype}",
                    "give all ranks batches of one size: drop the last, smaller one",
                    rank=rank,
                )
    return every
