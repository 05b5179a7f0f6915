"""Compares the tables of src/program/effects.cpp with what PyTorch's schemas and tags say.

    effects_against_torch.py build/bin/effects_of_targets

Every operator of aten in the dispatcher is asked for. A difference is a failure unless it is
explained below, and so is an explanation that no longer applies.
"""

import re
import subprocess
import sys
import warnings
from collections.abc import Iterator

import torch

# Operators that are no part of a network.
NOT_ASKED = re.compile("fbgemm_.*|_fused_(adam|adamw|adagrad|sgd)_?|_amp_.*|record_stream|retain_grad|set_data")

# Operators that change arguments without saying so in their schemas.
SILENT_WRITERS = {
    "batch_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "_batch_norm_impl_index",
    "instance_norm", "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts",
}  # fmt: skip

# Operators that may give back their argument, or a view of it, without saying so.
SILENT_VIEWS = {
    "dropout": lambda x: torch.ops.aten.dropout(x, 0.5, False),
    "feature_dropout": lambda x: torch.ops.aten.feature_dropout(x, 0.5, False),
    "alpha_dropout": lambda x: torch.ops.aten.alpha_dropout(x, 0.5, False),
    "feature_alpha_dropout": lambda x: torch.ops.aten.feature_alpha_dropout(x, 0.5, False),
    "type_as": lambda x: torch.ops.aten.type_as(x, x),
    "sum_to_size": lambda x: torch.ops.aten.sum_to_size(x, x.shape),
    "unsafe_chunk": lambda x: torch.ops.aten.unsafe_chunk(x, 2),
    "unsafe_split": lambda x: torch.ops.aten.unsafe_split(x, 1),
    "unsafe_split_with_sizes": lambda x: torch.ops.aten.unsafe_split_with_sizes(x, [1, 1]),
    "atleast_1d": lambda x: torch.ops.aten.atleast_1d(x),
    "atleast_2d": lambda x: torch.ops.aten.atleast_2d(x),
    "atleast_3d": lambda x: torch.ops.aten.atleast_3d(x),
    "to_dense": lambda x: torch.ops.aten.to_dense(x),
    "lift": lambda x: torch.ops.aten.lift(x),
    "einsum": lambda x: torch.ops.aten.einsum("abcd->dcba", [x]),
    "meshgrid": lambda x: torch.ops.aten.meshgrid([x.view(-1)], indexing="ij"),
    "broadcast_tensors": lambda x: torch.ops.aten.broadcast_tensors([x]),
    "cartesian_prod": lambda x: torch.ops.aten.cartesian_prod([x.view(-1)]),
}

# Why the table and the tag `nondeterministic_seeded` may differ.
DRAWS_DIFFER = {
    "_nested_tensor_softmax_with_shape": "has the tag, and no dropout",
    "_cudnn_attention_backward": "starts from the forward pass's state",
    "_scaled_dot_product_cudnn_attention_backward": "starts from the forward pass's state",
    "_scaled_dot_product_efficient_attention_backward": "starts from the forward pass's state",
}


def kind(argument: torch._C.Argument) -> str:
    """The letter of effects_of_targets.cpp for an argument."""
    text = str(argument.type)
    for pattern, letter in (
        (r"^(List|Optional\[List|Optional\[List\[Optional)?\[?(Optional\[)?Tensor\]*$", "l" if "List" in text else "t"),
        (r"bool", "b"),
        (r"^(Optional\[)?(float|number)", "f"),
        (r"^(Optional\[)?int", "i"),
    ):
        if re.search(pattern, text):
            return letter
    return "o"


def schemas() -> Iterator[torch._C.FunctionSchema]:
    """Those of the dispatcher's aten operators: what an export can name."""
    for full in sorted(torch._C._dispatch_get_all_op_names()):
        name, _, overload = full.removeprefix("aten::").partition(".")
        if not full.startswith("aten::") or NOT_ASKED.fullmatch(name):
            continue
        schema = getattr(getattr(torch.ops.aten, name), overload or "default")._schema
        # Those that write to where the caller says are known by the usual names only.
        out = [a.name for a in schema.arguments if a.is_out]
        if not out or (re.fullmatch("(.*_)?out", overload) and all(re.fullmatch(r"out\d*", n) for n in out)):
            yield schema


def written(schema: torch._C.FunctionSchema) -> set[str]:
    return {a.name for a in schema.arguments if a.alias_info and a.alias_info.is_write}


def shared(schema: torch._C.FunctionSchema) -> set[str]:
    """The arguments that a result has an annotation in common with."""
    arguments, _, results = str(schema).rpartition(" -> ")
    sets = {s for group in re.findall(r"\(([a-z|]+)!?\)", results) for s in group.split("|")}
    found = set()
    for group, rest in re.findall(r"Tensor\(([a-z|]+)!?(?: -> \*)?\)[\[\]\d?]* (\w+)", arguments):
        if sets & set(group.split("|")):
            found.add(rest)
    return found


def ask(driver: str, asked: list[torch._C.FunctionSchema]) -> list[list[str]]:
    lines = []
    for schema in asked:
        target = f"aten.{schema.name.removeprefix('aten::')}.{schema.overload_name or 'default'}"
        lines.append(" ".join([target] + [f"{a.name}:{kind(a)}" for a in schema.arguments]))
    answer = subprocess.run([driver], input="\n".join(lines) + "\n", text=True, capture_output=True, check=True)
    return [line.split("\t") for line in answer.stdout.splitlines()]


def passes_gradients(schema: torch._C.FunctionSchema) -> bool | None:
    """Whether an operator of one or two matrices does; None: it is of another kind."""
    needed = [a for a in schema.arguments if not a.has_default_value()]
    simple = 1 <= len(needed) <= 2 and all(str(a.type) == "Tensor" and not a.alias_info for a in needed)
    name = schema.name.removeprefix("aten::")
    tensors = any("Tensor" in str(r.type) for r in schema.returns)
    if not simple or name.startswith("_") or not tensors or re.search("mkldnn|cudnn|miopen|quantize", name):
        return None
    op = getattr(getattr(torch.ops.aten, name), schema.overload_name or "default")
    try:
        results = op(*(torch.rand(3, 3, requires_grad=True) for _ in needed))
    except (RuntimeError, NotImplementedError, IndexError):
        return None  # it asks for other shapes or types
    results = results if isinstance(results, (tuple, list)) else [results]
    return any(isinstance(r, torch.Tensor) and r.requires_grad for r in results)


def main(driver: str) -> int:
    warnings.simplefilter("ignore")  # deprecated operators are asked for too
    asked = list(schemas())
    assert len(asked) > 2000, len(asked)
    problems: list[str] = []
    explained: set[str] = set()
    tried = 0
    for schema, (target, writes, alias, draws, differentiable) in zip(asked, ask(driver, asked), strict=True):
        name = schema.name.removeprefix("aten::")
        says = set(filter(None, writes.split(",")))
        if says != written(schema):
            if name in SILENT_WRITERS and written(schema) < says:
                explained.add(name)
            else:
                problems.append(f"{target}: writes {sorted(says)}, the schema says {sorted(written(schema))}")
        if schema.returns and ((alias and alias not in shared(schema)) or (shared(schema) and not alias)):
            if name in SILENT_VIEWS and alias:
                explained.add(name)
            else:
                problems.append(f"{target}: shares {alias or 'nothing'}, the schema says {sorted(shared(schema))}")
        op = getattr(getattr(torch.ops.aten, name), schema.overload_name or "default")
        tagged = torch.Tag.nondeterministic_seeded in op.tags
        if (draws == "true") != tagged:
            if name in DRAWS_DIFFER:
                explained.add(name)
            else:
                problems.append(f"{target}: draws is {draws}, the tag says {tagged}")
        passes = passes_gradients(schema)
        tried += passes is not None
        if passes is not None and passes != (differentiable == "true"):
            problems.append(f"{target}: differentiable is {differentiable}, autograd says {passes}")
    assert tried > 200, tried
    x = torch.rand(2, 4, 4, 4)
    for name, call in SILENT_VIEWS.items():
        result = call(x)
        result = result[0] if isinstance(result, (tuple, list)) else result
        if result.untyped_storage().data_ptr() != x.untyped_storage().data_ptr():
            problems.append(f"{name}: is said to share memory, and does not")
    for name in sorted((SILENT_WRITERS | SILENT_VIEWS.keys() | DRAWS_DIFFER.keys()) - explained):
        problems.append(f"{name}: is explained, but nothing differs")
    print(f"{len(asked)} operators compared, {tried} run, {len(explained)} differences explained")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
