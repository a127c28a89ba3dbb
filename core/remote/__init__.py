"""Remote engines: models identified by an address. Importing this package opens no connection and does not import
torch.
"""

# mypy: implicit-reexport
# ruff: noqa: F401
from __future__ import annotations

from decodescope.core.common.lazy_imports import lazy_imports

with lazy_imports(globals()) as _PUBLIC_NAMES:
    from decodescope.core.remote.address import (
        Address,
        find_key,
        forget_key,
        has_keyring,
        has_keyring_package,
        is_address,
        keep_key,
        parse,
    )
    from decodescope.core.remote.engines import EngineKind
    from decodescope.core.remote.engines import registry as KINDS
    from decodescope.core.remote.local_engines import LocalEngine, find_local_engines
    from decodescope.core.remote.remote_model import connect, probe
    from decodescope.core.remote.remote_run import score_stream, stream

__all__ = sorted(_PUBLIC_NAMES)
