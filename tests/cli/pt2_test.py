"""Networks of torchvision, timm and transformers, exported: five steps of SGD with momentum on two ranks, and
in two stages, equal PyTorch's on the same samples. A few by default, all of the zoo with --all, there with both
batch sizes in both ways."""

import copy
import sys
import unittest
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import zoo  # noqa: I001  (before torchvision and timm)
import eager
import torch
import training
from export_model import InputSpec, export_model, parse_input
from kinks import tame

ALL = "--all" in sys.argv
FEW = ("resnet18", "timm/vit_tiny_patch16_224", "timm/ghostnet_050", "hf/gpt2", "hf/bert_labels")
LEARNING_RATE = 0.001
LARGER, SMALLER = 12, 8  # batches; a rank or a micro-batch has half of one, and 4 were traced

# Relative to the largest value of a tensor. Winograd's method rounds more than a sum of products does.
TOLERANCE, TOLERANCE_OF_WINOGRAD = 1e-5, 1e-4


def by_winograd(model: torch.nn.Module) -> bool:
    """Whether a convolution is one of those that Renkei computes by Winograd's method."""
    return any(isinstance(part, torch.nn.Conv2d) and part.kernel_size == (3, 3) and part.stride == (1, 1)
               and part.groups == 1 for part in model.modules())  # fmt: skip


class Networks(training.TrainingCase):
    def check(self, name: str) -> None:
        network = zoo.NETWORKS[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = tame(network.make())
            specs = [parse_input(text) for text in network.inputs]
            export_model(model, specs, self.path / "net.pt2")
        ways = ("ranks", LARGER), ("stages", SMALLER), ("ranks", SMALLER), ("stages", LARGER)
        for way, batch in ways if ALL else ways[:2]:
            with self.subTest(name, way=way, batch=batch):
                self.compare(model, specs, way, batch)

    def compare(self, model: torch.nn.Module, specs: list[InputSpec], way: str, batch: int) -> None:
        data = [spec for spec in specs if spec.name != "labels"]
        own_loss = len(data) < len(specs)
        settings: dict[str, object] = {"model.input_shape": ",".join(map(text_of, data))}
        if own_loss:
            settings |= {"train.loss": "model", "model.classes": specs[-1].below}
        plan = self.two_stages("net.pt2", settings, batch=batch) if way == "stages" else "data"
        settings["train.lr"] = LEARNING_RATE
        ours = self.train_here(settings, "--model", "net.pt2", "--plan", plan, batch=batch)
        twin = copy.deepcopy(model)
        theirs = eager.train(
            twin, samples_of(twin, specs, batch), lambda m, inputs, target: loss_of(m, specs, inputs, target),
            eager.Job(steps=training.STEPS, lr=LEARNING_RATE, momentum=training.MOMENTUM, parts=2,
                      own_buffers=way == "ranks"))  # fmt: skip
        tolerance = TOLERANCE_OF_WINOGRAD if by_winograd(model) else TOLERANCE
        self.assert_equal(ours, theirs, model.state_dict(), tolerance)


def text_of(spec: InputSpec) -> str:
    sizes = "x".join(map(str, spec.sizes))
    return sizes if spec.below is None else f"{sizes}<{spec.below}"


def call(model: torch.nn.Module, specs: list[InputSpec], tensors: list[torch.Tensor]) -> object:
    given = list(zip(specs, tensors, strict=True))
    positional = [tensor for spec, tensor in given if spec.name is None]
    return model(*positional, **{spec.name: tensor for spec, tensor in given if spec.name is not None})


def loss_of(model: torch.nn.Module, specs: list[InputSpec], inputs: list[torch.Tensor],
            target: torch.Tensor) -> torch.Tensor:  # fmt: skip
    if len(inputs) < len(specs):  # the model computes its loss from the target
        return eager.outputs_of(call(model, specs, [*inputs, target]))[0]
    return eager.scored(call(model, specs, inputs), target)


def samples_of(model: torch.nn.Module, specs: list[InputSpec], batch: int) -> eager.Samples:
    inputs = tuple((spec.sizes, spec.below) for spec in specs if spec.name != "labels")
    if len(inputs) < len(specs):
        return eager.Samples(training.SEED, batch, inputs, specs[-1].below or 0, specs[-1].sizes)
    with torch.no_grad():
        given = [spec.sample(2, torch.device("cpu")) for spec in specs]
        scores = eager.outputs_of(call(copy.deepcopy(model).eval(), specs, given))[0]
    return eager.Samples(training.SEED, batch, inputs, scores.shape[1], tuple(scores.shape[2:]))


for _name in zoo.NETWORKS if ALL else FEW:
    setattr(Networks, "test_" + _name.replace("/", "_"), lambda self, name=_name: self.check(name))


if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--all"], verbosity=2)
