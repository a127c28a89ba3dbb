"""Sounds: as many seconds as a model hears at once, and the marks its decoder begins with (Radford et al. 2022)."""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers import GenerationConfig

from core import media
from core.decoding.media_inputs.media_inputs import MediaInputs
from core.decoding.prompt import encode, tokenize
from core.errors import MediaRefusedError, ParameterError
from core.events import MediumRead, Notice
from core.media import MediaFile
from core.models.loaded_model import LoadedModel
from resources.language import tr


def prepare_audio(model: LoadedModel, file: MediaFile) -> MediaInputs:
    """The sound's features; of one that is longer than the model hears at once, the beginning. Raises MediaError."""
    extractor: Any = getattr(model.processor, "feature_extractor", model.processor)
    rate = int(extractor.sampling_rate)
    wave, window = media.samples(file.path, rate), _window_seconds(extractor)
    try:
        features = extractor(wave if window is None else wave[: window * rate], sampling_rate=rate, return_tensors="pt")
    except Exception as error:  # each family's arithmetic fails in its own way on sounds of a few samples
        raise MediaRefusedError(
            tr("{model} cannot take {file}: {error}").format(model=model.name, file=file.path.name, error=error),
            tr("Choose a longer sound."),
        ) from error
    inputs = {
        name: values.to(model.device, model.dtype) if values.is_floating_point() else values.to(model.device)
        for name, values in features.items()
    }
    perceived = MediaInputs(model, (), (file,), inputs, notices=_truncation_notices(model, file, window))
    perceived.media = (_medium_read(perceived, file, float(window or file.seconds)),)
    return perceived


def _window_seconds(extractor: Any) -> int | None:
    """Seconds that are heard at once; None without an end."""
    seconds = getattr(extractor, "chunk_length", None)
    return int(seconds) if seconds else None


def _medium_read(perceived: MediaInputs, file: MediaFile, seconds_used: float) -> MediumRead:
    positions = _encoder_positions(perceived)
    return MediumRead(
        str(file.path), "sound", file.digest, "encoder", 0, positions - 1, seconds=file.seconds, heard=seconds_used
    )


def _encoder_positions(perceived: MediaInputs) -> int:
    """Of the encoder, which for Whisper is always its whole window."""
    most = getattr(perceived.model.model.config, "max_source_positions", None)
    if perceived.model.model.config.model_type == "whisper" and isinstance(most, int):
        return most
    with torch.inference_mode():
        return int(perceived.states["last_hidden_state"].shape[1])


def _truncation_notices(model: LoadedModel, file: MediaFile, window: int | None) -> tuple[Notice, ...]:
    if window is None or file.seconds <= window:
        return ()
    sentence = tr(
        "{model} hears {window:g} seconds at once, and {file} has {seconds:.1f}: only its beginning is heard."
    )
    said = sentence.format(model=model.name, window=window, file=file.path.name, seconds=file.seconds)
    return (Notice("media_cut", said),)


# -- the marks before the text


def has_start_tokens(model: LoadedModel) -> bool:
    """Whether its decoder is told by marks what is wanted: Whisper's."""
    return hasattr(model.model, "_retrieve_init_tokens")


def start_tokens(model: LoadedModel, config: GenerationConfig, perceived: MediaInputs) -> list[int]:
    """Start, language, task, and that no times are wanted, as far as the model has them. A language that nobody names
    is heard from the sound (one step of the decoder). Raises ParameterError."""
    network: Any = model.model
    settings: Any = copy.deepcopy(model.generation_config)
    for name in ("language", "task"):
        setattr(settings, name, getattr(config, name, None) or getattr(settings, name, None))
    _check_timestamps(model, config)
    settings.return_timestamps = False
    try:
        with torch.inference_mode():
            network._set_language_and_task(settings.language, settings.task, None, settings)
            found = network._retrieve_init_tokens(
                None, 1, settings, network.config, 0, {"encoder_outputs": perceived.states}
            )
    except (ValueError, TypeError, KeyError) as error:
        raise ParameterError(
            tr("{model} cannot begin to write: {error}").format(model=model.name, error=error),
            tr("Choose another language or task (language, task)."),
            "language",
        ) from error
    begun: list[int] = found[0].tolist()
    return begun


def _check_timestamps(model: LoadedModel, config: GenerationConfig) -> None:
    if getattr(config, "return_timestamps", None):
        raise ParameterError(
            tr("return_timestamps asks for the times of what is said, and this program writes the words alone."),
            tr("Switch it off."),
            "return_timestamps",
        )


def encode_earlier_text(model: LoadedModel, prompt: object) -> list[int]:
    """A prompt as Whisper reads it, before its marks: text that came before the sound. Raises ParameterError and what
    `encode` does."""
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
            tr("{model} was not made to read a text beside what it is given.").format(model=model.name),
            tr("Leave the prompt empty."),
            "prompt",
        )
    return [mark, *ids]
