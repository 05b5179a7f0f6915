"""RaNNC's tutorial: an MLP whose layers may not fit one device: BATCH HIDDEN LAYERS."""

import sys

import torch
from torch import nn, optim

import renkei.pyrannc as pyrannc


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
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net(hidden, layers)
if pyrannc.get_rank() == 0:
    print(f"#Parameters={sum(p.numel() for p in model.parameters())}")
model.to(device)
opt = optim.SGD(model.parameters(), lr=0.01)
model = pyrannc.RaNNCModule(model, opt)

for _ in range(10):
    x = torch.randn(batch_size, hidden, requires_grad=True).to(device)
    opt.zero_grad()
    out = model(x)
    target = torch.randn_like(out)
    out.backward(target)
    opt.step()

pyrannc.barrier()
state = model.state_dict()
if pyrannc.get_rank() == 0:
    print(f"state of {len(state)} tensors, norm {sum(t.double().square().sum() for t in state.values()) ** 0.5:.6f}")
