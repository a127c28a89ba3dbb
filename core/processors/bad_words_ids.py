"""Never write: phrases that must not appear."""

from __future__ import annotations

from core.parameter import Parameter
from core.processors.base import Processor, library

PROCESSOR = Processor(
    name="bad_words_ids",
    make=lambda value, context: library().NoBadWordsLogitsProcessor(value, context.eos),
    order=70,
    label="banned words",
    phrase="the list of banned words",
    kind="ban",
    parameter=Parameter(
        "bad_words_ids", "Never write", "tokens", None,
        "Phrases that must not appear, one a line, or lists of token ids.", form="phrases", advanced=True,
    ),
    shown=20,
)  # fmt: skip
