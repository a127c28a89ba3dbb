"""DRY: a token that would go on repeating an earlier passage loses the more, the longer the passage is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.parameter import Parameter
from core.processors.base import Context, Processor
from resources.language import mark

if TYPE_CHECKING:
    import numpy as np
    import torch

    from core.processors.base import Transform

BASE = Parameter(
    "dry_base", mark("DRY base"), "float", 1.75,
    mark("By how much the penalty grows with every further token of the repeated passage."),
    minimum=1.0, maximum=10.0, soft_maximum=4.0, step=0.05, option=True, advanced=True,
)  # fmt: skip
ALLOWED = Parameter(
    "dry_allowed_length", mark("DRY allowed length"), "int", 2,
    mark("Passages shorter than this many tokens may be repeated."),
    minimum=1, maximum=10_000, soft_maximum=20, step=1, option=True, advanced=True,
)  # fmt: skip
RANGE = Parameter(
    "dry_range", mark("DRY range"), "int", 0,
    mark("How many of the last tokens are searched for the passage; 0 is the whole text."),
    minimum=0, maximum=1_000_000, soft_maximum=2000, step=1, option=True, advanced=True,
)  # fmt: skip
BREAKERS = (b"\n", b":", b'"', b"*")
"""A passage does not reach across these (p-e-w, text-generation-webui #5677)."""
LONGEST = 150
"""Longer passages weigh as much as this one: the power is beyond every score by then."""


def repeated(text: np.ndarray, breaks: np.ndarray) -> Iterator[tuple[int, int]]:
    """(token, length): each token that stood behind an earlier passage [T] with which the text ends, and how long that
    passage is; `breaks` [T] marks tokens that end one."""
    last = len(text) - 1
    if last < 1 or breaks[last]:
        return
    places = (text[:-1] == text[last]).nonzero()[0]
    length = 1
    while places.size:
        reach = places - length
        goes_on = (reach >= 0) & (length < LONGEST)
        goes_on[goes_on] = (text[reach[goes_on]] == text[last - length]) & ~breaks[reach[goes_on]]
        yield from ((int(text[place + 1]), length) for place in places[~goes_on])
        places = places[goes_on]
        length += 1


def make(value: float, context: Context) -> Transform:
    """Logit − value · base^(n − allowed) for tokens behind a repeated passage of n ≥ allowed tokens."""
    base = float(context.options.get(BASE.name, BASE.default))
    allowed = int(context.options.get(ALLOWED.name, ALLOWED.default))
    window = int(context.options.get(RANGE.name, RANGE.default))
    known: dict[int, bool] = {}

    def breaks(token: int) -> bool:
        if token not in known:
            data = context.model.pieces.data(token) or b""
            known[token] = any(breaker in data for breaker in BREAKERS)
        return known[token]

    def penalties(row: torch.Tensor) -> dict[int, float]:
        import numpy as np

        text = row[-window:].cpu().numpy()  # [-0:] is all of it
        found: dict[int, int] = {}
        for token, length in repeated(text, np.fromiter(map(breaks, text.tolist()), bool, len(text))):
            found[token] = max(length, found.get(token, 0))
        return {token: value * base ** (n - allowed) for token, n in found.items() if n >= allowed}

    def process(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores = scores.clone()
        for row, text in enumerate(ids):
            if lost := penalties(text):
                scores[row, list(lost)] -= scores.new_tensor(list(lost.values()))
        return scores

    return process


PROCESSOR = Processor(
    name="dry_multiplier",
    make=make,
    order=155,
    label=mark("DRY {v}"),
    phrase=mark("the DRY penalty of {v}"),
    parameter=Parameter(
        "dry_multiplier", mark("DRY"), "float", 0.0,
        mark("Above 0, a token that would go on repeating an earlier passage loses score, the more the longer the "
             "passage (DRY, don't repeat yourself). 0.8 is usual."),
        minimum=0.0, maximum=100.0, soft_maximum=2.0, step=0.05, option=True, advanced=True,
    ),
    beside=(BASE, ALLOWED, RANGE),
    panel="penalties",
    shown=30,
)  # fmt: skip
