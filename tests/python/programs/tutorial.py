"""The tutorial's training against plain PyTorch on the ranks' batches joined: BATCH HIDDEN LAYERS [DEVICE_MEMORY]."""

import sys

import torch
from torch import nn, optim

import renkei

batch_size, hidden, layers = map(int, sys.argv[1:4])
options = {"device_memory": sys.argv[4]} if len(sys.argv) > 4 else {}
rank, size = renkei.rank(), renkei.size()


def train(model, batches, wrap):
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    model = wrap(model, optimizer)
    for x, target in batches:
        optimizer.zero_grad()
        model(x).backward(target)
        optimizer.step()
    if options and hasattr(model, "plan"):
        assert model.plan["stages"] > 1, model.plan
    state = model.state_dict()
    if hasattr(model, "close"):  # and with it the device's limit
        model.close()
    return list(state.values())


def net():
    torch.manual_seed(0)
    return nn.Sequential(*(layer for _ in range(layers) for layer in (nn.Linear(hidden, hidden), nn.ReLU())))


generator = torch.Generator().manual_seed(1)
steps = [torch.randn(2, size, batch_size, hidden, generator=generator) for _ in range(10)]
# In float64: in float32 a ReLU whose input is nearly 0 is switched by rounding, and not in every order of the same sums.
joined = [(x.flatten(0, 1).double(), t.flatten(0, 1).double() / size) for x, t in steps]
plain = train(net().double(), joined, lambda model, _: model)
ours = train(net(), [(x[rank], t[rank]) for x, t in steps], lambda *given: renkei.parallelize(*given, **options))
worst = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(ours, plain))
assert worst <= 1e-6, worst
