"""Trains an MLP: BATCH HIDDEN LAYERS. tutorial_plain.py is plain PyTorch, tutorial.py the same on many ranks."""

import os
import sys

import torch
from torch import nn, optim


class Net(nn.Module):
    """Dense layers with ReLU between them."""

    def __init__(self, hidden: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


batch_size, hidden, layers = map(int, sys.argv[1:4])
torch.manual_seed(0)
model = Net(hidden, layers)
if os.environ.get("RANK", "0") == "0":
    print(f"#Parameters={sum(p.numel() for p in model.parameters())}")
opt = optim.SGD(model.parameters(), lr=0.01)

for _ in range(10):
    x = torch.randn(batch_size, hidden)
    target = torch.randn_like(x)
    opt.zero_grad()
    out = model(x)
    out.backward(target)
    opt.step()
