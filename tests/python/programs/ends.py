"""A training of two ranks that one of them ends, in a way that the first argument names; the second: data or stages."""

import os
import signal
import sys

import torch
from torch import nn

import renkei

way, plan = sys.argv[1:3]
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
options = {} if plan == "data" else {"settings": {"plan.stages": "2"}}
model = renkei.parallelize(model, optimizer, **options)
for step in range(6):
    rows = 4
    if step == 3 and renkei.rank() == 1:
        if way == "exception":
            raise ValueError("the sample 17 is broken")
        if way == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if way == "shape":
            rows = 3
        if way == "width":
            model(torch.zeros(4, 5))
        if way == "leave":
            break
        if way == "state_dict":
            model.state_dict()
    optimizer.zero_grad()
    model(torch.randn(rows, 6)).square().mean().backward()
    optimizer.step()
