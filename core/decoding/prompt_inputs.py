"""Inputs of a run before its first new token: the prompt, and the answer's prefix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from decodescope.core import media
from decodescope.core.decoding.media_inputs import image_inputs, media_inputs
from decodescope.core.decoding.media_inputs.image_inputs import insert_images
from decodescope.core.decoding.media_inputs.media_inputs import MediaInputs, encode_earlier_text
from decodescope.core.decoding.prompt import encode, encode_continuation, heal_tokens, to_prompt_tokens, tokenize
from decodescope.core.decoding.run_preparation import decoder_start_ids
from decodescope.core.errors import MediaRefusedError, PromptTooLongError
from decodescope.core.events import Notice, PromptToken
from decodescope.core.media import PICTURE, SOUND, MediaFile
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.models.modalities import Modalities
from decodescope.core.models.text import TextStream
from decodescope.core.models.text_decoder import media_input_of
from decodescope.core.parameter import Settings
from decodescope.core.request import Request
from decodescope.resources.language import mark, tr

_NOT_ACCEPTED = {
    SOUND: mark("{model} does not accept audio, but {file} is an audio file."),
    PICTURE: mark("{model} does not accept images, but {file} is an image."),
}
_REQUIRED = {
    (True, False): mark("{model} transcribes audio, but no audio was given."),
    (False, True): mark("{model} needs an image, but none was given."),
    (True, True): mark("{model} needs audio or an image, but neither was given."),
}


def check_media(name: str, modalities: Modalities, paths: Sequence[str | Path]) -> tuple[MediaFile, ...]:
    """Check and inspect the files of a request; `name` is the model's.

    Raises MediaRefusedError where the model does not accept them, and whatever `core.media.inspect` raises.
    """
    if modalities.needs and not paths:
        raise MediaRefusedError(
            tr(_REQUIRED[modalities.sound, modalities.picture]).format(model=name),
            tr("Add a file (Request.media, --media)."),
        )
    if paths and not modalities.media:
        raise MediaRefusedError(
            tr("{model} accepts text only, no audio or images.").format(model=name),
            tr("Remove the file, or choose a model that accepts it."),
        )
    for path in paths:
        kind = media.kind_of(path)
        if not (modalities.sound if kind == SOUND else modalities.picture):
            raise MediaRefusedError(
                tr(_NOT_ACCEPTED[kind]).format(model=name, file=Path(path).name),
                tr("Remove the file, or choose a model that accepts it."),
            )
    if modalities.max_count is not None and len(paths) > modalities.max_count:
        raise MediaRefusedError(
            tr("{model} accepts one file at a time, but {count} were given.").format(model=name, count=len(paths)),
            tr("Keep only one of them."),
        )
    return tuple(map(media.inspect, paths))


def continues_prompt(model: LoadedModel) -> bool:
    """Return whether a prompt is the beginning of the caption."""
    return (
        model.modalities.picture
        and model.modalities.text
        and media_input_of(model.model, model.modalities) == "encoder"
    )


def encode_caption_start(model: LoadedModel, prompt: object, start: list[int]) -> list[int]:
    """Return the decoder's `start` and the prompt's ids, which may include it already. Raises whatever `encode`
    raises.
    """
    if isinstance(prompt, str):
        text = prompt.strip()
        return [*start, *(tokenize(model, text, add_special_tokens=False) if text else [])]
    ids = encode(model, prompt, unbounded=True) if prompt else []
    return ids if ids[: len(start)] == start else [*start, *ids]


def prepare_media(model: LoadedModel, files: Sequence[MediaFile]) -> MediaInputs | None:
    """Return the media inputs; None without files. Raises MediaError."""
    if not files:
        return None
    return (
        media_inputs.prepare_audio(model, files[0])
        if files[0].kind == SOUND
        else image_inputs.prepare_image(model, files)
    )


def decoder_start_tokens(model: LoadedModel, settings: Settings, perceived: MediaInputs) -> list[int] | None:
    """Return the decoder's start tokens where there is more than one; else None. Raises ParameterError."""
    return media_inputs.start_tokens(model, settings, perceived) if media_inputs.has_start_tokens(model) else None


@dataclass(frozen=True, slots=True)
class PromptInputs:
    """Token ids before the first new token, in order."""

    prompt: list[int]
    """Prompt tokens; for an encoder–decoder the source."""
    decoder_start: list[int]
    """Decoder tokens before the answer: the prompt, or the decoder's start tokens."""
    beginning: list[int]
    """Forced prefix of the answer (`Request.beginning`)."""
    media: MediaInputs | None = None
    """Image and audio inputs."""

    @property
    def source(self) -> list[int]:
        """Tokens of a text encoder; empty if the encoder reads media."""
        return self.prompt if self.media is None or not self.media.is_encoded else []

    @property
    def encoder_length(self) -> int:
        """Number of encoder positions, which cross-attention caches."""
        return len(self.prompt) if self.media is None else int(self.media.states["last_hidden_state"].shape[1])

    @property
    def offset(self) -> int:
        """Cache positions before the first token."""
        return self.media.leading_positions if self.media is not None else 0

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Notices for the user about the inputs."""
        return self.media.notices if self.media is not None else ()

    @property
    def cache_keys(self) -> list[int]:
        """Keys of the cached positions after prefill, one per position."""
        return self.media.cache_keys(self.start) if self.media is not None else self.start

    @property
    def start(self) -> list[int]:
        """All decoder tokens before the first new token."""
        return [*self.decoder_start, *self.beginning]

    @property
    def length(self) -> int:
        """Number of tokens in prompt and prefix."""
        return len(self.prompt) + len(self.beginning)

    def media_for(self, model: LoadedModel) -> MediaInputs | None:
        """Return the same media prepared for another model: a draft model, or this model's lower layers.

        None without media and for a model that does not accept any. Raises MediaError.
        """
        if self.media is None or not model.modalities.media:
            return None
        if model.processor is self.media.model.processor:
            return self.media
        return prepare_media_with_ids(model, self.prompt, self.media.files)

    def decode_prefix_tokens(self, model: LoadedModel) -> tuple[tuple[PromptToken, ...], TextStream]:
        """Return the prefix tokens for events and the text stream that continues them.

        A character that a new token completes belongs to that token.
        """
        pieces, tokens = model.pieces, list[PromptToken]()
        stream = TextStream(model.tokenizer, self.decoder_start, pieces)
        for token in self.beginning:
            text, piece = stream.push(token), pieces[token]
            tokens.append(PromptToken(token, text, piece if piece != text else "", token in pieces.special))
        return tuple(tokens), stream

    def prompt_tokens(self, model: LoadedModel) -> tuple[PromptToken, ...]:
        """Return the prompt tokens for events."""
        return to_prompt_tokens(self.prompt, model.pieces)


def prepare_prompt(model: LoadedModel, request: Request, settings: Settings, unbounded: bool) -> PromptInputs:
    """Prepare the input ids of a request; `unbounded` skips the check against the model's context length.

    Raises what `check_media`, `encode`, `decoder_start_ids` and `encode_continuation` raise.
    """
    perceived: MediaInputs | None
    files = check_media(model.name, model.modalities, request.media)
    if files and media_input_of(model.model, model.modalities) == "prompt":
        prompt, perceived = insert_images(model, request.prompt, files)
        before = prompt
    elif (perceived := prepare_media(model, files)) is not None and model.is_encoder_decoder:
        before = _media_decoder_start(model, request, settings, perceived)
        prompt = before
    else:
        prompt = encode(model, request.prompt, unbounded, settings.get("bos_token_id"))
        if settings.get("token_healing") and not model.is_encoder_decoder and not files and request.prompt:
            prompt = heal_tokens(model, prompt, request.seed)
        before = decoder_start_ids(model, settings, prompt)
    inputs = PromptInputs(prompt, before, encode_continuation(model, before, request.beginning), perceived)
    length = len(inputs.start)
    if not unbounded and model.context is not None and length > model.context:
        raise PromptTooLongError(length, model.context)
    return inputs


def prepare_media_with_ids(model: LoadedModel, ids: list[int], files: Sequence[MediaFile]) -> MediaInputs | None:
    """Prepare media with `ids`, which already include image tokens if the model uses them.

    Raises MediaError, PromptError.
    """
    if media_input_of(model.model, model.modalities) == "prompt":
        return insert_images(model, ids, files)[1]
    return prepare_media(model, files)


def _media_decoder_start(
    model: LoadedModel, request: Request, settings: Settings, media_inputs: MediaInputs
) -> list[int]:
    """Return the decoder tokens of a model with media: earlier text and start tokens, or, for caption models (BLIP),
    start tokens and the caption's beginning.
    """
    if continues_prompt(model):
        return encode_caption_start(model, request.prompt, decoder_start_ids(model, settings, []))
    earlier = encode_earlier_text(model, request.prompt)
    return [*earlier, *(decoder_start_tokens(model, settings, media_inputs) or decoder_start_ids(model, settings, []))]
