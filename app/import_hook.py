"""Restore Python's own `import` function, which PySide6 replaces by a hook."""

from __future__ import annotations

import builtins

_ORIGINAL_IMPORT = "__orig_import__"
"""Name under which PySide6 keeps the original function."""


def remove_pyside_import_hook() -> None:
    """Use Python's own import from here on.

    PySide6's hook serves `from __feature__ import …`, which this program does not use. For that it reads and keeps the
    source of every module imported later, including 3,000 of torch and transformers: 150 MiB, and 5 % of their import
    time.
    """
    own = vars(builtins).get(_ORIGINAL_IMPORT)
    if own is not None:
        builtins.__import__ = own
