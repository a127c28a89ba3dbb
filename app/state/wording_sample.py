"""One sentence of an explanation at each level of detail, for the question which words the program should use."""

from __future__ import annotations

import math

from decodescope.core import explain_token
from decodescope.core.events import Alternative, TokenChosen
from decodescope.resources.depth import depth_context
from decodescope.resources.language import tr

_PROBABILITY, _RANK = 0.05, 3


def explain_sample(depth: str) -> str:
    """Return what the program writes about a drawn token at this level of detail."""
    word, log = tr("sheep"), math.log(_PROBABILITY)
    chosen = Alternative(1, word, _PROBABILITY, _PROBABILITY, log, log, _RANK)
    token = TokenChosen(
        0, 0, 1, word, word, _PROBABILITY, _PROBABILITY, log, log, _RANK, 1.0, 0.0, (chosen,), method="sampled"
    )
    with depth_context(depth):
        return str(explain_token(token))
