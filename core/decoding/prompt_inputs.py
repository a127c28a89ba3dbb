"""What a run finds written before its first new token: the prompt, and the tokens its answer begins with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformers import GenerationConfig

from core.decoding.continuation import continuation
from core.decoding.media_inputs.audio_inputs import earlier_text
from core.decoding.media_inputs.caption_prompt import begun_text, goes_on
from core.decoding.media_inputs.image_tokens import insert
from core.decoding.media_inputs.media_inputs import MediaInputs
from core.decoding.media_inputs.media_preparation import decoder_start, perceive
from core.decoding.media_validation import check_media
from core.decoding.prompt import encode, prompt_tokens
from core.decoding.run_preparation import start_of
from core.decoding.token_healing import heal_tokens, is_healed
from core.errors import PromptTooLongError
from core.events import Notice, PromptToken
from core.media import MediaFile
from core.models.loaded_model import LoadedModel
from core.models.text import TextStream
from core.models.text_decoder import sense_of
from core.request import Request


@dataclass(frozen=True, slots=True)
class PromptInputs:
    """Token ids, in the order of the text."""

    prompt: list[int]
    """The prompt; an encoder–decoder's source."""
    before: list[int]
    """What the decoder reads before the answer: the prompt, or its own first token."""
    beginning: list[int]
    """What the answer begins with (`Request.beginning`)."""
    perceived: MediaInputs | None = None
    """The sounds and pictures that the model is given."""

    @property
    def source(self) -> list[int]:
        """What an encoder that reads text is given."""
        return self.prompt if self.perceived is None or not self.perceived.is_encoded else []

    @property
    def encoded(self) -> int:
        """Positions that an encoder reads, and cross-attention keeps."""
        return len(self.prompt) if self.perceived is None else int(self.perceived.states["last_hidden_state"].shape[1])

    @property
    def offset(self) -> int:
        """Positions of the cache before the first token."""
        return self.perceived.before if self.perceived is not None else 0

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What a reader should know of it."""
        return self.perceived.notices if self.perceived is not None else ()

    @property
    def kept(self) -> list[int]:
        """What the cache holds once the start was read, a number a position."""
        return self.perceived.keys(self.start) if self.perceived is not None else self.start

    @property
    def start(self) -> list[int]:
        """All that the decoder reads before the first new token."""
        return [*self.before, *self.beginning]

    @property
    def length(self) -> int:
        """Tokens that are there: prompt and beginning."""
        return len(self.prompt) + len(self.beginning)

    def perceived_by(self, model: LoadedModel) -> MediaInputs | None:
        """The same sounds and pictures as another model takes them in: a draft model, or the lower layers of this one.
        None where there are none, and for a model that takes none. Raises MediaError."""
        if self.perceived is None or not model.takes.media:
            return None
        if model.processor is self.perceived.model.processor:
            return self.perceived
        return perceived_with(model, self.prompt, self.perceived.files)

    def spelled(self, model: LoadedModel) -> tuple[tuple[PromptToken, ...], TextStream]:
        """The beginning as events tell it, and the text as it goes on; a character that a new token completes comes
        with that one."""
        pieces, told = model.pieces, list[PromptToken]()
        stream = TextStream(model.tokenizer, self.before, pieces)
        for token in self.beginning:
            text, piece = stream.push(token), pieces[token]
            told.append(PromptToken(token, text, piece if piece != text else "", token in pieces.special))
        return tuple(told), stream

    def asked(self, model: LoadedModel) -> tuple[PromptToken, ...]:
        """The prompt as events tell it."""
        return prompt_tokens(self.prompt, model.pieces)


def open_text(model: LoadedModel, request: Request, config: GenerationConfig, unbounded: bool) -> PromptInputs:
    """The ids of a request; `unbounded` lifts the limit of the model's context.

    Raises what `check_media`, `encode`, `start_of` and `continuation` do.
    """
    perceived: MediaInputs | None
    files = check_media(model.name, model.takes, request.media)
    if files and sense_of(model.model, model.takes) == "prompt":
        prompt, perceived = insert(model, request.prompt, files)
        before = prompt
    elif (perceived := perceive(model, files)) is not None and model.is_encoder_decoder:
        before = _marked(model, request, config, perceived)
        prompt = before
    else:
        prompt = encode(model, request.prompt, unbounded, config.bos_token_id)
        if is_healed(model, config.token_healing) and not files and request.prompt:
            prompt = heal_tokens(model, prompt, request.seed)
        before = start_of(model, config, prompt)
    opening = PromptInputs(prompt, before, continuation(model, before, request.beginning), perceived)
    length = len(opening.start)
    if not unbounded and model.context is not None and length > model.context:
        raise PromptTooLongError(length, model.context)
    return opening


def perceived_with(model: LoadedModel, ids: list[int], files: Sequence[MediaFile]) -> MediaInputs | None:
    """What a model takes in of files beside `ids`, in which tokens stand for pictures already where it has such.
    Raises MediaError, PromptError."""
    if sense_of(model.model, model.takes) == "prompt":
        return insert(model, ids, files)[1]
    return perceive(model, files)


def _marked(model: LoadedModel, request: Request, config: GenerationConfig, perceived: MediaInputs) -> list[int]:
    """What a decoder that looks at a sound or a picture reads before it writes: a text that came before, its marks; of
    one that goes on with a text (BLIP), its start and that."""
    if goes_on(model):
        return begun_text(model, request.prompt, start_of(model, config, []))
    earlier = earlier_text(model, request.prompt)
    return [*earlier, *(decoder_start(model, config, perceived) or start_of(model, config, []))]
