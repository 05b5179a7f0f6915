"""python backend_fails.py KIND: what rank 1 does to the others, who say so within their deadline of 3 s."""

import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

kind = sys.argv[1]
rank = int(os.environ["RANK"])
if kind == "missing" and rank == 1:
    time.sleep(6)
    sys.exit(0)
dist.init_process_group("renkei", timeout=timedelta(seconds=3))
dist.all_reduce(torch.ones(100_000))
begin = time.monotonic()
try:
    if kind == "sizes":
        dist.all_reduce(torch.ones(100_000 + rank))
    elif kind == "parts":
        dist.all_gather([torch.ones(10 + rank) for _ in range(2)], torch.ones(10 + rank))
    elif kind == "one" and rank == 0:
        dist.all_reduce(torch.ones(100_000))
    elif kind == "one":
        time.sleep(6)
    elif kind == "different":
        dist.all_reduce(torch.ones(10)) if rank == 0 else dist.broadcast(torch.ones(10), 0)
    elif kind == "message" and rank == 0:
        dist.recv(torch.ones(10), 1)
    elif kind == "message":
        time.sleep(6)
    elif kind == "kill":
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(torch.ones(100_000))
except RuntimeError as error:
    print(f"rank {rank} after {time.monotonic() - begin:.1f} s: {error}", file=sys.stderr, flush=True)
    os._exit(7)
