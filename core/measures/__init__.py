"""Measures of a finished text, as columns of comparisons and of `decodescope generate`; plug-ins add them."""

from decodescope.core.errors import PluginError
from decodescope.core.measures.base import Measure, MeasuredText
from decodescope.core.measures.run_description import (
    describe_run,
    distinct,
    mean_entropy,
    mean_log_probability,
    uses_seed,
)
from decodescope.core.registry import Registry

registry: Registry[Measure] = Registry(__name__, "MEASURE")


def measure(text: MeasuredText) -> tuple[dict[str, float], tuple[PluginError, ...]]:
    """Return the values of all measures of a text by name, and the errors of those that failed."""
    values, errors = dict[str, float](), list[PluginError]()
    for name, one in registry.items():
        try:
            value = one.compute(text)
        except PluginError as error:
            errors.append(error)
            continue
        if value is not None:
            values[name] = value
    return values, tuple(errors)


__all__ = [
    "Measure",
    "MeasuredText",
    "describe_run",
    "distinct",
    "mean_entropy",
    "mean_log_probability",
    "measure",
    "registry",
    "uses_seed",
]
