"""A text cut into what can be left out of it: tokens, words, sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from core.errors import ParameterError, TokenizerMissingError
from core.models.loaded_model import LoadedModel
from core.parameter import short_repr
from resources.language import tr

Unit = Literal["token", "word", "sentence"]
_SENTENCE_ENDS = frozenset(".!?…。！？")
_CLOSING = frozenset("\"'”’»)]}」』）")
"""What may stand behind the mark that ends a sentence and still belongs to it."""


class TokenRange(NamedTuple):
    """Places [start, stop) of a text's tokens."""

    start: int
    stop: int


def split_units(model: LoadedModel, ids: Sequence[int], unit: object) -> list[TokenRange]:
    """The units of a text, in order: every token belongs to one.

    A word is what stands between spaces, with the space before it; where there are none (Chinese, Thai), a token. A
    sentence ends behind . ! ? … and their like, or a line. Special tokens stand alone.
    Raises ParameterError for another unit, TokenizerMissingError where the tokens have no text.
    """
    if unit not in get_args(Unit):
        raise ParameterError(
            tr("unit is {value}.").format(value=short_repr(unit)),
            tr("Choose one of: {names}.").format(names=", ".join(get_args(Unit))),
            "unit",
        )
    if unit == "token":
        return [TokenRange(place, place + 1) for place in range(len(ids))]
    if model.tokenizer is None:
        raise TokenizerMissingError(
            tr("{model} has no tokenizer, so nobody knows where its words end.").format(model=model.name),
            tr("Leave out single tokens instead."),
        )
    texts, alone = model.pieces.texts(ids), [token in model.pieces.special for token in ids]
    begins = _word_begins(texts, alone) if unit == "word" else _sentence_begins(texts, alone)
    starts = [place for place, begin in enumerate(begins) if begin]
    return [TokenRange(*pair) for pair in pairwise([*starts, len(ids)])]


def _word_begins(texts: Sequence[str], special: Sequence[bool]) -> Iterator[bool]:
    for index, text in enumerate(texts):
        before = texts[index - 1] if index else " "
        yield (
            special[index] or (index > 0 and special[index - 1]) or text[:1].isspace() or before[-1:].isspace()
            or _is_unspaced(text) or _is_unspaced(before)
        )  # fmt: skip


def _is_unspaced(text: str) -> bool:
    """Of a script that writes no spaces between words: the tokenizer's pieces are the nearest thing to them."""
    return any(
        "\u2e80" <= char <= "\u9fff" or "\uf900" <= char <= "\ufaff" or "\u0e00" <= char <= "\u0fff" for char in text
    )


def _sentence_begins(texts: Sequence[str], special: Sequence[bool]) -> Iterator[bool]:
    has_ended = True
    for index, text in enumerate(texts):
        goes_on = has_ended and index > 0 and _closes_sentence(text)
        yield (has_ended and not goes_on) or special[index] or (index > 0 and special[index - 1])
        has_ended = goes_on or _ends_sentence(text)


def _closes_sentence(text: str) -> bool:
    """Whether a piece behind a sentence still belongs to it: a closing quote, or the end of the line."""
    return bool(text) and (set(text) <= _SENTENCE_ENDS | _CLOSING or (text.isspace() and "\n" in text))


def _ends_sentence(text: str) -> bool:
    """Whether a sentence ends with this piece."""
    shown = text.rstrip().rstrip("".join(_CLOSING))
    return "\n" in text or (bool(shown) and shown[-1] in _SENTENCE_ENDS)
