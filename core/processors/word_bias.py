"""Word bias: makes words more or less likely, in all their spellings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from decodescope.core.errors import ParameterError
from decodescope.core.parameter import WORDS, Parameter
from decodescope.core.processors.base import Context, Processor, ProcessorModel, transformers_processors
from decodescope.core.processors.word_search import word_spellings
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.processors.base import Transform

CAPITALS = Parameter(
    "word_bias_any_case", mark("Also with capital letters"), "bool", False,
    mark("Each word also counts in small letters, with a capital letter, and in capital letters."),
    option=True, advanced=True, group=WORDS,
)  # fmt: skip


def word_biases(
    model: ProcessorModel, pairs: Sequence[Sequence[object]], any_case: bool
) -> dict[tuple[int, ...], float]:
    """Return the bias of each token sequence, as transformers' `sequence_bias`. A later word wins. Raises
    ParameterError.
    """
    if model.token_bytes is None:
        raise ParameterError(
            tr("The model has no tokenizer, so the text of its tokens is unknown."), tr("Remove the words."),
            PROCESSOR.name,
        )  # fmt: skip
    return {ids: float(str(value)) for word, value in pairs for ids in word_spellings(model, str(word), any_case)}


def make(value: Sequence[Sequence[object]], context: Context) -> Transform:
    """Create the stage of one run. Raises ParameterError."""
    biases = word_biases(context.model, value, bool(context.settings.get(CAPITALS.name, CAPITALS.default)))
    process: Transform = transformers_processors().SequenceBiasLogitsProcessor(
        sequence_bias=[[list(ids), bias] for ids, bias in biases.items()]
    )
    return process


PROCESSOR = Processor(
    name="word_bias",
    make=make,
    order=22,
    label=mark("word bias"),
    phrase=mark("the word bias"),
    plain_phrase=mark("the list of preferred and unwanted words"),
    parameter=Parameter(
        "word_bias", mark("Word bias"), "word_values", None,
        mark("Makes words likelier (above 0) or less likely (below 0), in all their spellings. The value is added to "
             "the score of a spelling's last token."),
        option=True, advanced=True, group=WORDS,
    ),
    extra_parameters=(CAPITALS,),
    shown=28,
    before_diversity=True,
)  # fmt: skip
