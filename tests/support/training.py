"""Jobs of `renkei train` beside the same steps in PyTorch: losses, parameters and buffers must be equal."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]

import eager  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

import renkei  # noqa: E402

SEED, STEPS, MOMENTUM = 5, 5, 0.9
RANKS = 2


class TrainingCase(renkei.Case):
    def setUp(self):
        super().setUp()
        torch.set_num_threads(1)
        torch.manual_seed(1)

    def train_here(self, settings: Mapping[str, object], *arguments: object, batch: int,
                   data: object = "random") -> eager.Trained:  # fmt: skip
        """Five steps on 2 ranks."""
        words = {"data.samples": batch, "train.momentum": MOMENTUM, "train.save": "true", **settings}
        result = self.run_json("train", "--data", data, "--batch", batch, "--epochs", STEPS, "--threads", 1,
                               "--seed", SEED, "-n", RANKS, *arguments, *in_words(words), timeout=600)  # fmt: skip
        losses = [row["loss"] for row in self.metrics(result["run_dir"]) if "loss" in row]
        return eager.Trained(losses, load_file(f"{result['run_dir']}/model.safetensors"))

    def two_stages(self, file: str, settings: Mapping[str, object], *, batch: int) -> Path:
        """A plan for two ranks, a stage each, that work on two micro-batches."""
        plan = self.path / "plan.json"
        words = {name: value for name, value in settings.items() if not name.startswith("train.lr")}
        self.run_json("plan", "--model", file, "--cluster", "flow-type2", "--devices", RANKS,
                      "--stages", RANKS, "--micro-batches", 2, "--batch", batch, "-o", plan, *in_words(words),
                      timeout=600)  # fmt: skip
        self.assertEqual(len(json.loads(plan.read_text())["stage_list"]), 2)
        return plan

    def assert_equal(self, ours: eager.Trained, theirs: eager.Trained, initial: Mapping[str, torch.Tensor],
                     tolerance: float) -> None:  # fmt: skip
        self.assertEqual(len(ours.losses), len(theirs.losses))
        for step, (a, b) in enumerate(zip(ours.losses, theirs.losses)):
            self.assertLessEqual(abs(a - b), tolerance * abs(b), f"loss of step {step}: {ours.losses} {theirs.losses}")
        self.assertEqual(sorted(ours.state), sorted(theirs.state))
        errors = {}
        for name, value in theirs.state.items():
            error, scale = largest(ours.state[name].double() - value.double()), scale_of(name, theirs.state)
            if not error <= tolerance * scale:
                errors[name] = error / scale if scale else error
        worst = sorted(errors.items(), key=lambda item: -item[1])[:5]
        self.assertEqual(worst, [], f"{len(errors)} of {len(theirs.state)} tensors differ")
        self.assert_trained(ours, theirs, initial)

    def assert_trained(self, ours: eager.Trained, theirs: eager.Trained, initial: Mapping[str, torch.Tensor]) -> None:
        """The training itself was compared: its parameters differ far more from the start than from PyTorch's."""
        floats = [name for name, value in initial.items()
                  if value.is_floating_point() and not name.endswith(("running_mean", "running_var"))]  # fmt: skip
        moved = sum(float((theirs.state[name] - initial[name]).double().square().sum()) for name in floats)
        apart = sum(float((theirs.state[name] - ours.state[name]).double().square().sum()) for name in floats)
        self.assertGreater(moved, 0, "nothing was trained")
        self.assertLess(apart, 1e-4 * moved, "nothing was trained that could be compared")


def in_words(settings: Mapping[str, object]) -> list[str]:
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


def largest(values: torch.Tensor) -> float:
    return float(values.abs().max()) if values.numel() else 0.0


def scale_of(name: str, state: Mapping[str, torch.Tensor]) -> float:
    """The largest value of the tensor. A bias before a normalisation, of the keys of an attention, or added alike to
    all classes has a gradient that is zero but for rounding: the weights of the same layer set its scale."""
    scale = largest(state[name].double())
    if not name.endswith("bias"):
        return scale
    layer = name.removesuffix("bias")
    weights = [value for other, value in state.items() if other.startswith(layer) and other.endswith("weight")]
    return max([scale, *(largest(value.double()) for value in weights)])
