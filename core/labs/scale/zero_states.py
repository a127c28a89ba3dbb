"""ZeRO's table: what a model's states take on each device, and what is sent.

Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", sections 3, 5 and 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple

from core.checks.arguments import check_text
from core.errors import ParameterError
from core.labs.arguments import positive_integer
from resources.language import tr


@dataclass(frozen=True)
class Parts(Mapping[str, int]):
    """Bytes on one device by part; a mapping from each part's name to its bytes."""

    parameters: int = 0
    gradients: int = 0
    optimizer: int = 0
    activations: int = 0
    buffers: int = 0
    """What is held for a while beside the rest: a gathered layer, versions of the weights that are kept."""
    cache: int = 0
    """Keys and values, where text is written and nothing is trained."""

    @property
    def total(self) -> int:
        """Bytes altogether."""
        return sum(self.values())

    @property
    def states(self) -> int:
        """What ZeRO divides: parameters, gradients, optimizer state."""
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
"""What is divided among the devices: nothing; optimizer state; gradients too; parameters too."""


class Precision(NamedTuple):
    """Bytes for each parameter."""

    parameter: int
    gradient: int
    optimizer: int


PRECISIONS = {"mixed": Precision(2, 2, 12), "float32": Precision(4, 4, 8)}
"""With Adam. Mixed keeps the float32 weights, momentum and variance as the optimizer's; float32 the latter two."""


def plan(parameters: int | float, devices: int, scheme: str = "ddp", precision: str = "mixed") -> Parts:
    """Bytes of a model's states on the fullest of `devices`, by part.

    Raises ParameterError for what is no scheme, no precision or no positive number.
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
    """Elements that each device sends in a step, as the paper counts them: an all-reduce is a reduce-scatter and an
    all-gather, Φ each; stage 3 gathers the parameters once more. 0 for one device. Raises ParameterError."""
    count = checked_parameters(parameters, devices, scheme)
    return 0 if devices == 1 else count * (3 if scheme == "zero3" else 2)


def checked_parameters(parameters: int | float, devices: int, scheme: str) -> int:
    """The count as a whole number. Raises ParameterError."""
    check_text("scheme", scheme)
    if scheme not in SCHEMES:
        raise ParameterError(
            tr("There is no scheme {name!r}.").format(name=scheme),
            tr("Choose one of {names}.").format(names=", ".join(SCHEMES)),
            "scheme",
        )
    positive_integer("devices", devices)
    return positive_integer("parameters", parameters)


def _precision(name: str) -> Precision:
    check_text("precision", name)
    if name not in PRECISIONS:
        raise ParameterError(
            tr("There is no precision {name!r}.").format(name=name),
            tr("Choose one of {names}.").format(names=", ".join(PRECISIONS)),
            "precision",
        )
    return PRECISIONS[name]
