"""The kinds of remote engines; `registry` finds them, one per file. Importing this package opens no connection."""

from decodescope.core.registry import Registry
from decodescope.core.remote.engines.base import EngineKind, UsageReader

registry: Registry[EngineKind] = Registry(__name__, "ENGINE")
FALLBACK = "other"
"""The kind of an engine that shows no sign of another one."""


def usage_readers() -> tuple[UsageReader, ...]:
    """Return the functions that read engines' own statistics. Each ignores messages of other engines."""
    return tuple(kind.read_usage for kind in registry.values() if kind.read_usage is not None)


__all__ = ["FALLBACK", "EngineKind", "registry", "usage_readers"]
