"""Python's own `import`, as it was before PySide6 put a hook of its own in front of it."""

from __future__ import annotations

import builtins

_ORIGINAL_IMPORT = "__orig_import__"
"""Where PySide6 keeps it."""


def remove_pyside_import_hook() -> None:
    """Import as Python does from here on.

    PySide6's hook serves `from __feature__ import …`, which nothing here uses, and to that end reads the source of
    every module that is imported after it, torch's and transformers' 3,000 included, and keeps it: 150 MiB, and a
    twentieth of the time that importing them takes.
    """
    own = vars(builtins).get(_ORIGINAL_IMPORT)
    if own is not None:
        builtins.__import__ = own
