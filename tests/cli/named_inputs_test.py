"""Networks with several inputs, of several types, from stored data: on two ranks and in two stages the training
equals PyTorch's."""

import dataclasses
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import eager
import h5py
import numpy as np
import random_data
import torch
import training
from torch import nn
from torch.nn import functional

BATCH = 8
LEARNING_RATE = 0.05
TOLERANCE = 1e-5
WORDS = 11


class TwoTowers(nn.Module):
    """Numbers and token ids, each with a tower of its own, scored together."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 8))
        self.words, self.mix = nn.Embedding(WORDS, 8), nn.Linear(8, 8)
        self.last = nn.Linear(16, 3)

    def forward(self, pixels: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        text = torch.tanh(self.mix(self.words(tokens).mean(1)))
        return self.last(torch.cat([self.numbers(pixels), text], 1))


class OwnLoss(nn.Module):
    """Returns a dictionary, its loss somewhere in it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(5, 16), nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor, weight: torch.Tensor, answer: torch.Tensor) -> dict[str, torch.Tensor]:
        features = torch.tanh(self.second(torch.relu(self.first(x))))
        logits = self.last(features)
        losses = functional.cross_entropy(logits, answer.long(), reduction="none")
        return {"features": features, "logits": logits, "loss": (weight * losses).mean()}


class Exact(nn.Module):
    """In float64 from end to end."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 2))
        self.double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


@dataclasses.dataclass(frozen=True)
class Stored:
    """The arrays of a file, in the order in which a job takes the samples."""

    inputs: tuple[np.ndarray, ...]
    target: np.ndarray

    def step(self, epoch: int) -> eager.Batch:
        order = random_data.order(training.SEED, len(self.target), epoch)
        return [torch.from_numpy(array[order]) for array in self.inputs], torch.from_numpy(self.target[order])


class NamedInputs(training.TrainingCase):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(3)

    def normal(self, *shape: int) -> np.ndarray:
        return self.random.standard_normal((BATCH, *shape))

    def export(self, model: nn.Module, *inputs: torch.Tensor) -> None:
        shapes = tuple({0: torch.export.Dim("batch", min=2)} for _ in inputs)
        program = torch.export.export(model.train(), inputs, dynamic_shapes=shapes, strict=False)
        torch.export.save(program, self.path / "net.pt2")

    def compare(self, model: nn.Module, samples: Stored, loss: eager.Loss, data: str, *,
                tolerance: float = TOLERANCE, settings: dict[str, object] | None = None) -> None:  # fmt: skip
        initial = {name: value.clone() for name, value in model.state_dict().items()}
        theirs = eager.train(model, samples, loss, eager.Job(
            steps=training.STEPS, lr=LEARNING_RATE, momentum=training.MOMENTUM, parts=2, own_buffers=False))  # fmt: skip
        given = {"train.lr": LEARNING_RATE, **(settings or {})}
        for way in ("ranks", "stages"):
            with self.subTest(way):
                planned = {name: value for name, value in (settings or {}).items() if not name.startswith("data.")}
                plan = self.two_stages("net.pt2", planned, batch=BATCH) if way == "stages" else "data"
                ours = self.train_here(given, "--model", "net.pt2", "--plan", plan, batch=BATCH, data=data)
                self.assert_equal(ours, theirs, initial, tolerance)

    def goes_to(self, data: str, *arguments: str) -> dict[str, str]:
        fields = self.run_json("data", "info", data, "--model", "net.pt2", *arguments)["fields"]
        return {field["name"]: field["input"] for field in fields}

    def test_two_towers(self):
        pixels, tokens = self.normal(2, 3).astype(np.float32), self.random.integers(0, WORDS, (BATCH, 5))
        labels = self.random.integers(0, 3, BATCH)
        labels[0] = 2
        np.savez(self.path / "data.npz", x=pixels, tokens=tokens, y=labels, unused=self.normal(7))
        model = TwoTowers()
        self.export(model, torch.zeros(4, 6), torch.zeros(4, 5, dtype=torch.int64))
        self.assertEqual(self.goes_to("data.npz"),
                         {"tokens": "tokens", "input": "pixels", "target": "target", "unused": ""})  # fmt: skip
        samples = Stored((pixels.reshape(BATCH, 6), tokens), labels)
        self.compare(model, samples, lambda net, inputs, target: functional.cross_entropy(net(*inputs), target),
                     "data.npz")  # fmt: skip

    def test_a_dictionary_with_its_own_loss(self):
        x, weight = self.normal(5).astype(np.float32), self.random.random(BATCH).astype(np.float32)
        answer = self.random.integers(0, 4, BATCH).astype(np.int32)
        with h5py.File(self.path / "data.h5", "w") as file:
            for name, values in (("x", x), ("importance", weight), ("answer", answer)):
                file.create_dataset(name, data=values)
        model = OwnLoss()
        self.export(model, torch.zeros(4, 5), torch.zeros(4), torch.zeros(4, dtype=torch.int32))
        fields = "data.fields=weight=importance"
        self.assertEqual(self.goes_to("data.h5", "--set", fields),
                         {"importance": "weight", "input": "x", "answer": "answer"})  # fmt: skip
        self.compare(model, Stored((x, weight), answer),
                     lambda net, inputs, target: net(*inputs, target)["loss"], "data.h5",
                     settings={"data.fields": "weight=importance"})  # fmt: skip

    def test_float64(self):
        x, y = self.normal(4), self.normal(2)
        np.savez(self.path / "data.npz", x=x, y=y)
        model = Exact()
        self.export(model, torch.zeros(4, 4, dtype=torch.float64))
        # The loss goes through the metrics as text of 17 digits; sums of ranks are in another order.
        self.compare(model, Stored((x,), y),
                     lambda net, inputs, target: (net(*inputs) - target).square().mean(),
                     "data.npz", tolerance=1e-12, settings={"train.loss": "mse"})  # fmt: skip

    def test_what_is_missing_is_said(self):
        np.savez(self.path / "data.npz", x=self.normal(6).astype(np.float32), y=self.random.integers(0, 3, BATCH))
        self.export(TwoTowers(), torch.zeros(4, 6), torch.zeros(4, 5, dtype=torch.int64))
        self.refuse(2, "no field of the data is the input 'pixels' of the program; there are input, target",
                    "--set data.fields=pixels=NAME")  # fmt: skip
        np.savez(self.path / "data.npz", x=self.normal(6).astype(np.float32), y=self.random.integers(0, 3, BATCH),
                 tokens=self.normal(5))  # fmt: skip
        self.refuse(3, "'tokens' (array tokens) is of f64, and the program takes whole numbers there", "data.fields")

    def refuse(self, code: int, message: str, hint: str) -> None:
        self.assert_fails(code, message, hint, "train", "--model", "net.pt2", "--data", "data.npz", "--batch", BATCH,
                          "--steps", 1)  # fmt: skip


if __name__ == "__main__":
    unittest.main(verbosity=2)
