"""Models in stages beside each other, many data parallel ones, and a process group as over several hosts."""

import torch
import torch.distributed as dist
from torch import nn

import renkei
from renkei import _backend, _engine

for _ in range(40):
    model = renkei.parallelize(nn.Linear(2, 2))
    model(torch.ones(1, 2)).sum().backward()
    model.close()

torch.manual_seed(0)
kept = renkei.parallelize(nn.Linear(2, 2))
plain = [nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)) for _ in range(2)]
staged = []
for one in plain:
    other = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    other.load_state_dict(one.state_dict())
    staged.append(renkei.parallelize(other, settings={"plan.stages": "2"}))

# As if each rank were on a host of its own.
_backend._host_identity = lambda: f"host{renkei.rank()} boot pid 0"
dist.init_process_group("renkei")
assert _engine.taken_group_numbers(renkei.world.world()), "the group goes through the job's messages"
value = torch.ones(3)
dist.all_reduce(value)

x = torch.randn(3, 4)  # the same everywhere
for _ in range(2):
    wanted = [one(x).square().mean() for one in plain]
    found = [one(x).square().mean() for one in staged]  # both under way
    for loss in (*wanted, *found):
        loss.backward()
    dist.all_reduce(value)
for one, other in zip(plain, staged, strict=True):
    for ours, theirs in zip(other.parameters(), one.parameters(), strict=True):
        assert ours.grad is None or torch.allclose(ours.grad, theirs.grad, atol=1e-6)
    other.close()
kept(torch.ones(1, 2)).sum().backward()
assert torch.equal(value, torch.full((3,), float(renkei.size() ** 3)))
print("equal")  # the group is never destroyed
