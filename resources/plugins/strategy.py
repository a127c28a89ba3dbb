"""My strategy: takes the likeliest token, but every few tokens the second likeliest. Save this file, then run."""

from decodescope.core.decoding.token_loop import decode_single
from decodescope.core.parameter import Parameter
from decodescope.core.strategies.base import Strategy
from decodescope.core.strategies.parameters import EVERYWHERE, NEW_TOKENS, PENALTIES

EVERY = Parameter(
    "every", "Every", "int", 5, "Take the second likeliest token once in this many steps.", minimum=1, maximum=50,
    option=True,
)  # fmt: skip


class MyPicker:
    """Chooses the next token of each text."""

    method = "greedy"

    def __init__(self, every):
        self.every, self.steps = every, 0

    def pick(self, scores, generator):
        """Return one token id per text [texts] from the scores [texts, vocabulary]."""
        self.steps += 1
        rank = 1 if self.steps % self.every == 0 else 0
        return scores.topk(rank + 1, dim=-1).indices[:, rank]


def decode(run):
    """Write the text token by token."""
    yield from decode_single(run, MyPicker(run.settings.get("every", EVERY.default)))


STRATEGY = Strategy(
    name="my_strategy",
    title="My strategy",
    summary="The likeliest token, but every few tokens the second likeliest.",
    parameters=(EVERY, NEW_TOKENS, *PENALTIES, *EVERYWHERE),
    decode=decode,
)
