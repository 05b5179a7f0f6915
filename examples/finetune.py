"""Fine-tuning: the body is frozen but for its last layer, which learns more slowly than the new head: [FOLDER].

    renkei run -n 2 examples/finetune.py
    renkei run -n 3 examples/finetune.py checkpoints    # goes on where it was, on whatever ranks

Two parameter groups with rates of their own, a scheduler over both, and a checkpoint that any number of ranks takes.
"""

import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional

import renkei

torch.manual_seed(0)
body = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())  # as if it were pretrained
body[0].requires_grad_(False)
head = nn.Linear(64, 3)
model = nn.Sequential(body, head)
optimizer = torch.optim.AdamW([{"params": body[2].parameters(), "lr": 1e-3}, {"params": head.parameters(), "lr": 1e-2}])
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)
model = renkei.parallelize(model, optimizer)

folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
first = 0
if folder and folder.exists():
    first = renkei.load(folder, model, optimizer, scheduler=scheduler)["step"]

frozen = body[0].weight.detach().clone()
for step in range(first, first + 30):
    generator = torch.Generator().manual_seed(1000 * step + renkei.rank())
    x = torch.randn(16, 20, generator=generator)
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(x), x[:, :3].argmax(1))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
assert torch.equal(body[0].weight, frozen)
if folder:
    renkei.save(folder, model, optimizer, step=first + 30, scheduler=scheduler)
if renkei.rank() == 0:
    print(f"steps {first} to {first + 30}: loss {loss.item():.3f}, rates {[f'{r:.2g}' for r in scheduler.get_last_lr()]}")
