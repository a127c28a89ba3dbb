"""Occlusion: measure which parts a choice depends on by removing them (Zeiler & Fergus 2014; Li, Monroe & Jurafsky
2016).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import torch

from decodescope.core.checks.arguments import check_cancel
from decodescope.core.decoding.prompt import tokenize
from decodescope.core.errors import InsideError, ParameterError, TokenizerMissingError
from decodescope.core.interpretability.step_query import StepQuery, check_token, new_forward, stack_ids, step_query
from decodescope.core.interpretability.text_variants import (
    PrefixPass,
    TextVariant,
    VariantLogits,
    score_source_variants,
    score_text_variants,
)
from decodescope.core.models.error_translation import translate_iterator_errors
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.notebook.result_rows import ResultRows
from decodescope.core.parameter import short_repr
from decodescope.core.settings import check_paths
from decodescope.core.system.torch_state import isolated
from decodescope.resources.language import join_names, tr

Unit = Literal["token", "word", "sentence"]
_SENTENCE_ENDS = frozenset(".!?…。！？")
_CLOSING = frozenset("\"'”’»)]}」』）")
"""Characters that may follow the end of a sentence and still belong to it."""


class TokenRange(NamedTuple):
    """Range [start, stop) of a text's tokens."""

    start: int
    stop: int


def split_units(model: LoadedModel, ids: Sequence[int], unit: object) -> list[TokenRange]:
    """Return the units of a text, in order; every token belongs to one.

    A word is the text between spaces, with the space before it; without spaces (Chinese, Thai), a token. A sentence
    ends after . ! ? … and similar marks, or a line. Special tokens are separate units. Raises ParameterError for an
    unknown unit, TokenizerMissingError if the tokens have no text.
    """
    if unit not in get_args(Unit):
        raise ParameterError(
            tr("unit is {value}, which is not supported.").format(value=short_repr(unit)),
            tr("Choose one of: {names}.").format(names=join_names(get_args(Unit))),
            "unit",
        )
    if unit == "token":
        return [TokenRange(place, place + 1) for place in range(len(ids))]
    if model.tokenizer is None:
        raise TokenizerMissingError(
            tr("{model} has no tokenizer, so its word boundaries are unknown.").format(model=model.name),
            tr("Remove single tokens instead."),
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
    """Return whether the script uses no spaces between words; the tokenizer's pieces are then the closest
    approximation.
    """
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
    """Return whether a piece after a sentence still belongs to it: a closing quote, or the end of the line."""
    return bool(text) and (set(text) <= _SENTENCE_ENDS | _CLOSING or (text.isspace() and "\n" in text))


def _ends_sentence(text: str) -> bool:
    """Return whether a sentence ends with this piece."""
    shown = text.rstrip().rstrip("".join(_CLOSING))
    return "\n" in text or (bool(shown) and shown[-1] in _SENTENCE_ENDS)


class Effect(NamedTuple):
    """The effect of one part of the text on the choice."""

    start: int
    stop: int
    """Range [start, stop) in the given ids."""
    effect: float
    """Decrease of the log probability of the choice without this part, in nats; negative if it becomes more likely."""


class OcclusionProgress(NamedTuple):
    """The effects of one batch, and the progress."""

    effects: tuple[Effect, ...]
    done: int
    total: int


class Effects(ResultRows[Effect]):
    """The effects in text order; `texts` are the spellings of the ids before the step."""

    bar = "effect"

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name."""
        return {
            "start": [one.start for one in self], "stop": [one.stop for one in self],
            "text": ["".join(self.texts[one.start : one.stop]) for one in self], "effect": [one.effect for one in self],
        }  # fmt: skip


@isolated
def occlude(
    model: LoadedModel,
    ids: Sequence[int],
    step: int,
    other: int | None = None,
    unit: Unit = "token",
    *,
    instead: int | None = None,
    source: int | None = None,
    media: Sequence[str | Path] = (),
    cancel: threading.Event | None = None,
) -> Effects:
    """Return the effect of each token, word or sentence before `ids[step]` on its choice, in text order.

    The effect is log p(chosen | all before) − log p(chosen | all but this part); with the token `other`, the same
    difference of log p(chosen) − log p(other): why this and not that. It uses the model's own distribution, without any
    settings of a run. A part is removed and later tokens move up; with `instead`, each of its tokens is replaced by
    that one. A part that is the whole text before the step is skipped, since nothing would be left. `source`: how many
    of the first ids an encoder reads (default all before the step); its parts are included. `media` (audio and images
    of the run) is not supported. `cancel` is checked before every batch; the effects found so far are returned. Raises
    ParameterError, EmptyPromptError, PromptError, TextTooLongError, TokenizerMissingError, InsideError.
    """
    parts = occlusion(model, ids, step, other, unit, instead=instead, source=source, media=media, cancel=cancel)
    effects = sorted(chain.from_iterable(part.effects for part in parts))
    return Effects(effects, [model.pieces[int(token)] for token in list(ids)[: int(step)]])


@isolated
def occlusion(
    model: LoadedModel,
    ids: Sequence[int],
    step: int,
    other: int | None = None,
    unit: Unit = "token",
    *,
    instead: int | None = None,
    source: int | None = None,
    media: Sequence[str | Path] = (),
    cancel: threading.Event | None = None,
) -> Iterator[OcclusionProgress]:
    """Yield the effects batch by batch. Raises the errors of `occlude`."""
    check_cancel(cancel)
    check_paths(media)
    if media:
        raise InsideError(
            tr("Occlusion supports text only, and this run used audio or an image."),
            tr("Use the logit lens or the attention for this step."),
        )
    question = step_query(model, ids, step, source)
    versus = check_token(model, "other", other) if other is not None else None
    neutral = check_token(model, "instead", instead) if instead is not None else None
    parts = _occlusion_parts(model, question, unit)
    work = _OcclusionJob(model, question, versus, parts, neutral)
    return translate_iterator_errors(model, partial(work.run, cancel or threading.Event()))


def _occlusion_parts(model: LoadedModel, question: StepQuery, unit: Unit) -> list[TokenRange]:
    """Return the parts of the encoder's source and of the text before the step; none crosses the border."""
    border = question.source
    inner = split_units(model, question.ids[border : question.step], unit)
    outer = split_units(model, question.encoded, unit)
    return [*outer, *(TokenRange(start + border, stop + border) for start, stop in inner)]


class _OcclusionJob:
    """The variants of one query."""

    def __init__(
        self, model: LoadedModel, question: StepQuery, other: int | None, parts: list[TokenRange], instead: int | None
    ) -> None:
        self._model, self._question, self._other, self._parts = model, question, other, parts
        self._replacement = (instead,) if instead is not None else ()

    def run(self, cancel: threading.Event) -> Iterator[OcclusionProgress]:
        """Yield the effects, batch by batch."""
        question, model = self._question, self._model
        if cancel.is_set():
            return
        reads_all = new_forward(model, len(question.before), [question.encoded] if question.encoded else ())
        whole = self._score(reads_all(stack_ids(model, [question.before])).last[0])
        sources = self._variants(question.encoded, 0, is_source=True)
        texts = self._variants(question.before, question.source - len(question.start), is_source=False)
        done, total = 0, len(sources) + len(texts)
        for batch in chain(
            score_source_variants(model, question.before, sources, cancel),
            score_text_variants(reads_all, PrefixPass(question.encoded, len(question.before)), texts, cancel),
        ):
            done += len(batch)
            yield OcclusionProgress(tuple(self._effect(whole, ending) for ending in batch), done, total)

    def _variants(self, text: Sequence[int], offset: int, *, is_source: bool) -> list[TextVariant]:
        """Return the text without each part that lies in it and is not all of it; `offset` converts positions in the
        ids to positions in the text.
        """
        found = []
        for number, (start, stop) in enumerate(self._parts):
            if is_source != (stop <= self._question.source):
                continue
            begin, end = start - offset, stop - offset
            ids = (*text[:begin], *self._replacement * (end - begin), *text[end:])
            if ids:
                found.append(TextVariant(number, begin, ids))
        return found

    def _effect(self, baseline: float, ending: VariantLogits) -> Effect:
        number, logits = ending
        return Effect(*self._parts[number], baseline - self._score(logits))

    def _score(self, logits: torch.Tensor) -> float:
        """Return log p of the chosen token, or its lead over the other one, from logits [V]."""
        logs = logits.log_softmax(-1)
        held = logs[self._question.chosen]
        return float(held if self._other is None else held - logs[self._other])


@isolated
def neutral_token(model: LoadedModel, text: str = "") -> int:
    """Return the id of `text`, which must be one token; by default the tokenizer's unknown, padding, mask or end token.

    Raises ParameterError (naming instead) if there is no such token, TokenizerMissingError, PromptError.
    """
    check_model(model)
    if model.tokenizer is None:
        raise TokenizerMissingError(
            tr("{model} has no tokenizer, so its neutral token is unknown.").format(model=model.name),
            tr("Remove parts of the text instead."),
        )
    found = tokenize(model, text, add_special_tokens=False) if text else _default_tokens(model)[:1]
    if len(found) != 1:
        raise ParameterError(
            tr("{model} has no single token for “{text}”.").format(model=model.name, text=text)
            if text
            else tr("{model} has no neutral token.").format(model=model.name),
            tr("Choose another token, or remove parts of the text instead."),
            "instead",
        )
    return found[0]


def _default_tokens(model: LoadedModel) -> list[int]:
    tokenizer = model.tokenizer
    assert tokenizer is not None
    known = (tokenizer.unk_token_id, tokenizer.pad_token_id, tokenizer.mask_token_id, tokenizer.eos_token_id)
    return [token for token in known if token is not None and token < model.vocabulary]
