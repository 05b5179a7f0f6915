"""renkei.train_step: data parallel and in stages equal to one process, or refused."""

import random

import pytest
import torch
from torch import nn
from torch.nn import functional

import jobs
import renkei


@pytest.mark.parametrize("ranks", [2, 3])
def test_steps_equal_plain_pytorch_on_the_joined_batches_in_stages_too(ranks: int) -> None:
    assert jobs.succeeds(ranks, "train_step.py", "stages").count("equal") == ranks


def test_a_model_that_fits_no_rank_is_cut_into_stages() -> None:
    jobs.succeeds(4, "too_large.py", 256, 8, "3MiB")


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


class Treacherous(nn.Module):
    """One of the kinds that captures freeze or lose without a word."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind, self.calls, self.layer = kind, 0, nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(()))
        if kind == "hook":
            self.layer.register_full_backward_hook(lambda module, inputs, outputs: None)

    def forward(self, x):
        if self.kind == "function":
            x = Doubled.apply(self.layer(x))
        elif self.kind == "random":
            x = self.layer(x) * random.random()
        elif self.kind == "buffer":
            self.seen = self.seen + 1
            x = self.layer(x) * self.seen
        elif self.kind == "attribute":
            self.calls += 1
            x = self.layer(x) * self.calls
        elif self.kind == "branch":
            x = self.layer(x) if x.sum() > 0 else -x
        else:
            x = self.layer(x)
        return x


def first_step(model: nn.Module, **options) -> float:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = renkei.train_step(model, optimizer, functional.mse_loss, plan="data", **options)
    return step(torch.ones(4, 3), torch.zeros(4, 3))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("function", "autograd.Function of its own"),
        ("hook", r"hooks \(model.layer\)"),
        ("random", "random numbers of Python"),
        ("buffer", r"a buffer that is assigned \(seen\)"),
        ("attribute", r"an attribute that changes \(.*calls"),
        ("branch", "torch.export can't capture"),
    ],
)
def test_what_a_capture_would_get_wrong_is_refused_by_name(kind: str, words: str) -> None:
    with pytest.raises(renkei.RenkeiError, match=words) as caught:
        first_step(Treacherous(kind))
    assert "parallelize" in caught.value.hint


def test_a_step_that_is_not_what_the_model_computes_is_refused() -> None:
    mixed = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, 3))
    optimizer = torch.optim.SGD(mixed.parameters(), lr=0.1)
    step = renkei.train_step(mixed, optimizer, functional.mse_loss, plan="data", micro_batches=2)
    with pytest.raises(renkei.RenkeiError, match="not what the model computes as written"):
        step(torch.randn(4, 3), torch.randn(4, 3))
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = renkei.train_step(model, optimizer, lambda out, y: (out - y).square().sum(), plan="data", micro_batches=2)
    with pytest.raises(renkei.RenkeiError, match="not what the model computes as written"):
        step(torch.randn(4, 3), torch.randn(4, 3))


def test_mistakes_between_steps_get_a_sentence() -> None:
    model = nn.Linear(3, 3)
    step = renkei.train_step(model, torch.optim.SGD(model.parameters(), lr=0.1), functional.mse_loss, plan="data")
    with pytest.raises(renkei.RenkeiError, match="no step yet"):
        step.state_dict()
    step(torch.ones(4, 3), torch.zeros(4, 3))
    with pytest.raises(renkei.RenkeiError, match="other sizes"):
        step(torch.ones(2, 3), torch.zeros(2, 3))
    with pytest.raises(renkei.RenkeiError, match="other arguments"):
        step(torch.ones(4, 3), target=torch.zeros(4, 3))
    step.close()
    with pytest.raises(renkei.RenkeiError, match="evaluation mode"):
        first_step(nn.Linear(3, 3).eval())
    with pytest.raises(renkei.RenkeiError, match="train.lr has no effect"):
        first_step(nn.Linear(3, 3), settings={"train.lr": "0.5"})


class Spare(nn.Module):
    """Has a layer that its loss does not depend on, and draws random numbers."""

    def __init__(self):
        super().__init__()
        self.used, self.unused, self.drop = nn.Linear(3, 3), nn.Linear(3, 3), nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.used(x))


def test_what_the_loss_does_not_depend_on_stays_as_it_is() -> None:
    model = Spare()
    before = model.unused.weight.detach().clone()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5)
    step = renkei.train_step(model, optimizer, functional.mse_loss, plan="data")
    for _ in range(3):
        step(torch.ones(4, 3), torch.zeros(4, 3))
    assert torch.equal(model.unused.weight, before) and model.unused.weight.grad is None
    assert not torch.equal(model.used.weight, before)
    model.unused.requires_grad_(False)
    with pytest.raises(renkei.RenkeiError, match="requires_grad"):
        step(torch.ones(4, 3), torch.zeros(4, 3))
    step.close()
