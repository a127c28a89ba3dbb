"""XTC: now and then the likeliest tokens are taken away, so that the text leaves the well-worn path."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from core.parameter import Parameter
from core.processors.base import TOLD, Context, Processor
from resources.language import mark

if TYPE_CHECKING:
    import torch

    from core.events import StageDetail
    from core.processors.base import Witness

THRESHOLD = Parameter(
    "xtc_threshold", mark("XTC threshold"), "float", 0.1,
    mark("Of the tokens at least so likely, XTC takes away all but the least likely one."),
    minimum=0.0, maximum=1.0, soft_maximum=0.5, step=0.01, exclusive=True, option=True, advanced=True,
)  # fmt: skip


def above_threshold(shares: torch.Tensor, threshold: float) -> list[list[int]]:
    """Tokens of each row of probabilities [B, V] that XTC would take away: of those with p ≥ threshold all but the
    least likely one, of several as unlikely all but the first."""
    most = int(min(1 / threshold + 1, shares.shape[-1]))  # more have no room beside each other
    top = shares.topk(most)
    return [_but_the_least(*row, threshold) for row in zip(top.indices.tolist(), top.values.tolist(), strict=True)]


def _but_the_least(tokens: list[int], shares: list[float], threshold: float) -> list[int]:
    high = [(share, token) for token, share in zip(tokens, shares, strict=True) if share >= threshold]
    least = min(high, default=None)
    return [pair[1] for pair in high if pair != least]


class TopsOut:
    """With a given probability at each step, unless the end token or a line break would go too (p-e-w 2024,
    text-generation-webui #6335)."""

    def __init__(self, chance: float, context: Context) -> None:
        self._chance, self._context = chance, context
        self._threshold = float(context.options.get(THRESHOLD.name, THRESHOLD.default))
        self._ends = set() if context.eos is None else set(context.eos.tolist())
        self._dice: torch.Tensor | None = None

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [B, V] with what was taken away at −∞; a die for each row."""
        self._dice = self._context.dice(scores.shape[0])
        struck = [row for row, die in enumerate(self._dice.tolist()) if die < self._chance]
        if not struck:
            return scores
        entering = scores if len(struck) == len(scores) else scores[struck]
        taken = {
            row: removed
            for row, removed in zip(struck, above_threshold(entering.softmax(-1), self._threshold), strict=True)
            if removed and not self._is_spared(removed)
        }
        if taken:
            scores = scores.clone()
        for row, removed in taken.items():
            scores[row, removed] = -float("inf")
        return scores

    def _is_spared(self, removed: list[int]) -> bool:
        pieces = self._context.model.pieces
        return any(token in self._ends or b"\n" in (pieces.data(token) or b"") for token in removed)

    def witness(self) -> Witness:
        """Of the die that was thrown for this step."""
        dice, pieces = self._dice, self._context.model.pieces

        from core.events import Likely, StageDetail, TopCut  # made when something runs

        def tell(row: int, before: torch.Tensor, after: torch.Tensor, chosen: int) -> StageDetail:
            assert dice is not None
            shares = before.softmax(-1)
            top = shares.topk(min(TOLD, len(shares)))
            pairs = [pair for pair in zip(top.indices.tolist(), top.values.tolist(), strict=True)
                     if pair[1] >= self._threshold]  # fmt: skip
            count = len(pairs) if len(pairs) < TOLD else int((shares >= self._threshold).sum())
            likely = tuple(Likely(token, pieces[token], share) for token, share in pairs)
            removed = count - 1 if count > 1 and math.isinf(float(after[likely[0].id])) else 0
            told = TopCut(self._chance, dice.tolist()[row], self._threshold, likely, count, removed)
            return StageDetail(top_cut=told)

        return tell


def make(value: float, context: Context) -> TopsOut:
    """The dice of one run."""
    return TopsOut(float(value), context)


PROCESSOR = Processor(
    name="xtc_probability",
    make=make,
    order=235,
    label=mark("XTC {v}"),
    kind="ban",
    parameter=Parameter(
        "xtc_probability", mark("XTC"), "float", 0.0,
        mark("How often the likeliest tokens are taken away (XTC, exclude top choices). 0 is never; 0.5 is usual."),
        minimum=0.0, maximum=1.0, step=0.05, option=True, advanced=True,
    ),
    beside=(THRESHOLD,),
    panel="sampling_advanced",
    shown=70,
    samples=True,
    blind=True,
    drafts=False,
    throws=True,
    witness=TopsOut.witness,
)  # fmt: skip
