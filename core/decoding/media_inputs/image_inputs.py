"""Pictures: pixels as a model takes them, and which positions stand for which patch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from core import media
from core.decoding.media_inputs.media_inputs import MediaInputs
from core.errors import MediaRefusedError
from core.events import MediumPlace, MediumRead
from core.media import MediaFile
from core.models.loaded_model import LoadedModel
from core.models.text_decoder import media_input_of
from resources.language import tr


def prepare_image(model: LoadedModel, files: Sequence[MediaFile]) -> MediaInputs:
    """The one picture of a model that takes pixels as they are. Raises MediaError."""
    file = files[0]
    pixels = _pixel_values(model, file)
    place: MediumPlace = "before" if media_input_of(model.model, model.takes) == "before" else "encoder"
    perceived = MediaInputs(model, (), (file,), {"pixel_values": pixels})
    rows, columns, count = _patch_grid(perceived, place)
    perceived.media = (
        MediumRead(str(file.path), "picture", file.digest, place, 0, count - 1, rows, columns, file.width, file.height),
    )
    perceived.leading_positions = count if place == "before" else 0
    return perceived


def _pixel_values(model: LoadedModel, file: MediaFile) -> torch.Tensor:
    processor: Any = getattr(model.processor, "image_processor", model.processor)
    try:
        pixels: torch.Tensor = processor(media.picture(file.path), return_tensors="pt")["pixel_values"]
    except (ValueError, TypeError, KeyError) as error:  # one pixel wide, stranger than a family's code expects
        raise MediaRefusedError(
            tr("{model} cannot take {file}: {error}").format(model=model.name, file=file.path.name, error=error),
            tr("Choose another picture."),
        ) from error
    return pixels.to(model.device, model.dtype)


def _patch_grid(perceived: MediaInputs, place: MediumPlace) -> tuple[int, int, int]:
    """Rows and columns of patches, and positions in all: a summary may stand before them."""
    config = perceived.model.model.config
    vision = config.vision_config if place == "before" else perceived.model.model.get_encoder().config
    height, width = perceived.inputs["pixel_values"].shape[-2:]
    patch = getattr(vision, "patch_size", None)
    rows, columns = (height // patch, width // patch) if isinstance(patch, int) and patch else (0, 0)
    if place == "before":
        return rows, columns, rows * columns + 1
    with torch.inference_mode():
        count = int(perceived.states["last_hidden_state"].shape[1])
    return (rows, columns, count) if rows * columns <= count else (0, 0, count)
