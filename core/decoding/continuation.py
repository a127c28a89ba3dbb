"""What a text goes on with: token ids, words, or some of each, as the tokens behind those that are there."""

from __future__ import annotations

from collections.abc import Sequence

from core.decoding.prompt import check_known, check_tokenizer, tokenize
from core.errors import PromptError
from core.models.loaded_model import LoadedModel
from core.models.text import Decoder, IncrementalDecoder
from core.parameter import shortened
from core.plain_values import plain_value
from core.token_values import is_id
from resources.language import mark, tr


def continuation(model: LoadedModel, before: Sequence[int], more: object) -> list[int]:
    """Ids of `more` behind `before`: a text, token ids, or a sequence of both.

    Raises PromptError, TokenizerMissingError, ParameterError.
    """
    ids = list[int]()
    for part in _parts(more):
        ids += _behind(model, [*before, *ids], part) if isinstance(part, str) else [part]
    check_known(model, ids, "beginning")
    return ids


def _parts(more: object) -> list[int | str]:
    more = plain_value(more)
    parts = [more] if isinstance(more, str) else list(more) if isinstance(more, Sequence) else None
    if parts is None or isinstance(more, bytes):
        raise PromptError(tr("The text goes on with {value}.").format(value=shortened(more)), tr(_REMEDY))
    if wrong := [part for part in parts if not (isinstance(part, str) or is_id(part))]:
        raise PromptError(tr("The text goes on with {value}.").format(value=shortened(wrong[0])), tr(_REMEDY))
    return [part if isinstance(part, str) else int(part) for part in parts]


_REMEDY = mark("Give words, token ids, or some of each.")


def _behind(model: LoadedModel, before: Sequence[int], text: str) -> list[int]:
    """The text's tokens as they follow others: many tokenizers write a word otherwise where a text begins.

    Where the words before would be written otherwise with it, its own tokens are taken.
    """
    check_tokenizer(model)
    last = Decoder(model.tokenizer)(IncrementalDecoder(model.tokenizer, model.pieces).tail(before))
    alone = tokenize(model, last, add_special_tokens=False)
    both = tokenize(model, last + text, add_special_tokens=False)
    is_split = both[: len(alone)] == alone
    return both[len(alone) :] if is_split else tokenize(model, text, add_special_tokens=False)
