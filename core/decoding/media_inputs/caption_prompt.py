"""Captions that go on with a text: what a decoder beside an encoder that sees is begun with (BLIP)."""

from __future__ import annotations

from core.decoding.prompt import encode, tokenize
from core.models.loaded_model import LoadedModel
from core.models.text_decoder import media_input_of


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
