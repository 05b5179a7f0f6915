"""python -m renkei: the command line."""

import os
import pathlib
import sys


def main() -> None:
    """Becomes the program `renkei` that was installed with the package."""
    program = pathlib.Path(__file__).parent / "bin" / "renkei"
    os.environ.setdefault("RENKEI_PYTHON", sys.executable)
    os.execv(program, ["renkei", *sys.argv[1:]])


if __name__ == "__main__":
    main()
