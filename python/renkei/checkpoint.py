"""Checkpoints that any plan and any number of ranks can go on from; docs/checkpoints.md describes the files.

Each rank writes what it has and no rank before it; the manifest comes last. Nothing is pickled: tensors are safetensors,
all else is JSON.
"""

import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from renkei import _engine, _plain_values, world
from renkei.errors import RenkeiError
from renkei.parallel import Parallel

__all__ = ["Saving", "load", "save"]

Named = list[tuple[str, torch.Tensor]]


def save(
    folder: str | Path,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    step: int | None = None,
    keep: int | None = None,
    asynchronous: bool = False,
    **extra: Any,
) -> "Saving":
    """All ranks together: a checkpoint in `folder`, beside those that are there; `keep` removes all but the last ones.

    `extra` is numbers, texts, tensors, lists, tuples and dictionaries of these, and objects with a state_dict() of
    these, such as schedulers and renkei.data's batches. `asynchronous`: returns when all is copied; wait() on what is
    returned completes it.

    >>> import tempfile
    >>> folder, model = tempfile.mkdtemp(), torch.nn.Linear(2, 2)
    >>> saved = save(folder, model, epoch=3)
    >>> load(folder, model)["epoch"]
    3
    """
    _meet(model, _engine.Purpose.save)
    previous = Saving.under_way
    if previous is not None:
        previous.wait()
    at = world.broadcast_object((_engine.newest_step(str(folder)) + 1,) if step is None else (step,))[0]
    notes, tensors = _collect(model, optimizer, extra)
    return Saving(Path(folder), at, notes, tensors, keep or 0, asynchronous)


class Saving:
    """A checkpoint on its way to the disk."""

    under_way: "Saving | None" = None

    def __init__(
        self, folder: Path, step: int, notes: dict[str, Any], tensors: Named, keep: int, asynchronous: bool
    ) -> None:
        self.step = step
        self.directory = Path(_engine.checkpoint_directory(str(folder), step))
        self._notes, self._keep = {"python": json.dumps(notes)}, keep
        self._written = ""
        self._failure: Exception | None = None
        self._done = False
        failure = ""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            if asynchronous:
                with _engine.HostMemory():  # a device has no room for all of it twice
                    tensors = [(name, tensor.clone(memory_format=torch.contiguous_format)) for name, tensor in tensors]
        except Exception as error:
            failure = _told(error)
        _all_or_none(failure)
        if asynchronous:
            self._thread: threading.Thread | None = threading.Thread(target=self._write, args=(tensors,))
            self._thread.start()
            Saving.under_way = self
        else:
            self._thread = None
            self._write(tensors)
            self.wait()

    def wait(self) -> None:
        """All ranks together: returns when the checkpoint is complete; throws an error when it can't be."""
        if self._done:
            return
        self._done = True
        Saving.under_way = None
        if self._thread is not None:
            self._thread.join()
        _all_or_none(_told(self._failure) if self._failure is not None else "")
        shards = world.allgather_object(self._written)
        failure = ""
        if world.rank() == 0:
            try:
                _engine.write_manifest(str(self.directory), shards, self.step, self._notes, self._keep)
            except Exception as error:  # the others wait to hear of it
                failure = _told(error)
        _all_or_none(failure)

    def _write(self, tensors: Named) -> None:
        try:
            file = self.directory / _engine.shard_name(world.rank())
            self._written = _engine.write_shard(str(file), tensors)
        except Exception as error:
            self._failure = error


def load(
    folder: str | Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None = None, **extra: Any
) -> dict[str, Any]:
    """All ranks together: goes on from the newest checkpoint of `folder` that is whole; returns what `extra` was.

    Objects with a load_state_dict(), given by the names that they were saved under, are loaded.
    """
    _meet(model, _engine.Purpose.load)
    found = _engine.Checkpoint(world.world(), str(folder))
    if found.skipped and world.rank() == 0:
        print(f"warning: {found.skipped}", flush=True)
    notes = json.loads(found.notes.get("python", "{}"))
    _load_model(found, model, notes)
    if optimizer is not None:
        _load_optimizer(found, model, optimizer, notes)
    state = f"rng/{world.rank()}"
    if notes.get("ranks") == world.size() and state in found.names:
        torch.set_rng_state(found.get(state))
    values: dict[str, Any] = {"step": found.step}
    for key, value in notes.get("extra", {}).items():
        values[key] = _plain_values.decoded(value, found.get)
    for name, thing in extra.items():
        if name not in values:
            raise RenkeiError(f"the checkpoint {folder} has no '{name}'", f"it has {', '.join(values)}", code="data")
        thing.load_state_dict(values[name])
    return values


# --- what there is to save ---


def _meet(model: torch.nn.Module, purpose: _engine.Purpose) -> None:
    if isinstance(model, Parallel):
        model._job.meet(purpose)


def _told(error: Exception) -> str:
    """Never empty: that would say that all is well."""
    return (error.message if isinstance(error, RenkeiError) else str(error)) or type(error).__name__


def _all_or_none(failure: str) -> None:
    for rank, text in enumerate(world.allgather_object(failure)):
        if text:
            raise RenkeiError(
                f"rank {rank} could not save: {text}", "check the disk; older checkpoints are as they were", code="data",
                rank=rank,
            )


def _owner(model: torch.nn.Module, name: str) -> int | None:
    return model._job.owner(name) if isinstance(model, Parallel) else None


def _is_held(model: torch.nn.Module, name: str) -> bool:
    return model._job.is_held(name) if isinstance(model, Parallel) else True


def _plain(model: torch.nn.Module) -> torch.nn.Module:
    return model.module if isinstance(model, Parallel) else model


def _tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in _plain(model).state_dict(keep_vars=True).items():
        if isinstance(value, torch.Tensor):
            yield name, value


def _collect(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer | None, extra: dict[str, Any]
) -> tuple[dict[str, Any], Named]:
    """The notes, and the tensors that this rank writes."""
    writers = itertools.cycle(range(world.size()))  # of what all have
    mine: Named = []
    tied: dict[str, str] = {}
    first: dict[int, str] = {}

    def give(name: str, tensor: torch.Tensor, owner: int | None) -> None:
        if (next(writers) if owner is None else owner) == world.rank():
            mine.append((name, tensor.detach()))

    for name, tensor in _tensors(model):
        known = first.setdefault(id(tensor), name)
        if known != name:
            tied[name] = known
        else:
            give(name, tensor, _owner(model, name))
    notes: dict[str, Any] = {"tied": tied, "ranks": world.size()}
    if optimizer is not None:
        numbers: dict[str, dict[str, Any]] = {}
        for name, parameter in _parameters(model, optimizer):
            owner = _owner(model, name)
            for key, value in sorted(optimizer.state.get(parameter, {}).items()):
                if isinstance(value, torch.Tensor):
                    give(f"optimizer/{key}/{name}", value, owner)
                elif world.rank() == (owner or 0):
                    numbers.setdefault(name, {})[key] = value
        notes["optimizer"] = _merged(world.allgather_object(numbers))
        notes["groups"] = _groups(model, optimizer)
    mine.append((f"rng/{world.rank()}", torch.get_rng_state()))
    notes["extra"] = {}
    for key, value in extra.items():
        state = value.state_dict() if hasattr(value, "state_dict") else value
        try:
            notes["extra"][key], tensors = _plain_values.encoded(state, f"extra/{key}")
        except TypeError as error:
            raise RenkeiError(
                f"'{key}' can't be saved: {error}",
                "give numbers, texts, tensors, and lists, tuples and dictionaries of these",
            ) from error
        for name, tensor in tensors.items():
            give(name, tensor, 0)
    if isinstance(model, Parallel):
        notes["calls"] = model._job.calls
    return notes, mine


def _merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


def _parameters(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The optimizer's, in its order, by name; those of other modules by number."""
    names = {id(p): name for name, p in _plain(model).named_parameters()}
    every = (p for group in optimizer.param_groups for p in group["params"])
    for number, parameter in enumerate(every):
        yield names.get(id(parameter), f"parameter {number}"), parameter


def _groups(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    names = {id(p): name for name, p in _parameters(model, optimizer)}
    groups = []
    for group in optimizer.param_groups:
        values = {key: value for key, value in group.items() if key != "params"}
        values = {key: float(v) if isinstance(v, torch.Tensor) and v.numel() == 1 else v for key, v in values.items()}
        groups.append({**values, "params": [names[id(p)] for p in group["params"]]})
    return groups


# --- and to load ---


def _load_model(found: _engine.Checkpoint, model: torch.nn.Module, notes: dict[str, Any]) -> None:
    tied, there = notes.get("tied", {}), set(found.names)
    for name, tensor in _tensors(model):
        saved = tied.get(name, name)
        if saved not in there:
            raise RenkeiError(f"the checkpoint has no {name}", "load it into the model that it was saved from",
                              code="data")
        if _is_held(model, name):
            with torch.no_grad():
                found.read(saved, tensor.data)
    if isinstance(model, Parallel):
        model._job.calls = int(notes.get("calls", 0))


def _load_optimizer(
    found: _engine.Checkpoint, model: torch.nn.Module, optimizer: torch.optim.Optimizer, notes: dict[str, Any]
) -> None:
    if "groups" not in notes:
        raise RenkeiError("the checkpoint has no optimizer", "load it without one", code="data")
    names = [[name for name in group["params"]] for group in notes["groups"]]
    here = [group["params"] for group in _groups(model, optimizer)]
    if names != here:
        raise RenkeiError(
            "the checkpoint's optimizer has other parameters, or groups of them, than this one",
            "make the same parameter groups",
            code="data",
        )
    states: dict[str, dict[str, str]] = {}
    for tensor in found.names:
        kind, _, rest = tensor.partition("/")
        if kind == "optimizer":
            key, _, parameter = rest.partition("/")
            states.setdefault(parameter, {})[key] = tensor
    for name, value in _parameters(model, optimizer):
        if not _is_held(model, name):
            continue
        state: dict[str, Any] = {key: found.get(tensor) for key, tensor in states.get(name, {}).items()}
        state.update(notes["optimizer"].get(name, {}))
        if state:
            optimizer.state[value] = state
    for group, saved in zip(optimizer.param_groups, notes["groups"], strict=True):
        for key, item in saved.items():
            if key != "params":
                group[key] = tuple(item) if isinstance(group.get(key), tuple) else item
