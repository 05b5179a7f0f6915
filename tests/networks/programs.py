"""Programs of the driver, and what torch.export makes of a module, in one form that can be compared."""

import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import Dim, export

DRIVER = os.environ["NETWORKS_DRIVER"]
DTYPES = {"f32": torch.float32, "i64": torch.int64, "bool": torch.bool}


def drive(*words: str) -> dict[str, Any]:
    done = subprocess.run([DRIVER, *words], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@dataclass(frozen=True)
class Step:
    """An operation. References are the name of a state or an input, or (place of an operation, result)."""

    target: str
    arguments: tuple[tuple[str, Any], ...]
    shapes: tuple[Any, ...]
    module: str


def plain(value: Any) -> Any:
    return tuple(plain(item) for item in value) if isinstance(value, list | tuple) else value


def steps_of_program(program: dict[str, Any]) -> list[Step]:
    origin: dict[int, Any] = {state["value"]: state["name"] for state in program["state"]}
    origin |= {port["value"]: port["name"] for port in program["inputs"]}

    def argument(json_value: Any) -> Any:
        match json_value:
            case {"value": place}:
                return origin[place]
            case {"dtype": name}:
                return DTYPES[name]
            case list():
                return tuple(argument(item) for item in json_value)
        return json_value

    steps = []
    for place, op in enumerate(program["ops"]):
        arguments = tuple((name, argument(value)) for name, value in op["arguments"])
        values = [program["values"][output] for output in op["outputs"]]
        shapes = tuple((tuple(value["sizes"]), DTYPES[value["dtype"]]) for value in values)
        steps.append(Step(op["target"], arguments, shapes, op.get("module", "")))
        origin |= {output: (place, result) for result, output in enumerate(op["outputs"])}
    return steps


def steps_of_module(module: torch.nn.Module, *inputs: torch.Tensor,
                    aliases: dict[str, str] | None = None) -> list[Step]:
    """What torch.export gives in training mode. Left out are checks of a tensor's type, which compute nothing,
    and getitem, which only names one of several results. Of a tied parameter `aliases` says which name counts."""
    dynamic = tuple({0: Dim.AUTO} for _ in inputs)
    exported = export(module.train(), inputs, dynamic_shapes=dynamic, strict=False)
    signature = exported.graph_signature
    names = signature.inputs_to_parameters | signature.inputs_to_buffers
    origin: dict[str, Any] = {}
    steps: list[Step] = []

    def argument(value: Any) -> Any:
        if isinstance(value, torch.fx.Node):
            return origin[value.name]
        return tuple(argument(item) for item in value) if isinstance(value, list | tuple) else value

    def sizes(value: torch.Tensor) -> Any:
        batch = "batch"
        return tuple(size if isinstance(size, int) else batch for size in value.shape), value.dtype

    for node in exported.graph.nodes:
        if node.op == "placeholder":
            name = names.get(node.name, node.name)
            origin[node.name] = (aliases or {}).get(name, name)
        elif node.op == "call_function" and "getitem" in str(node.target):
            origin[node.name] = (origin[node.args[0].name][0], node.args[1])
        elif node.op == "call_function" and "_assert_tensor_metadata" not in str(node.target):
            schema = [parameter.name for parameter in node.target._schema.arguments]
            given = list(zip(schema, node.args, strict=False)) + list(node.kwargs.items())
            value = node.meta["val"]
            results = value if isinstance(value, list | tuple) else [value]
            stack = list((node.meta.get("nn_module_stack") or {}).values())
            origin[node.name] = (len(steps), 0)
            steps.append(Step(str(node.target), tuple((name, argument(item)) for name, item in given),
                              tuple(sizes(result) for result in results), stack[-1][0] if stack else ""))
    return steps


def run(program: dict[str, Any], values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Computes a program operation by operation; `values` has its inputs and its state by name."""
    registers: dict[int, Any] = {port["value"]: values[port["name"]]
                                 for port in program["inputs"] + program["state"]}

    def argument(json_value: Any) -> Any:
        match json_value:
            case {"value": place}:
                return registers[place]
            case {"dtype": name}:
                return DTYPES[name]
            case list():
                return [argument(item) for item in json_value]
        return json_value

    for op in program["ops"]:
        _, name, overload = op["target"].split(".")
        operator = getattr(getattr(torch.ops.aten, name), overload)
        result = operator(**{name: argument(value) for name, value in op["arguments"]})
        results = result if isinstance(result, list | tuple) else [result]
        for place, tensor in zip(op["outputs"], results, strict=True):
            registers[place] = tensor
            expected = program["values"][place].get("sizes")
            if expected is not None:
                known = [size for size in expected if isinstance(size, int)]
                actual = [size for size, wanted in zip(tensor.shape, expected, strict=True)
                          if isinstance(wanted, int)]
                assert known == actual, (op, tensor.shape)
    return {port["name"]: registers[port["value"]] for port in program["outputs"]}
