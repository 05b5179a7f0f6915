"""An unmodified model on all ranks of the job."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import torch

from renkei import _agreement, world
from renkei._data_parallel import DataParallel
from renkei.errors import RenkeiError

__all__ = ["Parallel", "check_model", "parallelize"]


def parallelize(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    plan: str = "auto",
    device_memory: int | str | None = None,
    buffers: Literal["rank0", "mean", "own"] = "rank0",
) -> "Parallel":
    """The model, trained by all ranks together; each brings its own batch, and rank 0's parameters hold at first.

    Gradients are means over all ranks, as in DistributedDataParallel, when backward() returns. `optimizer` is used as it
    is. `buffers`: before each training step all ranks get those of rank 0, or their mean, or each keeps its own.

    >>> model = parallelize(torch.nn.Linear(3, 1))
    >>> model(torch.ones(2, 3)).sum().backward()
    >>> model.weight.grad.shape
    torch.Size([1, 3])
    """
    if plan not in ("auto", "data") or device_memory is not None:
        raise RenkeiError(
            "a model whose loss is computed outside of it is trained data parallel, and not in stages yet",
            "leave plan and device_memory out, or give the loss: renkei.train_step(model, optimizer, loss)",
        )
    if buffers not in ("rank0", "mean", "own"):
        raise RenkeiError(f"there is no way '{buffers}' to treat buffers", "choose rank0, mean or own")
    check_model(model, optimizer)
    world.init()
    _agreement.check_same_model(model)
    return Parallel(model, DataParallel(model, buffers=buffers))


class Parallel(torch.nn.Module):
    """A model on all ranks; calls, names and attributes are those of the model, which is `module`."""

    module: torch.nn.Module
    _job: DataParallel

    def __init__(self, module: torch.nn.Module, job: DataParallel) -> None:
        super().__init__()
        self.__dict__.update(module=module, _job=job, training=module.training)

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """What the model gives for this rank's batch."""
        return self._job(*arguments, **named)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of what is called inside only add up on this rank; the next step outside reduces them.

        >>> model = parallelize(torch.nn.Linear(3, 1))
        >>> with model.no_sync():
        ...     model(torch.ones(2, 3)).sum().backward()
        """
        before, self._job.synchronise = self._job.synchronise, False
        try:
            yield
        finally:
            self._job.synchronise = before

    def close(self) -> None:
        """Ends the training, on all ranks together; the model is an ordinary one again."""
        self._job.close()

    # What the model is, without a name in front.

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["module"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["module"], name, value)

    def __getitem__(self, at: Any) -> Any:
        return self.module[at]  # type: ignore[index]

    def __len__(self) -> int:
        return len(self.module)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"Parallel({self.module!r})"

    def train(self, mode: bool = True) -> "Parallel":
        self.module.train(mode)
        self.__dict__["training"] = mode
        return self

    def state_dict(self, *arguments: Any, **named: Any) -> Any:
        """Complete on every rank; any rank may ask for it alone."""
        return self.module.state_dict(*arguments, **named)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Before the next step all ranks take the values of rank 0, so that rank 0 at least must load."""
        if assign:
            raise RenkeiError("assign=True would replace the parameters that are trained", "load with assign=False")
        self._job.note_loaded()
        return self.module.load_state_dict(state_dict, strict)

    def named_parameters(self, *arguments: Any, **named: Any) -> Iterator[tuple[str, torch.nn.Parameter]]:
        return self.module.named_parameters(*arguments, **named)

    def named_buffers(self, *arguments: Any, **named: Any) -> Iterator[tuple[str, torch.Tensor]]:
        return self.module.named_buffers(*arguments, **named)

    def named_modules(self, *arguments: Any, **named: Any) -> Iterator[tuple[str, torch.nn.Module]]:
        yield from self.module.named_modules(*arguments, **named)

    def named_children(self) -> Iterator[tuple[str, torch.nn.Module]]:
        return self.module.named_children()

    def parameters(self, recurse: bool = True) -> Iterator[torch.nn.Parameter]:
        return self.module.parameters(recurse)

    def buffers(self, recurse: bool = True) -> Iterator[torch.Tensor]:
        return self.module.buffers(recurse)

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.module.zero_grad(set_to_none)

    def apply(self, fn: Any) -> "Parallel":
        self.module.apply(fn)
        return self

    def _apply(self, fn: Any, recurse: bool = True) -> "Parallel":
        raise RenkeiError(
            "the model is being trained, and its type or device can't change any more",
            "call to(), float(), half() and their like before parallelize()",
        )


def check_model(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
    """Throws an error for what can't be trained."""
    if isinstance(model, Parallel):
        raise RenkeiError("the model is parallel already", "call parallelize() once")
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if isinstance(tensor, (torch.nn.parameter.UninitializedParameter, torch.nn.parameter.UninitializedBuffer)):
            raise RenkeiError(f"{name} has no shape yet", "call the model once before parallelize()")
        if tensor.device.type != "cpu":
            raise RenkeiError(
                f"{name} is on {tensor.device}, and Renkei computes on the CPU", "move the model there: model.cpu()"
            )
        if tensor.layout is not torch.strided:
            raise RenkeiError(f"{name} is {tensor.layout}, not a plain tensor", "make it dense: tensor.to_dense()")
    if optimizer is not None:
        mine = {id(p) for p in model.parameters()}
        if not any(id(p) in mine for group in optimizer.param_groups for p in group["params"]):
            raise RenkeiError(
                "the optimizer has none of the model's parameters", "make it of model.parameters(), and of this model"
            )
