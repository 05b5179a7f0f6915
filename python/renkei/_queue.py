"""Collectives on a thread of their own, beside whatever the program computes.

Ranks may ask for them in different orders. In a round the ranks tell each other what they wait for; what all wait for is
done, in the order of the first rank that takes part, and small reductions of one kind in one piece. A rank that has
joined (it has no more data) takes part with zeros until all have. A rank that never asks is named when the deadline
passes.
"""

import pickle
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from renkei import _engine, world
from renkei.errors import RenkeiError

__all__ = ["Queue", "Request", "Reduction"]

FUSED_BYTES = 64 << 20  # of reductions that are done in one piece
ALONE_BYTES = 4 << 20  # from here on a reduction gains nothing by company
Facts = tuple[Any, ...]


@dataclass(frozen=True)
class Reduction:
    """An allreduce in place, of one contiguous tensor."""

    tensor: torch.Tensor
    op: str  # as the engine calls it


@dataclass
class Request:
    """A collective that was asked for. `facts` must be the same on all ranks."""

    name: str
    kind: str
    facts: Facts
    work: Reduction | Callable[["_engine.Collectives"], Any]
    asked: float = field(default_factory=time.monotonic)
    ended: threading.Event = field(default_factory=threading.Event)
    result: Any = None
    error: BaseException | None = None

    def end(self, result: Any = None, error: BaseException | None = None) -> None:
        """Whoever waits goes on."""
        self.result, self.error = result, error
        self.ended.set()

    def wait(self) -> Any:
        """The result, or the error that there was."""
        self.ended.wait()
        if self.error is not None:
            raise self.error
        return self.result


class Queue:
    """One for each process; made by all ranks together."""

    def __init__(self, stall_seconds: float = 0.0) -> None:
        """`stall_seconds`: how long a rank may be missing where others ask; 0: as long as any wait may take."""
        self._ranks: _engine.QueueRanks | None = _engine.QueueRanks(world.world())
        self._limit = stall_seconds or self._ranks.timeout_seconds
        self._rank, self._size = world.rank(), world.size()
        self._pending: dict[str, Request] = {}
        self._join: Request | None = None
        self._last_joined = -1
        self._known_joined: set[int] = set()
        self._waiting_for: dict[str, list[int]] = {}  # ranks that have not asked, by name
        self._failure: BaseException | None = None
        self._ending = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="renkei collectives", daemon=True)
        self._thread.start()
        world.add_user(self)

    def submit(self, request: Request) -> Request:
        """Begins as soon as all ranks have asked for it."""
        with self._changed:
            if self._failure is not None:
                raise self._failure
            if self._ending:
                raise RenkeiError("the job has ended, and nothing can be exchanged any more")
            if request.name in self._pending:
                raise RenkeiError(
                    f"{request.kind} {request.name} was asked for while one of the same name is under way",
                    "wait for the first (synchronize), or give them different names",
                )
            self._pending[request.name] = request
            self._changed.notify()
        return request

    def join(self) -> int:
        """Takes part in the sums of the others with zeros until all have joined; the rank that did so last."""
        request = Request("join", "join", (), lambda ranks: None)
        with self._changed:
            if self._failure is not None:
                raise self._failure
            self._join = request
            self._changed.notify()
        last = request.wait()
        assert isinstance(last, int)
        return last

    def release(self) -> None:
        """At the end of the program: what is under way is waited for."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join(timeout=5.0)
        self._ranks = None

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._join or self._ending)
                if not self._pending and self._join is None:
                    return
                offered = list(self._pending.values())
            try:
                if not self._round(offered):
                    self._check_deadline(offered)
                    time.sleep(0.0005)
            except BaseException as error:  # told to whoever waits
                self._fail(error)
                return

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._failure = error
            waiting = [*self._pending.values(), *([self._join] if self._join else [])]
            self._pending.clear()
            self._join = None
        for request in waiting:
            request.end(error=error)

    def _round(self, offered: list[Request]) -> bool:
        """Whether something was done."""
        assert self._ranks is not None
        mine = (self._join is not None, [(r.name, r.kind, r.facts) for r in offered])
        texts = self._meet(pickle.dumps(mine), offered)
        told: list[tuple[bool, list[tuple[str, str, Facts]]]] = [pickle.loads(text) for text in texts]
        joined = {rank for rank, (is_joined, wants) in enumerate(told) if is_joined and not wants}
        for rank in sorted(joined - self._known_joined):
            self._last_joined = rank
        self._known_joined = joined
        if len(joined) == self._size:
            self._end_join()
            return True
        active = [rank for rank in range(self._size) if rank not in joined]
        wanted = {rank: {name: (kind, facts) for name, kind, facts in told[rank][1]} for rank in active}
        ready = [name for name in wanted[active[0]] if all(name in wanted[rank] for rank in active)]
        taken: list[Request] = []
        todo: list[Request] = []
        try:
            for name in ready:
                request = self._take(name, wanted[active[0]][name])
                taken.append(request)
                error = _difference(name, wanted, active) or _without(joined, request)
                if error is None:
                    todo.append(request)
                else:
                    request.end(error=error)
            for together in _fused(todo):
                _do(self._ranks, together)
        except BaseException as error:  # nobody else knows of those that were taken
            for request in taken:
                if not request.ended.is_set():
                    request.end(error=error)
            raise
        self._waiting_for = {name: [r for r in active if name not in wanted[r]] for r in active for name in wanted[r]}
        return bool(ready)

    def _meet(self, mine: bytes, offered: list[Request]) -> list[bytes]:
        """What all ranks offer. A rank that asks for nothing does not come."""
        assert self._ranks is not None
        try:
            limit = self._limit if offered else None  # who has joined waits as long as any wait may take
            return self._ranks.allgather(mine, "agreement about collectives", limit)
        except RenkeiError as error:
            if not offered:
                raise
            more = f" and {len(offered) - 1} more" if len(offered) > 1 else ""
            raise RenkeiError(
                f"{offered[0].kind} {offered[0].name}{more} can't be done: {error.message}",
                error.hint,
                code=error.code,
                rank=error.rank,
                host=error.host,
            ) from error

    def _take(self, name: str, told: tuple[str, Facts]) -> Request:
        with self._changed:
            found = self._pending.pop(name, None)
        if found is not None:
            return found
        kind, facts = told  # this rank has joined: zeros of the others' size
        if kind != "allreduce":
            return Request(name, kind, facts, lambda ranks: None)
        dtype, shape, op = facts[:3]
        return Request(name, kind, facts, Reduction(torch.zeros(shape, dtype=dtype), op))

    def _end_join(self) -> None:
        with self._changed:
            request, self._join = self._join, None
        self._known_joined = set()
        if request is not None:
            request.end(self._last_joined)

    def _check_deadline(self, offered: list[Request]) -> None:
        for request in offered:
            if time.monotonic() - request.asked > self._limit:
                missing = ", ".join(str(rank) for rank in self._waiting_for.get(request.name, []))
                raise RenkeiError(
                    f"{request.kind} {request.name} was waited for {self._limit:g} s, and not asked for by rank {missing}",
                    "all ranks must call the same collectives; join() is for a rank that has no more data",
                    code="communication",
                )


def _difference(name: str, wanted: dict[int, dict[str, tuple[str, Facts]]], active: list[int]) -> RenkeiError | None:
    """Ranks that mean different things by one name; all of them find it out."""
    first = wanted[active[0]][name]
    for rank in active[1:]:
        other = wanted[rank][name]
        if other != first:
            return RenkeiError(
                f"{name}: rank {rank} calls {_told(other)}, and rank {active[0]} {_told(first)}",
                "sizes, types and operations must be the same on all ranks",
                code="communication",
            )
    return None


def _told(call: tuple[str, Facts]) -> str:
    kind, facts = call
    return f"{kind} of " + ", ".join(str(list(f) if isinstance(f, tuple) else f).removeprefix("torch.") for f in facts)


def _without(joined: set[int], request: Request) -> RenkeiError | None:
    """What can't be done without the data of ranks that have joined."""
    if not joined or (isinstance(request.work, Reduction) and request.work.op in ("sum", "mean")):
        return None
    return RenkeiError(
        f"{request.kind} {request.name} needs all ranks, and rank {min(joined)} has joined",
        "after a join() only sums and averages go on",
        code="communication",
    )


def _fused(requests: list[Request]) -> list[list[Request]]:
    """Neighbours that can be reduced in one piece."""
    groups: list[list[Request]] = []
    key: tuple[torch.dtype, str] | None = None
    room = 0
    for request in requests:
        work = request.work
        small = isinstance(work, Reduction) and work.tensor.nbytes < ALONE_BYTES
        mine = (work.tensor.dtype, work.op) if isinstance(work, Reduction) and small else None
        size = work.tensor.nbytes if isinstance(work, Reduction) else 0
        if mine is not None and mine == key and size <= room:
            groups[-1].append(request)
            room -= size
        else:
            groups.append([request])
            key, room = mine, FUSED_BYTES - size
    return groups


def _do(ranks: "_engine.Collectives", together: list[Request]) -> None:
    reductions = [r.work for r in together if isinstance(r.work, Reduction)]
    if len(together) > 1:
        flat = torch.cat([work.tensor.reshape(-1) for work in reductions])
        ranks.allreduce(flat, reductions[0].op, f"allreduce {together[0].name} and {len(together) - 1} more")
        for work, part in zip(reductions, torch.split(flat, [w.tensor.numel() for w in reductions]), strict=True):
            work.tensor.copy_(part.view_as(work.tensor))
    elif reductions:
        ranks.allreduce(reductions[0].tensor, reductions[0].op, f"allreduce {together[0].name}")
    for request in together:
        request.end(request.work.tensor if isinstance(request.work, Reduction) else request.work(ranks))
