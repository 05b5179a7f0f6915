"""The whole step of a model whose loss is given, as one schedule: data parallel or in stages."""

import json
import sys
from collections.abc import Callable
from typing import Any

import torch

from renkei import _agreement, _capture, _engine, parallel, world
from renkei.errors import RenkeiError

__all__ = ["TrainStep", "train_step"]

TOLERANCE = 1e-3  # of a gradient, relative to its largest value; sums in another order differ by less

SETTINGS = ("plan.", "comm.", "compute.", "train.batch_norm")  # that the engine follows here


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
) -> "TrainStep":
    """A step: `step(x, y)` computes loss(model(x), y), its gradients, and updates the parameters; returns the loss.

    Each rank brings its own batch, of the same size in every step; the loss is a mean over the samples. Without `loss`
    the model returns it. `plan` is data, auto (searched, for `device_memory` such as "2GiB"), or a plan file.

    >>> model = torch.nn.Linear(3, 1)
    >>> step = train_step(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.nn.functional.mse_loss, plan="data")
    >>> step(torch.ones(4, 3), torch.ones(4, 1)) > step(torch.ones(4, 3), torch.ones(4, 1))
    True
    """
    parallel.check_model(model, optimizer)
    for name in settings or {}:
        if not name.startswith(SETTINGS):
            raise RenkeiError(
                f"the setting {name} has no effect on a step of Python's",
                f"the optimizer and the program decide it; settings here begin with {', '.join(SETTINGS)}",
            )
    chosen = {"train.plan": plan, "run.seed": str(seed), "train.loss": "model", **(settings or {})}
    if device_memory is not None:
        chosen["train.device_memory"] = device_memory
    if micro_batches is not None:
        chosen["train.micro_batches"] = str(micro_batches)
    if not isinstance(optimizer, torch.optim.SGD):
        chosen.setdefault("optim.name", "adam")  # what a planner counts as the optimizer's memory
    world.init()
    _agreement.check_same_model(model)
    return TrainStep(model, optimizer, loss, chosen)


class TrainStep:
    """A training under way; made by train_step()."""

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        loss: Callable[..., torch.Tensor] | None,
        settings: dict[str, str],
    ) -> None:
        self._optimizer = optimizer
        self._model = _capture.LossModel(model, loss)
        self._settings = settings
        self._inputs: list[str] = []
        self._aliases: list[tuple[str, str]] = []
        self._unused: list[torch.nn.Parameter] = []
        self._was_trained: list[bool] = []
        self._keys: list[str] = []
        self._training: _engine.StagedTraining | None = None

    def __call__(self, *arguments: Any, **named: Any) -> float:
        tensors = self._model.flatten(arguments, named)
        if self._training is None:
            self._model.note_tensors(arguments, named)
            return self._first_step(tensors)
        if not self._model.model.training or self._trained() != self._was_trained:
            raise RenkeiError(
                "the model is in evaluation mode, or requires_grad of a parameter has changed since the first step",
                "call model.train(), and make a new train_step for other parameters",
            )
        loss = self._training.step(self._gathered(tensors))
        self._update()
        return loss

    def _trained(self) -> list[bool]:
        return [p.requires_grad for p in self._model.parameters()]

    def _update(self) -> None:
        """What the loss does not depend on has no gradient, as in PyTorch: optimizers leave it alone."""
        for parameter in self._unused:
            parameter.grad = None
        self._optimizer.step()

    @property
    def plan(self) -> dict[str, Any]:
        """Who computes what, as in plan.json."""
        return dict(json.loads(self._engine().plan))

    def state_dict(self) -> dict[str, torch.Tensor]:
        """All ranks together: parameters and buffers of the model, complete on rank 0 and empty elsewhere."""
        found: dict[str, torch.Tensor] = {}
        for name in self._engine().names:
            tensor = self._engine().fetch(name)
            if tensor is not None and world.rank() == 0:
                found[name] = tensor.clone()
        if world.rank() == 0:
            found.update({alias: found[name] for alias, name in self._aliases if name in found})
        persistent = set(self._keys)
        return {name.removeprefix("model."): t for name, t in found.items() if name.removeprefix("model.") in persistent}

    def close(self) -> None:
        """Ends the training, on all ranks together."""
        self._engine().close()
        self.release()

    def release(self) -> None:
        """At the end of the program."""
        self._training = None

    def _engine(self) -> _engine.StagedTraining:
        if self._training is None:
            raise RenkeiError("there was no step yet, or the training was closed", "call step(…) first")
        return self._training

    def _first_step(self, tensors: list[torch.Tensor]) -> float:
        """Computed twice, as written and as captured, on whatever ranks."""
        if not self._model.model.training:
            raise RenkeiError("the model is in evaluation mode", "call model.train() before the first step")
        self._keys = list(self._model.model.state_dict())
        for _, tensor in [*self._model.named_parameters(), *self._model.named_buffers()]:
            tensor.data.copy_(world.broadcast(tensor.data))
        self._was_trained = self._trained()
        wanted_loss, wanted = _capture.eager(self._model, tensors)
        parameters = dict(self._model.named_parameters())
        self._unused = [parameters[name] for name, gradient in wanted.items() if gradient is None]
        captured = _capture.capture(self._model, tensors, wanted_loss, wanted)
        self._inputs, self._aliases = captured.inputs, captured.tied
        wanted_loss = world.allreduce(wanted_loss.float())
        means = {name: world.allreduce(g) if g is not None else None for name, g in wanted.items()}
        batch = self._gathered(tensors)
        self._training = _engine.StagedTraining(
            world.world(), captured.text, captured.tied, captured.state, batch, self._settings
        )
        world.add_user(self)
        loss = self._training.step(batch)
        self._compare(loss, float(wanted_loss), means)
        self._update()
        return loss

    def _gathered(self, tensors: list[torch.Tensor]) -> dict[str, torch.Tensor]:
        """The batches of all ranks, one after the other."""
        if world.size() == 1:
            return dict(zip(self._inputs, tensors, strict=True))
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
        return {name: torch.cat(list(parts)) for name, parts in zip(self._inputs, zip(*every, strict=True), strict=True)}

    def _compare(self, loss: float, wanted: float, gradients: dict[str, torch.Tensor | None]) -> None:
        """All ranks come to the same end: a difference on one is one of all."""
        difference = ""
        if self._engine().draws:
            if world.rank() == 0:
                print("note: the model draws random numbers; its capture was compared, its first step was not",
                      file=sys.stderr)
            return
        if abs(loss - wanted) > TOLERANCE * max(abs(wanted), 1e-6):
            difference = f"the loss is {loss:.7g} and not {wanted:.7g}"
        parameters, held = dict(self._model.named_parameters()), set(self._engine().held)
        scale = max((_largest(g) for g in gradients.values() if g is not None), default=0.0)
        for name, gradient in gradients.items():
            if name not in held or gradient is None or difference:
                continue
            here = parameters[name].grad
            limit = TOLERANCE * max(_largest(gradient), 1e-2 * scale)
            # In place: the memory of the device may be full.
            worst = _largest(gradient.sub_(here)) if here is not None else 0.0
            if here is None or not worst <= limit:
                difference = f"the gradient of {name.removeprefix('model.')} differs by {worst:.3g}"
        found = next((text for text in world.allgather_object(difference) if text), "")
        if found:
            raise RenkeiError(
                f"the step is not what the model computes as written: {found}",
                "is the loss a mean over the samples, and does no layer mix them (batch norm)? micro_batches=1 with "
                "plan='data' keeps each rank's batch in one piece",
                code="check",
            )


def _largest(tensor: torch.Tensor) -> float:
    """The largest magnitude, found without memory."""
    return float(torch.linalg.vector_norm(tensor, torch.inf)) if tensor.numel() else 0.0
