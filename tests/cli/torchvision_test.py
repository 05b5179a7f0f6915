"""The built-in convolutional networks train as torchvision's do: from the same weights, five steps on two ranks
give the same losses, parameters and statistics, with the kernels and without. Two by default, all with --all."""

import sys
import unittest
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import torchvision_ops  # noqa: F401, I001  (before torchvision)
import eager
import torchvision
import training
from kinks import tame
from safetensors.torch import save_file

ALL = "--all" in sys.argv
LEARNING_RATE, CLASSES, BATCH = 0.001, 7, 8

# Winograd's method rounds more; without it a sum is only in another order.
WAYS = {
    "with all kernels": ({}, 1e-4),
    "without Winograd's method": ({"compute.winograd": "false"}, 1e-5),
    "in PyTorch's layout": ({"compute.blocked_layout": "false"}, 1e-5),
}


class Torchvision(training.TrainingCase):
    def check(self, name: str, size: int, **options: object) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Inception announces a change of its initial values
            model = tame(getattr(torchvision.models, name)(num_classes=CLASSES, **options))
        initial = {name: value.detach().clone() for name, value in model.state_dict().items()}
        save_file(initial, self.path / "weights.safetensors")
        samples = eager.Samples(training.SEED, BATCH, (((3, size, size), None),), CLASSES)
        job = eager.Job(steps=training.STEPS, lr=LEARNING_RATE, momentum=training.MOMENTUM, parts=training.RANKS,
                        own_buffers=True)  # fmt: skip
        theirs = eager.train(model, samples, lambda m, inputs, target: eager.scored(m(inputs[0]), target), job)
        for way, (settings, tolerance) in WAYS.items():
            with self.subTest(name, way=way):
                ours = self.train_here(
                    {"model.weights": "weights.safetensors", "model.classes": CLASSES, "model.image_size": size,
                     "model.dropout": 0, "train.lr": LEARNING_RATE, **settings},
                    "--model", name, batch=BATCH)  # fmt: skip
                self.assert_equal(ours, theirs, initial, tolerance)

    def test_alexnet(self):
        self.check("alexnet", 64)

    def test_resnet18(self):
        self.check("resnet18", 64)


class More:
    def test_vgg11_bn(self):
        self.check("vgg11_bn", 64)

    def test_resnet50(self):
        self.check("resnet50", 64)

    def test_inception_v3(self):
        self.check("inception_v3", 107, aux_logits=False, init_weights=True)


if ALL:
    for _name, _test in vars(More).items():
        if _name.startswith("test_"):
            setattr(Torchvision, _name, _test)

if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--all"], verbosity=2)
