"""What one device's memory is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields


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
