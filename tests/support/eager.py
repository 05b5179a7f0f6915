"""What a job must give, computed by PyTorch as it is: the same samples in the same parts, SGD with momentum."""

import dataclasses
from collections.abc import Callable
from typing import Protocol

import numpy as np
import random_data
import torch
from torch.nn.functional import cross_entropy

Batch = tuple[list[torch.Tensor], torch.Tensor]
Loss = Callable[[torch.nn.Module, list[torch.Tensor], torch.Tensor], torch.Tensor]


@dataclasses.dataclass(frozen=True)
class Samples:
    """A set of `--data random`: as many samples as a batch, so that an epoch is a step."""

    seed: int
    batch: int
    inputs: tuple[tuple[tuple[int, ...], int | None], ...]  # sizes of a sample, and what numbers are below
    classes: int
    labels: tuple[int, ...] = ()  # the shape of a sample's target

    def step(self, epoch: int) -> Batch:
        parts = [(int(np.prod(sizes)), below) for sizes, below in self.inputs]
        rows, targets = [], []
        for sample in random_data.order(self.seed, self.batch, epoch):
            rows.append(random_data.input_row(self.seed, sample, parts))
            count = int(np.prod(self.labels))
            targets.append(random_data.labels(self.seed, sample, count, self.classes).reshape(self.labels))
        inputs = [torch.from_numpy(np.stack([row[i] for row in rows])).reshape(self.batch, *sizes)
                  for i, (sizes, _) in enumerate(self.inputs)]  # fmt: skip
        return inputs, torch.from_numpy(np.stack(targets))


def outputs_of(result: object) -> list[torch.Tensor]:
    """The tensors that a model returns, its loss or scores first."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict) or hasattr(result, "_asdict"):
        named = dict(result) if isinstance(result, dict) else result._asdict()  # type: ignore[attr-defined]
        first = ("loss", "out", "logits")
        ordered = sorted(named, key=lambda name: name not in first)
        return [named[name] for name in ordered if isinstance(named[name], torch.Tensor)]
    assert isinstance(result, (tuple, list))
    return [value for value in result if isinstance(value, torch.Tensor)]


def scored(result: object, target: torch.Tensor, auxiliary_weight: float = 0.4) -> torch.Tensor:
    """The mean cross entropy, that of further outputs of the same shape by their weight."""
    outputs = outputs_of(result)
    loss = cross_entropy(outputs[0], target)
    for output in outputs[1:]:
        if output.shape == outputs[0].shape:
            loss = loss + auxiliary_weight * cross_entropy(output, target)
    return loss


@dataclasses.dataclass(frozen=True)
class Job:
    steps: int
    lr: float
    momentum: float
    parts: int  # ranks, or micro-batches: batch normalisation sees one part at a time
    own_buffers: bool  # of each part, averaged at the end: ranks; or one after the other: micro-batches


@dataclasses.dataclass
class Trained:
    losses: list[float]
    state: dict[str, torch.Tensor]


class Batches(Protocol):
    """The samples of a step, which is an epoch."""

    def step(self, epoch: int) -> Batch: ...


def train(model: torch.nn.Module, samples: Batches, loss_of: Loss, job: Job) -> Trained:
    """Trains the model in place."""
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=job.lr, momentum=job.momentum)
    buffers = dict(model.named_buffers())
    kept = [{name: value.clone() for name, value in buffers.items()} for _ in range(job.parts)]
    losses = []
    for epoch in range(job.steps):
        inputs, target = samples.step(epoch)
        optimizer.zero_grad()
        total = 0.0
        for part in range(job.parts):
            here = slice(len(target) * part // job.parts, len(target) * (part + 1) // job.parts)
            if job.own_buffers:
                _copy(kept[part], buffers)
            loss = loss_of(model, [tensor[here] for tensor in inputs], target[here])
            share = len(target[here]) / len(target)
            (loss * share).backward()
            total += loss.item() * share
            if job.own_buffers:
                _copy(buffers, kept[part])
        optimizer.step()
        losses.append(total)
    if job.own_buffers:
        _copy({name: _mean([one[name] for one in kept]) for name in buffers}, buffers)
    return Trained(losses, {name: value.detach() for name, value in model.state_dict().items()})


def _copy(source: dict[str, torch.Tensor], target: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for name, value in source.items():
            target[name].copy_(value)


def _mean(values: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(values).mean(0) if values[0].is_floating_point() else values[0]
