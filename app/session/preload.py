"""Opening torch's libraries without holding the interpreter's lock, so that the window answers meanwhile."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

LIBRARY = "libtorch_cpu.so"
"""By far the largest: `import` would open it with the lock held, which takes a second on a busy machine."""


def open_libraries() -> bool:
    """Have the loader open torch's main library; the import that follows then finds it open. True when it did.

    Calling `dlopen` as a foreign function releases the lock, opening a library through ctypes does not. Only on
    Linux; elsewhere, or when torch is laid out differently, nothing happens and the import does all the work.
    """
    spec = importlib.util.find_spec("torch") if sys.platform == "linux" and "torch" not in sys.modules else None
    if spec is None or spec.origin is None:
        return False
    path = Path(spec.origin).parent / "lib" / LIBRARY
    if not path.exists():
        return False
    import ctypes

    dlopen = ctypes.CDLL(None).dlopen
    dlopen.restype, dlopen.argtypes = ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_int)
    return dlopen(os.fsencode(path), os.RTLD_NOW) is not None
