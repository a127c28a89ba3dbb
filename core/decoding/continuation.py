"""What a text goes on with: token ids, words, or some of each, as the tokens behind those that are there."""

from __future__ import annotations

from collections.abc import Sequence

from core.decoding.prompt import check_tokenizer, check_vocabulary_ids, tokenize
from core.errors import PromptError
from core.models.loaded_model import LoadedModel
from core.models.text import Decoder, IncrementalDecoder
from core.parameter import short_repr
from core.plain_values import to_plain_value
from core.token_values import is_id
from resources.language import mark, tr


def encode_continuation(model: LoadedModel, before: Sequence[int], addition: object) -> list[int]:
    """Ids of `addition` behind `before`: a text, token ids, or a sequence of both.

    Raises PromptError, TokenizerMissingError, ParameterError.
    """
    ids = list[int]()
    for part in _continuation_parts(addition):
        ids += _encode_after(model, [*before, *ids], part) if isinstance(part, str) else [part]
    check_vocabulary_ids(model, ids, "beginning")
    return ids


def _continuation_parts(addition: object) -> list[int | str]:
    addition = to_plain_value(addition)
    parts = [addition] if isinstance(addition, str) else list(addition) if isinstance(addition, Sequence) else None
    if parts is None or isinstance(addition, bytes):
        raise PromptError(
            tr("The text goes on with {value}.").format(value=short_repr(addition)), tr(_CONTINUATION_REMEDY)
        )
    if wrong := [part for part in parts if not (isinstance(part, str) or is_id(part))]:
        raise PromptError(
            tr("The text goes on with {value}.").format(value=short_repr(wrong[0])), tr(_CONTINUATION_REMEDY)
        )
    return [part if isinstance(part, str) else int(part) for part in parts]


_CONTINUATION_REMEDY = mark("Give words, token ids, or some of each.")


def _encode_after(model: LoadedModel, before: Sequence[int], text: str) -> list[int]:
    """The text's tokens as they follow others: many tokenizers write a word otherwise where a text begins.

    Where the words before would be written otherwise with it, its own tokens are taken.
    """
    check_tokenizer(model)
    last = Decoder(model.tokenizer)(IncrementalDecoder(model.tokenizer, model.pieces).tail(before))
    alone = tokenize(model, last, add_special_tokens=False)
    both = tokenize(model, last + text, add_special_tokens=False)
    is_split = both[: len(alone)] == alone
    return both[len(alone) :] if is_split else tokenize(model, text, add_special_tokens=False)
