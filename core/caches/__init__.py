"""All cache back ends; `registry` finds them, one a file. Importing this package does not import torch."""

from core.caches.base import CacheBackend
from core.caches.measurement import Measurement
from core.registry import Registry

registry: Registry[CacheBackend] = Registry(__name__, "BACKEND")

__all__ = ["CacheBackend", "Measurement", "registry"]
