"""Labs: how large models are trained and run, on a small scale but for real. Importing this package imports no
torch.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.labs import preference, scale, speed

__all__ = ["preference", "scale", "speed"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module 'core.labs' has no attribute {name!r}")
    return importlib.import_module(f"core.labs.{name}")
