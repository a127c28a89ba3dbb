"""Image and audio inputs for a model's first pass."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from decodescope.core import media
from decodescope.core.decoding.prompt import encode, tokenize
from decodescope.core.errors import MediaRefusedError, ParameterError
from decodescope.core.events import MediumRead, Notice
from decodescope.core.media import MediaFile
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.models.text_decoder import media_input_of
from decodescope.core.parameter import Settings
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from transformers.utils.generic import ModelOutput

    from decodescope.core.models.loaded_model import LoadedModel


@dataclass(eq=False)
class MediaInputs:
    """Image and audio inputs of a request, as tensors."""

    model: LoadedModel
    media: tuple[MediumRead, ...]
    files: tuple[MediaFile, ...]
    inputs: Mapping[str, torch.Tensor]
    """Inputs of the encoder, or of the first pass besides the text, by argument name."""
    leading_positions: int = 0
    """Cache positions before the text's first token."""
    notices: tuple[Notice, ...] = field(default=())
    image_indices: tuple[int, ...] = ()
    """Indices of image tokens in the prompt."""
    prompt_length: int = 0
    """Length of the prompt that contains them."""
    position_shift: int = 0
    """Position offset of the text after them: an image may take fewer positions than tokens."""

    @cached_property
    def states(self) -> ModelOutput:
        """Encoder output, computed once; only for models with an encoder."""
        read: ModelOutput = self.model.model.get_encoder()(**self.inputs, return_dict=True)
        return read

    def cache_keys(self, ids: list[int]) -> list[int]:
        """Return a key per cache position for prefix lookup: the ids, or negative numbers derived from the file for
        media.
        """
        named = [*([-1] * self.leading_positions), *ids]
        for medium in self.media:
            if medium.place != "encoder":
                mark = -1 - int(medium.digest[:12], 16)
                named[medium.first : medium.last + 1] = [mark] * (medium.last + 1 - medium.first)
        return named

    def index_of_unused_image_token(self, ids: torch.Tensor) -> int | None:
        """Return the index in ids [1, n] of an image token that belongs to no image (a model may generate one); None
        without.
        """
        own = {*self.image_indices}
        text = ids[0].tolist() if own else []
        return next(
            (place for place, id in enumerate(text) if id == text[self.image_indices[0]] and place not in own), None
        )

    @property
    def is_encoded(self) -> bool:
        """Whether an encoder reads them, not the decoder."""
        return all(medium.place == "encoder" for medium in self.media)

    @property
    def is_inserted(self) -> bool:
        """Whether prompt tokens represent them."""
        return bool(self.image_indices)

    @property
    def required_positions(self) -> int:
        """Number of cache positions up to the last image or audio clip; a shorter cached prefix is of no use."""
        return max((medium.last + 1 for medium in self.media if medium.place != "encoder"), default=0)


def estimate_media_positions(model: LoadedModel) -> int:
    """Return the positions of one image or audio clip by the model config; 0 for a text-only model and for models where
    it depends on the image size (Qwen-VL).
    """
    config: object = model.model.config
    sense = media_input_of(model.model, model.modalities)
    if sense == "none":
        return 0
    if model.modalities.sound:
        return int(getattr(config, "max_source_positions", None) or 0)
    if isinstance(length := getattr(config, "image_seq_length", None), int):
        return length
    eyes = getattr(config, "vision_config", None) or getattr(config, "encoder", None)
    side, patch = getattr(eyes, "image_size", None), getattr(eyes, "patch_size", None)
    return (side // patch) ** 2 + 1 if isinstance(side, int) and isinstance(patch, int) and patch else 0


def prepare_audio(model: LoadedModel, file: MediaFile) -> MediaInputs:
    """Compute the features of an audio file; audio longer than the model's window is cut. Raises MediaError."""
    extractor: Any = getattr(model.processor, "feature_extractor", model.processor)
    rate = int(extractor.sampling_rate)
    wave, window = media.samples(file.path, rate), _window_seconds(extractor)
    try:
        features = extractor(wave if window is None else wave[: window * rate], sampling_rate=rate, return_tensors="pt")
    except Exception as error:  # feature extractors fail in different ways on audio of a few samples
        raise MediaRefusedError(
            tr("{model} cannot process {file}: {error}").format(model=model.name, file=file.path.name, error=error),
            tr("Choose a longer audio file."),
        ) from error
    inputs = {
        name: values.to(model.device, model.dtype) if values.is_floating_point() else values.to(model.device)
        for name, values in features.items()
    }
    perceived = MediaInputs(model, (), (file,), inputs, notices=_truncation_notices(model, file, window))
    perceived.media = (_medium_read(perceived, file, float(window or file.seconds)),)
    return perceived


def _window_seconds(extractor: Any) -> int | None:
    """Return the window in seconds; None without a limit."""
    seconds = getattr(extractor, "chunk_length", None)
    return int(seconds) if seconds else None


def _medium_read(media_inputs: MediaInputs, file: MediaFile, seconds_used: float) -> MediumRead:
    positions = _encoder_positions(media_inputs)
    return MediumRead(
        str(file.path), "sound", file.digest, "encoder", 0, positions - 1, seconds=file.seconds, heard=seconds_used
    )


def _encoder_positions(media_inputs: MediaInputs) -> int:
    """Return the number of encoder positions; for Whisper always its full window."""
    max_positions = getattr(media_inputs.model.model.config, "max_source_positions", None)
    if media_inputs.model.model.config.model_type == "whisper" and isinstance(max_positions, int):
        return max_positions
    with torch.inference_mode():
        return int(media_inputs.states["last_hidden_state"].shape[1])


def _truncation_notices(model: LoadedModel, file: MediaFile, window: int | None) -> tuple[Notice, ...]:
    if window is None or file.seconds <= window:
        return ()
    sentence = tr(
        "{model} processes {window:g} seconds at once, but {file} has {seconds:.1f}: only the beginning is used."
    )
    message = sentence.format(model=model.name, window=window, file=file.path.name, seconds=file.seconds)
    return (Notice("media_cut", message),)


# -- start tokens


def has_start_tokens(model: LoadedModel) -> bool:
    """Return whether its decoder starts with task tokens, like Whisper's."""
    return hasattr(model.model, "_retrieve_init_tokens")


def start_tokens(model: LoadedModel, settings: Settings, media_inputs: MediaInputs) -> list[int]:
    """Return the start, language, task and no-timestamps tokens, as far as the model has them.

    A language that is not set is detected from the audio (one decoder step). Raises ParameterError.
    """
    network: Any = model.model
    config: Any = copy.deepcopy(model.generation_config)
    for name in ("language", "task"):
        setattr(config, name, settings.get(name) or getattr(config, name, None))
    _check_timestamps(settings)
    config.return_timestamps = False
    try:
        with torch.inference_mode():
            network._set_language_and_task(config.language, config.task, None, config)
            found = network._retrieve_init_tokens(
                None, 1, config, network.config, 0, {"encoder_outputs": media_inputs.states}
            )
    except (ValueError, TypeError, KeyError) as error:
        raise ParameterError(
            tr("{model} cannot start decoding: {error}").format(model=model.name, error=error),
            tr("Choose another language or task (language, task)."),
            "language",
        ) from error
    begun: list[int] = found[0].tolist()
    return begun


def _check_timestamps(settings: Settings) -> None:
    if settings.get("return_timestamps"):
        raise ParameterError(
            tr("return_timestamps requests timestamps, but only the text is supported."),
            tr("Turn it off."),
            "return_timestamps",
        )


def encode_earlier_text(model: LoadedModel, prompt: object) -> list[int]:
    """Encode a prompt for Whisper: text before the start tokens that precedes the audio. Raises ParameterError and
    whatever `encode` raises.
    """
    if isinstance(prompt, str):
        text = prompt.strip()
        ids = tokenize(model, f" {text}", add_special_tokens=False) if text else []
    else:
        ids = encode(model, prompt, unbounded=True) if prompt else []
    if not ids:
        return []
    mark = getattr(model.generation_config, "prev_sot_token_id", None)
    if mark is None and model.tokenizer is not None:
        mark = model.tokenizer.get_vocab().get("<|startofprev|>")
    if not isinstance(mark, int) or not has_start_tokens(model):
        raise ParameterError(
            tr("{model} does not support a text prompt with audio or images.").format(model=model.name),
            tr("Leave the prompt empty."),
            "prompt",
        )
    return [mark, *ids]
