"""torch.distributed with Gloo, what DDP uses: prints {"size": microseconds, …} on rank 0.
usage: torch_allreduce.py RANK RANKS DIRECTORY ROUNDS SIZE_BYTES…"""

import json
import statistics
import sys
import time

import torch
import torch.distributed as dist

rank, ranks, directory, rounds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{directory}/rendezvous", rank=rank, world_size=ranks)


def once(buffer, repetitions):
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(repetitions):
        dist.all_reduce(buffer)
    seconds = torch.tensor([(time.perf_counter() - begin) / repetitions], dtype=torch.float64)
    dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    return seconds.item()


result = {}
for size in map(int, sys.argv[5:]):
    numbers = torch.zeros(size // 4)
    once(numbers, 1)
    times = max(1, min(200, int(4e-3 / once(numbers, 2))))
    result[size] = statistics.median(once(numbers, times) for _ in range(rounds)) * 1e6
if rank == 0:
    print(json.dumps(result))
