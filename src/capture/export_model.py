#!/usr/bin/env python3
"""Writes a PyTorch model as a .pt2 file that Renkei trains.

The model is exported as it trains (torch.export, not strict), for every batch size. What forward()
returns may be a tensor, or tensors in dictionaries, tuples and dataclasses, such as those of Hugging
Face. Names of parameters are those of model.state_dict(). Where evaluation is more than batch norm
and dropout switched off, the file holds a second program for it.
"""

import argparse
import contextlib
import dataclasses
import functools
import importlib
import inspect
import itertools
import json
import os
import pathlib
import random
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

__all__ = ["ExportError", "InputSpec", "export_model", "parse_input"]

SAMPLES = 4  # of the batch that is traced; the file holds for every number

EXAMPLE = """examples:
  export_model.py torchvision.models:resnet50 --input 3x224x224 -o resnet50.pt2
  export_model.py my_project.nets:Net --args '{"width": 64}' --input 1x28x28 -o net.pt2
  export_model.py my_gpt:build --input 'input_ids=128<50257' --meta -o gpt.pt2

MODULE is imported from the current directory or from what is installed; CALLABLE is a class or a
function that returns the model. An input is given without the batch: 3x224x224 is a float32 tensor,
128<50257 are 128 whole numbers below 50257, and NAME= before it names an argument of forward()."""


class ExportError(Exception):
    """What is wrong, as a sentence; `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclasses.dataclass(frozen=True)
class InputSpec:
    """One input of the model, without its batch."""

    sizes: tuple[int, ...]
    below: int | None = None  # whole numbers from 0 to below - 1; None: real numbers
    name: str | None = None  # of an argument of forward(); None: by position

    def sample(self, samples: int, device: torch.device) -> torch.Tensor:
        sizes = (samples, *self.sizes)
        if self.below is None:
            return torch.randn(sizes, device=device)
        return torch.randint(0, self.below, sizes, device=device)


def parse_input(text: str) -> InputSpec:
    """The input that a text such as 3x224x224, 128<50257 or labels=<1000 describes.

    >>> parse_input("input_ids=128<50257")
    InputSpec(sizes=(128,), below=50257, name='input_ids')
    """
    found = re.fullmatch(r"(?:([A-Za-z_]\w*)=)?(\d+(?:x\d+)*)?(?:<(\d+))?", text)
    if found is None or (found[2] is None and found[3] is None):
        raise ExportError(f"'{text}' is not an input", "write 3x224x224, 128<50257 or labels=<1000")
    below = int(found[3]) if found[3] is not None else None
    if below == 0:
        raise ExportError(f"'{text}' allows no number at all", "the number behind < must be 1 or more")
    sizes = tuple(int(size) for size in found[2].split("x")) if found[2] else ()
    return InputSpec(sizes, below, found[1])


def export_model(
    model: torch.nn.Module, inputs: Sequence[InputSpec], path: str | os.PathLike[str], *, samples: int = SAMPLES
) -> list[str]:
    """Writes `model` to `path`; returns remarks for the user. Throws ExportError."""
    file = pathlib.Path(path)
    if file.suffix != ".pt2":
        raise ExportError(f"{file} does not end with .pt2", "call it model.pt2")
    if not inputs:
        raise ExportError("there is no input", "describe each with --input, such as --input 3x224x224")
    remarks: list[str] = []
    device = next((p.device for p in itertools.chain(model.parameters(), model.buffers())), torch.device("cpu"))
    was_training = model.training
    with _flat_forward(model, inputs, remarks) as names:
        tensors = {name: spec.sample(samples, device) for name, spec in zip(names, inputs, strict=True)}
        try:
            model.train()
            _probe(model, tensors)
            training = _export(model, tensors)
            evaluation = _evaluation(model, tensors, training, remarks)
        finally:
            model.train(was_training)
    _save(file, training, evaluation, {"tied": _tied_names(model)})
    return list(dict.fromkeys(remarks))


# What is exported: forward() with tensors by name in, and a dictionary of tensors out.


@contextlib.contextmanager
def _flat_forward(
    model: torch.nn.Module, inputs: Sequence[InputSpec], remarks: list[str]
) -> Iterator[list[str]]:
    """Replaces model.forward for a while; a module around the model would change all names."""
    original = model.forward
    by_position = [spec for spec in inputs if spec.name is None]
    positional = _positional_names(original, len(by_position))
    free = iter(positional)
    names = [spec.name if spec.name is not None else next(free) for spec in inputs]
    if len(set(names)) != len(names):
        raise ExportError(f"two inputs have one name: {', '.join(names)}", "give each its own NAME=")

    @functools.wraps(original)
    def forward(**given: torch.Tensor) -> Any:
        arguments = [given.pop(name) for name in positional]
        return _named_tensors(original(*arguments, **given), remarks)

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    configuration: Any = getattr(model, "config", None)
    cached = getattr(configuration, "use_cache", None)
    if cached:  # of Hugging Face: of no use in training, and no tensors
        configuration.use_cache = False
    model.forward = forward
    try:
        yield names
    finally:
        del model.forward
        if cached:
            configuration.use_cache = cached


def _positional_names(forward: Callable[..., Any], count: int) -> list[str]:
    kinds = inspect.Parameter
    names = []
    for parameter in inspect.signature(forward).parameters.values():
        if parameter.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        elif parameter.kind is kinds.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(count - len(names))]
    if len(names) < count:
        raise ExportError(
            f"forward() takes {len(names)} inputs, and {count} are given",
            "give one --input for each, or name them: --input NAME=3x224x224",
        )
    return names[:count]


def _named_tensors(result: Any, remarks: list[str]) -> Any:
    """One tensor as it is; all others as a dictionary with names such as logits or hidden_states.0."""
    if isinstance(result, torch.Tensor):
        return result
    found: dict[str, torch.Tensor] = {}

    def collect(value: Any, name: str) -> None:
        if isinstance(value, torch.Tensor):
            found[name or "output"] = value
        elif value is None:
            pass
        elif isinstance(value, Mapping):
            for key, item in value.items():
                collect(item, f"{name}.{key}" if name else str(key))
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            for field in dataclasses.fields(value):
                collect(getattr(value, field.name), f"{name}.{field.name}" if name else field.name)
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            for key, item in zip(value._fields, value, strict=True):
                collect(item, f"{name}.{key}" if name else str(key))
        elif isinstance(value, (tuple, list)):
            for index, item in enumerate(value):
                collect(item, f"{name}.{index}" if name else f"output_{index}")
        else:
            remarks.append(f"the output {name or 'of forward()'} is a {type(value).__name__} and is left out")

    collect(result, "")
    if not found:
        raise ExportError("forward() returns no tensor", "return the tensor that the loss is computed from")
    return found


# What an export loses without an error.


def _probe(model: torch.nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    """Runs the model once, as PyTorch does, and refuses what a capture would get wrong."""
    used: set[str] = set()
    original = torch.autograd.Function.__dict__["apply"]

    def apply(kind: Any, *arguments: Any, **named: Any) -> Any:
        if not kind.__module__.startswith("torch."):
            used.add(f"{kind.__module__}.{kind.__qualname__}")
        return original.__func__(kind, *arguments, **named)

    drawn = random.getstate()
    numpy = sys.modules.get("numpy")
    drawn_numpy = _numpy_state(numpy)
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    torch.autograd.Function.apply = classmethod(apply)  # type: ignore[assignment, method-assign]
    try:
        with torch.random.fork_rng(devices=[]):
            model(**tensors)
    except ExportError:
        raise
    except Exception as error:
        raise ExportError(
            f"the model does not run on these inputs: {_first_line(error)}{_where(error)}",
            "check the sizes that --input gives: without the batch, in the order of forward()",
        ) from error
    finally:
        torch.autograd.Function.apply = original  # type: ignore[method-assign]
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                if name in buffers and buffer.shape == buffers[name].shape:
                    buffer.copy_(buffers[name])
    if used:
        raise ExportError(
            f"the model uses a torch.autograd.Function of its own: {', '.join(sorted(used))}",
            "an export keeps its forward and loses its backward: write it with PyTorch's operators",
        )
    if random.getstate() != drawn or _numpy_state(numpy) != drawn_numpy:
        raise ExportError(
            "forward() draws from Python's or NumPy's random numbers",
            "an export would repeat what was drawn once: draw with torch.rand and its like",
        )


def _numpy_state(numpy: Any) -> str:
    if numpy is None:
        return ""
    state = numpy.random.get_state()
    return f"{state[1].tobytes().hex()} {state[2:]}"


def _export(model: torch.nn.Module, tensors: dict[str, torch.Tensor]) -> ExportedProgram:
    shapes = {name: {0: torch.export.Dim.AUTO} for name in tensors}
    try:
        return torch.export.export(model, (), tensors, dynamic_shapes=shapes, strict=False)
    except ExportError:
        raise
    except Exception as error:
        kind = type(error).__name__
        hint = "torch.export must be able to capture the model as one graph"
        if "DataDependent" in kind or "data-dependent" in str(error):
            hint = "forward() takes a branch or a size from the values of a tensor: use torch.where, or fixed sizes"
        raise ExportError(f"torch.export refuses the model: {_first_line(error)}{_where(error)}", hint) from error


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _where(error: BaseException) -> str:
    """The last line of code that is not PyTorch's, as " (net.py:12 in forward)"."""
    home = str(pathlib.Path(torch.__file__).parent)
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if not frame.filename.startswith((home, "<")) and frame.filename != __file__:
            place = f" ({pathlib.Path(frame.filename).name}:{frame.lineno} in {frame.name})"
    return place


# Whether evaluation is a program of its own.


def _evaluation(
    model: torch.nn.Module, tensors: dict[str, torch.Tensor], training: ExportedProgram, remarks: list[str]
) -> ExportedProgram | None:
    model.eval()
    try:
        evaluation = _export(model, tensors)
    except ExportError as error:
        remarks.append(f"there is no program for evaluation: {error}")
        return None
    return None if _switched_off(training) == _switched_off(evaluation) else evaluation


# The argument that says whether a layer trains, by its place.
TRAINS = {"batch_norm": 5, "dropout": 2, "dropout_": 2, "feature_dropout": 2, "feature_dropout_": 2,
          "alpha_dropout": 2, "alpha_dropout_": 2, "feature_alpha_dropout": 2, "feature_alpha_dropout_": 2}  # fmt: skip


def _switched_off(program: ExportedProgram) -> list[str]:
    """The operations with batch norm and dropout switched to evaluation, in a form to compare."""
    counters = {
        spec.arg.name
        for spec in program.graph_signature.input_specs
        if spec.target is not None and spec.target.endswith("num_batches_tracked")
    }
    return list(_lines(program.graph_module, counters))


def _lines(module: torch.fx.GraphModule, counters: set[str]) -> Iterator[str]:
    numbers: dict[torch.fx.Node, int] = {}
    for node in module.graph.nodes:
        name = getattr(node.target, "_opname", None)
        if name == "add_" and getattr(node.args[0], "name", None) in counters:
            continue
        numbers[node] = len(numbers)
        arguments = list(node.args)
        if isinstance(name, str) and name in TRAINS and len(arguments) > TRAINS[name]:
            arguments[TRAINS[name]] = False
        shown = torch.fx.map_arg((tuple(arguments), dict(node.kwargs)), lambda n: f"%{numbers[n]}")
        yield f"{node.op} {'' if node.op in ('placeholder', 'output') else node.target} {shown}"
    for name, child in sorted(module.named_children()):
        if isinstance(child, torch.fx.GraphModule):
            yield name
            yield from _lines(child, counters)


# The file.


def _tied_names(model: torch.nn.Module) -> dict[str, str]:
    """For each further name of a tensor its first: memory tells it too, but not on "meta"."""
    first: dict[int, str] = {}
    tied: dict[str, str] = {}
    tensors = itertools.chain(
        model.named_parameters(remove_duplicate=False), model.named_buffers(remove_duplicate=False)
    )
    for name, tensor in tensors:
        known = first.setdefault(id(tensor), name)
        if known != name:
            tied[name] = known
    return tied


def _save(
    file: pathlib.Path, training: ExportedProgram, evaluation: ExportedProgram | None, notes: dict[str, Any]
) -> None:
    """Written aside and renamed; the name inside of the archive is that of the file."""
    try:
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=".export-") as aside:
            written = pathlib.Path(aside) / file.name
            extra = {"renkei.json": json.dumps(notes)}
            if evaluation is None:
                torch.export.save(training, written, extra_files=extra)
            else:
                _save_two(written, training, evaluation, extra)
            os.replace(written, file)
    except OSError as error:
        raise ExportError(f"could not write {file}: {error.strerror}") from error


def _save_two(
    file: pathlib.Path, training: ExportedProgram, evaluation: ExportedProgram, extra: dict[str, str]
) -> None:
    """PyTorch would store the weights twice: the second program's index points to those of the first."""
    from torch._export.serde.serialize import serialize
    from torch.export.pt2_archive import _package as package

    weights = training.state_dict.keys()
    if not hasattr(package, "_package_state_dict") or weights != evaluation.state_dict.keys():
        package.package_pt2(file, exported_programs={"model": training, "evaluation": evaluation}, extra_files=extra)
        return
    with package.PT2ArchiveWriter(str(file)) as writer:
        index = package._package_state_dict("model", training, writer)
        for name, program in (("model", training), ("evaluation", evaluation)):
            package._package_payload_config(writer, index, f"data/weights/{name}_weights_config.json")
            constants = package._package_constants(name, program, writer)
            package._package_payload_config(writer, constants, f"data/constants/{name}_constants_config.json")
            written = serialize(program, serialize_state_dict=False, serialize_constants=False)
            writer.write_bytes(f"models/{name}.json", written.exported_program)
            writer.write_bytes(f"data/sample_inputs/{name}.pt", written.example_inputs)
        for name, content in extra.items():
            writer.write_string(f"extra/{name}", content)


# The command.


def _build(place: str, arguments: str, meta: bool) -> torch.nn.Module:
    """The model that MODULE:CALLABLE makes of the arguments."""
    module_name, separator, path = place.partition(":")
    if not (module_name and separator and path):
        raise ExportError(f"'{place}' is not MODULE:CALLABLE", "write torchvision.models:resnet50")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise ExportError(
            f"could not import {module_name}: {error}", "run it where the module is, or install what it needs"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise ExportError(f"{module_name} has no {path}", "check the name behind the colon")
        found = getattr(found, part)
    positional, named = _parse_arguments(arguments)
    try:
        with torch.device("meta") if meta else contextlib.nullcontext():
            model = found(*positional, **named) if callable(found) and not isinstance(found, torch.nn.Module) else found
    except Exception as error:
        raise ExportError(f"{place} failed: {_first_line(error)}{_where(error)}", "check --args") from error
    if not isinstance(model, torch.nn.Module):
        raise ExportError(f"{place} gives a {type(model).__name__}, not a torch.nn.Module")
    return model


def _parse_arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ExportError(f"--args is not JSON: {error}", """write --args '{"width": 64}' or --args '[64]'""") from error
    if isinstance(value, dict):
        return [], value
    if isinstance(value, list):
        return value, {}
    return [value], {}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0, or 2 with a sentence about what is wrong."""
    parser = argparse.ArgumentParser(
        prog="export_model.py", description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", metavar="MODULE:CALLABLE", help="what makes the model")
    parser.add_argument("--args", default="{}", metavar="JSON", help="what it is called with: a list, or an object of names")
    parser.add_argument("--input", action="append", default=[], metavar="[NAME=]SIZES[<N]", help="one for each input")
    parser.add_argument("--meta", action="store_true", help="make the model without values, to plan what memory can't hold")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.pt2")
    given = parser.parse_args(arguments)
    try:
        inputs = [parse_input(text) for text in given.input]
        model = _build(given.model, given.args, given.meta)
        for remark in export_model(model, inputs, given.output):
            print(f"note: {remark}", file=sys.stderr)
    except ExportError as error:
        print(f"error: {error}", file=sys.stderr)
        if error.hint:
            print(f"  hint: {error.hint}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
