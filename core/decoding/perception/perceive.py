"""From the files of a request to what its model takes in, whatever way that is."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import GenerationConfig

from core.decoding.perception import listening, seeing
from core.decoding.perception.perceived import Perceived
from core.media import SOUND, MediaFile
from core.models.model import LoadedModel


def perceive(model: LoadedModel, files: Sequence[MediaFile]) -> Perceived | None:
    """None where there are none. Raises MediaError."""
    if not files:
        return None
    return listening.hear(model, files[0]) if files[0].kind == SOUND else seeing.see(model, files)


def decoder_start(model: LoadedModel, config: GenerationConfig, perceived: Perceived) -> list[int] | None:
    """What the decoder of such a model begins with, where that is more than one token. Raises ParameterError."""
    return listening.marks(model, config, perceived) if listening.has_marks(model) else None
