"""RaNNC's interface on Renkei: `import renkei.pyrannc as pyrannc` in the place of `import pyrannc`.

Names and meanings are RaNNC's; docs/peers.md says where they differ: keyword arguments, tensors on the CPU and a
load_state_dict() at any time are allowed, and state_dict() has the buffers too.
"""

import json
import pathlib
import types
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import torch

from renkei import world
from renkei._data_parallel import DataParallel
from renkei._missing import missing_names
from renkei._tensors import map_tensors
from renkei.errors import RenkeiError
from renkei.parallel import Parallel, parallelize

__all__ = [
    "RaNNCModule",
    "allreduce_tensor",
    "barrier",
    "clear",
    "delay_grad_allreduce",
    "get_rank",
    "get_world_size",
    "keep_graph",
    "show_deployment",
    "sync_params_on_init",
]

PLAN = "auto"  # of every model: what parallelize() finds best
_options = {"delay_grad_allreduce": False, "sync_params_on_init": True}


def get_rank() -> int:
    """The number of this process in the job, from 0."""
    return world.rank()


def get_world_size() -> int:
    """How many processes the job has."""
    return world.size()


def barrier() -> None:
    """Waits until all ranks are here."""
    world.barrier()


def clear() -> None:
    """Renkei keeps nothing beside the models."""


def keep_graph(keep: bool) -> None:
    """Autograd keeps its graph by backward(retain_graph=True)."""
    if keep:
        raise RenkeiError("keep_graph(True) has no meaning here", "call backward(retain_graph=True)")


def delay_grad_allreduce(delay: bool) -> None:
    """Whether backward() leaves the gradients as they are on each rank, for allreduce_grads() to reduce them."""
    _options["delay_grad_allreduce"] = bool(delay)


def sync_params_on_init(sync: bool) -> None:
    """Whether a new RaNNCModule takes rank 0's parameters; without it they must be the same already."""
    _options["sync_params_on_init"] = bool(sync)


def allreduce_tensor(tensor: torch.Tensor, sum: bool = True) -> torch.Tensor:
    """The sum of all ranks' tensors, or their minimum."""
    return world.allreduce(tensor, "sum" if sum else "min")


class RaNNCModule(Parallel):
    """A model trained by all ranks together, each with its own batch; gradients are means over all ranks.

    >>> model = RaNNCModule(torch.nn.Linear(3, 1))
    >>> model(torch.ones(2, 3)).sum().backward()
    >>> list(model.state_dict())
    ['weight', 'bias']
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        gather_inputs: bool = True,
        load_deployment: str | None = None,
        enable_apex_amp: bool = False,
        allreduce_amp_master_params: bool = False,
        enable_zero: bool = False,
        check_unused_values: bool = True,
        offload_params: bool = False,
    ) -> None:
        if enable_apex_amp or allreduce_amp_master_params:
            raise RenkeiError("Apex computes on GPUs, and Renkei on the CPU", "leave enable_apex_amp out")
        if enable_zero or offload_params:
            warnings.warn("enable_zero and offload_params change nothing here: results are the same", stacklevel=2)
        plan = PLAN if load_deployment is None else _plan_of(load_deployment)
        own = None if _options["sync_params_on_init"] else [t.detach().clone() for t in model.parameters()]
        made = parallelize(model, optimizer, plan=plan)
        super().__init__(made.module, made._job)
        self.__dict__.update(optimizer=optimizer, gather_inputs=gather_inputs)
        if own is not None:
            with torch.no_grad():
                for parameter, before in zip(model.parameters(), own, strict=True):
                    parameter.copy_(before)
        if optimizer is not None:
            _with_global_state(optimizer)

    @property
    def model(self) -> torch.nn.Module:
        """The model as it was given."""
        return self.module

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """What the model gives for this rank's batch; without gather_inputs for that of rank 0."""
        if not self.__dict__["gather_inputs"]:
            arguments, named = map_tensors((arguments, named), world.broadcast)
        # In stages backward() always reduces: allreduce_grads() could not.
        if not _options["delay_grad_allreduce"] or not isinstance(self._job, DataParallel):
            return super().forward(*arguments, **named)
        with self.no_sync():
            return super().forward(*arguments, **named)

    def state_dict(self, *arguments: Any, **named: Any) -> Any:
        """All ranks together: complete on rank 0, empty on the others."""
        found = super().state_dict(*arguments, **{**named, "on_rank": 0})
        return found if world.rank() == 0 else OrderedDict()

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """All ranks together; what rank 0 loads holds."""
        if isinstance(self._job, DataParallel):  # in stages rank 0's holds by itself
            state_dict = world.broadcast_object(state_dict)
        return super().load_state_dict(state_dict, strict, assign)

    def allreduce_grads(self) -> None:
        """After backward passes under delay_grad_allreduce(True): gradients become their means over all ranks."""
        if not isinstance(self._job, DataParallel):
            raise RenkeiError(
                "the gradients of a model in stages are reduced by backward()", "leave delay_grad_allreduce() out"
            )
        trained = [p for p in self.parameters() if p.requires_grad]
        reached = world.allreduce(torch.tensor([p.grad is not None for p in trained]), "max")
        for kind in sorted({p.dtype for p in trained}, key=str):
            used = [p for p, anywhere in zip(trained, reached.tolist(), strict=True) if anywhere and p.dtype is kind]
            if not used:
                continue
            flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in used])
            means = torch.split(world.allreduce(flat), [p.numel() for p in used])
            for parameter, mean in zip(used, means, strict=True):
                if parameter.grad is None:
                    parameter.grad = torch.empty_like(parameter)
                parameter.grad.copy_(mean.view_as(parameter))

    def clip_grad_norm(self, max_grad_norm: float) -> torch.Tensor:
        """All ranks together: scales the gradients so that their norm is at most this; gives the norm before."""
        return self.clip_grad_norm_(max_grad_norm)

    def get_param(self, name: str) -> torch.Tensor:
        """A parameter by its name."""
        return dict(self.named_parameters())[name].detach()

    def get_param_grad(self, name: str) -> torch.Tensor | None:
        """The gradient of a parameter by its name."""
        return dict(self.named_parameters())[name].grad

    def save_deployment(self, file: str) -> None:
        """All ranks together: rank 0 writes who computes what."""
        if world.rank() == 0:
            pathlib.Path(file).write_text(_deployment(self))
        world.barrier()

    def show_deployment(self) -> str:
        """Who computes what, printed by rank 0."""
        text = _deployment(self)
        if world.rank() == 0:
            print(text)
        return text

    def undeploy(self, *arguments: Any) -> None:
        """All ranks together: the model is an ordinary one again."""
        self.close()

    def to(self, *arguments: Any, **named: Any) -> "RaNNCModule":
        """Ignored: the model stays where it is trained."""
        warnings.warn("to() was ignored: a RaNNC model can't be moved", stacklevel=2)
        return self

    def cuda(self, *arguments: Any, **named: Any) -> "RaNNCModule":
        """Ignored: the model stays where it is trained."""
        warnings.warn("cuda() was ignored: a RaNNC model can't be moved", stacklevel=2)
        return self


def show_deployment(file: str, batch_size: int | None = None) -> str:
    """Prints a file of save_deployment()."""
    text = pathlib.Path(file).read_text()
    print(text)
    return text


def _deployment(model: RaNNCModule) -> str:
    return json.dumps(model.plan, indent=1)


def _plan_of(file: str) -> str:
    """What parallelize() is given: a plan of stages is the file itself."""
    try:
        found = json.loads(pathlib.Path(file).read_text())
        kind = found.get("kind")
    except (ValueError, AttributeError) as error:
        raise RenkeiError(
            f"{file} is no deployment of Renkei",
            "write it with save_deployment(); RaNNC's own files can't be read",
            code="data",
        ) from error
    return "data" if kind == "data" else file


def _with_global_state(optimizer: torch.optim.Optimizer) -> None:
    """state_dict() and load_state_dict() take from_global, as RaNNC's programs give it."""
    plain_state, plain_load = type(optimizer).state_dict, type(optimizer).load_state_dict

    def state_dict(self: torch.optim.Optimizer, from_global: bool = False, **named: Any) -> Any:
        found = plain_state(self, **named)
        return found if not from_global or world.rank() == 0 else {}

    def load_state_dict(self: torch.optim.Optimizer, state_dict: Any, from_global: bool = False, **named: Any) -> None:
        if from_global:
            state_dict = world.broadcast_object(state_dict)
        plain_load(self, state_dict, **named)

    optimizer.state_dict = types.MethodType(state_dict, optimizer)  # type: ignore[method-assign]
    optimizer.load_state_dict = types.MethodType(load_state_dict, optimizer)  # type: ignore[method-assign]


_GPU = "Renkei computes on the CPU"

__getattr__ = missing_names(
    __name__,
    "RaNNC",
    {
        "amp": _GPU,
        "dump_events": "renkei train records timelines",
        "store_zero_param": "parameters are whole on every rank",
        "load_zero_param": "parameters are whole on every rank",
        "store_dist_param": "parameters are whole on every rank",
        "load_dist_param": "parameters are whole on every rank",
        "rannc": "its configuration file has no meaning here; renkei.parallelize has arguments",
        "recreate_all_communicators": _GPU,
    },
)
