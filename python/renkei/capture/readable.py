"""An exported graph, changed so that the engine reads it; what it can't read must be opaque."""

from typing import Any

import torch
from torch.export import ExportedProgram

from renkei.capture.keys import ROOT, Key, Names, is_users
from renkei.capture.probe import Line
from renkei.capture.sites import NotOpaque

__all__ = ["make_readable", "text_of"]

_WRAPPERS = ("wrap_with_set_grad_enabled", "tag_activation_checkpoint", "wrap_activation_checkpoint", "invoke_subgraph",
             "wrap")


def text_of(line: Line) -> str:
    """As the operators of assumptions name it."""
    return "\t".join(map(str, line))


def make_readable(program: ExportedProgram, names: Names) -> None:
    """Throws NotOpaque with the part that can't be read."""
    for module in program.graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in list(module.graph.nodes):
            if node.op != "call_function":
                continue
            _refuse(node, names)
            if node.target is torch.ops.aten._assert_scalar.default:
                # A check of sizes that fails ends no step: the step is done again, with another capture.
                node.target = torch.ops.renkei.assume_number.default
                node.args = (node.args[0], text_of(_line_of(node)))
            elif any(isinstance(leaf, complex) for leaf in torch.utils._pytree.tree_leaves((node.args, node.kwargs))):
                _write_complex(module.graph, node)


def _refuse(node: Any, names: Names) -> None:
    name = getattr(node.target, "__name__", "")
    if not isinstance(node.target, torch._ops.HigherOrderOperator) or name in _WRAPPERS:
        return
    if name == "wrap_with_autocast" and not node.args[2]:
        return
    error = NotOpaque(None, f"it has {'torch.autocast' if 'autocast' in name else name} inside")
    error.around = [ROOT, *_modules_of(node, names)]
    raise error


def _modules_of(node: Any, names: Names) -> list[Key]:
    paths = [str(entry[0]).replace("L['self'].", "") for entry in (node.meta.get("nn_module_stack") or {}).values()]
    return [Key("module", path) for path in paths if path in names.modules]


def _write_complex(graph: torch.fx.Graph, node: Any) -> None:
    """A constant such as 1j as a tensor of one number."""

    def written(leaf: Any) -> Any:
        if not isinstance(leaf, complex):
            return leaf
        parts = [_new(graph, node, torch.ops.aten.scalar_tensor.default, (x,), {"dtype": torch.float32})
                 for x in (leaf.real, leaf.imag)]
        return _new(graph, node, torch.ops.aten.complex.default, tuple(parts), {})

    with graph.inserting_before(node):
        node.args, node.kwargs = torch.utils._pytree.tree_map(written, (tuple(node.args), dict(node.kwargs)))


def _new(graph: torch.fx.Graph, like: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    made = graph.call_function(target, args, kwargs)
    made.meta = {key: value for key, value in like.meta.items() if key in ("nn_module_stack", "stack_trace")}
    values = [arg.meta["val"] if isinstance(arg, torch.fx.Node) else arg for arg in args]
    with like.meta["val"].fake_mode:
        made.meta["val"] = target(*values, **kwargs)
    return made


def _line_of(node: Any) -> Line:
    trace = str(node.meta.get("stack_trace") or "")
    lines = [line.strip() for line in trace.splitlines() if line.strip().startswith("File ")]
    places = [line.removeprefix('File "').partition('", line ') for line in lines]
    own = [place for place in places if is_users(place[0])] or places
    if not own:
        return "", "", 0
    file, _, rest = own[-1]
    return "", file, int(rest.split(",")[0] or 0)
