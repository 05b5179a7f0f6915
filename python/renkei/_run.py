"""The run directory of a program: settings, plan, metrics and timeline, for renkei report and renkei watch."""

import time
from collections.abc import Mapping
from pathlib import Path

import torch

from renkei import _engine, world

__all__ = ["Run"]


class Run:
    """What is recorded of a training; steps begin with the first forward after an update."""

    def __init__(self, directory: str | Path, model: torch.nn.Module, settings: dict[str, str]) -> None:
        self.record = _engine.RunRecord(world.world(), str(directory), type(model).__name__, settings)
        self._begins = True  # the next forward begins a step
        self._began = time.perf_counter()
        self._steps = 0
        self._closed = False
        world.add_user(self)

    def forward(self, tensors: list[torch.Tensor]) -> float:
        """Begins, in a training step; returns the time."""
        if self._begins:
            samples = next((t.shape[0] for t in tensors if t.dim()), 1)
            self.record.begin_step(samples * world.size())
            self._begins = False
            self._began = time.perf_counter()
        return self.record.seconds()

    def reduced(self) -> None:
        """Gradients of the step are complete; what follows is the update."""
        self._begins = True

    def log(self, values: Mapping[str, float]) -> None:
        """Of the step under way, or of the one that was the last."""
        given = {name: float(value) for name, value in values.items()}
        self.record.log(max(self.record.step, 0), {"seconds": time.perf_counter() - self._began, **given})

    def log_step(self, loss: float, samples: int) -> None:
        """The loss of a step of so many samples, which the engine records itself."""
        now = time.perf_counter()
        self.record.count_step(samples, now - self._began)
        self.record.log(self._steps, {"loss": loss, "seconds": now - self._began})
        self._steps, self._began = self._steps + 1, now

    def close(self) -> None:
        """All ranks together, at an orderly end."""
        if not self._closed:
            self._closed = True
            self.record.close()

    def release(self) -> None:
        """At the end of the program; what was recorded is there."""
        self._closed = True
