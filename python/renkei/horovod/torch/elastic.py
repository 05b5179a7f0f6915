"""Horovod's elastic training in a job whose ranks stay the same.

A state can be committed, restored and synchronised, and `run` begins with rank 0's state on all ranks. Ranks never come
or go: one that is lost ends the job, and `renkei run --restarts` begins it again; so callbacks for a new size are kept
and not called.
"""

import copy
import functools
import math
import random
from collections.abc import Callable, Iterator, Sized
from typing import Any

import torch

from renkei.horovod.torch import _basics
from renkei.horovod.torch.functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters

__all__ = ["ElasticSampler", "ObjectState", "State", "TorchState", "run"]


class State:
    """What a training keeps from commit to commit."""

    def __init__(self) -> None:
        self._reset_callbacks: list[Callable[[], None]] = []

    def register_reset_callbacks(self, callbacks: list[Callable[[], None]]) -> None:
        """Kept; the ranks of this job stay the same."""
        self._reset_callbacks.extend(callbacks)

    def commit(self) -> None:
        """Remembers what is now."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """There are none in a job whose ranks stay the same."""

    def save(self) -> None:
        """Remembers what is now, for restore()."""

    def restore(self) -> None:
        """What the last commit has remembered."""

    def sync(self) -> None:
        """Rank 0's state, on all ranks."""


class ObjectState(State):
    """Attributes that pickle takes: epoch, batch …"""

    def __init__(self, **values: Any) -> None:
        super().__init__()
        self._kept = dict(values)
        self.__dict__.update(values)

    def save(self) -> None:
        self._kept = {name: copy.deepcopy(getattr(self, name)) for name in self._kept}

    def restore(self) -> None:
        self.__dict__.update(copy.deepcopy(self._kept))

    def sync(self) -> None:
        if self._kept:
            self.__dict__.update(broadcast_object({name: getattr(self, name) for name in self._kept}))
            self.save()


class TorchState(ObjectState):
    """Models, optimizers and samplers among the attributes are kept by their state dicts.

    >>> _basics.init()
    >>> state = TorchState(model=torch.nn.Linear(1, 1), epoch=0)
    >>> state.epoch = 3
    >>> state.restore()
    >>> state.epoch
    0
    """

    def __init__(self, model: Any = None, optimizer: Any = None, **values: Any) -> None:
        given = {"model": model, "optimizer": optimizer, **values}
        self._with_state = {name: value for name, value in given.items() if hasattr(value, "state_dict")}
        super().__init__(**{name: value for name, value in values.items() if name not in self._with_state})
        self.__dict__.update(given)
        self._states: dict[str, Any] = {}
        self.save()

    def save(self) -> None:
        super().save()
        self._states = {name: copy.deepcopy(value.state_dict()) for name, value in self._with_state.items()}

    def restore(self) -> None:
        super().restore()
        for name, value in self._with_state.items():
            value.load_state_dict(copy.deepcopy(self._states[name]))

    def sync(self) -> None:
        for value in self._with_state.values():
            if isinstance(value, torch.nn.Module):
                broadcast_parameters(value.state_dict(), root_rank=0)
            elif isinstance(value, torch.optim.Optimizer):
                broadcast_optimizer_state(value, root_rank=0)
            else:
                value.load_state_dict(broadcast_object(value.state_dict()))
        super().sync()
        self.save()


def run(function: Callable[..., Any]) -> Callable[..., Any]:
    """function(state, …) begins with rank 0's state."""

    @functools.wraps(function)
    def begin(state: State, *arguments: Any, **named: Any) -> Any:
        state.sync()
        return function(state, *arguments, **named)

    return begin


class ElasticSampler(torch.utils.data.Sampler[int]):
    """Deals the samples of an epoch out to the ranks, without those that were recorded as done.

    >>> _basics.init()
    >>> sampler = ElasticSampler(range(4), shuffle=False)
    >>> sampler.record_batch(0, 3)
    >>> sampler.reset()
    >>> list(sampler)
    [3]
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = self.processed_num = 0
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """At the end of an epoch: all samples again, in another order."""
        self.epoch, self.processed_num = epoch, 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """A batch was done, by this rank and as many samples by each other."""
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self) -> dict[str, int]:
        """Where the epoch is."""
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Goes on from there, on any number of ranks."""
        self.epoch, self.processed_num = state_dict["epoch"], state_dict["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Deals out what is left."""
        self.num_replicas, self.rank = _basics.size(), _basics.rank()
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        self.remaining_indices = order[self.processed_num :]
        self.num_samples = math.ceil(len(self.remaining_indices) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        left = self.remaining_indices
        repeated = [left[i % len(left)] for i in range(self.total_size)] if left else []
        return iter(repeated[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
