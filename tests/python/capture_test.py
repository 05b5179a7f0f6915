"""renkei.capture: programs of models without a loss, in both modes, and what is said about them."""

import collections
import dataclasses

import pytest
import torch
from torch import nn

import renkei
from renkei.capture import capture

Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Output:
    scores: torch.Tensor
    parts: dict
    note: str = "constant"


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm, self.drop = nn.Linear(3, 4), nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)

    def forward(self, inputs, *, scale=1.0):
        left, right = self.a(inputs["x"]) * scale, self.drop(self.norm(self.b(inputs["more"][0])))
        return Output(left + right, {"pair": Pair(left, [right, None])})


def inputs(samples: int) -> tuple:
    generator = torch.Generator().manual_seed(samples)
    x, y = torch.randn(2, samples, 3, generator=generator)
    return ({"x": x, "more": (y, None)},)


def run(captured, arguments, named):
    program = captured.program.module(check_guards=False)
    return captured.structured(list(program(*captured.flatten(arguments, named))))


@pytest.mark.parametrize("training", [True, False])
def test_a_model_without_a_loss_gives_what_it_gives_as_written_in_both_modes(training: bool) -> None:
    model = Nested().train(training)
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    captured = capture(model, inputs(4), {"scale": 0.5})
    assert all(torch.equal(buffer, before[name]) for name, buffer in model.named_buffers())
    assert len(captured.inputs) == 2 and len(captured.outputs) == 3 and not captured.opaque
    assert captured.draws == training and not captured.fixed_batch
    for samples in (4, 7):
        torch.manual_seed(1)
        found = run(captured, inputs(samples), {"scale": 0.5})
        for name, buffer in model.named_buffers():
            buffer.copy_(before[name])
        torch.manual_seed(1)
        wanted = model(*inputs(samples), scale=0.5)
        assert isinstance(found, Output) and found.note == "constant" and found.parts["pair"].right[1] is None
        torch.testing.assert_close(found.scores, wanted.scores)
        torch.testing.assert_close(found.parts["pair"].left, wanted.parts["pair"].left)
        for name, buffer in model.named_buffers():
            buffer.copy_(before[name])
    with pytest.raises(renkei.RenkeiError, match="other arguments"):
        captured.flatten(inputs(4), {"scale": 0.25})


def test_names_are_those_of_the_model_and_tied_ones_are_told() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    model[2].weight = model[0].weight
    captured = capture(model, (torch.ones(2, 3),))
    assert captured.tied == [("model.2.weight", "model.0.weight")]
    assert captured.state["model.2.weight"] is model[0].weight


calls = [0]


class Hidden(nn.Module):
    """Keeps its state where nobody looks for it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        calls[0] += 1
        return self.layer(x) * calls[0]


@pytest.mark.parametrize("difference", ["opaque", "error"])
def test_what_can_not_be_compared_is_refused_with_the_value_that_differs(difference) -> None:
    with pytest.raises(renkei.RenkeiError, match="not what the model computes as written: the output differs by"):
        capture(nn.Sequential(nn.Linear(3, 3), Hidden()), (torch.ones(2, 3),), difference=difference)


def test_a_model_that_takes_one_number_of_samples_is_captured_for_that() -> None:
    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 3))

        def forward(self, x):
            return x * self.weight

    captured = capture(Fixed(), (torch.ones(4, 3),))
    assert captured.fixed_batch and run(captured, (torch.ones(4, 3),), {}).shape == (4, 3)


def test_a_model_without_values_is_captured_unless_it_would_have_to_run() -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    assert len(capture(model, (torch.ones(2, 3),)).inputs) == 1
    model[0].register_full_backward_hook(lambda module, before, after: None)
    with pytest.raises(renkei.RenkeiError, match="without its values: it has a backward hook"):
        capture(model, (torch.ones(2, 3),))
