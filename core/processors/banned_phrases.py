"""Words and phrases that must not appear, in whatever way their letters are divided into tokens.

A token is forbidden if the text would contain a phrase with it, whether the phrase lies inside the token or ends in it.
With `banned_phrases_step_back`, as in KoboldCpp and exllamav2, a token that completes a phrase begun earlier is
allowed; the run then goes back to the phrase's first token (`core.decoding.token_loop`) and forbids it after that text.
"""

from __future__ import annotations

from collections.abc import Sequence

from decodescope.core.errors import ParameterError
from decodescope.core.parameter import WORDS, Parameter
from decodescope.core.processors.base import Context, Processor
from decodescope.core.processors.word_search import CAPITALS, STEP_BACK, PhraseBan
from decodescope.resources.language import mark, tr


def make(value: Sequence[str], context: Context) -> PhraseBan:
    """Create the stage of one run. Raises ParameterError."""
    phrases = [value] if isinstance(value, str) else list(value)
    if not all(phrases):
        raise ParameterError(tr("One of the words to avoid is empty."), tr("Remove it."), PROCESSOR.name)
    return PhraseBan(phrases, bool(context.settings.get(CAPITALS.name, CAPITALS.default)), context)


PROCESSOR = Processor(
    name="banned_phrases",
    make=make,
    order=75,
    label=mark("words to avoid"),
    phrase=mark("the list of words to avoid"),
    plain_phrase=mark("the list of words to avoid"),
    kind="ban",
    parameter=Parameter(
        "banned_phrases", mark("Words to avoid"), "words", None,
        mark("Words and phrases that must not appear, as you would type them, also inside longer words and across "
             "tokens."),
        option=True, advanced=True, group=WORDS,
    ),
    extra_parameters=(CAPITALS, STEP_BACK),
    shown=18,
    before_contrast=True,
)  # fmt: skip
