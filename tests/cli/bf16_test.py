"""--precision bf16 beside torch.autocast: five steps of small networks. bf16 has 8 bits, so that single values
differ; losses stay close, and parameters go the same way. Processors without instructions for it round as well."""

import copy
import sys
import unittest
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import zoo  # noqa: I001  (before torchvision and timm)
import eager
import pt2_test
import torch
import training
from export_model import export_model, parse_input
from kinks import tame

BATCH = 8
LEARNING_RATE = 0.01


class MixedPrecision(training.TrainingCase):
    def check(self, name: str) -> None:
        network = zoo.NETWORKS[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = tame(network.make())
            specs = [parse_input(text) for text in network.inputs]
            export_model(model, specs, self.path / "net.pt2")
        initial = {key: value.clone() for key, value in model.state_dict().items()}

        def train(enabled: bool) -> eager.Trained:
            twin = copy.deepcopy(model)

            def loss(net: torch.nn.Module, inputs: list[torch.Tensor], target: torch.Tensor) -> torch.Tensor:
                with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                    return pt2_test.loss_of(net, specs, inputs, target)

            return eager.train(twin, pt2_test.samples_of(twin, specs, BATCH), loss,
                               eager.Job(steps=training.STEPS, lr=LEARNING_RATE, momentum=training.MOMENTUM, parts=2,
                                         own_buffers=True))  # fmt: skip

        settings = {"train.lr": LEARNING_RATE, "compute.emulate_bf16": "true",
                    "model.input_shape": ",".join(map(pt2_test.text_of, specs))}  # fmt: skip
        ours = self.train_here(settings, "--model", "net.pt2", "--plan", "data", "--precision", "bf16", batch=BATCH)
        theirs, exact = train(enabled=True), train(enabled=False)
        for step, (a, b) in enumerate(zip(ours.losses, theirs.losses, strict=True)):
            self.assertLessEqual(abs(a - b), 0.02 * abs(b), f"step {step}: {ours.losses} {theirs.losses}")
        self.assertNotEqual(ours.losses, exact.losses)
        moved = {kind: self.moved(trained, initial) for kind, trained in
                 {"ours": ours, "theirs": theirs, "exact": exact}.items()}  # fmt: skip
        apart = float((moved["ours"] - moved["theirs"]).norm())
        rounding = float((moved["exact"] - moved["theirs"]).norm())
        self.assertGreater(rounding, 0)
        self.assertLess(apart, 2 * rounding, "farther from autocast than autocast is from float32")

    @staticmethod
    def moved(trained: eager.Trained, initial: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.cat([(trained.state[name] - value).double().flatten() for name, value in initial.items()
                          if value.is_floating_point() and "running" not in name])  # fmt: skip

    def test_resnet18(self):
        self.check("resnet18")

    def test_vit(self):
        self.check("timm/vit_tiny_patch16_224")

    def test_gpt2(self):
        self.check("hf/gpt2")


if __name__ == "__main__":
    unittest.main(verbosity=2)
