"""Start the installed program: the window, a command, or a module that the program runs in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
from collections.abc import MutableMapping

LIBRARY_PATH = "LD_LIBRARY_PATH"
ORIGINAL = f"{LIBRARY_PATH}_ORIG"
"""Where PyInstaller's loader keeps the user's value."""


def restore_library_path(variables: MutableMapping[str, str]) -> None:
    """Give programs that are started from here, such as a compiler, the user's library path instead of the bundle's."""
    variables.pop(LIBRARY_PATH, None)
    if (original := variables.pop(ORIGINAL, None)) is not None:
        variables[LIBRARY_PATH] = original


def main() -> int:
    """Run `decodescope -m MODULE ARGUMENTS …` as Python would, and anything else as the program's command line."""
    multiprocessing.freeze_support()
    restore_library_path(os.environ)
    if len(sys.argv) > 2 and sys.argv[1] == "-m":
        module = sys.argv[2]
        del sys.argv[1:3]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return 0
    import decodescope

    return decodescope.main()


if __name__ == "__main__":
    sys.exit(main())
