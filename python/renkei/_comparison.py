"""Does the engine compute what the model computes as it is written?"""

from collections.abc import Callable, Sequence

import torch

__all__ = ["TOLERANCE", "gradients_differ", "largest", "outputs_differ"]

TOLERANCE = 1e-3  # relative to the largest value; sums in another order differ by less


def largest(tensor: torch.Tensor) -> float:
    """The largest magnitude, found without memory."""
    return float(torch.linalg.vector_norm(tensor, torch.inf)) if tensor.numel() else 0.0


def outputs_differ(outputs: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> str:
    """What differs, in words; empty: nothing does."""
    for number, (here, there) in enumerate(zip(outputs, wanted, strict=True)):
        if here.shape != there.shape or here.dtype != there.dtype:
            return f"output {number} is {list(here.shape)} {here.dtype} and not {list(there.shape)} {there.dtype}"
        if not here.is_floating_point() and not here.is_complex():
            if not torch.equal(here, there):
                return f"output {number} differs"
            continue
        worst = largest(torch.nan_to_num(here - there))
        if not worst <= TOLERANCE * max(largest(torch.nan_to_num(there)), 1e-6):
            return f"output {number} differs by {worst:.3g}"
    return ""


def gradients_differ(
    parameters: dict[str, torch.nn.Parameter],
    wanted: dict[str, torch.Tensor | None],
    is_held: Callable[[str], bool],
) -> str:
    """The same for gradients of the parameters that this rank has; those of `wanted` are used up."""
    scale = max((largest(g) for g in wanted.values() if g is not None), default=0.0)
    for name, gradient in wanted.items():
        if not is_held(name):
            continue
        here = parameters[name].grad
        if here is None or gradient is None:
            if here is not None and largest(here) > 0 or gradient is not None and largest(gradient) > 0:
                return f"{name.removeprefix('model.')} has {'no' if here is None else 'a'} gradient"
            continue
        limit = TOLERANCE * max(largest(gradient), 1e-2 * scale)
        # In place: the memory of the device may be full.
        worst = largest(gradient.sub_(here))
        if not worst <= limit:
            return f"the gradient of {name.removeprefix('model.')} differs by {worst:.3g}"
    return ""
