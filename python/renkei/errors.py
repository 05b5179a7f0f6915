"""The one exception that Renkei raises on purpose."""

__all__ = ["EXIT_CODES", "RenkeiError"]

# Of a process that such an error ends; docs/errors.md.
EXIT_CODES = {"check": 1, "usage": 2, "data": 3, "communication": 4, "memory": 5, "bug": 70}


class RenkeiError(RuntimeError):
    """What happened, as a sentence; `hint` says what to do about it.

    >>> try:
    ...     raise RenkeiError("the batch has no samples", "drop the last batch")
    ... except RenkeiError as error:
    ...     print(error.hint)
    drop the last batch
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        code: str = "usage",
        rank: int | None = None,
        host: str = "",
        step: int | None = None,
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code  # usage, data, communication, memory, check or bug
        self.rank = rank  # the rank that is to blame, where one is
        self.host = host
        self.step = step

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\n  hint: {self.hint}" if self.hint else message

    @property
    def message(self) -> str:
        """The sentence without the hint."""
        return super().__str__()
