"""Names of a peer that Renkei does not have end with a sentence."""

from collections.abc import Callable
from typing import Any, NoReturn

from renkei.errors import RenkeiError

__all__ = ["missing_names"]


def missing_names(module: str, peer: str, reasons: dict[str, str]) -> Callable[[str], Any]:
    """A module's __getattr__: an AttributeError for names that nobody has, Renkei's error for those of the peer."""

    def missing(name: str) -> NoReturn:
        if name.startswith("__") or name not in reasons:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        raise RenkeiError(f"{peer}'s {name} is not part of {module}: {reasons[name]}", "docs/peers.md says what is")

    return missing
