"""A model in stages and the backend share one memory, whoever comes first: backend_pools.py pools|group."""

import pathlib
import sys

import torch
import torch.distributed as dist

import renkei


def is_shared(tensor: torch.Tensor) -> bool:
    """Whether other ranks are let in: it lies in the mapped part of a memory file."""
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        begin, end = (int(number, 16) for number in line.split()[0].split("-"))
        if begin <= tensor.data_ptr() < end:
            return "memfd" in line
    return False


def in_pools() -> None:
    model = renkei.parallelize(torch.nn.Linear(4, 4), settings={"plan.stages": "1"})
    model(torch.ones(2, 4)).sum().backward()


if sys.argv[1] == "pools":
    in_pools()
dist.init_process_group("renkei")
before = torch.ones(300_000)
if sys.argv[1] == "group":
    in_pools()
for value in (before, torch.ones(300_000), torch.ones(100)):
    dist.all_reduce(value)
    assert value[0] == 2 and is_shared(value) == (value.numel() > 1000), value.numel()
    del value
print("shared")
