"""What a run finds written before its first new token: the prompt, and the tokens its answer begins with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformers import GenerationConfig

from core.decoding.continuation import encode_continuation
from core.decoding.media_inputs.audio_inputs import encode_earlier_text
from core.decoding.media_inputs.caption_prompt import continues_prompt, encode_caption_start
from core.decoding.media_inputs.image_tokens import insert_images
from core.decoding.media_inputs.media_inputs import MediaInputs
from core.decoding.media_inputs.media_preparation import decoder_start_tokens, prepare_media
from core.decoding.media_validation import check_media
from core.decoding.prompt import encode, to_prompt_tokens
from core.decoding.run_preparation import decoder_start_ids
from core.decoding.token_healing import heal_tokens, should_heal
from core.errors import PromptTooLongError
from core.events import Notice, PromptToken
from core.media import MediaFile
from core.models.loaded_model import LoadedModel
from core.models.text import TextStream
from core.models.text_decoder import media_input_of
from core.request import Request


@dataclass(frozen=True, slots=True)
class PromptInputs:
    """Token ids, in the order of the text."""

    prompt: list[int]
    """The prompt; an encoder–decoder's source."""
    decoder_start: list[int]
    """What the decoder reads before the answer: the prompt, or its own first token."""
    beginning: list[int]
    """What the answer begins with (`Request.beginning`)."""
    media: MediaInputs | None = None
    """The sounds and pictures that the model is given."""

    @property
    def source(self) -> list[int]:
        """What an encoder that reads text is given."""
        return self.prompt if self.media is None or not self.media.is_encoded else []

    @property
    def encoder_length(self) -> int:
        """Positions that an encoder reads, and cross-attention keeps."""
        return len(self.prompt) if self.media is None else int(self.media.states["last_hidden_state"].shape[1])

    @property
    def offset(self) -> int:
        """Positions of the cache before the first token."""
        return self.media.leading_positions if self.media is not None else 0

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What a reader should know of it."""
        return self.media.notices if self.media is not None else ()

    @property
    def cache_keys(self) -> list[int]:
        """What the cache holds once the start was read, a number a position."""
        return self.media.cache_keys(self.start) if self.media is not None else self.start

    @property
    def start(self) -> list[int]:
        """All that the decoder reads before the first new token."""
        return [*self.decoder_start, *self.beginning]

    @property
    def length(self) -> int:
        """Tokens that are there: prompt and beginning."""
        return len(self.prompt) + len(self.beginning)

    def media_for(self, model: LoadedModel) -> MediaInputs | None:
        """The same sounds and pictures as another model takes them in: a draft model, or the lower layers of this one.
        None where there are none, and for a model that takes none. Raises MediaError."""
        if self.media is None or not model.takes.media:
            return None
        if model.processor is self.media.model.processor:
            return self.media
        return prepare_media_with_ids(model, self.prompt, self.media.files)

    def decode_beginning(self, model: LoadedModel) -> tuple[tuple[PromptToken, ...], TextStream]:
        """The beginning as events tell it, and the text as it goes on; a character that a new token completes comes
        with that one."""
        pieces, told = model.pieces, list[PromptToken]()
        stream = TextStream(model.tokenizer, self.decoder_start, pieces)
        for token in self.beginning:
            text, piece = stream.push(token), pieces[token]
            told.append(PromptToken(token, text, piece if piece != text else "", token in pieces.special))
        return tuple(told), stream

    def prompt_tokens(self, model: LoadedModel) -> tuple[PromptToken, ...]:
        """The prompt as events tell it."""
        return to_prompt_tokens(self.prompt, model.pieces)


def prepare_prompt(model: LoadedModel, request: Request, config: GenerationConfig, unbounded: bool) -> PromptInputs:
    """The ids of a request; `unbounded` lifts the limit of the model's context.

    Raises what `check_media`, `encode`, `decoder_start_ids` and `encode_continuation` do.
    """
    perceived: MediaInputs | None
    files = check_media(model.name, model.takes, request.media)
    if files and media_input_of(model.model, model.takes) == "prompt":
        prompt, perceived = insert_images(model, request.prompt, files)
        before = prompt
    elif (perceived := prepare_media(model, files)) is not None and model.is_encoder_decoder:
        before = _media_decoder_start(model, request, config, perceived)
        prompt = before
    else:
        prompt = encode(model, request.prompt, unbounded, config.bos_token_id)
        if should_heal(model, config.token_healing) and not files and request.prompt:
            prompt = heal_tokens(model, prompt, request.seed)
        before = decoder_start_ids(model, config, prompt)
    inputs = PromptInputs(prompt, before, encode_continuation(model, before, request.beginning), perceived)
    length = len(inputs.start)
    if not unbounded and model.context is not None and length > model.context:
        raise PromptTooLongError(length, model.context)
    return inputs


def prepare_media_with_ids(model: LoadedModel, ids: list[int], files: Sequence[MediaFile]) -> MediaInputs | None:
    """What a model takes in of files beside `ids`, in which tokens stand for pictures already where it has such.
    Raises MediaError, PromptError."""
    if media_input_of(model.model, model.takes) == "prompt":
        return insert_images(model, ids, files)[1]
    return prepare_media(model, files)


def _media_decoder_start(
    model: LoadedModel, request: Request, config: GenerationConfig, perceived: MediaInputs
) -> list[int]:
    """What a decoder that looks at a sound or a picture reads before it writes: a text that came before, its marks; of
    one that goes on with a text (BLIP), its start and that."""
    if continues_prompt(model):
        return encode_caption_start(model, request.prompt, decoder_start_ids(model, config, []))
    earlier = encode_earlier_text(model, request.prompt)
    return [*earlier, *(decoder_start_tokens(model, config, perceived) or decoder_start_ids(model, config, []))]
