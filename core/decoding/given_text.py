"""A text that is given, to be scored: which tokens it is made of, and what a model has read before the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.decoding.continuation import encode_continuation
from core.decoding.prompt import encode
from core.decoding.run_preparation import decoder_start_ids
from core.errors import MediaRefusedError, PromptError, TextTooLongError
from core.models.loaded_model import LoadedModel
from resources.language import tr


@dataclass(frozen=True, slots=True)
class GivenText:
    """A text as a model reads it."""

    prompt: list[int]
    """What stands before it and is not scored: the source of an encoder–decoder, a prompt, or its own first token."""
    start: list[int]
    """What the decoder has read before the first scored token."""
    tokens: list[int]
    """What is scored."""

    @property
    def decoder_ids(self) -> list[int]:
        """What the decoder reads: the last token need not be."""
        return [*self.start, *self.tokens][:-1]


def prepare_given_text(model: LoadedModel, text: object, given: object = None) -> GivenText:
    """`text` behind `given`; without it, a decoder's text is scored from its second token on.

    Raises TextTooLongError, PromptError, MediaRefusedError and whatever `encode` raises.
    """
    if model.takes.needs:
        raise MediaRefusedError(
            tr("{model} holds a text likely or not by what it hears or sees, and none of that is given here.").format(
                model=model.name
            ),
            tr("Score the text with a model of text alone."),
        )
    found = _target_text(model, text, given) if model.is_encoder_decoder else _decoder_text(model, text, given)
    if model.context is not None and len(found.decoder_ids) > model.context:
        raise TextTooLongError(len(found.start) + len(found.tokens), model.context + 1)
    return found


def _decoder_text(model: LoadedModel, text: object, given: object) -> GivenText:
    if given is None:
        ids = encode(model, text, unbounded=True)
        return GivenText(ids[:1], ids[:1], ids[1:])
    prompt = encode(model, given, unbounded=True)
    return GivenText(prompt, prompt, encode_continuation(model, prompt, text))


def _target_text(model: LoadedModel, text: object, given: object) -> GivenText:
    """The decoder's own first token is not scored; a text without a source may begin with it."""
    source = _empty_source(model) if given is None else encode(model, given, unbounded=True)
    start = decoder_start_ids(model, model.generation_config, source)
    ids = encode(model, text, unbounded=True)
    return GivenText(source, start, ids[1:] if given is None and ids[:1] == start else ids)


def _empty_source(model: LoadedModel) -> list[int]:
    """What an encoder reads of an empty text: the marks its tokenizer adds, or the end token."""
    ids: Sequence[int] = model.tokenizer("")["input_ids"] if model.tokenizer is not None else ()
    eos = model.generation_config.eos_token_id
    end = eos[0] if isinstance(eos, list) and eos else eos
    if not ids and not isinstance(end, int):
        raise PromptError(
            tr("{model} reads a source before it writes, and has no token for an empty one.").format(model=model.name),
            tr("Say what the text answers."),
        )
    return list(ids) or [int(end)]
