"""One rank fails, in a way that the first argument names; the others wait for it."""

import os
import signal
import sys

import renkei

way, culprit = sys.argv[1], int(sys.argv[2])
renkei.init()
if renkei.rank() == culprit:
    if way == "exception":
        raise ValueError("the sample 17 is broken")
    if way == "exit":
        sys.exit(9)
    if way == "sentence":
        raise renkei.RenkeiError("the data set is empty", "download it first", code="data")
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
renkei.barrier()
