"""Programs written for Horovod: `import renkei.horovod.torch as hvd` in the place of `import horovod.torch as hvd`."""

from renkei._missing import missing_names

_STARTED = "start the program with renkei run -n 4 script.py, mpirun or srun"
_OTHER = "Renkei trains PyTorch models"

__getattr__ = missing_names(
    __name__,
    "Horovod",
    {
        "run": _STARTED,
        "runner": _STARTED,
        "spark": _STARTED,
        "ray": _STARTED,
        "tensorflow": _OTHER,
        "keras": _OTHER,
        "mxnet": _OTHER,
    },
)
