"""Collectives of torch.distributed: the backend renkei against Gloo, in the same processes, in turns.

.venv/bin/python -m renkei run -n 2 bench/backend.py [--sizes 4096,65536] [--collectives all_reduce,broadcast] [--ddp]
On a busy machine: chrt -f 50 before it.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BACKENDS = ("renkei", "gloo")


def operations(count: int, group: dist.ProcessGroup) -> dict[str, Callable[[], None]]:
    """Each collective on tensors of `count` floats."""
    n, me = dist.get_world_size(), dist.get_rank()
    one, whole = torch.zeros(count), torch.zeros(count * n)
    part, parts = torch.zeros(-(-count // n)), torch.zeros(-(-count // n) * n)
    lists = list(whole.chunk(n))
    source, sent = torch.zeros(count), torch.zeros_like(parts)

    def message() -> None:
        if me == 0:
            dist.send(one, 1, group=group)
            dist.recv(one, 1, group=group)
        elif me == 1:
            dist.recv(one, 0, group=group)
            dist.send(one, 0, group=group)

    return {
        "all_reduce": lambda: dist.all_reduce(one, group=group),
        "broadcast": lambda: dist.broadcast(one, 0, group=group),
        "reduce": lambda: dist.reduce(one, 0, group=group),
        "all_gather": lambda: dist.all_gather(lists, source, group=group),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(whole, source, group=group),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(part, parts, group=group),
        "gather": lambda: dist.gather(source, lists if me == 0 else None, 0, group=group),
        "scatter": lambda: dist.scatter(one, lists if me == 0 else None, 0, group=group),
        "all_to_all_single": lambda: dist.all_to_all_single(parts, sent, group=group),
        "send_and_back": message,
    }


def seconds_of(operation: Callable[[], None], times: int) -> float:
    begin = time.perf_counter()
    for _ in range(times):
        operation()
    return (time.perf_counter() - begin) / times


def compare(sizes: list[int], names: list[str], groups: dict[str, dist.ProcessGroup], rounds: int) -> None:
    """A table of microseconds, the median of the rounds of the slowest rank."""
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks, microseconds\n{'collective':24}{'bytes':>10}", end="")
        print(f"{'renkei':>12}{'gloo':>12}{'times':>8}")
    for size in sizes:
        both = {backend: operations(size // 4, group) for backend, group in groups.items()}
        for name in names or list(both["renkei"]):
            found: dict[str, list[float]] = {backend: [] for backend in BACKENDS}
            times = {}
            for backend in BACKENDS:
                both[backend][name]()
                first = torch.tensor([seconds_of(both[backend][name], 2)])
                dist.all_reduce(first, dist.ReduceOp.MAX, group=groups["renkei"])
                times[backend] = max(3, min(2000, int(0.05 / first.item())))
            for _ in range(rounds):
                for backend in BACKENDS:
                    dist.barrier(groups["renkei"])
                    taken = torch.tensor([seconds_of(both[backend][name], times[backend])])
                    dist.all_reduce(taken, dist.ReduceOp.MAX, group=groups["renkei"])
                    found[backend].append(taken.item() * 1e6)
            if dist.get_rank() == 0:
                ours, theirs = (statistics.median(found[backend]) for backend in BACKENDS)
                print(f"{name:24}{size:10}{ours:12.1f}{theirs:12.1f}{theirs / ours:8.2f}", flush=True)


def compare_ddp(groups: dict[str, dist.ProcessGroup], rounds: int) -> None:
    """Milliseconds of a step of an MLP under DistributedDataParallel."""

    def step_of(group: dist.ProcessGroup) -> Callable[[], None]:
        torch.manual_seed(0)
        layers = [layer for _ in range(10) for layer in (nn.Linear(512, 512), nn.ReLU())]
        model = DistributedDataParallel(nn.Sequential(*layers), process_group=group, gradient_as_bucket_view=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        x, y = torch.randn(32, 512), torch.randn(32, 512)

        def step() -> None:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()

        return step

    steps = {backend: step_of(group) for backend, group in groups.items()}
    found: dict[str, list[float]] = {backend: [] for backend in BACKENDS}
    for step in steps.values():
        seconds_of(step, 3)
    for _ in range(rounds):
        for backend in BACKENDS:
            dist.barrier(groups["renkei"])
            found[backend].append(seconds_of(steps[backend], 10) * 1e3)
    if dist.get_rank() == 0:
        ours, theirs = (statistics.median(found[backend]) for backend in BACKENDS)
        print(f"MLP 10 x 512 under DDP, ms a step: renkei {ours:.2f}, gloo {theirs:.2f}, {theirs / ours:.2f} times")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="8,512,4096,65536,1048576,16777216,67108864")
    parser.add_argument("--collectives", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ddp", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    dist.init_process_group("renkei")
    everyone = list(range(dist.get_world_size()))
    groups = {backend: dist.new_group(everyone, backend=backend) for backend in BACKENDS}
    if options.ddp:
        compare_ddp(groups, options.rounds)
    else:
        names = [name for name in options.collectives.split(",") if name]
        compare([int(size) for size in options.sizes.split(",")], names, groups, options.rounds)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
