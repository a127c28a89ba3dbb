"""All ways to decode; `registry` finds them, one a file. Importing this package does not import torch."""

from core.registry import Registry
from core.strategies.base import Parameter, Strategy

registry: Registry[Strategy] = Registry(__name__, "STRATEGY")

__all__ = ["Parameter", "Strategy", "registry"]
