"""A program for DistributedDataParallel: torchrun --nproc-per-node 2 PROGRAM"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

generator = torch.Generator().manual_seed(dist.get_rank())
for _ in range(20):
    x = torch.randn(64, 32, generator=generator)
    y = x.sum(1, keepdim=True)
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

dist.all_reduce(loss.detach(), dist.ReduceOp.AVG)
if dist.get_rank() == 0:
    print(f"loss {loss.item():.4f}")
dist.destroy_process_group()
