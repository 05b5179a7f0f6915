"""Models as users write them; those that captures freeze, lose or refuse come first."""

import dataclasses
import functools
import random
from collections import namedtuple

import numpy
import torch
from case import Case, distance, rows, words
from torch import nn
from torch.nn import functional
from torch.nn.utils import rnn
from torch.utils.checkpoint import checkpoint


class Tripled(torch.autograd.Function):
    """Its backward is not that of its forward."""

    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        return 3 * gradient


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (x * 8).round() / 8

    @staticmethod
    def backward(ctx, gradient):
        return gradient


kept_apply = Tripled.apply


class Net(nn.Module):
    """Layers around a part that does something particular."""

    def __init__(self, middle: nn.Module, width: int = 6):
        super().__init__()
        self.first, self.second = nn.Linear(width, 40), nn.Linear(40, width)
        self.middle, self.last = middle, nn.Linear(width, width)

    def forward(self, x):
        x = torch.tanh(self.second(torch.tanh(self.first(x))))
        return self.last(torch.tanh(self.middle(x)))


class Middle(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)


class CustomFunction(Middle):
    def forward(self, x):
        return Tripled.apply(self.a(x)) + self.b(x)


class KeptApply(Middle):
    def forward(self, x):
        return kept_apply(self.a(x)) + self.b(x)


class QuantisedWeight(Middle):
    def forward(self, x):
        return functional.linear(x, Rounded.apply(self.a.weight), self.a.bias)


class PythonRandom(Middle):
    def forward(self, x):
        return self.a(x) * (1 + 0.1 * random.random())


class NumpyRandom(Middle):
    def forward(self, x):
        return self.a(x) + torch.from_numpy(numpy.random.randn(6).astype("float32"))


class AssignedBuffer(Middle):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(6))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return self.a(x) - self.mean


class ChangedBuffer(Middle):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return self.a(x) / (1 + self.count)


class CountedCalls(Middle):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.a(x) * (1 + 0.5 * self.calls)


class Remembers(Middle):
    def __init__(self):
        super().__init__()
        self.history = []

    def forward(self, x):
        self.history.append(float(x.detach().mean()))
        return self.a(x) + sum(self.history)


class HookedTensor(Middle):
    def forward(self, x):
        y = self.a(x)
        if y.requires_grad:
            y.register_hook(lambda gradient: 0.5 * gradient)
        return y


def scaled_gradient(module, inputs, outputs):
    return tuple(None if g is None else 2 * g for g in inputs)


def hooked_module():
    net = Net(nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6)))
    net.middle[1].register_full_backward_hook(scaled_gradient)
    return net


def hooked_parameter():
    net = Net(nn.Linear(6, 6))
    net.middle.weight.register_hook(lambda gradient: 0.1 * gradient)
    return net


class HookedFeatures(nn.Module):
    """Takes what a hook kept from inside another module."""

    def __init__(self):
        super().__init__()
        self.net, self.head, self.kept = Net(nn.Linear(6, 6)), nn.Linear(12, 3), {}
        self.net.middle.register_forward_hook(lambda m, i, o: self.kept.__setitem__("middle", o))

    def forward(self, x):
        y = self.net(x)
        return self.head(torch.cat([y, self.kept["middle"]], 1))


class Branch(Middle):
    def forward(self, x):
        return self.a(x) if x.sum() > 0 else self.b(x)


class BranchInMethod(Middle):
    def choose(self, x):
        return self.a(x) if x.mean() > 0 else -self.b(x)

    def forward(self, x):
        return torch.tanh(self.choose(x)) + self.b(x)


def scaled_to_one(x):
    while x.norm() > 1:
        x = x / 2
    return x


class LoopOnValues(Middle):
    def forward(self, x):
        return self.b(scaled_to_one(self.a(x)))


class Routed(Middle):
    """Each sample goes to the expert that it chooses, as many as there are."""

    def forward(self, x):
        chosen = x[:, 0] > 0
        out = torch.zeros_like(x)
        for expert, mask in ((self.a, chosen), (self.b, ~chosen)):
            at = mask.nonzero()[:, 0]
            if at.numel() > 0:
                out = out.index_add(0, at, expert(x[at]))
        return out


class RoutedOver(nn.Module):
    """What was chosen passes through several layers: its number crosses a cut."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))

    def forward(self, x):
        at = (x[:, 0] > -9).nonzero()[:, 0]
        y = x[at]
        for layer in self.layers:
            y = torch.tanh(layer(y))
        return torch.zeros_like(x).index_add(0, at, y)


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.head = nn.Embedding(11, 6), nn.LSTM(6, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x, lengths):
        packed = rnn.pack_padded_sequence(self.embed(x), lengths, batch_first=True, enforce_sorted=False)
        _, (h, _) = self.lstm(packed)
        return self.head(h[-1])


def packed_batch(g):
    return (torch.randint(1, 11, (4, 6), generator=g), torch.randint(1, 7, (4,), generator=g),
            torch.randn(4, generator=g)), {}


class Spelled(nn.Module):
    """CTC: the loss is inside."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 5)

    def forward(self, x, target):
        scores = functional.log_softmax(self.last(torch.tanh(self.first(x))), 2).transpose(0, 1)
        lengths = torch.full((x.shape[0],), x.shape[1]), torch.full((x.shape[0],), target.shape[1])
        each = functional.ctc_loss(scores, target, *lengths, reduction="none")
        return {"loss": each.mean(), "scores": scores}


def spelled_batch(g):
    return (torch.randn(4, 9, 6, generator=g), torch.randint(1, 5, (4, 3), generator=g)), {}


class Checkpointed(Middle):
    def __init__(self, reentrant):
        super().__init__()
        self.reentrant = reentrant

    def forward(self, x):
        return checkpoint(self.a, checkpoint(self.b, x, use_reentrant=self.reentrant), use_reentrant=self.reentrant)


class NumpyInside(Middle):
    def forward(self, x):
        weight = numpy.linalg.norm(x.detach().numpy(), axis=1)
        return self.a(x) * torch.from_numpy(weight)[:, None]


class Listed(Middle):
    def forward(self, x):
        order = sorted(range(x.shape[0]), key=lambda i: float(x[i, 0]))
        return self.a(x)[torch.tensor(order)] + self.b(x)


class LayerDrop(nn.Module):
    """p = 0: a branch on a random number that is never taken."""

    def __init__(self, p):
        super().__init__()
        self.p, self.layers = p, nn.ModuleList(nn.Linear(6, 6) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            if self.training and torch.rand([]) < self.p:
                continue
            x = x + torch.tanh(layer(x))
        return x


class Spectral(nn.Module):
    """Complex numbers between its layers."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
        self.filter = nn.Parameter(torch.randn(5, 2))

    def forward(self, x):
        y = torch.fft.rfft(self.a(x)) * torch.view_as_complex(self.filter)
        y = y * torch.exp(1j * y.abs().clamp(max=1.0))
        return self.b(torch.fft.irfft(y, n=8))


class ManyTypes(nn.Module):
    """float64, half, whole numbers and masks between its layers."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        y = self.a(x)
        mask, place = y > 0, y.argmax(1)
        z = self.b(y.double().exp().float()).half()
        z = torch.where(mask, z.float(), -z.float())
        return self.c(z) + functional.one_hot(place, 6) * z.double().float()


class SharedBuffer(nn.Module):
    """Updated by one part, read by another."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6)
        self.register_buffer("scale", torch.ones(6))

    def forward(self, x):
        y = torch.tanh(self.a(x))
        self.scale.mul_(0.9).add_(y.detach().abs().mean(0), alpha=0.1)
        return self.c(torch.tanh(self.b(y)) / self.scale)


Pair = namedtuple("Pair", "left right")


@dataclasses.dataclass
class Output:
    scores: torch.Tensor
    inner: dict
    note: str = "constant"


class Nested(nn.Module):
    """Takes and returns structures."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 4), nn.Linear(6, 4)

    def forward(self, inputs, *, scale=1.0, mask=None):
        left = self.a(inputs["left"]) * scale
        right = self.b(inputs["both"][0])
        if mask is not None:
            right = right.masked_fill(mask, 0.0)
        return Output(left + right, {"pair": Pair(left, right)})


def nested_batch(g):
    left, right = torch.randn(4, 6, generator=g), torch.randn(4, 6, generator=g)
    return ({"left": left, "both": [right, None]}, torch.randn(4, generator=g)), {
        "scale": 0.5, "mask": torch.rand(4, 4, generator=g) < 0.3}


class ByBatchSize(Middle):
    """Uses the number of samples as a number."""

    def forward(self, x):
        return self.a(x) * float(torch.tensor(float(x.shape[0]))) / 4


class InPlace(Middle):
    def forward(self, x):
        y = self.a(x)
        y[:, :3] += 1
        y = functional.relu(y, inplace=True) * 1.5
        y[:, 1] *= 2
        return self.b(y).add_(x)


class Unused(Middle):
    def forward(self, x):
        return self.a(x)


class Frozen(Net):
    def __init__(self):
        super().__init__(nn.Linear(6, 6))
        self.first.requires_grad_(False)


class WhileTraining(Middle):
    def forward(self, x):
        return self.a(x) if self.training else self.b(x)


class GRUDecoder(nn.Module):
    """A loop over steps, each of which uses the last."""

    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.out = nn.Embedding(11, 6), nn.GRUCell(6, 6), nn.Linear(6, 11)

    def forward(self, x):
        h, outs = torch.zeros(x.shape[0], 6), []
        for t in range(x.shape[1]):
            h = self.cell(self.embed(x[:, t]), h)
            outs.append(self.out(h))
        return torch.stack(outs, 1)


def weight_normed():
    return nn.Sequential(torch.nn.utils.parametrizations.weight_norm(nn.Linear(6, 6)), nn.Tanh(), nn.Linear(6, 6))


def spectral_normed():
    return nn.Sequential(torch.nn.utils.parametrizations.spectral_norm(nn.Linear(6, 6)), nn.Tanh(), nn.Linear(6, 6))


class WholeByValues(nn.Module):
    """Every layer is inside of one branch."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        for _ in range(3):
            x = torch.tanh(self.a(x)) if x.sum() > 0 else torch.tanh(self.b(x))
        return x


class Dropped(Net):
    def __init__(self):
        super().__init__(nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.Linear(6, 6), nn.Dropout(0.2)))


def user(name, make, batch=None, loss=distance, **expected):
    return Case(f"users/{name}", make, batch or rows(6), loss, **expected)


def net(middle, *arguments):
    return lambda: Net(middle(*arguments))


CASES = [
    user("custom function", net(CustomFunction), opaque="Tripled", sample=True),
    user("kept apply", net(KeptApply), opaque="middle", sample=True),
    user("quantised weight", net(QuantisedWeight), opaque="Rounded"),
    user("python random", net(PythonRandom), opaque="middle", random=True, sample=True),
    user("numpy random", net(NumpyRandom), opaque="middle", random=True),
    user("assigned buffer", net(AssignedBuffer), opaque="middle", mixes=True, sample=True),
    user("changed buffer", net(ChangedBuffer), opaque="none", mixes=True),
    user("counted calls", net(CountedCalls), opaque="middle", mixes=True, sample=True),
    user("remembers", net(Remembers), opaque="middle", mixes=True),
    user("hook on a tensor", net(HookedTensor), opaque="middle"),
    user("hook on a module", hooked_module, opaque="middle.1", sample=True),
    user("hook on a parameter", hooked_parameter, opaque="middle"),
    user("features by a hook", HookedFeatures, sample=True),
    user("branch on values", net(Branch), opaque="middle", mixes=True, sample=True),
    user("branch in a method", net(BranchInMethod), opaque="choose", mixes=True, sample=True),
    user("loop on values", net(LoopOnValues), opaque="scaled_to_one", mixes=True, sample=True),
    user("routed by nonzero", net(Routed), sample=True),
    user("open sizes cross", RoutedOver, opaque="none", sample=True),
    user("packed sequence", Packed, packed_batch, opaque="lstm", sample=True),
    user("ctc", Spelled, spelled_batch, None, opaque="ctc_loss", sample=True),
    user("reentrant checkpoint", net(Checkpointed, True), opaque="none", sample=True),
    user("checkpoint", net(Checkpointed, False), opaque="none"),
    user("numpy inside", net(NumpyInside), opaque="middle"),
    user("sorted in python", net(Listed), opaque="middle", mixes=True),
    user("layer drop of 0", functools.partial(LayerDrop, 0.0), opaque="none", sample=True),
    user("layer drop", functools.partial(LayerDrop, 0.5), random=True, sample=True, whole=True),
    user("complex numbers", Spectral, rows(8), opaque="none", sample=True),
    user("many types", ManyTypes, opaque="none", sample=True),
    user("shared buffer", SharedBuffer, opaque="none", mixes=True, sample=True),
    user("nested structures", Nested, nested_batch, opaque="none"),
    user("batch size as a number", net(ByBatchSize), opaque="middle", mixes=True),
    user("all by values", WholeByValues, mixes=True, whole=True, sample=True),
    user("in place", net(InPlace), opaque="none"),
    user("unused layer", net(Unused), opaque="none"),
    user("frozen layer", Frozen, opaque="none"),
    user("training only", net(WhileTraining), opaque="none"),
    user("decoder loop", GRUDecoder, words()),
    user("weight norm", weight_normed),
    user("spectral norm", spectral_normed, mixes=True),
    user("dropout", Dropped, opaque="none", random=True, sample=True),
]
