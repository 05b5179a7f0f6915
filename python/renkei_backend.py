"""The backend "renkei" of torch.distributed, as PyTorch finds it: a module of its own, which loads nothing.

PyTorch calls `register` when it is imported (entry point `torch.backends`), so that a program needs no `import renkei`.
"""

import importlib
from typing import Any

__all__ = ["register"]


def register() -> None:
    """Makes `torch.distributed.init_process_group("renkei")` known; what it needs is loaded when it is called."""
    import torch.distributed as dist

    if not dist.is_available() or "renkei" in dist.Backend.backend_list:
        return
    dist.Backend.register_backend("renkei", _create, extended_api=True, devices=["cpu"])
    _find_ranks_of_mpi()


def _create(options: Any, backend_options: Any) -> Any:
    from renkei import _backend

    return _backend.create(options, backend_options)


def _find_ranks_of_mpi() -> None:
    """Lets `env://` know the ranks of mpirun and srun, whose variables have other names than torchrun's."""
    handlers = importlib.import_module("torch.distributed.rendezvous")._rendezvous_handlers
    by_environment = handlers["env"]

    def handler(url: str, *arguments: Any, **keywords: Any) -> Any:
        from renkei import _backend, _launch

        if not _launch.is_chosen("RANK") and "rank=" not in url:
            _backend.set_rank_variables()
        return by_environment(url, *arguments, **keywords)

    handlers["env"] = handler
