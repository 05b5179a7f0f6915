"""The convolutional networks are torchvision's: same names, same shapes, same initial values for a
seed, same logits, gradients and training steps. With --all also the larger ones of a family."""

import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import torch
import torchvision

DRIVER = os.environ["RENKEI_REFERENCE_DRIVER"]
LEARNING_RATE = 0.001
CLASSES = 7
EVERY_NETWORK = "--all" in sys.argv


def thinned(tensor):
    flat = tensor.detach().flatten()
    return flat[::97] if flat.numel() > 100_000 else flat


def make(name, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Inception announces a change of its initial values
        return getattr(torchvision.models, name)(num_classes=CLASSES, **options)


def move_from_the_kinks(model):
    """Networks start with many values near 0, where ReLU has a kink: a rounding error then switches
    a value on or off, and gradients differ by per cents. A positive mean and weak residual branches,
    as trained networks have them, leave few values there."""
    with torch.no_grad():
        for name, part in model.named_modules():
            if isinstance(part, torch.nn.BatchNorm2d):
                part.bias.uniform_(1.5, 4)
                part.running_mean.uniform_(-0.1, 0.1)
                part.running_var.uniform_(0.5, 1.5)
                if name.endswith("bn3"):
                    part.weight.fill_(0.25)
            elif isinstance(part, torch.nn.Conv2d) and part.bias is not None:
                part.bias.uniform_(0.5, 1)


def clearest_images(model, shape, tries=8):
    """Where two values of a pooling window are nearly equal, a rounding error decides which of them gets the
    whole gradient, and gradients differ by parts of a per cent, PyTorch's with another BLAS too. So of a few
    random inputs the one is taken whose closest pair, over all windows, is the least close."""
    closest = []

    def watch(pooling, inputs, _):
        windows = torch.nn.functional.unfold(inputs[0].flatten(0, 1)[:, None], pooling.kernel_size,
                                             stride=pooling.stride, padding=pooling.padding)
        top = windows.topk(2, dim=1).values
        gaps = (top[:, 0] - top[:, 1])[top[:, 1] > 0]  # zeros pass no gradient on
        closest.append((gaps.min() / inputs[0].std()).item())

    hooks = [part.register_forward_hook(watch) for part in model.modules()
             if isinstance(part, torch.nn.MaxPool2d)]
    best = None
    for _ in range(tries):
        images = torch.randn(shape)
        closest.clear()
        with torch.no_grad():
            model.train()(images)
        if best is None or min(closest, default=0) > best[0]:
            best = min(closest, default=0), images
    for hook in hooks:
        hook.remove()
    return best[1]


def train(model, images, target, steps):
    """What reference_driver does, in Python."""
    result = {}
    model.eval()
    with torch.no_grad():
        result["logits.eval"] = model(images)
    model.train()
    with torch.no_grad():
        output = model(images)
        result["logits.train"] = output[0] if isinstance(output, tuple) else output
    for step in range(steps):
        model.zero_grad()
        output = model(images)
        logits, auxiliary = output if isinstance(output, tuple) else (output, None)
        loss = torch.nn.functional.cross_entropy(logits, target)
        if auxiliary is not None:
            loss = loss + 0.4 * torch.nn.functional.cross_entropy(auxiliary, target)
        loss.backward()
        if step == 0:
            for name, parameter in model.named_parameters():
                result["gradient." + name] = thinned(parameter.grad).clone()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(parameter.grad, alpha=LEARNING_RATE)
    for name, tensor in model.state_dict().items():
        result["state." + name] = thinned(tensor)
    return result


class Torchvision(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        self.directory = tempfile.TemporaryDirectory(prefix="renkei-torchvision-")
        self.addCleanup(self.directory.cleanup)
        self.path = Path(self.directory.name)

    def drive(self, weights, *settings):
        done = subprocess.run([DRIVER, self.path / "case.pt", weights, self.path / "result.pt",
                               *settings], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return torch.load(self.path / "result.pt")

    def assert_close(self, name, ours, theirs, tolerance, scale=0):
        """The largest difference, over the largest value of the tensor, or over the given scale."""
        self.assertEqual(ours.shape, theirs.shape, name)
        ours, theirs = ours.double(), theirs.double()
        self.assertTrue(bool(torch.isfinite(theirs).all()), name)
        scale = max(scale, theirs.abs().max().item())
        difference = (ours - theirs).abs().max().item()
        self.assertLessEqual(difference, tolerance * scale, name)

    def check(self, name, size, batch=2, steps=5, gradients="", auxiliary=False, kernels=True,
              **options):
        torch.manual_seed(3)
        model = make(name, **options)
        move_from_the_kinks(model)
        images = clearest_images(model, (batch, 3, size, size))
        target = torch.arange(batch) + 1
        torch.save({"input": images, "target": target, "steps": torch.tensor(steps)},
                   self.path / "case.pt")
        torch.save(dict(model.state_dict()), self.path / "weights.pt")
        ours = self.drive(self.path / "weights.pt", f"model.name={name}",
                          f"model.classes={CLASSES}", f"model.image_size={size}",
                          "model.dropout=0", f"model.auxiliary={str(auxiliary).lower()}",
                          f"compute.blocked_layout={str(kernels).lower()}")
        (self.path / "weights.pt").unlink()
        theirs = train(model, images, target, steps)
        self.assertEqual(sorted(ours), sorted(theirs))
        for key, value in theirs.items():
            if key.startswith("logits."):
                self.assert_close(key, ours[key], value, 1e-4)
            elif key.startswith("gradient." + gradients):
                # The gradient of a bias before batch normalisation is zero but for rounding: the
                # weight of the same layer sets the scale.
                scale = theirs[key.replace(".bias", ".weight")].abs().max().item()
                self.assert_close(key, ours[key], value, 1e-3, scale)
            elif key.startswith("state."):
                scale = theirs[key.replace(".bias", ".weight")].abs().max().item()
                self.assert_close(key, ours[key], value, 1e-3, scale)

    def test_alexnet_trains_like_torchvision(self):
        self.check("alexnet", 96, dropout=0)

    if EVERY_NETWORK:
        def test_vgg16_without_kernels_trains_like_torchvision(self):
            self.check("vgg16", 48, dropout=0, kernels=False)

    def test_vgg16_with_kernels_trains_like_torchvision(self):
        self.check("vgg16", 48, dropout=0)

    def test_vgg16_with_batch_normalisation_trains_like_torchvision(self):
        self.check("vgg16_bn", 64, dropout=0)

    def test_resnet18_trains_like_torchvision(self):
        self.check("resnet18", 96)

    def test_resnet50_trains_like_torchvision(self):
        self.check("resnet50", 128)

    def test_inception_v3_trains_like_torchvision(self):
        self.check("inception_v3", 139, dropout=0, aux_logits=False)

    def test_inception_v3_with_its_auxiliary_head_trains_like_torchvision(self):
        # The head needs full-size images, and normalises just one value per sample and channel:
        # the gradients that come through it are ill-conditioned, only its last layer's is not.
        self.check("inception_v3", 299, batch=4, steps=1, gradients="AuxLogits.fc", auxiliary=True,
                   dropout=0, aux_logits=True)

    def test_networks_start_from_torchvisions_values(self):
        names = ["alexnet", "vgg11", "resnet18", "resnet50", "inception_v3"]
        if EVERY_NETWORK:
            names += ["vgg13_bn", "resnet34", "resnet101", "resnet152"]
        for name in names:
            with self.subTest(name):
                ours = self.drive("-", f"model.name={name}", f"model.classes={CLASSES}",
                                  "model.auxiliary=true")
                torch.manual_seed(1)
                theirs = make(name).state_dict()
                self.assertEqual(sorted(ours), sorted("state." + key for key in theirs))
                for key, value in theirs.items():
                    self.assert_close(key, ours["state." + key], thinned(value), 1e-6)


if __name__ == "__main__":
    if EVERY_NETWORK:
        sys.argv.remove("--all")
    unittest.main(verbosity=2)
