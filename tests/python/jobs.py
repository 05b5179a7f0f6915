"""Runs Python programs on several ranks, with the installed package; what the test files share."""

import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

PROGRAMS = pathlib.Path(__file__).parent / "programs"
SUPPORT = pathlib.Path(__file__).parents[1] / "support"


def slow(*values: object) -> Any:
    """Parameters of a test that only `make test-all` takes: they vary what others have shown."""
    return pytest.param(*values, marks=pytest.mark.slow)


def run(
    ranks: int, program: str | pathlib.Path, *arguments: object, timeout: float = 240, **variables: str
) -> subprocess.CompletedProcess[str]:
    """`renkei run` of a file in programs/, or of another one, with further variables of the environment."""
    file = PROGRAMS / program if isinstance(program, str) else program
    command = [sys.executable, "-m", "renkei", "run", "-n", str(ranks), str(file), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env={**os.environ, **variables})


def succeeds(
    ranks: int, program: str | pathlib.Path, *arguments: object, timeout: float = 240, **variables: str
) -> str:
    """What the program prints; it must end well."""
    done = run(ranks, program, *arguments, timeout=timeout, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(ranks: int, *arguments: object, timeout: float = 600) -> str:
    """Trains models of the table in zoo/; none may be wrong."""
    said = succeeds(ranks, PROGRAMS.parent / "zoo" / "check.py", *arguments, timeout=timeout)
    assert said.rstrip().endswith(" 0 not right"), said
    return said
