"""python -m renkei._rank SCRIPT ARGUMENTS…: one rank of `renkei run`; the script runs as if Python had started it."""

import os
import runpy
import sys

from renkei import world


def main() -> None:
    """Runs the script; an exception ends the whole job."""
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    world.init()
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code in (None, 0) or world.size() == 1:
            raise
        world.fail_job(end)
    except BaseException as error:
        if world.size() == 1:
            raise
        world.fail_job(error)


if __name__ == "__main__":
    main()
