"""The convolutional networks are torchvision's: same names and shapes of parameters and buffers, same operations
with the same arguments as torch.export gives for its modules, same initial distributions. With --all the
operations of the larger ones of a family too."""

import sys
import unittest
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
import torchvision_ops  # noqa: F401, I001
import torch
import torchvision

from programs import drive, run, steps_of_module, steps_of_program

FAMILIES = (["alexnet"] + [f"vgg{layers}{end}" for layers in (11, 13, 16, 19) for end in ("", "_bn")]
            + [f"resnet{layers}" for layers in (18, 34, 50, 101, 152)] + ["inception_v3"])
EXPORTED = FAMILIES if "--all" in sys.argv else ["alexnet", "vgg11_bn", "resnet18", "resnet50", "inception_v3"]


def make(name, device, **options):
    with warnings.catch_warnings(), torch.device(device):
        warnings.simplefilter("ignore")  # Inception announces a change of its initial values
        return getattr(torchvision.models, name)(num_classes=7, **options)


def variants(names):
    """(name, settings, options of torchvision's function, image size)"""
    for name in names:
        if name == "inception_v3":
            yield name, ["model.auxiliary=true"], {"init_weights": False}, 299
            yield name, [], {"init_weights": False, "aux_logits": False}, 160
        else:
            yield name, [], {}, 96


class Torchvision(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def test_parameters_and_buffers_are_torchvisions_in_its_order(self):
        for name, settings, options, size in variants(FAMILIES):
            with self.subTest(name, settings=settings):
                theirs = make(name, "meta", **options)
                ours = drive("network", f"model.name={name}", "model.classes=7",
                             f"model.image_size={size}", *settings)
                for kind, tensors in (("parameter", theirs.named_parameters()),
                                      ("buffer", theirs.named_buffers())):
                    expected = [(key, list(tensor.shape)) for key, tensor in tensors]
                    found = [(state["name"], ours["values"][state["value"]]["sizes"])
                             for state in ours["state"] if state["kind"] == kind]
                    self.assertEqual(found, expected)

    def test_operations_are_those_of_torch_export(self):
        for name, settings, options, size in variants(EXPORTED):
            with self.subTest(name, settings=settings):
                module = make(name, "meta", **options)
                images = torch.zeros(2, 3, size, size, device="meta")
                theirs = steps_of_module(module, images)
                ours = drive("network", f"model.name={name}", "model.classes=7",
                             f"model.image_size={size}", *settings)
                ours["inputs"][0]["name"] = "x"  # what torchvision calls its images
                for ours_step, theirs_step in zip(steps_of_program(ours), theirs, strict=True):
                    self.assertEqual(ours_step, theirs_step)

    def test_losses_and_statistics_are_torchvisions(self):
        """Two samples, by the program and by the module, from the same state."""
        torch.manual_seed(1)
        labels = torch.tensor([1, 4])
        for name, size in (("alexnet", 63), ("resnet18", 64), ("inception_v3", 299)):
            with self.subTest(name):
                auxiliary = name == "inception_v3"
                options = {"init_weights": False} if auxiliary else {}
                module = make(name, "cpu", **options, **({} if name == "resnet18" else {"dropout": 0}))
                settings = ["cross_entropy", "label", f"model.name={name}", "model.classes=7", "model.dropout=0",
                            f"model.image_size={size}", f"model.auxiliary={str(auxiliary).lower()}"]
                images = torch.randn(2, 3, size, size)
                state = {key: value.clone() for key, value in module.state_dict().items()}
                ours = run(drive("training", *settings), state | {"input": images, "target": labels})["loss"]
                with torch.no_grad():
                    outputs = module.train()(images)
                losses = [torch.nn.functional.cross_entropy(output, labels, reduction="sum")
                          for output in (outputs if auxiliary else (outputs,))]
                torch.testing.assert_close(ours, losses[0] + 0.4 * losses[1] if auxiliary else losses[0])
                torch.testing.assert_close(state, dict(module.state_dict()))
                ours = run(drive("evaluation", *settings), state | {"input": images, "target": labels})
                with torch.no_grad():
                    output = module.eval()(images)
                loss = torch.nn.functional.cross_entropy(output, labels, reduction="sum")
                torch.testing.assert_close(ours["loss"], loss)
                self.assertEqual(ours["correct"].item(), (output.argmax(1) == labels).sum().item())
                torch.testing.assert_close(state, dict(module.state_dict()))

    def test_initial_distributions_are_torchvisions(self):
        for name in ("alexnet", "vgg11_bn", "resnet18", "resnet50", "inception_v3"):
            torch.manual_seed(1)
            options = {"init_weights": True} if name == "inception_v3" else {}
            theirs = make(name, "cpu", **options).state_dict()
            ours = drive("network", f"model.name={name}", "model.classes=7", "model.auxiliary=true")
            for state in ours["state"]:
                with self.subTest(name, state=state["name"]):
                    self.check_distribution(state["initial"], theirs[state["name"]].double())

    def check_distribution(self, initial, values):
        a, b = initial.get("a", 0), initial.get("b", 0)
        if initial["kind"] == "constant":
            self.assertTrue(bool((values == a).all()))
            return
        deviation = (b - a) / 12**0.5 if initial["kind"] == "uniform" else b
        mean = (a + b) / 2 if initial["kind"] == "uniform" else a
        error = deviation / values.numel() ** 0.5
        self.assertLess(abs(values.mean().item() - mean), 5 * error)
        if values.numel() > 1:
            self.assertLess(abs(values.std().item() - deviation), 5 * error)
        if initial["kind"] == "uniform":
            self.assertTrue(bool((values.abs() <= b * (1 + 1e-6)).all()))
        elif values.numel() > 10_000:  # not uniform: some are beyond √3 deviations
            self.assertTrue(bool((values.abs() > 3 * deviation).any()))


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--all"], verbosity=2)
