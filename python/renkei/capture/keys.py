"""Names for the parts of a model that can be opaque: which one is running, given the frames of a call stack."""

import dataclasses
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Literal

import torch

__all__ = ["Key", "Names", "ROOT", "frames_now", "is_inside", "is_users"]

Kind = Literal["module", "method", "function", "apply"]


@dataclasses.dataclass(frozen=True, order=True)
class Key:
    """A part of a model: a module by its name, `module.method`, a function, or an autograd.Function by its full name."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        shown = self.name.removeprefix("model.") if self.name != "model" else "the model"
        kind = {"apply": "autograd function", "module": "module"}.get(self.kind, self.kind)
        return shown if shown == "the model" else f"{kind} {shown or 'the model with its loss'}"


ROOT = Key("module", "")

# Functions of torch that are worth a node of their own: those that are written in Python for users.
_TORCH_FUNCTIONS = ("torch.nn.functional", "torch.nn.utils.rnn")
_CALLS = ("forward", "_call_impl", "_wrapped_call_impl", "__call__")
# By their folders: a user's own may have these names.
_PACKAGES = tuple(os.path.dirname(os.path.abspath(name)) + os.sep for name in (torch.__file__, os.path.dirname(__file__)))


def is_users(file: str) -> bool:
    """Whether code of this file is the user's, and not torch's, Renkei's or made at run time."""
    return not file.startswith(("<", *_PACKAGES))


def frames_now() -> list[FrameType]:
    """The frames of the caller, outermost first."""
    return [frame for frame, _ in traceback.walk_stack(sys._getframe(1))][::-1]


def is_inside(inner: Key, outer: Key) -> bool:
    """Whether the outer one, a module, has the inner one."""
    if outer == ROOT or inner == outer:
        return True
    return (
        outer.kind == "module"
        and inner.kind in ("module", "method")
        and f"{inner.name}.".startswith(f"{outer.name}.")
    )


class Names:
    """Of the modules of a model, and of the functions that were met in it."""

    def __init__(self, root: torch.nn.Module) -> None:
        self.modules = dict(root.named_modules(remove_duplicate=False))
        # An export hands out proxies of modules, which share their attributes.
        self._name_of = {id(vars(m)): name for name, m in reversed(list(self.modules.items()))}
        self.functions: dict[Key, tuple[Callable[..., Any], list[dict[str, Any]]]] = {}  # and where they are found

    def keys_of(self, frames: Sequence[FrameType]) -> list[Key]:
        """The parts that the frames are in, outermost first; the model itself is always there."""
        found = [ROOT]
        for before, frame in zip([None, *frames], frames, strict=False):
            key = self._key_of(frame, before, inside=len(found) > 1)
            if key is not None and key != found[-1]:
                found.append(key)
        return found

    def _key_of(self, frame: FrameType, before: FrameType | None, inside: bool) -> Key | None:
        code, me = frame.f_code, frame.f_locals.get("self")
        if isinstance(me, torch.nn.Module) and id(vars(me)) in self._name_of:
            name = self._name_of[id(vars(me))]
            if code.co_name in _CALLS:
                return Key("module", name)
            written = inspect.getattr_static(type(me), code.co_name, None)
            own = not str(frame.f_globals.get("__name__")).startswith("torch.")
            if inside and own and getattr(written, "__code__", None) is code:
                return Key("method", f"{name}.{code.co_name}")
            return None
        return self._function(frame, before) if inside else None

    def _function(self, frame: FrameType, before: FrameType | None) -> Key | None:
        code, here = frame.f_code, frame.f_globals
        function, module = here.get(code.co_name), str(here.get("__name__", ""))
        if getattr(function, "__code__", None) is not code or module.startswith("renkei."):
            return None
        if module.startswith("torch.") and module not in _TORCH_FUNCTIONS:
            return None
        key = Key("function", f"{module}.{code.co_name}")
        assert callable(function)
        places = [here, before.f_globals if before is not None else here]
        known = self.functions.setdefault(key, (function, []))[1]
        for place in places:
            if place.get(code.co_name) is function and all(place is not other for other in known):
                known.append(place)
        return key

    def line_of(self, frames: Sequence[FrameType]) -> tuple[str, str, int]:
        """The innermost module, the file and the line of the user's code: the same in a probe and in a trace."""
        module = next(key.name for key in reversed(self.keys_of(frames)) if key.kind == "module")
        for frame in reversed(frames):
            if is_users(frame.f_code.co_filename):
                return module, frame.f_code.co_filename, frame.f_lineno
        return module, "", 0
