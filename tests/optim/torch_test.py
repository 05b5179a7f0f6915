"""A hundred steps of each optimizer against torch.optim, and against the formulas of the papers in
double precision where Torch has none."""
import math
import os
import pathlib
import subprocess
import tempfile
import unittest

import torch

STEPS = 100
STEPS_PER_EPOCH = 10
SHAPES = ((7, 5), (5,), (33, 17), (17,), (3, 4, 5, 6))
LINE = 16  # floats: each parameter starts on a cache line


def places():
    """(offset, count) of each parameter, and the size of the flat buffer."""
    offset, result = 0, []
    for shape in SHAPES:
        count = math.prod(shape)
        result.append((offset, count))
        offset += (count + LINE - 1) // LINE * LINE
    return result, offset


def flattened(tensors):
    where, total = places()
    flat = torch.zeros(total)
    for tensor, (offset, count) in zip(tensors, where):
        flat[offset:offset + count] = tensor.flatten()
    return flat


def raw(tensor):
    return tensor.detach().contiguous().numpy().tobytes()


class Optimizers(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.values = [torch.randn(shape) for shape in SHAPES]
        # Sizes of gradients differ between tensors and steps, as they do in training.
        self.gradients = [[torch.randn(shape) * 10.0 ** (-(i % 3)) * (1 + step % 7)
                           for i, shape in enumerate(SHAPES)] for step in range(STEPS)]

    def ours(self, *settings, decays=lambda shape: True):
        where, total = places()
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name)
            (path / "parameters").write_text("".join(
                f"{offset} {count} {int(decays(shape))}\n"
                for (offset, count), shape in zip(where, SHAPES)))
            (path / "values").write_bytes(raw(flattened(self.values)))
            (path / "gradients").write_bytes(raw(torch.stack([flattened(g) for g in self.gradients])))
            done = subprocess.run([os.environ["OPTIM_DRIVER"], name, *settings],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            flat = torch.frombuffer(bytearray((path / "result").read_bytes()), dtype=torch.float32)
        self.assertEqual(flat.numel(), total)
        return [flat[offset:offset + count].reshape(shape)
                for (offset, count), shape in zip(where, SHAPES)]

    def assert_close(self, ours, theirs):
        for mine, other, start in zip(ours, theirs, self.values):
            other = other.detach().double()
            error = (mine.double() - other).norm() / other.norm()
            self.assertLess(error, 1e-6)
            self.assertGreater((other - start).norm() / start.norm(), 1e-3, "nothing was trained")

    def torch_result(self, make_optimizer, make_scheduler=None, clip=None):
        parameters = [torch.nn.Parameter(value.clone()) for value in self.values]
        optimizer = make_optimizer(parameters)
        scheduler = make_scheduler(optimizer) if make_scheduler else None
        for gradients in self.gradients:
            for parameter, gradient in zip(parameters, gradients):
                parameter.grad = gradient.clone()
            if clip:
                torch.nn.utils.clip_grad_norm_(parameters, clip)
            optimizer.step()
            if scheduler:
                scheduler.step()
        return parameters

    def test_sgd(self):
        for momentum in (0, 0.9):
            for decay in (0, 1e-2):
                for nesterov in ((False, True) if momentum else (False,)):
                    with self.subTest(momentum=momentum, decay=decay, nesterov=nesterov):
                        theirs = self.torch_result(lambda p: torch.optim.SGD(
                            p, lr=0.02, momentum=momentum, weight_decay=decay, nesterov=nesterov))
                        ours = self.ours("train.lr=0.02", f"train.momentum={momentum}",
                                         f"train.weight_decay={decay}",
                                         f"optim.nesterov={str(nesterov).lower()}")
                        self.assert_close(ours, theirs)

    def test_adam_and_adamw(self):
        for name, kind in (("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)):
            for decay in (0, 1e-2):
                for betas in ((0.9, 0.999), (0.8, 0.95)):
                    with self.subTest(name=name, decay=decay, betas=betas):
                        theirs = self.torch_result(lambda p: kind(
                            p, lr=0.01, betas=betas, eps=1e-6, weight_decay=decay))
                        ours = self.ours(f"optim.name={name}", "train.lr=0.01", "optim.eps=1e-6",
                                         f"train.weight_decay={decay}", f"optim.beta1={betas[0]}",
                                         f"optim.beta2={betas[1]}")
                        self.assert_close(ours, theirs)

    def test_parameters_without_decay(self):
        def groups(p):
            return [{"params": [x for x in p if x.dim() > 1], "weight_decay": 0.1},
                    {"params": [x for x in p if x.dim() == 1], "weight_decay": 0}]
        theirs = self.torch_result(lambda p: torch.optim.AdamW(groups(p), lr=0.01))
        ours = self.ours("optim.name=adamw", "train.lr=0.01", "train.weight_decay=0.1",
                         decays=lambda shape: len(shape) > 1)
        self.assert_close(ours, theirs)

    def test_clipping(self):
        theirs = self.torch_result(lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9), clip=5.0)
        self.assert_close(self.ours("train.lr=0.02", "train.momentum=0.9", "optim.clip=5"), theirs)

    def test_schedules(self):
        schedulers = torch.optim.lr_scheduler
        theirs = self.torch_result(
            lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9),
            lambda o: schedulers.MultiStepLR(o, [30, 70], gamma=0.2))
        self.assert_close(self.ours("train.lr=0.02", "train.momentum=0.9", "optim.schedule=steps",
                                    "optim.milestones=3,7", "optim.decay=0.2"), theirs)
        theirs = self.torch_result(
            lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9),
            lambda o: schedulers.CosineAnnealingLR(o, STEPS))
        self.assert_close(self.ours("train.lr=0.02", "train.momentum=0.9",
                                    "optim.schedule=cosine"), theirs)

    def plain_result(self, update):
        """update(value, gradient, state, step): the new value; all in double."""
        values = [value.double() for value in self.values]
        states = [{} for _ in values]
        for step, gradients in enumerate(self.gradients):
            values = [update(value, gradient.double(), state, step)
                      for value, gradient, state in zip(values, gradients, states)]
        return values

    def test_lars(self):
        # You, Gitman and Ginsburg, "Large batch training of convolutional networks", algorithm 1.
        lr, momentum, decay, trust = 2.0, 0.9, 1e-2, 0.02

        def update(w, g, state, step):
            local = 1.0
            if w.dim() > 1:
                local = trust * w.norm() / (g.norm() + decay * w.norm())
                g = g + decay * w
            state["v"] = momentum * state.get("v", 0) + lr * local * g
            return w - state["v"]
        ours = self.ours("optim.name=lars", f"train.lr={lr}", f"train.momentum={momentum}",
                         f"train.weight_decay={decay}", f"optim.trust={trust}",
                         decays=lambda shape: len(shape) > 1)
        self.assert_close(ours, self.plain_result(update))

    def test_lamb(self):
        # You et al., "Large batch optimization for deep learning", algorithm 2.
        lr, beta1, beta2, eps, decay = 0.02, 0.9, 0.999, 1e-6, 1e-2

        def update(w, g, state, step):
            m = state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * g
            v = state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * g * g
            r = (m / (1 - beta1 ** (step + 1))) / ((v / (1 - beta2 ** (step + 1))).sqrt() + eps)
            r = r + decay * w
            return w - lr * w.norm() / r.norm() * r
        ours = self.ours("optim.name=lamb", f"train.lr={lr}", f"train.weight_decay={decay}",
                         f"optim.eps={eps}")
        self.assert_close(ours, self.plain_result(update))

    def test_rmsprop_warmup(self):
        # Akiba, Suzuki and Fukuda, "Extremely large minibatch SGD", with the transition within the
        # ten epochs of this test.
        lr, mu1, mu2, eps, rms_lr, decay, centre, width = 0.02, 0.9, 0.99, 1e-8, 3e-4, 1e-3, 4, 3

        def share(epoch):
            if epoch < centre:
                return 0.5 * math.exp(2 * (epoch - centre) / width)
            return min(1.0, 0.5 + (epoch - centre) / width)

        def update(w, g, state, step):
            g = g + decay * w
            sgd = share(step / STEPS_PER_EPOCH)
            rms = (1 - sgd) * rms_lr / lr
            m = state["m"] = mu2 * state.get("m", 0) + (1 - mu2) * g * g
            state["d"] = mu1 * state.get("d", 0) - (sgd + rms / (m.sqrt() + eps)) * g
            return w + lr * state["d"]
        ours = self.ours("optim.name=rmsprop_warmup", f"train.lr={lr}", f"train.momentum={mu1}",
                         f"train.weight_decay={decay}", f"optim.rms_centre={centre}",
                         f"optim.rms_width={width}")
        self.assert_close(ours, self.plain_result(update))


if __name__ == "__main__":
    unittest.main()
