"""What a run finds written before its first new token: the prompt, and the tokens its answer begins with."""

from __future__ import annotations

from dataclasses import dataclass

from transformers import GenerationConfig

from core.decoding.continuation import continuation
from core.decoding.media import check_media
from core.decoding.prepare import start_of
from core.decoding.prompt import encode, prompt_tokens
from core.errors import PromptTooLongError
from core.events import PromptToken
from core.models.model import LoadedModel
from core.models.text import TextStream
from core.request import Request


@dataclass(frozen=True, slots=True)
class Opening:
    """Token ids, in the order of the text."""

    prompt: list[int]
    """The prompt; an encoder–decoder's source."""
    before: list[int]
    """What the decoder reads before the answer: the prompt, or its own first token."""
    beginning: list[int]
    """What the answer begins with (`Request.beginning`)."""

    @property
    def start(self) -> list[int]:
        """All that the decoder reads before the first new token."""
        return [*self.before, *self.beginning]

    @property
    def length(self) -> int:
        """Tokens that are there: prompt and beginning."""
        return len(self.prompt) + len(self.beginning)

    def spelled(self, model: LoadedModel) -> tuple[tuple[PromptToken, ...], TextStream]:
        """The beginning as events tell it, and the text as it goes on; a character that a new token completes comes
        with that one."""
        stream, pieces, told = TextStream(model.tokenizer, self.before), model.pieces, list[PromptToken]()
        for token in self.beginning:
            text, piece = stream.push(token), pieces[token]
            told.append(PromptToken(token, text, piece if piece != text else ""))
        return tuple(told), stream

    def asked(self, model: LoadedModel) -> tuple[PromptToken, ...]:
        """The prompt as events tell it."""
        return prompt_tokens(self.prompt, model.pieces)


def open_text(model: LoadedModel, request: Request, config: GenerationConfig, unbounded: bool) -> Opening:
    """The ids of a request; `unbounded` lifts the limit of the model's context.

    Raises what `check_media`, `encode`, `start_of` and `continuation` do.
    """
    check_media(model.name, model.takes, request.media)
    prompt = encode(model, request.prompt, unbounded)
    before = start_of(model, config, prompt)
    opening = Opening(prompt, before, continuation(model, before, request.beginning))
    length = len(opening.start)
    if not unbounded and model.context is not None and length > model.context:
        raise PromptTooLongError(length, model.context)
    return opening
