"""Data sets and evaluations that the ranks divide among them."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from renkei import world
from renkei.errors import RenkeiError

__all__ = ["evaluate_all", "scatter_dataset"]


def scatter_dataset(
    dataset: Any, *, root: int = 0, shuffle: bool = False, seed: int | None = None, force_equal_length: bool = True
) -> "torch.utils.data.Dataset[Any]":
    """This rank's share of a data set. All ranks call it; those without the data give None and get theirs from `root`.

    `shuffle`: samples are dealt out in the order of `seed`, or of a random one that all ranks share. With
    `force_equal_length` all shares are as long, and some samples belong to two ranks where they do not divide.

    >>> len(scatter_dataset([1, 2, 3]))
    3
    """
    ranks, mine = world.size(), world.rank()
    has: list[tuple[bool, int]] = world.allgather_object((dataset is not None, 0 if dataset is None else len(dataset)))
    if not has[root][0]:
        raise RenkeiError(f"rank {root} gives no data set to scatter", "root must be a rank that has it")
    count = has[root][1]
    for rank, (given, length) in enumerate(has):
        if given and length != count:
            raise RenkeiError(f"rank {rank} has {length} samples and rank {root} {count}", "give the same data set, or None")
    if force_equal_length and count < 1:
        raise RenkeiError("the data set has no samples", "shares of equal length need one at least")
    order = list(range(count))
    if shuffle:
        chosen = world.allgather_object(random.randrange(1 << 62) if seed is None else seed)[root]
        random.Random(chosen).shuffle(order)
    share = -(-count // ranks)
    shares = [
        order[count * r // ranks :][:share] if force_equal_length else order[count * r // ranks : count * (r + 1) // ranks]
        for r in range(ranks)
    ]
    if all(given for given, _ in has):
        return torch.utils.data.Subset(dataset, shares[mine])
    # Only root has the samples: everyone without them gets its share as a list.
    sent = {r: [dataset[i] for i in shares[r]] for r in range(ranks) if not has[r][0]} if mine == root else {}
    received: dict[int, list[Any]] = world.allgather_object(sent)[root]
    if dataset is not None:
        return torch.utils.data.Subset(dataset, shares[mine])
    return _Samples(received[mine])


class _Samples(torch.utils.data.Dataset[Any]):
    def __init__(self, samples: Sequence[Any]) -> None:
        self._samples = samples

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, at: int) -> Any:
        return self._samples[at]


def evaluate_all(
    evaluate: Callable[..., Mapping[str, float]], *arguments: Any, weight: float = 1.0, **named: Any
) -> dict[str, float]:
    """What evaluate(…) gives, as the mean over all ranks; `weight`: how many samples this rank evaluates.

    >>> evaluate_all(lambda: {"loss": 0.5, "accuracy": 0.75})
    {'loss': 0.5, 'accuracy': 0.75}
    """
    mine = {name: float(value) for name, value in evaluate(*arguments, **named).items()}
    everyone = world.allgather_object((float(weight), mine))
    for rank, (_, theirs) in enumerate(everyone):
        if theirs.keys() != everyone[0][1].keys():
            raise RenkeiError(
                f"rank {rank} evaluates {sorted(theirs)}, and rank 0 {sorted(everyone[0][1])}",
                "all ranks must give the same names",
            )
    total = sum(w for w, _ in everyone)
    if total <= 0:
        raise RenkeiError("no rank has evaluated a sample", "give weight= the number of this rank's samples")
    # What a rank without samples gives may be no number.
    return {name: sum(w * theirs[name] for w, theirs in everyone if w > 0) / total for name in mine}
