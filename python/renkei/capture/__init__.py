"""A model as one program that can be cut into stages; what can't be captured runs in it as it is written.

    captured = capture(model, arguments, named)            # or with loss=function, where the last argument is its target
    captured.text                                          # the program, as the engine reads it
    captured.inputs, captured.outputs                      # names of its flat tensors
    captured.flatten(arguments, named)                     # a call's tensors, in the order of `inputs`
    captured.structured(tensors)                           # tensors in the order of `outputs`, as the model returns them
    captured.state, captured.tied                          # the model's own tensors by name; further names of some
    captured.opaque, captured.assumptions                  # what is not captured and why; what is checked in every step

Names of parameters, buffers and modules begin with "model." (PREFIX). A capture is of the mode that the model is in,
train() or eval(), and holds for any number of samples, the first dimension of the inputs that have it in common, unless
`fixed_batch`. It is compared with the model as written before it is returned. All ranks call with the same batches.
"""

from renkei.capture.entry import Captured, capture, capture_flat, opaque
from renkei.capture.flat import PREFIX, Call, FlatModel
from renkei.capture.operators import take_violations
from renkei.capture.preserve import preserved, preserved_attributes, preserved_random

__all__ = [
    "PREFIX",
    "Call",
    "Captured",
    "FlatModel",
    "capture",
    "capture_flat",
    "opaque",
    "preserved",
    "preserved_attributes",
    "preserved_random",
    "take_violations",
]
