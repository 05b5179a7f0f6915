#!/usr/bin/env python3
"""The networks whose training is measured: how each is made in PyTorch, what it takes, and how renkei is told
to train the same.

usage: bench/networks.py NAME FILE.pt2        writes the network as a file that renkei trains
"""

import dataclasses
import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Network:
    batch: int  # samples per rank
    inputs: tuple[str, ...]  # without the batch, as export_model.py takes them
    loss: str = "cross_entropy"  # or mse, or model: the network computes it from its last input
    optimizer: str = "sgd"
    classes: int = 1000
    built_in: bool = False  # renkei has it by this name, too

    @property
    def images(self):
        return self.inputs[0].startswith("3x")

    @property
    def settings(self):
        """What renkei is told about the optimizer; the peer has the same numbers (make_optimizer)."""
        if self.optimizer == "adamw":
            return ["optim.name=adamw", "train.lr=1e-4", "train.weight_decay=0.01"]
        return ["train.lr=1e-4", "train.momentum=0.9"]

    @property
    def file_settings(self):
        """What is said about a .pt2 file, beside its name."""
        labels = [f"model.classes={self.classes}"] if self.loss == "model" else []
        return [f"train.loss={self.loss}", *labels]


def _images(batch, *, side=224, **options):
    return Network(batch, (f"3x{side}x{side}",), **options)


def _tokens(vocabulary):
    inputs = (f"input_ids=128<{vocabulary}", f"labels=128<{vocabulary}")
    return Network(2, inputs, loss="model", optimizer="adamw", classes=vocabulary)


NETWORKS = {
    "mlp": Network(32, ("512",), loss="mse", built_in=True),
    "alexnet": _images(8, built_in=True),
    "resnet50": _images(4, built_in=True),
    "inception_v3": _images(4, side=299, built_in=True),
    "vgg16": _images(4, built_in=True),
    "densenet121": _images(4),
    "mobilenet_v2": _images(4),
    "efficientnet_b0": _images(4),
    "convnext_tiny": _images(4),
    "gpt2": _tokens(50257),
    "bert": _tokens(30522),
    "vit_b_16": _images(2, optimizer="adamw"),
    "swin_t": _images(2, optimizer="adamw"),
}


def require(name):
    """Imports a package of the peers, or ends with the command that installs it."""
    sys.path.insert(0, str(ROOT / "tests/support"))
    try:
        if name != "torch":  # transformers imports torchvision, too
            importlib.import_module("torchvision_ops")
        return importlib.import_module(name)
    except ImportError as error:
        sys.exit(f"{name} can't be imported ({error}): `make setup` installs it into .venv, and "
                 ".venv/bin/python starts the benchmarks")


def make_model(name):
    """The network in PyTorch, in training mode."""
    torch = require("torch")
    torch.manual_seed(1)
    if name == "mlp":  # of RaNNC's tutorial
        layers = []
        for _ in range(10):
            layers += [torch.nn.Linear(512, 512), torch.nn.ReLU()]
        return torch.nn.Sequential(*layers[:-1]).train()
    if name in ("gpt2", "bert"):
        transformers = require("transformers")
        if name == "gpt2":
            return transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False)).train()
        return transformers.BertForMaskedLM(transformers.BertConfig()).train()
    options = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
    return getattr(require("torchvision").models, name)(weights=None, **options).train()


def make_optimizer(name, model):
    torch = require("torch")
    if NETWORKS[name].optimizer == "adamw":
        return torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    return torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)


def input_specs(name):
    sys.path.insert(0, str(ROOT / "src/capture"))
    from export_model import parse_input

    return [parse_input(text) for text in NETWORKS[name].inputs]


def export(name, file):
    """Writes the network as a .pt2 file."""
    specs = input_specs(name)
    from export_model import export_model

    for remark in export_model(make_model(name), specs, file):
        print(f"{name}: {remark}", file=sys.stderr)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in NETWORKS:
        sys.exit(f"usage: bench/networks.py NAME FILE.pt2, where NAME is one of {', '.join(NETWORKS)}")
    Path(sys.argv[2]).parent.mkdir(parents=True, exist_ok=True)
    export(sys.argv[1], sys.argv[2])


if __name__ == "__main__":
    main()
