"""Steps with the loss given, data parallel and in stages, against plain PyTorch on the joined batches."""

import sys

import torch
from torch import nn
from torch.nn import functional

import renkei

rank, size = renkei.rank(), renkei.size()
torch.set_num_threads(1)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.middle, self.out = nn.Embedding(11, 8), nn.Linear(8, 8), nn.Linear(8, 11, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, x, *, scale=1.0):
        return self.out(torch.tanh(self.middle(self.embed(x)))).transpose(1, 2) * scale


def mlp():
    return nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(6, 6), nn.Tanh())))


CASES = [
    ("mlp", mlp, functional.mse_loss, lambda g: (torch.randn(4, 6, generator=g), torch.randn(4, 6, generator=g)), {}),
    ("tied", Tied, functional.cross_entropy,
     lambda g: (torch.randint(11, (4, 5), generator=g), torch.randint(11, (4, 5), generator=g)), {"scale": 0.5}),
]


def batches(make, step):
    return [make(torch.Generator().manual_seed(100 * step + r)) for r in range(size)]


def check(name, make, loss, make_batch, named, **options):
    torch.manual_seed(3)
    plain = make()
    other = torch.optim.AdamW(plain.parameters(), lr=0.01)
    torch.manual_seed(3 if rank == 0 else 50)
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    step = renkei.train_step(model, optimizer, loss, **options)
    for number in range(4):
        every = batches(make_batch, number)
        ours = step(*every[rank], **named)
        x, y = (torch.cat(parts) for parts in zip(*every))
        other.zero_grad()
        wanted = loss(plain(x, **named), y)
        wanted.backward()
        other.step()
        value = wanted.item()
        assert abs(ours - value) < 1e-5 * max(1, abs(value)), (name, number, ours, value)
        if number == 1:
            optimizer.zero_grad()  # whatever the program does with gradients between steps
    state = step.state_dict()
    if rank == 0:
        again = make()
        again.load_state_dict(state, strict=True)
        for key, value in plain.state_dict().items():
            torch.testing.assert_close(state[key], value, rtol=1e-5, atol=1e-6, msg=lambda m: f"{name}: {key}: {m}")
    plan = step.plan
    step.close()
    return plan


for name, make, loss, make_batch, named in CASES:
    check(name, make, loss, make_batch, named, plan="data")
    check(name, make, loss, make_batch, named, plan="data", micro_batches=2)
if "stages" in sys.argv:
    plan = check(*CASES[0], plan="auto", settings={"plan.stages": str(size)}, micro_batches=2)
    assert plan["stages"] == size, plan
print("equal")
