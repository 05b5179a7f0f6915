"""Rank 1 asks for another collective than rank 0: both wait in vain, and the deadline names it."""

import os

import torch

import renkei.horovod.torch as hvd

os.environ["HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"] = "3"
hvd.init()
hvd.allreduce(torch.ones(1), name="only rank 0" if hvd.rank() == 0 else "only rank 1")
