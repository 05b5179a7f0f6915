"""An unmodified model on all ranks of the job."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import torch

from renkei import _agreement, _global_batch, world
from renkei._data_parallel import DataParallel
from renkei._run import Run
from renkei._staged import Staged
from renkei.errors import RenkeiError

__all__ = ["Parallel", "check_model", "engine_settings", "parallelize"]

SETTINGS = ("plan.", "comm.", "compute.", "train.batch_norm")  # that the engine follows here


def parallelize(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    plan: str = "auto",
    device_memory: int | str | None = None,
    micro_batches: int | None = None,
    precision: str | None = None,
    buffers: Literal["rank0", "mean", "own"] = "rank0",
    global_batch: bool = False,
    check: bool = True,
    seed: int = 1,
    run_dir: str | Path | None = None,
    settings: dict[str, str] | None = None,
) -> "Parallel":
    """The model, trained by all ranks together; each brings its own batch, and rank 0's parameters hold at first.

    Gradients are means over all ranks, as in DistributedDataParallel, when backward() returns. `optimizer` is used as it
    is. By itself each rank has the whole model as it is written (plan="data"). With `device_memory` (such as "2GiB"),
    `micro_batches` of a rank's batch, `precision` ("bf16"), `settings`, or a plan file as `plan`, the model is captured
    at its first call, compared with what is written unless `check` is False, and divided into stages where it has to be.
    `global_batch`: all ranks bring the same batch, of which each computes a part, and get all outputs.
    `buffers`: before each training step all ranks get those of rank 0, or their mean, or each keeps its own.
    `run_dir`: where settings, plan, timeline and what log() is given are kept, for renkei report and renkei watch.
    The variables RENKEI_DEVICE_MEMORY and RENKEI_RUN_DIR stand for arguments that are not given.

    >>> model = parallelize(torch.nn.Linear(3, 1))
    >>> model(torch.ones(2, 3)).sum().backward()
    >>> model.weight.grad.shape
    torch.Size([1, 3])
    """
    if buffers not in ("rank0", "mean", "own"):
        raise RenkeiError(f"there is no way '{buffers}' to treat buffers", "choose rank0, mean or own")
    check_model(model, optimizer)
    device_memory = device_memory or os.environ.get("RENKEI_DEVICE_MEMORY")
    run_dir = run_dir or os.environ.get("RENKEI_RUN_DIR")
    chosen = engine_settings(plan, device_memory, precision, seed, optimizer, settings)
    asks = device_memory is not None or micro_batches is not None or precision is not None or bool(settings)
    captured = plan not in ("auto", "data") or (plan == "auto" and asks)
    if asks and not captured:
        raise RenkeiError(
            "plan='data' trains the model as it is written, without device_memory, micro_batches, precision or settings",
            "leave plan out",
        )
    world.init()
    _agreement.check_same_model(model)
    if not captured:
        chosen = {"run.seed": str(seed)}
    run = Run(run_dir, model, chosen) if run_dir is not None else None
    if not captured:
        return Parallel(model, DataParallel(model, buffers=buffers, run=run), global_batch)
    staged = Staged(
        model, optimizer, buffers=buffers, micro_batches=micro_batches, check=check, settings=chosen, run=run
    )
    return Parallel(model, staged, global_batch)


def engine_settings(
    plan: str,
    device_memory: int | str | None,
    precision: str | None,
    seed: int,
    optimizer: torch.optim.Optimizer | None,
    settings: dict[str, str] | None,
) -> dict[str, str]:
    """What the engine is told; throws an error for a setting that has no effect."""
    for name in settings or {}:
        if not name.startswith(SETTINGS):
            raise RenkeiError(
                f"the setting {name} has no effect on a step of Python's",
                f"the optimizer and the program decide it; settings here begin with {', '.join(SETTINGS)}",
            )
    chosen = {"train.plan": plan, "run.seed": str(seed), **(settings or {})}
    if device_memory is not None:
        chosen["train.device_memory"] = str(device_memory)
    if precision is not None:
        chosen["train.precision"] = precision
    chosen["plan.sharded_optimizer"] = "no"  # it is the program's own, and has all that its rank trains
    if not isinstance(optimizer, torch.optim.SGD):
        chosen.setdefault("optim.name", "adam")  # what a planner counts as the optimizer's memory
    return chosen


class Parallel(torch.nn.Module):
    """A model on all ranks; calls, names and attributes are those of the model, which is `module`."""

    module: torch.nn.Module
    _job: DataParallel | Staged

    _global_batch: bool

    def __init__(self, module: torch.nn.Module, job: DataParallel | Staged, global_batch: bool = False) -> None:
        super().__init__()
        self.__dict__.update(module=module, _job=job, training=module.training, _global_batch=global_batch)

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """What the model gives for this rank's batch."""
        if not self._global_batch:
            return self._job(*arguments, **named)
        arguments, named, samples = _global_batch.own_part(arguments, named)
        return _global_batch.joined(self._job(*arguments, **named), samples)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> torch.Tensor:
        """Scales the gradients of all ranks down to this norm, all together; returns what it was.

        >>> model = parallelize(torch.nn.Linear(3, 1))
        >>> model(torch.ones(2, 3)).sum().backward()
        >>> bool(model.clip_grad_norm_(1.0) > 1)
        True
        """
        return torch.nn.utils.clip_grad_norm_(self.module.parameters(), max_norm, norm_type, error_if_nonfinite)

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
        """Ends the training, on all ranks together; the model is an ordinary one again.

        Of a model in stages each rank has its own part then; state_dict() before gives all of it.
        """
        if self._job.run is not None:
            self._job.run.close()
        self._job.close()

    def log(self, values: Mapping[str, float] | None = None, **named: float) -> None:
        """Keeps numbers of the step under way, such as its loss, in the run directory; those of rank 0 count."""
        if self._job.run is None:
            raise RenkeiError("there is no run directory to log to", "give parallelize() a run_dir")
        self._job.run.log({**(values or {}), **named})

    @property
    def plan(self) -> dict[str, Any]:
        """Who computes what, as in plan.json; known after the first call."""
        return self._job.plan

    # What the model is, without a name in front.

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__dict__["module"], name)
        return functools.partial(self._save_pretrained, found) if name == "save_pretrained" else found

    def _save_pretrained(self, original: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Hugging Face's, with all tensors: written by rank 0, by all ranks together."""
        state = self.state_dict(on_rank=0)
        result = None
        if world.rank() == 0:
            result = original(*arguments, **{"state_dict": state, **named})
        world.barrier()
        return result

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

    def state_dict(self, *arguments: Any, on_rank: int | None = None, **named: Any) -> Any:
        """Complete on every rank, or on one only; of a model in stages by all ranks together."""
        return self._job.state_dict(on_rank, *arguments, **named)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """All ranks take the values of rank 0: before the next step, or, of a model in stages, all together at once."""
        if assign:
            raise RenkeiError("assign=True would replace the parameters that are trained", "load with assign=False")
        return self._job.load_state_dict(state_dict, strict)

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
