"""Rank 1 asks for another collective than rank 0, or for none: who waits in vain is told so by the deadline."""

import os
import sys
import time

import torch

import renkei.horovod.torch as hvd

os.environ["HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"] = "3"
hvd.init()
if sys.argv[1] == "nothing" and hvd.rank() == 1:
    time.sleep(30)
hvd.allreduce(torch.ones(1), name="only rank 0" if hvd.rank() == 0 else "only rank 1")
