"""Data sets larger than memory: read ahead by the engine, in an order that a restart does not change."""

from collections.abc import Iterator
from typing import Any

import torch

from renkei import _engine, world
from renkei.errors import RenkeiError

__all__ = ["Batches", "open"]


def open(  # noqa: A001
    path: str,
    *,
    batch_size: int,
    held_out: bool = False,
    shuffle: bool | None = None,
    seed: int = 1,
    image_size: tuple[int, int] | None = None,
    augment: bool | None = None,
    drop_last: bool = True,
    settings: dict[str, str] | None = None,
) -> "Batches":
    """Batches of `batch_size` samples for each rank: dictionaries of tensors, by the names of the data's fields.

    `path` is a folder of images, tar shards, npy, npz, HDF5 or TFRecord files, or s3://… of these (docs/data.md). Images
    become float32 of `image_size` (height, width); in training they are cropped and mirrored at random (`augment`). The
    order depends on `seed` and epoch only. `settings` are those of the command line that begin with "data.".
    """
    made = _engine.Batches(
        world.world(),
        path,
        held_out,
        batch_size,
        not held_out if shuffle is None else shuffle,
        seed,
        image_size,
        image_size is not None if augment is None else augment,
        settings or {},
    )
    return Batches(made, batch_size, drop_last)


class Batches:
    """An iterable over the batches of one epoch after the other; made by open()."""

    def __init__(self, made: _engine.Batches, batch_size: int, drop_last: bool) -> None:
        self._made: _engine.Batches | None = made
        self._samples, self._classes = made.count, made.classes
        whole = made.count // (batch_size * world.size())
        self._steps = whole if drop_last else made.steps
        if self._steps == 0:
            raise RenkeiError(
                f"the data has {made.count} samples, less than one batch of all ranks ({batch_size * world.size()})",
                "choose a smaller batch_size, or drop_last=False",
            )
        self._epoch = self._step = 0
        world.add_user(self)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self._steps

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        """What is left of the epoch; the next iteration is the next epoch. Tensors lie where they were loaded to."""
        while self._step < self._steps:
            if self._made is None:
                raise RenkeiError("the data was closed", "open it again")
            batch = dict(self._made.load(self._epoch, self._step))
            self._step += 1
            yield batch
        self._epoch, self._step = self._epoch + 1, 0

    @property
    def samples(self) -> int:
        """Of an epoch, on all ranks together."""
        return self._samples

    @property
    def classes(self) -> int:
        """Of the labels; 0: there are none."""
        return self._classes

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration is: the next batch, on whatever ranks of the same number."""
        return {"epoch": self._epoch, "step": self._step, "steps": self._steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from there."""
        if state["steps"] != self._steps:
            raise RenkeiError(
                f"the state is of epochs of {state['steps']} batches, and here they have {self._steps}",
                "open the same data with the same batch over all ranks",
            )
        self._epoch, self._step = int(state["epoch"]), int(state["step"])

    def close(self) -> None:
        """All ranks together."""
        if self._made is not None:
            self._made.close()
        self.release()

    def release(self) -> None:
        """At the end of the program."""
        self._made = None
