"""TorchScript files train as they do in Python: the same losses, step by step.

Without arguments four families are compared, with --all ten."""

import ctypes
import os
import resource
import sys
import unittest
import warnings

# Batch normalisation over few values is chaotic: it makes a difference in the last bit of a sum one
# of per cents within a few steps. So the same BLAS with the same threads, and the same inputs.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import torch
import torchvision
from torch import nn
from torch.nn.functional import cross_entropy

import renkei

SEED, BATCH, STEPS, CLASSES, LEARNING_RATE = 5, 2, 5, 6, 0.0003
RANDOM_INPUT, RANDOM_TARGET = 2, 3
EVERY_MODEL = "--all" in sys.argv


def philox(use, sample, count):
    """`count` random words of a sample, as src/base/philox.h makes them."""
    key = (SEED ^ (use * 0x9E3779B97F4A7C15)) & (2**64 - 1)
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    counter = [blocks, np.full_like(blocks, sample), np.zeros_like(blocks), np.zeros_like(blocks)]
    k0, k1 = np.uint64(key & 0xFFFFFFFF), np.uint64(key >> 32)
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
        counter = [(p1 >> shift) ^ counter[1] ^ k0, p1 & low, (p0 >> shift) ^ counter[3] ^ k1,
                   p0 & low]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return np.stack(counter, axis=1).reshape(-1)[:count]


def c_function(name, values):
    """The C library's, to the last bit; NumPy has its own."""
    function = getattr(ctypes.CDLL("libm.so.6"), name)
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float]
    return np.array([function(value) for value in values], dtype=np.float32)


def noise(sample, count):
    """Standard normal numbers: the input of a sample of --data random."""
    uniform = (philox(RANDOM_INPUT, sample, 2 * count) >> np.uint64(8)).astype(np.float32)
    uniform *= np.float32(2.0**-24)
    u, v = np.float32(1) - uniform[0::2], uniform[1::2]
    return (np.sqrt(np.float32(-2) * c_function("logf", u)) *
            c_function("cosf", np.float32(2 * np.pi) * v))


def labels(sample, count, classes):
    return ((philox(RANDOM_TARGET, sample, count) * np.uint64(classes)) >> np.uint64(32)).astype(
        np.int64)


def batch_of(shape, positions=()):
    """The two samples of --data random with data.samples=2."""
    inputs = np.stack([noise(i, int(np.prod(shape))).reshape(shape) for i in range(BATCH)])
    targets = np.stack([labels(i, int(np.prod(positions)), CLASSES) for i in range(BATCH)])
    return torch.from_numpy(inputs), torch.from_numpy(targets).reshape(BATCH, *positions)


def tame(model):
    """Without chance, and with few values at the kink of ReLU, where a last bit decides."""
    for part in model.modules():
        if isinstance(getattr(part, "p", None), float):
            part.p = 0.0  # dropout and stochastic depth
        if isinstance(part, nn.BatchNorm2d):
            nn.init.uniform_(part.bias, 1, 3)
    return model


def total_loss(output, target, weight=0.4):
    if isinstance(output, dict):
        outputs = [output["out"]] + [v for k, v in output.items() if k != "out"]
    else:
        outputs = list(output) if isinstance(output, (tuple, list)) else [output]
    loss = cross_entropy(outputs[0], target)
    for auxiliary in outputs[1:]:
        loss = loss + weight * cross_entropy(auxiliary, target)
    return loss


def train_in_python(model, loss_of):
    model.train()
    losses = []
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class ScriptCase(renkei.Case):
    def setUp(self):
        super().setUp()
        torch.set_num_threads(1)
        torch.manual_seed(1)

    def train_here(self, script, *settings):
        torch.jit.save(script, str(self.path / "model.pt"))
        result = self.run_json(
            "train", "--model", "model.pt", "--data", "random", "--set", f"data.samples={BATCH}",
            "--batch", BATCH, "--epochs", STEPS, "--threads", 1, "--seed", SEED, "--set",
            f"train.lr={LEARNING_RATE}", *(word for s in settings for word in ("--set", s)),
            timeout=300)
        return [row["loss"] for row in self.metrics(result["run_dir"])]

    def assert_same(self, ours, theirs):
        self.assertEqual(len(ours), len(theirs))
        for step, (a, b) in enumerate(zip(ours, theirs)):
            self.assertAlmostEqual(a / b, 1, delta=1e-4, msg=f"step {step}: {ours} {theirs}")
        self.assertGreater(abs(theirs[0] / theirs[-1] - 1), 1e-3, "nothing was learned")


class TorchScript(ScriptCase):
    """Networks of torchvision, one of each family."""

    def compare(self, name, size, make=None, trace=False, positions=(), **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = tame((make or getattr(torchvision.models, name))(
                num_classes=CLASSES, **options))
            model.train()
            images, target = batch_of((3, size, size), positions)
            script = torch.jit.trace(model, images) if trace else torch.jit.script(model)
            ours = self.train_here(script, f"model.input_shape=3x{size}x{size}")
            theirs = train_in_python(model, lambda m: total_loss(m(images), target))
        self.assert_same(ours, theirs)

    def test_vision_transformer(self):
        self.compare("vit_b_16", 64, image_size=64, num_layers=2, trace=True,
                     make=lambda **o: torchvision.models.VisionTransformer(
                         patch_size=16, num_heads=4, hidden_dim=128, mlp_dim=256, **o))

    def test_densely_connected(self):
        self.compare("densenet121", 64)

    def test_mobile(self):
        self.compare("mobilenet_v3_small", 96)

    def test_segmentation_with_labels_per_pixel(self):
        self.compare("lraspp", 64, positions=(64, 64), make=lambda **o:
                     torchvision.models.segmentation.lraspp_mobilenet_v3_large(
                         weights_backbone=None, **o))


class More:
    def test_shuffled_channels(self):
        self.compare("shufflenet_v2_x0_5", 96)

    def test_squeezed(self):
        self.compare("squeezenet1_1", 96)

    def test_searched(self):
        self.compare("mnasnet0_5", 96, trace=True)

    def test_efficient(self):
        self.compare("efficientnet_b0", 96)

    def test_regular(self):
        self.compare("regnet_y_400mf", 96)

    def test_modern_convolutional(self):
        self.compare("convnext_tiny", 64)

    def test_auxiliary_outputs(self):
        self.compare("googlenet", 128, aux_logits=True, init_weights=False)

    def test_shifted_windows(self):
        self.compare("swin_t", 64, trace=True)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.out = nn.Linear(8, 20, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, ids):
        return self.out(self.embed(ids).mean(1))


class Large(nn.Module):
    """Without values: for planning. Its weights are tied."""

    def __init__(self, hidden, layers):
        super().__init__()
        self.embedding = nn.Embedding(50000, hidden, device="meta")
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(hidden, device="meta"), nn.Linear(hidden, 4 * hidden, device="meta"),
                          nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * hidden, hidden, device="meta"))
            for _ in range(layers))
        self.head = nn.Linear(hidden, 50000, bias=False, device="meta")
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x).transpose(1, 2)


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


class NoGradient(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(7, 3)

    def forward(self, row):
        return self.layer(row).detach() * 2


class Files(ScriptCase):
    """What a file may hold, and what it may not."""

    def test_tied_weights_are_one_parameter(self):
        torch.jit.save(torch.jit.script(Tied()), str(self.path / "tied.pt"))
        result = self.run_json("train", "--model", "tied.pt", "--data", "random", "--batch", 4,
                               "--steps", 2, "--set", "model.input_shape=6<20")
        self.assertEqual(result["parameters"], 160)

    def test_several_inputs_of_two_kinds(self):
        script = torch.jit.script(TwoInputs())
        torch.jit.save(script, str(self.path / "two.pt"))
        result = self.run_json("train", "--model", "two.pt", "--data", "random", "--batch", 4,
                               "--steps", 3, "--set", "model.input_shape=3x2x2,4<9")
        self.assertEqual(result["parameters"], 65 + 45)
        self.assertGreater(result["loss"]["last"], 0)

    def test_the_models_own_loss(self):
        model = OwnLoss()
        rows, target = batch_of((7,), (1,))
        ours = self.train_here(torch.jit.script(model), "model.input_shape=7", "train.loss=model",
                               f"model.classes={CLASSES}")
        self.assert_same(ours, train_in_python(model, lambda m: m(rows, target[:, 0])["loss"]))

    def test_label_smoothing(self):
        model = nn.Linear(7, CLASSES)
        rows, target = batch_of((7,), (1,))
        ours = self.train_here(torch.jit.script(model), "model.input_shape=7",
                               "train.loss=label_smoothing")
        self.assert_same(ours, train_in_python(
            model, lambda m: cross_entropy(m(rows), target[:, 0], label_smoothing=0.1)))

    def test_two_ranks_train_a_file(self):
        torch.jit.save(torch.jit.script(nn.Linear(7, 4)), str(self.path / "model.pt"))
        losses = [self.run_json("train", "--model", "model.pt", "--data", "random", "-n", ranks,
                                "--batch", 8, "--steps", 4, "--set",
                                "model.input_shape=7")["loss"]["last"] for ranks in (1, 2)]
        self.assertAlmostEqual(losses[0] / losses[1], 1, delta=1e-6)

    def test_a_model_larger_than_memory_is_planned(self):
        model = Large(hidden=12288, layers=40)
        self.assertGreater(4 * sum(p.numel() for p in model.parameters()), 96e9)
        torch.jit.save(torch.jit.script(model), str(self.path / "large.pt"))
        arguments = ("--model", "large.pt", "--set", "model.input_shape=16<50000")
        plan = self.run_json("plan", *arguments, "--cluster", "flow-type2", "--devices", 32, "--batch", 64)
        self.assertGreater(plan["stages"], 3)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        self.assertLess(peak, 2e9)
        self.assert_fails(3, "the parameter embedding.weight of large.pt has no values", "renkei plan",
                          "train", *arguments, "--data", "random", "--steps", 1, "--batch", 2)

    def refuse(self, script, code, message, hint, shape="7"):
        torch.jit.save(script, str(self.path / "model.pt"))
        self.assert_fails(code, message, hint, "train", "--model", "model.pt", "--data", "random",
                          "--steps", 1, "--batch", 2, "--set", f"model.input_shape={shape}")

    def test_a_frozen_model_is_refused(self):
        frozen = torch.jit.freeze(torch.jit.script(nn.Linear(7, 4).eval()))
        self.refuse(frozen, 3, "has no parameters that can be trained", "torch.jit.freeze")

    def test_another_number_type_is_refused(self):
        self.refuse(torch.jit.script(nn.Linear(7, 4).double()), 3, "the parameter weight of",
                    "model.float()")

    def test_an_output_without_gradient_is_refused_by_name(self):
        self.refuse(torch.jit.script(NoGradient()), 3, "aten::detach stops it", "without detach")

    def test_a_wrong_shape_is_refused(self):
        self.refuse(torch.jit.script(nn.Linear(7, 4)), 2, "failed on an input of shape 2 × 8",
                    "model.input_shape", shape="8")

    def test_a_file_of_weights_is_refused(self):
        torch.save(dict(nn.Linear(7, 4).state_dict()), self.path / "model.pt")
        self.assert_fails(3, "is not a TorchScript file", "model.weights", "train", "--model",
                          "model.pt", "--data", "random", "--steps", 1, "--batch", 2)


if EVERY_MODEL:
    sys.argv.remove("--all")
    for name, test in vars(More).items():
        if name.startswith("test_"):
            setattr(TorchScript, name, test)

if __name__ == "__main__":
    unittest.main(verbosity=2)
