"""Count what a card makes the host do: waits, blocking uploads and launches, with the lines that cause them."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import torch

_aten = torch.ops.aten
Cause = tuple[str, str]
"""An operation and the line of the program that called it."""

METADATA_ONLY = {_aten.detach, _aten.alias, _aten.lift_fresh, _aten._unsafe_view, _aten.set_, _aten._reshape_alias}
"""Operations that touch no values, although torch does not tag them as views."""
ALLOCATIONS = {_aten.empty, _aten.empty_like, _aten.empty_strided, _aten.new_empty, _aten.new_empty_strided}
SCALAR_READS = {_aten._local_scalar_dense, _aten.item, _aten.is_nonzero}
"""Copies of a scalar to the host, by the copy engine and without a kernel."""
WAITS = SCALAR_READS | {
    _aten.nonzero, _aten.masked_select, _aten._unique2, _aten.unique_consecutive, _aten.unique_dim, _aten.equal,
    _aten.bincount, _aten._linalg_check_errors,
}  # fmt: skip
"""Operations with a result that the host needs: it waits for the card."""
DEVICE_ASSERTS = {
    _aten.embedding, _aten.gather, _aten.index_select, _aten.index, _aten.index_put_, _aten.index_copy_,
    _aten.scatter_, _aten.scatter, _aten.multinomial, _aten.index_put, _aten.index_fill_,
}  # fmt: skip
"""Operations whose kernels check their indices: an error there makes the whole card unusable."""
_KERNELS = {
    _aten.multinomial: 13, _aten.topk: 2, _aten.sort: 4, _aten.nonzero: 3, _aten.cumsum: 1, _aten.isin: 3,
    _aten._unique2: 6,
}  # fmt: skip
"""Approximate number of kernels of one call, from the source of aten and from profiles."""


def kernel_count(func: Any) -> int:
    """Return the number of kernels that an operation launches; a lower bound."""
    packet = func.overloadpacket
    if func.is_view or packet in METADATA_ONLY or packet in ALLOCATIONS or packet in SCALAR_READS:
        return 0
    return _KERNELS.get(packet, 1)


class Totals(NamedTuple):
    """Sums of `Counts`, or their averages per token."""

    waits: float
    uploads: float
    launches: float


class Counts:
    """Operations within `PretendCard.counting`."""

    def __init__(self) -> None:
        self.waits: Counter[Cause] = Counter()
        """The host waits for the card: scalars, blocking downloads, synchronization."""
        self.uploads: Counter[Cause] = Counter()
        """Blocking copies to the card, which wait for it as well."""
        self.launches: Counter[Cause] = Counter()
        self.graphs: Counter[str] = Counter()
        """Calls of compiled functions: `launch`, `compile`, or the reason for not using a CUDA graph."""
        self.attention: Counter[Cause] = Counter()
        """The kernel that scaled dot product attention selects."""

    def totals(self, tokens: int = 1) -> Totals:
        """Return the sums divided by `tokens`."""
        return Totals(*(sum(found.values()) / tokens for found in (self.waits, self.uploads, self.launches)))

    def table(self, tokens: int = 1, lines: int = 12) -> str:
        """Return the most frequent causes of each kind, per token."""
        text = []
        for name in ("waits", "uploads", "launches", "attention"):
            found: Counter[Cause] = getattr(self, name)
            text.append(f"{name}: {sum(found.values()) / tokens:.2f} per token")
            text += [
                f"   {count / tokens:7.2f}  {func:28} {line}" for (func, line), count in (+found).most_common(lines)
            ]
        return "\n".join([*text, f"graphs: {dict(self.graphs)}"])
