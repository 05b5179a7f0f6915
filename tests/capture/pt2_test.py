"""Networks of torchvision, timm and transformers, exported and read: operations, state and outputs are
those that PyTorch has. A few by default, all with --all."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zlib
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "src/capture"))

import torch
from export_model import ExportError, export_model, parse_input

import zoo

DRIVER = os.environ["CAPTURE_DRIVER"]
ALL = "--all" in sys.argv
DTYPES = {"f32": torch.float32, "i64": torch.int64, "bool": torch.bool, "f64": torch.float64}

# Notes of the tracer, which the reader leaves out.
LEFT_OUT = ("aten._assert_tensor_metadata.default", "aten.sym_constrain_range")


def read(file: pathlib.Path) -> dict[str, Any]:
    done = subprocess.run([DRIVER, file], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def exported(file: pathlib.Path, name: str) -> torch.export.ExportedProgram:
    from torch.export.pt2_archive._package import load_pt2

    return load_pt2(str(file)).exported_programs[name]


def operations(module: torch.fx.GraphModule) -> collections.Counter[str]:
    """How often each operator is in a graph and in those inside of it."""
    count: collections.Counter[str] = collections.Counter()
    for node in module.graph.nodes:
        operator = node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)
        if operator and not str(node.target).startswith(LEFT_OUT):
            count[str(node.target)] += 1
    for child in module.children():
        if isinstance(child, torch.fx.GraphModule):
            count += operations(child)
    return count


def operations_read(program: dict[str, Any]) -> collections.Counter[str]:
    return collections.Counter(op["target"] for op in program["ops"] if not op["target"].startswith("operator."))


def checksum(tensor: torch.Tensor) -> int:
    return zlib.crc32(tensor.detach().contiguous().numpy().tobytes())


class Networks(unittest.TestCase):
    """Each network: what the driver read is what the model and the export have."""

    def check(self, name: str) -> None:
        network = zoo.NETWORKS[name]
        torch.manual_seed(1)
        model = network.make()
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "net.pt2"
            export_model(model, [parse_input(text) for text in network.inputs], file)
            result = read(file)
            self.check_program(result["program"], exported(file, "model"))
            if "evaluation" in result:
                self.check_program(result["evaluation"], exported(file, "evaluation"))
        self.check_state(model, result)
        self.check_outputs(model, network, result["program"])

    def check_program(self, program: dict[str, Any], oracle: torch.export.ExportedProgram) -> None:
        self.assertEqual(operations_read(program), operations(oracle.graph_module))
        self.assertEqual([s["name"] for s in program["symbols"] if s.get("batch")], ["batch"])
        for port in program["inputs"]:
            self.assertEqual(program["values"][port["value"]]["sizes"][0], "batch")
        trained = [op for op in program["ops"] if op["target"].startswith(("aten.conv", "aten.linear"))]
        self.assertTrue(all(op["module"] and op["source"] for op in trained))

    def check_state(self, model: torch.nn.Module, result: dict[str, Any]) -> None:
        tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        names = [s["name"] for s in result["program"]["state"] if s["kind"] != "constant"]
        self.assertEqual(sorted(names), sorted(tensors))
        for name in names:
            read_tensor = result["tensors"][name]
            self.assertEqual(read_tensor["sizes"], list(tensors[name].shape), name)
            self.assertEqual(DTYPES[read_tensor["dtype"]], tensors[name].dtype, name)
            self.assertEqual(read_tensor["checksum"], checksum(tensors[name]), name)
        aliases = {name for s in result["program"]["state"] for name in s.get("aliases", [])}
        every = dict(model.named_parameters(remove_duplicate=False)).keys()
        self.assertEqual(aliases & every, every - dict(model.named_parameters()).keys())

    def check_outputs(self, model: torch.nn.Module, network: zoo.Network, program: dict[str, Any]) -> None:
        """Names and sizes, at a batch that was not traced."""
        specs = [parse_input(text) for text in network.inputs]
        given = [spec.sample(3, torch.device("cpu")) for spec in specs]
        positional = [t for t, spec in zip(given, specs, strict=True) if spec.name is None]
        named = {spec.name: t for t, spec in zip(given, specs, strict=True) if spec.name is not None}
        result = model.train()(*positional, **named)
        for port in program["outputs"]:
            value = result
            if port["name"] != "output":
                for part in port["name"].split("."):
                    value = getattr(value, part) if hasattr(value, part) else value[int(part)]
            sizes = [3 if size == "batch" else size for size in program["values"][port["value"]]["sizes"]]
            self.assertEqual(sizes, list(value.shape), port["name"])


def _test(name: str) -> Any:
    return lambda self: self.check(name)


for _name, _network in zoo.NETWORKS.items():
    if ALL or _network.sample:
        setattr(Networks, "test_" + _name.replace("/", "_"), _test(_name))


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        return x * x

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


class OwnFunction(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Squared.apply(x)


class Branch(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x


class Export(unittest.TestCase):
    """The command: what it refuses, and models without values."""

    def refusal(self, model: torch.nn.Module, text: str) -> str:
        with tempfile.TemporaryDirectory() as directory, self.assertRaises(ExportError) as caught:
            export_model(model, [parse_input(text)], pathlib.Path(directory) / "net.pt2")
        self.assertTrue(caught.exception.hint)
        return str(caught.exception)

    def test_own_functions_are_refused_by_name(self) -> None:
        self.assertIn("Squared", self.refusal(OwnFunction(), "3"))

    def test_branches_on_values_are_refused_with_their_line(self) -> None:
        self.assertIn("pt2_test.py", self.refusal(Branch(), "3"))

    def test_wrong_sizes_are_said_before_the_export(self) -> None:
        self.assertIn("does not run on these inputs", self.refusal(torch.nn.Linear(4, 2), "3"))

    def test_a_model_without_values_keeps_its_tied_weights(self) -> None:
        with torch.device("meta"):
            model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
        model[1].weight = model[0].weight
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "net.pt2"
            export_model(model, [parse_input("4")], file)
            result = read(file)
        self.assertFalse(result["has_values"])
        self.assertEqual(result["program"]["state"][0].get("aliases"), ["1.weight"])

    def test_the_command_explains_itself(self) -> None:
        script = zoo.CAPTURE / "export_model.py"
        done = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True, check=True)
        self.assertIn("torchvision.models:resnet50", done.stdout)
        done = subprocess.run([sys.executable, script, "torch.nn:Nothing", "--input", "3", "-o", "x.pt2"],
                              capture_output=True, text=True, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 2)
        self.assertIn("has no Nothing", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--all"])
