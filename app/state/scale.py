"""What is asked of the Scale lab's processes."""

from __future__ import annotations

from typing import NamedTuple

from core.labs import scale


class ScaleRequest(NamedTuple):
    """One run: a model, how its work is divided, among how many."""

    model: str
    scheme: str
    processes: int
    options: scale.Options = scale.Options()
