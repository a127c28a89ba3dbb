"""From the files of a request to what its model takes in, whatever way that is."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import GenerationConfig

from core.decoding.media_inputs import audio_inputs, image_inputs
from core.decoding.media_inputs.media_inputs import MediaInputs
from core.media import SOUND, MediaFile
from core.models.loaded_model import LoadedModel


def prepare_media(model: LoadedModel, files: Sequence[MediaFile]) -> MediaInputs | None:
    """None where there are none. Raises MediaError."""
    if not files:
        return None
    return (
        audio_inputs.prepare_audio(model, files[0])
        if files[0].kind == SOUND
        else image_inputs.prepare_image(model, files)
    )


def decoder_start_tokens(model: LoadedModel, config: GenerationConfig, perceived: MediaInputs) -> list[int] | None:
    """What the decoder of such a model begins with, where that is more than one token. Raises ParameterError."""
    return audio_inputs.start_tokens(model, config, perceived) if audio_inputs.has_start_tokens(model) else None
