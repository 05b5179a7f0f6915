"""A program for FSDP2 that saves and loads a distributed checkpoint: torchrun --nproc-per-node 2 PROGRAM FOLDER"""

import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
for layer in model:
    if isinstance(layer, nn.Linear):
        fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

generator = torch.Generator().manual_seed(dist.get_rank())
for _ in range(20):
    x = torch.randn(64, 32, generator=generator)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

dcp.save({"model": model.state_dict()}, checkpoint_id=sys.argv[1])
state = {"model": model.state_dict()}
dcp.load(state, checkpoint_id=sys.argv[1])
model.load_state_dict(state["model"])
x = torch.ones(1, 32)
value = model(x).item()  # all ranks together
if dist.get_rank() == 0:
    print(f"loss {loss.item():.4f}, value {value:.4f}")
dist.destroy_process_group()
