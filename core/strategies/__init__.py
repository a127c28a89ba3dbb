"""All ways to decode; `registry` finds them, one a file. Importing this package does not import torch."""

from core.parameter import Parameter
from core.registry import Registry
from core.strategies.base import Strategy

registry: Registry[Strategy] = Registry(__name__, "STRATEGY")

__all__ = ["Parameter", "Strategy", "registry"]
