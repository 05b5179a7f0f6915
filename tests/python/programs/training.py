"""Models of many kinds against the mean of the ranks' gradients computed in one process: data parallel, as they are
written, or with the options of parallelize() that the argument gives as JSON, captured and in stages."""

import json
import sys

import torch
from torch import nn

import renkei

rank, size = renkei.rank(), renkei.size()
torch.set_num_threads(1)
options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}


class TwoHeads(nn.Module):
    """Returns tensors in a dictionary and a number; one head may go unused."""

    def __init__(self):
        super().__init__()
        self.body, self.a, self.b, self.never = (nn.Linear(6, 6) for _ in range(4))

    def forward(self, x, *, scale=1.0, use=True):
        y = torch.tanh(self.body(x)) * scale
        return {"a": self.a(y), "both": (self.b(y) if use else y.detach(), 7)}


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(11, 6), nn.Linear(6, 11, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, x):
        return self.out(self.embed(x.abs().long() % 11)).mean(1)


class Routed(nn.Module):
    """The way of a batch depends on its values, and differs between ranks."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x):
        return self.left(x) if x.sum() > 0 else self.right(x)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6, dtype=torch.float64)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.seen = self.seen + x.shape[0]
        return self.layer(x.double())


class Seen(nn.Module):
    """Assigns a buffer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.seen = self.seen + x.shape[0]
        return self.layer(x)


class Echo(nn.Module):
    """Returns its input beside what it computes."""

    def __init__(self):
        super().__init__()
        self.body = mlp()

    def forward(self, x):
        return x, self.body(x)


def mlp():
    """Of three operators at least, however they are fused: as many stages as ranks."""
    return nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 9), nn.Tanh(), nn.Linear(9, 4))


def inside(part, width):
    """A part that can't be captured, of a model that can be."""
    return nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 6), part, nn.Linear(width, 4))


def frozen():
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))
    model[0].requires_grad_(False)
    return model


def simple(out):
    return out.square().mean()


def simple_of_echo(out):
    assert out[0].shape == (5, 6)
    return out[1].square().mean()


def loss_of_heads(out):
    return out["a"].square().mean() + out["both"][0].sum() * 0.1


CASES = [
    ("mlp", mlp, simple, {}),
    ("batch norm", lambda: nn.Sequential(nn.Linear(6, 9, bias=False), nn.BatchNorm1d(9), nn.Linear(9, 4)), simple, {}),
    ("heads", TwoHeads, loss_of_heads, {"scale": 2.0}),
    ("an unused head", TwoHeads, loss_of_heads, {"use": False}),
    ("tied", Tied, simple, {}),
    ("routed by values", Routed, simple, {}),
    ("buffer assigned, float64", Counter, simple, {}),
    ("frozen", frozen, simple, {}),
    ("a part routed by values", lambda: inside(Routed(), 3), simple, {}),
    ("a part that assigns a buffer", lambda: inside(Seen(), 6), simple, {}),
    ("an input among the outputs", Echo, simple_of_echo, {}),
]
NOT_CAPTURED = ("routed by values", "buffer assigned, float64")  # as a whole: nothing to cut
OPTIMIZERS = [
    lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: torch.optim.AdamW(p, lr=0.01),
    lambda p: torch.optim.Rprop(p, lr=0.01),
]


def batch(step, which, micro=0):
    generator = torch.Generator().manual_seed(1000 * step + 10 * which + micro)
    return torch.randn(5, 6, generator=generator)


def reference_step(model, loss, step, named, accumulation, clip):
    """Gradients as the mean over the ranks; buffers as rank 0 leaves them."""
    start = {n: b.clone() for n, b in model.named_buffers()}
    for which in reversed(range(size)):
        for name, value in start.items():
            owner, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(owner), leaf, value.clone())
        for micro in range(accumulation):
            (loss(model(batch(step, which, micro), **named)) / size).backward()
    if clip:
        nn.utils.clip_grad_norm_(model.parameters(), clip)


def check(name, make, loss, named, make_optimizer, accumulation=1, clip=None, schedule=False):
    torch.manual_seed(7)
    plain = make()
    torch.manual_seed(7 if rank == 0 else 100 + rank)  # rank 0's parameters hold
    model = make()
    optimizer = make_optimizer(model.parameters())
    model = renkei.parallelize(model, optimizer, **options)
    other = make_optimizer(plain.parameters())
    schedulers = [torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in ([optimizer, other] if schedule else [])]
    for step in range(4):
        for o in (optimizer, other):
            o.zero_grad(set_to_none=step % 2 == 0)
        for micro in range(accumulation - 1):
            with model.no_sync():
                loss(model(batch(step, rank, micro), **named)).backward()
        loss(model(batch(step, rank, accumulation - 1), **named)).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        reference_step(plain, loss, step, named, accumulation, clip)
        for (n, p), q in zip(model.named_parameters(), plain.parameters()):
            elsewhere = bool(p.isnan().all())  # in stages a rank has its own parameters only
            assert (p.grad is None) == (q.grad is None or elsewhere), (name, step, n, "gradient")
        optimizer.step()
        other.step()
        for s in schedulers:
            s.step()
        outputs = []
        for one in (model, plain):
            one.eval()
            with torch.no_grad():
                outputs.append(loss(one(batch(99, 0), **named)))
            one.train()
        if rank == 0 or options:
            torch.testing.assert_close(*outputs, rtol=1e-5, atol=1e-6, msg=lambda m: f"{name} in eval(): {m}")
    state = model.state_dict()
    again = make()
    again.load_state_dict(state, strict=True)
    for n, value in plain.state_dict().items() if rank == 0 else plain.named_parameters():
        torch.testing.assert_close(state[n], value.detach(), rtol=1e-5, atol=1e-6, msg=lambda m: f"{name}: {n}: {m}")
    sums = renkei.allgather_object([float(state[n].double().sum()) for n, _ in model.named_parameters()])
    assert all(one == sums[0] for one in sums), (name, "ranks differ")
    model.close()


for number, (name, make, loss, named) in enumerate(CASES):
    if options and name in NOT_CAPTURED:
        continue
    check(name, make, loss, named, OPTIMIZERS[number % len(OPTIMIZERS)])
check("accumulation", *CASES[0][1:], OPTIMIZERS[0], accumulation=3)
check("clipping", *CASES[0][1:], OPTIMIZERS[1], clip=0.01)
check("schedule", *CASES[0][1:], OPTIMIZERS[0], schedule=True)
check("accumulation, clipping, unused", *CASES[3][1:], OPTIMIZERS[1], accumulation=2, clip=0.05, schedule=True)
print("equal")
