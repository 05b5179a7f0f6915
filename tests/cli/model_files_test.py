"""What a .pt2 file may hold, how it is evaluated, and what is said about those that can't be trained."""

import sys
import unittest
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src/capture"))

import eager
import numpy as np
import torch
import training
from export_model import export_model, parse_input
from torch import nn
from torch.nn.functional import cross_entropy

CLASSES = 6


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.out = nn.Linear(8, 20, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, ids):
        return self.out(self.embed(ids).mean(1))


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Linear(12, 5)
        self.ids = nn.Embedding(9, 5)

    def forward(self, image, ids):
        return self.image(image.flatten(1)) + self.ids(ids).sum(1)


class OwnLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(7, CLASSES)

    def forward(self, row, label):
        return {"scores": self.layer(row), "loss": cross_entropy(self.layer(row), label)}


class Evaluated(nn.Module):
    """Evaluation is more than dropout switched off: half of a branch counts that training drops at random."""

    def __init__(self):
        super().__init__()
        self.main, self.branch, self.drop = nn.Linear(48, CLASSES), nn.Linear(48, CLASSES), nn.Dropout(0.5)

    def forward(self, image):
        row = self.drop(image.flatten(1))
        branch = self.branch(row)
        kept = torch.empty_like(row[:, :1]).bernoulli_(0.5) if self.training else 0.5
        return self.main(row) + branch * kept


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(7, 3)

    def forward(self, row):
        return torch.ops.renkei_test_library.twice(self.layer(row))


class Chosen(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(7, 3)

    def forward(self, row):
        return torch.cond(row.sum() > 0, lambda x: x * 2, lambda x: x * 3, (self.layer(row),))


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(7, 3)
        self.shift = nn.Parameter(torch.zeros(3, dtype=torch.float16))

    def forward(self, row):
        return self.layer(row) + self.shift.float()


class Large(nn.Module):
    """Without values: for planning. Its weights are tied."""

    def __init__(self, hidden, layers):
        super().__init__()
        self.embedding = nn.Embedding(50000, hidden)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Dropout(0.1),
                          nn.Linear(4 * hidden, hidden)) for _ in range(layers))  # fmt: skip
        self.head = nn.Linear(hidden, 50000, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x).transpose(1, 2)


class FileCase(training.TrainingCase):
    def export(self, model, *inputs, name="net.pt2"):
        export_model(model, [parse_input(text) for text in inputs], self.path / name)

    def train(self, *arguments, **options):
        return self.run_json("train", "--model", "net.pt2", *arguments, **options)

    def refuse(self, code, message, hint, *arguments):
        self.assert_fails(code, message, hint, "train", "--model", "net.pt2", "--data", "random", "--steps", 1,
                          "--batch", 2, *arguments)  # fmt: skip


class Files(FileCase):
    def test_tied_weights_are_one_parameter(self):
        self.export(Tied(), "6<20")
        result = self.train("--data", "random", "--batch", 4, "--steps", 2)
        self.assertEqual(result["parameters"], 160)

    def test_several_inputs_of_two_kinds(self):
        self.export(TwoInputs(), "3x2x2", "4<9")
        result = self.train("--data", "random", "--batch", 4, "--steps", 3)
        self.assertEqual(result["parameters"], 65 + 45)
        self.assertGreater(result["loss"]["last"], 0)

    def compare(self, model, loss_of, settings):
        ours = self.train_here({"train.lr": 0.1, **settings}, "--model", "net.pt2", batch=4)
        initial = {name: value.clone() for name, value in model.state_dict().items()}
        samples = eager.Samples(training.SEED, 4, (((7,), None),), CLASSES)
        job = eager.Job(steps=training.STEPS, lr=0.1, momentum=training.MOMENTUM, parts=2, own_buffers=True)
        self.assert_equal(ours, eager.train(model, samples, loss_of, job), initial, 1e-5)

    def test_the_models_own_loss(self):
        model = OwnLoss()
        self.export(model, "7", f"label=<{CLASSES}")
        self.compare(model, lambda m, inputs, target: m(inputs[0], target)["loss"],
                     {"train.loss": "model", "model.classes": CLASSES})  # fmt: skip

    def test_label_smoothing(self):
        model = nn.Linear(7, CLASSES)
        self.export(model, "7")
        self.compare(model, lambda m, inputs, target: cross_entropy(m(inputs[0]), target, label_smoothing=0.1),
                     {"train.loss": "label_smoothing"})  # fmt: skip

    def test_held_out_data_is_evaluated_by_the_program_for_it(self):
        model = Evaluated()
        self.export(model, "3x4x4")
        images = np.random.default_rng(1).normal(size=(24, 3, 4, 4)).astype(np.float32)
        labels = np.arange(24) % CLASSES
        np.savez(self.path / "set.npz", x_train=images[:8], y_train=labels[:8], x_test=images[8:], y_test=labels[8:])
        # A rate of 0 leaves the values that PyTorch evaluates.
        result = self.train("--data", "set.npz", "--batch", 8, "--epochs", 1, "-n", 2, "--set", "train.lr=0")
        told, = [row["evaluation"] for row in self.metrics(result["run_dir"]) if "evaluation" in row]
        target = torch.from_numpy(labels[8:])
        with torch.no_grad():
            scores = model.eval()(torch.from_numpy(images[8:]))
        self.assertEqual(told["samples"], 16)
        self.assertAlmostEqual(told["loss"] / cross_entropy(scores, target).item(), 1, delta=1e-5)
        self.assertEqual(told["accuracy"], (scores.argmax(1) == target).float().mean().item())

    def test_a_model_larger_than_memory_is_planned_and_not_trained(self):
        with torch.device("meta"):
            model = Large(hidden=12288, layers=40)
        model.head.weight = model.embedding.weight
        self.assertGreater(4 * sum(p.numel() for p in model.parameters()), 96e9)
        self.export(model, "16<50000")
        plan = self.run_json("plan", "--model", "net.pt2", "--cluster", "flow-type2", "--devices", 32, "--batch", 64)
        self.assertGreater(plan["stages"], 3)
        self.refuse(3, "has no values for embedding.weight", "renkei plan")


class Refused(FileCase):
    """Sentences; what the readers of files refuse besides is in tests/capture."""

    def test_a_pt_file_is_not_a_network(self):
        self.assert_fails(2, "'net.pt' is not a valid value of model.name", ".pt2 file", "train", "--model", "net.pt")

    def test_a_file_that_is_not_there(self):
        self.refuse(3, "net.pt2: No such file or directory", "check the path")

    def test_weights_are_not_a_network(self):
        torch.save(nn.Linear(7, 3).state_dict(), self.path / "net.pt2")
        self.refuse(3, "this is a state dict", "torch.export.save")

    def test_a_damaged_file(self):
        self.export(nn.Linear(7, 3), "7")
        whole = (self.path / "net.pt2").read_bytes()
        for damaged in (whole[: len(whole) // 2], whole[:-1], b"", b"\0" * 4096):
            (self.path / "net.pt2").write_bytes(damaged)
            self.refuse(3, "net.pt2", "hint: ")

    def test_a_file_whose_program_is_cut_off(self):
        self.export(nn.Linear(7, 3), "7")
        with zipfile.ZipFile(self.path / "net.pt2") as whole:
            parts = {name: whole.read(name) for name in whole.namelist()}
        with zipfile.ZipFile(self.path / "net.pt2", "w") as damaged:
            for name, content in parts.items():
                damaged.writestr(name, content[:-40] if name.endswith("models/model.json") else content)
        self.refuse(3, "net.pt2: this is not valid JSON", "export the model again")

    def test_an_operator_of_a_library_that_is_missing(self):
        library = torch.library.Library("renkei_test_library", "DEF")
        self.addCleanup(library._destroy)
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        library.impl("twice", lambda x: torch.empty_like(x), "Meta")
        self.export(Twice(), "7")
        self.refuse(3, "renkei_test_library", "hint: ")

    def test_an_operator_that_chooses_between_two_graphs(self):
        self.export(Chosen(), "7")
        self.refuse(3, "cond", "hint: ")

    def test_another_number_type(self):
        self.export(Mixed(), "7")
        self.refuse(3, "the parameter shift is f16", "model.float()")

    def test_nothing_to_train(self):
        self.export(nn.Linear(7, 4).requires_grad_(False), "7")
        self.refuse(3, "no parameters that can be trained", "requires_grad")

    def test_another_shape_than_the_files(self):
        self.export(nn.Linear(7, 4), "7")
        self.refuse(3, "its input input is 7, but model.input_shape says 8", "model.input_shape", "--set",
                    "model.input_shape=8")  # fmt: skip


if __name__ == "__main__":
    unittest.main(verbosity=2)
