"""What a run finds written before its first new token: the prompt, and the tokens its answer begins with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformers import GenerationConfig

from core import media
from core.decoding.media_inputs import image_inputs, media_inputs
from core.decoding.media_inputs.image_inputs import insert_images
from core.decoding.media_inputs.media_inputs import MediaInputs, encode_earlier_text
from core.decoding.prompt import encode, encode_continuation, heal_tokens, should_heal, to_prompt_tokens, tokenize
from core.decoding.run_preparation import decoder_start_ids
from core.errors import MediaRefusedError, PromptTooLongError
from core.events import Notice, PromptToken
from core.media import PICTURE, SOUND, MediaFile
from core.models.loaded_model import LoadedModel
from core.models.modalities import Takes
from core.models.text import TextStream
from core.models.text_decoder import media_input_of
from core.request import Request
from resources.language import mark, tr

_NOT_ACCEPTED = {
    SOUND: mark("{model} takes no sound, and {file} is one."),
    PICTURE: mark("{model} takes no pictures, and {file} is one."),
}
_REQUIRED = {
    (True, False): mark("{model} writes down what it hears, and no sound was given."),
    (False, True): mark("{model} writes about a picture, and none was given."),
    (True, True): mark("{model} writes about a sound or a picture, and none was given."),
}


def check_media(name: str, modalities: Takes, paths: Sequence[str | Path]) -> tuple[MediaFile, ...]:
    """The files of a request, each looked at; `name` is the model's.

    Raises MediaRefusedError where the model does not take them, and whatever `core.media.inspect` raises.
    """
    if modalities.needs and not paths:
        raise MediaRefusedError(
            tr(_REQUIRED[modalities.sound, modalities.picture]).format(model=name),
            tr("Add a file (Request.media, --media)."),
        )
    if paths and not modalities.media:
        raise MediaRefusedError(
            tr("{model} reads text only: neither sound nor pictures.").format(model=name),
            tr("Remove the file, or choose a model that takes it."),
        )
    for path in paths:
        kind = media.kind_of(path)
        if not (modalities.sound if kind == SOUND else modalities.picture):
            raise MediaRefusedError(
                tr(_NOT_ACCEPTED[kind]).format(model=name, file=Path(path).name),
                tr("Remove the file, or choose a model that takes it."),
            )
    if modalities.most is not None and len(paths) > modalities.most:
        raise MediaRefusedError(
            tr("{model} takes one file at a time, and {count} were given.").format(model=name, count=len(paths)),
            tr("Leave one of them."),
        )
    return tuple(map(media.inspect, paths))


def continues_prompt(model: LoadedModel) -> bool:
    """Whether a prompt is the beginning of what it writes about a picture."""
    return model.takes.picture and model.takes.text and media_input_of(model.model, model.takes) == "encoder"


def encode_caption_start(model: LoadedModel, prompt: object, start: list[int]) -> list[int]:
    """The decoder's `start` and the prompt's ids, which may have it already. Raises what `encode` does."""
    if isinstance(prompt, str):
        text = prompt.strip()
        return [*start, *(tokenize(model, text, add_special_tokens=False) if text else [])]
    ids = encode(model, prompt, unbounded=True) if prompt else []
    return ids if ids[: len(start)] == start else [*start, *ids]


def prepare_media(model: LoadedModel, files: Sequence[MediaFile]) -> MediaInputs | None:
    """None where there are none. Raises MediaError."""
    if not files:
        return None
    return (
        media_inputs.prepare_audio(model, files[0])
        if files[0].kind == SOUND
        else image_inputs.prepare_image(model, files)
    )


def decoder_start_tokens(model: LoadedModel, config: GenerationConfig, perceived: MediaInputs) -> list[int] | None:
    """What the decoder of such a model begins with, where that is more than one token. Raises ParameterError."""
    return media_inputs.start_tokens(model, config, perceived) if media_inputs.has_start_tokens(model) else None


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
