"""Longer thinking: replaces the end of thinking by a text such as “Wait”.

Muennighoff et al.: s1: Simple test-time scaling (2025). The end is replaced where it would be chosen. While sampling
that is decided by a random number of its own: with probability p(end) the text is written instead, otherwise a token is
drawn from the others, which has the same distribution as drawing first and replacing then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from decodescope.core.errors import ParameterError
from decodescope.core.parameter import THINKING, Parameter
from decodescope.core.processors.base import Context, Processor
from decodescope.core.processors.thinking_budget import encode_text, make_walker
from decodescope.core.thinking.budget import ThinkingWalker
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    import torch

TEXT = Parameter(
    "thinking_extension_text", mark("Instead of the end of thinking"), "text", "Wait",
    mark("What is written where the model would end its thinking."), option=True, advanced=True, group=THINKING,
)  # fmt: skip


class ThinkingExtension:
    """Replaces the closing token a number of times."""

    def __init__(self, walkers: Sequence[ThinkingWalker], tokens: Sequence[int], count: int, context: Context) -> None:
        """Create the stage. `walkers`: one for each sequence, because equal texts may have different random numbers."""
        self._walkers, self._tokens, self._count = walkers, tuple(tokens), count
        self._start, self._rng = context.start, context.rng
        self._samples = bool(context.settings.get("do_sample"))

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores [B, V] for the texts `ids` [B, T]; a forced token gets the score 0, as a certain one."""
        import torch

        changed: torch.Tensor | None = None
        dice = self._rng(len(ids)).tolist() if self._samples else ()
        for row, text in enumerate(ids[:, self._start :].tolist()):
            walker = self._walkers[row if len(self._walkers) > 1 else 0]  # the rows of a draft have different texts
            state = walker.state(text)
            if not state.pending and (state.mark < 0 or state.extensions >= self._count):
                continue
            if changed is None:
                changed = scores.clone()
            forced = state.pending[0] if state.pending else None
            if forced is None:
                (end,) = walker.marks[state.mark].closing
                if self._samples:
                    is_chosen = dice[row] < float(torch.softmax(scores[row].double(), -1)[end])
                else:
                    is_chosen = int(scores[row].argmax()) == end
                walker.set_replaced(text, is_chosen)
                changed[row, end] = -math.inf
                forced = self._tokens[0] if is_chosen else None
            if forced is not None:
                changed[row] = -math.inf
                changed[row, forced] = 0.0
        return scores if changed is None else changed

    def reorder(self, rows: torch.Tensor) -> None:
        """Reorder the sequences: new row i is old row `rows[i]`."""
        if len(self._walkers) > 1:
            self._walkers = [self._walkers[row] for row in rows.tolist()]

    def forces(self, answer: Sequence[int], sequence: int) -> bool:
        """Return whether the token after an answer is written by force."""
        walker = self._walkers[sequence if len(self._walkers) > 1 else 0]
        return bool(walker.state(answer).pending) or walker.is_replaced(answer)


def make(value: int, context: Context) -> ThinkingExtension:
    """Create the stage of one run. Raises ParameterError."""
    settings = context.settings
    compares = float(settings.get("penalty_alpha") or 0) > 0 and int(settings.get("top_k") or 0) > 1
    if int(settings.get("num_beams") or 1) > 1 or (compares and not settings.get("do_sample")):
        raise ParameterError(
            tr("Thinking cannot be extended where several continuations are compared: beams, contrastive search."),
            tr("Choose greedy decoding or sampling, with or without drafts; a thinking budget works with beams too."),
            PROCESSOR.name,
        )
    text = str(settings.get(TEXT.name) or TEXT.default)
    tokens = encode_text(context, text, TEXT.name)
    rows = int(settings.get("num_return_sequences") or 1) if settings.get("do_sample") else 1
    walkers = [make_walker(context, PROCESSOR.name, None, (), tokens) for _ in range(rows)]
    if spelled := next((one.mark.closing for one in walkers[0].marks if len(one.closing) > 1), ""):
        raise ParameterError(
            tr(
                "The end of thinking, {mark}, has no token of its own, so it cannot be replaced before it begins."
            ).format(mark=spelled),
            tr("Turn the extension off, or choose a model that has a token for it."),
            PROCESSOR.name,
        )
    return ThinkingExtension(walkers, tokens, int(value), context)


PROCESSOR = Processor(
    name="thinking_extensions",
    make=make,
    order=490,
    label=mark("extended {v}×"),
    phrase=mark("the extension of thinking"),
    plain_phrase=mark("the rule to think longer"),
    kind="ban",
    parameter=Parameter(
        "thinking_extensions", mark("Extensions of thinking"), "int", 0,
        mark("How often the end of thinking is replaced, so that the model thinks longer."),
        minimum=0, maximum=100, soft_maximum=4, step=1, option=True, advanced=True, group=THINKING,
    ),
    extra_parameters=(TEXT,),
    shown=97,
    end="last",
    drafts=False,
    uses_rng=True,
    reorder_rows=ThinkingExtension.reorder,
    forces=ThinkingExtension.forces,
)  # fmt: skip
