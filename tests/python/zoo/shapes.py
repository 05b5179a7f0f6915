"""The shapes of networks that RaNNC tests its partitioning with."""

import torch
from case import Case, distance, rows, words
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, norm=None):
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(6, 6), nn.Linear(6, 6), norm

    def forward(self, x):
        y = self.b(torch.relu(self.a(x)))
        return self.norm(y) if self.norm is not None else y


def stack(*layers):
    return lambda: nn.Sequential(*(layer() for layer in layers))


def linear():
    return nn.Linear(6, 6)


class ForkJoin(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = linear(), linear(), linear(), linear()

    def forward(self, x):
        x = self.a(x)
        return self.d(torch.relu(self.b(x)) + torch.tanh(self.c(x)) * x)


class SharedInput(nn.Module):
    """The input is used at the begin and at the end."""

    def __init__(self):
        super().__init__()
        self.a, self.b = linear(), linear()

    def forward(self, x):
        return self.b(torch.relu(self.a(x))) + x


class SharedParameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = linear(), linear()

    def forward(self, x):
        return self.a(torch.relu(self.b(torch.relu(self.a(x)))))


class SharedEmbedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.middle, self.out = nn.Embedding(11, 6), linear(), nn.Linear(6, 11, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, x):
        return self.out(torch.tanh(self.middle(self.embed(x))))


class Functional(nn.Module):
    """A parameter of its own, and one used by functions."""

    def __init__(self):
        super().__init__()
        self.weight, self.scale = nn.Parameter(torch.randn(6, 6) / 3), nn.Parameter(torch.ones(6))

    def forward(self, x):
        return functional.linear(x * self.scale, self.weight).relu() @ self.weight


class Constants(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.table = linear(), torch.arange(6.0)

    def forward(self, x):
        return self.a(x + self.table) * torch.ones(6) + torch.zeros(x.shape[0], 1)


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.out = linear(), linear()

    def forward(self, x):
        for _ in range(4):
            x = torch.relu(self.layer(x))
        return self.out(x)


class LossOutput(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = linear(), nn.Linear(6, 3)

    def forward(self, x, y):
        return functional.cross_entropy(self.b(torch.relu(self.a(x))), y)


def loss_batch(g):
    return (torch.randn(4, 6, generator=g), torch.randint(3, (4,), generator=g)), {}


class Convolved(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.again, self.head = nn.Conv2d(6, 6, 3, stride=2), nn.Linear(6, 4)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        return self.head(functional.adaptive_avg_pool2d(self.again(x), 1).flatten(1))


class NoParameters(nn.Module):
    """Between layers that have some."""

    def forward(self, x):
        return torch.sin(x) * x.mean(1, keepdim=True)


def shape(name, make, batch=None, loss=distance, **expected):
    return Case(f"shapes/{name}", make, batch or rows(6), loss, **{"opaque": "none", **expected})


CASES = [
    shape("nested modules", stack(Block, stack(Block, stack(Block, linear))), sample=True),
    shape("shared parameter", SharedParameter, sample=True),
    shape("shared embedding", SharedEmbedding, words()),
    shape("fork and join", ForkJoin, sample=True),
    shape("shared input", SharedInput, sample=True),
    shape("layer norm", stack(lambda: Block(nn.LayerNorm(6)), lambda: Block(nn.LayerNorm(6, elementwise_affine=False)))),
    shape("batch norm", stack(lambda: Block(nn.BatchNorm1d(6)), linear), mixes=True, sample=True),
    shape("batch norm without statistics", stack(lambda: Block(nn.BatchNorm1d(6, track_running_stats=False)), linear),
          mixes=True),
    shape("batch norm without parameters", stack(lambda: Block(nn.BatchNorm1d(6, affine=False)), linear), mixes=True),
    shape("batch norm, own mean", stack(lambda: Block(nn.BatchNorm1d(6, momentum=None)), linear), mixes=True, opaque="norm"),
    shape("convolutions", Convolved, rows(3, 8, 8), mixes=True),
    shape("identity", stack(linear, nn.Identity, linear, nn.Identity)),
    shape("no parameters", stack(linear, NoParameters, linear)),
    shape("functions", Functional),
    shape("constant tensors", Constants),
    shape("integer input", stack(lambda: nn.Embedding(11, 6), Block, linear), words()),
    shape("a loop", Loop),
    shape("loss as output", LossOutput, loss_batch, None, sample=True),
]
