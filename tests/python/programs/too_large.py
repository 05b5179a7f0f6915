"""The tutorial's network, with so little memory for each rank that it must be cut into stages."""

import sys

import torch
from torch import nn, optim
from torch.nn import functional

import renkei

hidden, layers, memory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.manual_seed(0)
model = nn.Sequential(*(layer for _ in range(layers) for layer in (nn.Linear(hidden, hidden), nn.ReLU())))
step = renkei.train_step(model, optim.SGD(model.parameters(), lr=0.1), functional.mse_loss, device_memory=memory)
generator = torch.Generator().manual_seed(renkei.rank())
x, target = torch.randn(2, 8, hidden, generator=generator)
losses = [step(x, target) for _ in range(5)]
assert losses[-1] < losses[0], losses
assert step.plan["stages"] > 1, step.plan
step.close()
