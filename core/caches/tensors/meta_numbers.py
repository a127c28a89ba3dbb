"""Forward passes on the meta device for modules whose code needs numbers, which tensors there do not have."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_ATEN = torch.ops.aten


class MetaValueMode(TorchDispatchMode):
    """Answer operations that depend on numbers, or that PyTorch knows in bfloat16 only, as an input of zeros could.

    Mixtures of experts use them to route tokens. The shapes of the results are right, or those of an empty selection,
    and what a layer keeps of a text does not depend on either.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no annotation

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation."""
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if first is None or not first.is_meta:
            return func(*args, **(kwargs or {}))
        if func is _ATEN._grouped_mm.default:
            return first.new_empty(*first.shape[:-1], args[1].shape[-1])
        if func is _ATEN._local_scalar_dense.default:
            return torch.zeros((), dtype=first.dtype).item()
        if func is _ATEN.nonzero.default:
            return first.new_empty((0, first.dim()), dtype=torch.long)
        return func(*args, **(kwargs or {}))
