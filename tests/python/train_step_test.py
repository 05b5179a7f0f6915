"""renkei.train_step: data parallel and in stages equal to one process, or refused."""

import copy
import json
import re

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


def test_a_run_directory_counts_steps_and_samples(tmp_path) -> None:
    model = nn.Linear(3, 1)
    step = renkei.train_step(
        model, torch.optim.SGD(model.parameters(), lr=0.1), functional.mse_loss, plan="data", run_dir=tmp_path / "run"
    )
    for _ in range(3):
        step(torch.ones(4, 3), torch.ones(4, 1))
    step.close()
    (directory,) = tmp_path.glob("**/summary.json")
    summary = json.loads(directory.read_text())
    assert summary["steps"] == 3 and summary["batch"] == 4 and summary["samples_per_second"] > 0
    lines = [json.loads(line) for line in (directory.parent / "metrics.jsonl").read_text().splitlines()]
    assert [line["samples"] for line in lines] == [4, 4, 4]


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


class Treacherous(nn.Module):
    """One of the kinds that captures freeze, lose or refuse."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind, self.calls, self.layer = kind, 0, nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(()))
        if kind == "hook":
            self.layer.register_full_backward_hook(lambda module, inputs, outputs: tuple(
                None if g is None else 2 * g for g in inputs))

    def forward(self, x):
        if self.kind == "function":
            x = Doubled.apply(self.layer(x))
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


def treacherous(kind: str) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 3), Treacherous(kind), nn.Linear(3, 3))


def first_step(model: nn.Module, x: torch.Tensor | None = None, **options) -> float:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = renkei.train_step(model, optimizer, functional.mse_loss, plan="data", **options)
    try:
        return step(torch.ones(4, 3) if x is None else x, torch.zeros(4, 3))
    finally:
        step.release()


@pytest.mark.parametrize(
    ("kind", "part", "why"),
    [
        ("function", "autograd function train_step_test.Doubled", "backward of its own"),
        ("hook", "module 1.layer", "backward hook"),
        ("buffer", "module 1", "assigns a buffer"),
        ("attribute", "module 1", "calls changes with each call"),
        ("branch", "module 1", "a branch depends on values .train_step_test.py:"),
    ],
)
def test_what_a_capture_would_get_wrong_runs_as_it_is_written(kind: str, part: str, why: str) -> None:
    model, plain = treacherous(kind), treacherous(kind)
    optimizer, other = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, plain))
    step = renkei.train_step(model, optimizer, functional.mse_loss, plan="data")
    for number in range(3):
        x, y = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(number))
        other.zero_grad()
        wanted = functional.mse_loss(plain(x), y)
        wanted.backward()
        other.step()
        assert abs(step(x, y) - wanted.item()) < 1e-5 * wanted.item()
    assert list(step.opaque) == [part] and re.search(why, step.opaque[part])
    for name, value in step.state_dict().items():
        torch.testing.assert_close(value, plain.state_dict()[name], rtol=1e-5, atol=1e-6)
    step.close()


def test_a_part_can_be_opaque_by_hand_and_its_name_must_be_there() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), renkei.opaque(nn.Linear(3, 3)))
    step = renkei.train_step(model, torch.optim.SGD(model.parameters(), lr=0.1), functional.mse_loss, plan="data",
                             opaque=["0"])
    step(torch.ones(4, 3), torch.zeros(4, 3))
    assert step.opaque == {"module 0": "asked for", "module 2": "asked for"}
    step.close()
    with pytest.raises(renkei.RenkeiError, match="no module encoder"):
        first_step(nn.Linear(3, 3), opaque=["encoder"])


def test_a_model_that_is_opaque_as_a_whole_can_not_be_cut(capsys) -> None:
    model, x = Treacherous("branch"), torch.tensor([[-5.0], [2.0], [2.0], [2.0]]).expand(4, 3)
    assert first_step(model, x) > 0
    assert "in one piece, data parallel only: a branch depends on values (train_step_test.py:" in capsys.readouterr().err
    with pytest.raises(renkei.RenkeiError, match="can't be cut into stages: a branch depends on values"):
        first_step(model, x, device_memory="1MiB")


class Varying(nn.Module):
    """A branch that the first batches take one way, and a later one another way."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return self.a(x) if x[0, 0] < 50 else self.b(x)


def test_a_step_whose_assumption_does_not_hold_is_done_again() -> None:
    torch.manual_seed(2)
    model = nn.Sequential(Varying(), nn.Linear(3, 3))
    plain = copy.deepcopy(model)
    optimizer, other = (torch.optim.SGD(m.parameters(), lr=1e-5, momentum=0.9) for m in (model, plain))
    step = renkei.train_step(model, optimizer, functional.mse_loss, plan="data")
    for number, scale in enumerate((1, 1, 100, 1, 100)):
        x, y = 1 + torch.rand(2, 4, 3, generator=torch.Generator().manual_seed(number)) * scale
        other.zero_grad()
        wanted = functional.mse_loss(plain(x + (scale > 1) * 60), y)
        wanted.backward()
        other.step()
        assert abs(step(x + (scale > 1) * 60, y) - wanted.item()) < 1e-5 * wanted.item()
        assert bool(step.assumptions) == (number < 2) and bool(step.opaque) == (number >= 2)
    for name, value in step.state_dict().items():
        torch.testing.assert_close(value, plain.state_dict()[name], rtol=1e-5, atol=1e-6)
    step.close()


def test_a_step_that_is_not_what_the_model_computes_is_refused() -> None:
    mixed = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, 3))
    optimizer = torch.optim.SGD(mixed.parameters(), lr=0.1)
    step = renkei.train_step(mixed, optimizer, functional.mse_loss, plan="data", micro_batches=2)
    with pytest.raises(renkei.RenkeiError, match="not what the model computes as written"):
        step(torch.randn(4, 3), torch.randn(4, 3))
    step.release()
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
