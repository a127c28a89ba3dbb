"""ZeRO's table: the bytes of a model's states on each device, and the traffic.

Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", sections 3, 5 and 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple

from decodescope.core.checks.arguments import check_text
from decodescope.core.errors import ParameterError
from decodescope.core.labs.arguments import positive_integer
from decodescope.resources.language import join_names, tr


@dataclass(frozen=True)
class Parts(Mapping[str, int]):
    """Bytes on one device by part; also a mapping from each part's name to its bytes."""

    parameters: int = 0
    gradients: int = 0
    optimizer: int = 0
    activations: int = 0
    buffers: int = 0
    """Temporary memory: a gathered layer, or stored versions of the weights."""
    cache: int = 0
    """Keys and values, when generating text instead of training."""

    @property
    def total(self) -> int:
        """Total bytes."""
        return sum(self.values())

    @property
    def states(self) -> int:
        """The bytes that ZeRO divides: parameters, gradients, optimizer states."""
        return self.parameters + self.gradients + self.optimizer

    def __getitem__(self, name: str) -> int:
        if name not in PART_NAMES:
            raise KeyError(name)
        value: int = getattr(self, name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(PART_NAMES)

    def __len__(self) -> int:
        return len(PART_NAMES)


PART_NAMES = tuple(field.name for field in fields(Parts))


SCHEMES = ("ddp", "zero1", "zero2", "zero3")
"""What each scheme divides among the devices: nothing; optimizer states; gradients too; parameters too."""


class Precision(NamedTuple):
    """Bytes per parameter."""

    parameter: int
    gradient: int
    optimizer: int


PRECISIONS = {"mixed": Precision(2, 2, 12), "float32": Precision(4, 4, 8)}
"""Bytes with Adam. The optimizer states of mixed precision include float32 weights; those of float32 are momentum and
variance only.
"""


def plan(parameters: int | float, devices: int, scheme: str = "ddp", precision: str = "mixed") -> Parts:
    """Return the bytes of a model's states on the fullest of `devices`, by part.

    Raises ParameterError for an unknown scheme or precision or a number that is not positive.
    """
    count, size = checked_parameters(parameters, devices, scheme), _precision(precision)
    share = -(-count // devices)
    divided = SCHEMES.index(scheme)
    return Parts(
        parameters=size.parameter * (share if divided >= 3 else count),
        gradients=size.gradient * (share if divided >= 2 else count),
        optimizer=size.optimizer * (share if divided >= 1 else count),
    )


def traffic(parameters: int | float, devices: int, scheme: str = "ddp") -> int:
    """Return the elements that each device sends in a step with rings; 0 for one device.

    An all-reduce is a reduce-scatter and an all-gather, which send (N − 1)/N·Φ each (the paper counts Φ, the limit for
    many devices); stage 3 gathers the parameters once more. Raises ParameterError.
    """
    count = checked_parameters(parameters, devices, scheme)
    return ring_share(count * (3 if scheme == "zero3" else 2), devices)


def ring_share(amount: int, devices: int) -> int:
    """Return what a device sends of an amount that a ring passes around once: all but its own part."""
    return -(-amount * (devices - 1) // devices)


def checked_parameters(parameters: int | float, devices: int, scheme: str) -> int:
    """Return the parameter count as a whole number. Raises ParameterError."""
    check_text("scheme", scheme)
    if scheme not in SCHEMES:
        raise ParameterError(
            tr("Unknown scheme {name!r}.").format(name=scheme),
            tr("Choose one of {names}.").format(names=join_names(SCHEMES)),
            "scheme",
        )
    positive_integer("devices", devices)
    return positive_integer("parameters", parameters)


def _precision(name: str) -> Precision:
    check_text("precision", name)
    if name not in PRECISIONS:
        raise ParameterError(
            tr("Unknown precision {name!r}.").format(name=name),
            tr("Choose one of {names}.").format(names=join_names(PRECISIONS)),
            "precision",
        )
    return PRECISIONS[name]
