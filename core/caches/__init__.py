"""Registry of the cache backends: `registry` finds one per file. Importing this package does not import torch."""

from core.caches.base import CacheBackend, Variant
from core.caches.measurement import Measurement
from core.checks.name_suggestions import did_you_mean
from core.errors import CacheError
from core.parameter import quote_text
from core.registry import Registry
from resources.language import tr

registry: Registry[CacheBackend] = Registry(__name__, "BACKEND")


def named(name: str) -> CacheBackend:
    """Return the backend called `name`. Raises CacheError for an unknown name."""
    try:
        return registry[name]
    except KeyError:
        raise CacheError(
            tr("There is no cache called {name}.").format(name=quote_text(name)) + did_you_mean(name, registry),
            tr("Choose one of: {names}.").format(names=", ".join(registry)),
        ) from None


__all__ = ["CacheBackend", "Measurement", "Variant", "named", "registry"]
