"""Measures of a finished text, as columns of comparisons and of `decodescope generate`; plug-ins add them."""

from core.measures.base import Measure, MeasuredText
from core.registry import Registry

registry: Registry[Measure] = Registry(__name__, "MEASURE")

__all__ = ["Measure", "MeasuredText", "registry"]
