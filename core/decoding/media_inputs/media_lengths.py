"""How many positions a sound or a picture takes, reckoned before it is read."""

from __future__ import annotations

from core.models.loaded_model import LoadedModel
from core.models.text_decoder import media_input_of


def estimate_media_positions(model: LoadedModel) -> int:
    """Of one of them, by the configuration; 0 for a model that takes none. What a picture's size decides (Qwen-VL), is
    told when it is read."""
    config: object = model.model.config
    sense = media_input_of(model.model, model.takes)
    if sense == "none":
        return 0
    if model.takes.sound:
        return int(getattr(config, "max_source_positions", None) or 0)
    if isinstance(length := getattr(config, "image_seq_length", None), int):
        return length
    eyes = getattr(config, "vision_config", None) or getattr(config, "encoder", None)
    side, patch = getattr(eyes, "image_size", None), getattr(eyes, "patch_size", None)
    return (side // patch) ** 2 + 1 if isinstance(side, int) and isinstance(patch, int) and patch else 0
