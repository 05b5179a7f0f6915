"""Trains up to step END, from the newest checkpoint of FOLDER if there is one, and saves: FOLDER END OUT [OPTIONS]."""

import json
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional

import renkei

folder, end, out = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
options = json.loads(sys.argv[4]) if len(sys.argv) > 4 else {}
torch.manual_seed(5 if not folder.exists() else 6)  # what is loaded holds
layers = [nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 4)]
model = nn.Sequential(*layers)
model[4].weight.requires_grad_(True)
groups = [{"params": model[0].parameters(), "lr": 0.02}, {"params": [*model[2].parameters(), *model[4].parameters()]}]
optimizer = torch.optim.AdamW(groups, lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)
model = renkei.parallelize(model, optimizer, global_batch=True, **options)
step, note = 0, None
if folder.exists():
    if options.get("settings"):
        model(torch.zeros(12, 6))  # placed before it is loaded, which must not matter
    found = renkei.load(folder, model, optimizer, scheduler=scheduler)
    step, note = found["step"], found["note"]
    assert note == {"step": step, "of": (1, 2.5, "x", None)} and torch.equal(found["tensor"], torch.arange(3)), found
while step < end:
    generator = torch.Generator().manual_seed(step)
    x, y = torch.randn(12, 6, generator=generator), torch.randn(12, 4, generator=generator)
    optimizer.zero_grad()
    functional.mse_loss(model(x), y).backward()
    optimizer.step()
    scheduler.step()
    step += 1
saving = renkei.save(
    folder, model, optimizer, step=step, keep=2, asynchronous=end % 2 == 0,
    scheduler=scheduler, note={"step": step, "of": (1, 2.5, "x", None)}, tensor=torch.arange(3),
)  # fmt: skip
with torch.no_grad():
    for parameter in model.parameters():
        if not parameter.isnan().any():
            parameter.add_(0)
saving.wait()
state = model.state_dict()
whole = optimizer.state_dict()
assert sorted(whole["state"]) == list(range(6)), sorted(whole["state"])
if renkei.rank() == 0:
    torch.save((state, whole["state"]), out)
model.close()
