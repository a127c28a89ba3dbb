"""All cache back ends; `registry` finds them, one a file. Importing this package does not import torch."""

from core.caches.base import CacheBackend, Measurement, Variant
from core.checks.name_suggestions import did_you_mean
from core.errors import CacheError
from core.parameter import quote_text
from core.registry import Registry
from resources.language import tr

registry: Registry[CacheBackend] = Registry(__name__, "BACKEND")


def named(name: str) -> CacheBackend:
    """The back end of that name. Raises CacheError where there is none."""
    try:
        return registry[name]
    except KeyError:
        raise CacheError(
            tr("There is no cache {name}.").format(name=quote_text(name)) + did_you_mean(name, registry),
            tr("Choose one of: {names}.").format(names=", ".join(registry)),
        ) from None


__all__ = ["CacheBackend", "Measurement", "Variant", "named", "registry"]
