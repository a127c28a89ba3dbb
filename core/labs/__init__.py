"""Labs: how large models are trained and run, on a small scale but for real. Importing this package imports no
torch.
"""

# mypy: implicit-reexport
# ruff: noqa: F401
from __future__ import annotations

from decodescope.core.common.lazy_imports import lazy_imports

with lazy_imports(globals()) as _PUBLIC_NAMES:
    import decodescope.core.labs.preference as preference
    import decodescope.core.labs.scale as scale
    import decodescope.core.labs.speed as speed

__all__ = sorted(_PUBLIC_NAMES)
