"""Registry of the cache backends: `registry` finds one per file. Importing this package does not import torch."""

from decodescope.core.caches.base import CacheBackend, Variant
from decodescope.core.caches.measurement import Measurement
from decodescope.core.checks.name_suggestions import did_you_mean
from decodescope.core.errors import CacheError
from decodescope.core.parameter import quote_text
from decodescope.core.registry import Registry
from decodescope.resources.language import join_names, tr

registry: Registry[CacheBackend] = Registry(__name__, "BACKEND")


def named(name: str) -> CacheBackend:
    """Return the backend called `name`. Raises CacheError for an unknown name."""
    try:
        return registry[name]
    except KeyError:
        raise CacheError(
            tr("There is no cache called {name}.").format(name=quote_text(name)) + did_you_mean(name, registry),
            tr("Choose one of: {names}.").format(names=join_names(registry)),
        ) from None


__all__ = ["CacheBackend", "Measurement", "Variant", "named", "registry"]
