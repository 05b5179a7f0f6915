"""A model with tied weights that fits only if it is recomputed in segments, against plain PyTorch."""

import torch
from torch import nn

import renkei

torch.set_num_threads(1)


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(64, 32), nn.Linear(32, 64, bias=False)
        self.out.weight = self.embed.weight
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(32, 256), nn.GELU(), nn.Linear(256, 32)) for _ in range(6))

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = x + layer(x)
        return self.out(x)


def loss_of(model, step):
    generator = torch.Generator().manual_seed(step)
    tokens = torch.randint(0, 64, (8, 17), generator=generator)
    return nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def train(model, optimizer):
    for step in range(3):
        optimizer.zero_grad()
        loss_of(model, step).backward()
        optimizer.step()


torch.manual_seed(3)
plain = Deep()
torch.manual_seed(3)
model = Deep()
train(plain, torch.optim.SGD(plain.parameters(), lr=0.1))  # before memory is limited
wanted = plain.state_dict()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model = renkei.parallelize(model, optimizer, device_memory="2MiB", settings={"plan.stages": "1"})
train(model, optimizer)
assert len(model.plan["stage_list"][0]["segments"]) > 1, model.plan
state = model.state_dict()
for name, value in wanted.items():
    torch.testing.assert_close(state[name], value, rtol=1e-5, atol=1e-6)
model.close()
print("equal")
