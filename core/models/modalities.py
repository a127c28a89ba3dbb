"""What a model reads: text, sound, pictures; by its configuration alone, without torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Takes(NamedTuple):
    """What a model reads, and how many sounds or pictures in one run."""

    text: bool = True
    """A prompt; without it the prompt has to be empty, for the sound or picture is all that is read."""
    sound: bool = False
    picture: bool = False
    needs: bool = False
    """Without a sound or a picture it writes nothing."""
    most: int | None = 0
    """How many of them at most; None: any number."""

    @property
    def media(self) -> bool:
        """Whether it takes sound or pictures at all."""
        return self.sound or self.picture


TEXT = Takes()
_SPEECH = Takes(text=False, sound=True, needs=True, most=1)
_CAPTION = Takes(text=False, picture=True, needs=True, most=1)
_PICTURES = Takes(picture=True, most=None)
_FAMILIES: Mapping[str, Takes] = {
    "whisper": Takes(sound=True, needs=True, most=1),
    "moonshine": _SPEECH,
    "moonshine_streaming": _SPEECH,
    "speech_to_text": _SPEECH,
    "speech-encoder-decoder": _SPEECH,
    "vision-encoder-decoder": _CAPTION,
    "blip": Takes(picture=True, needs=True, most=1),
    "git": Takes(picture=True, most=1),
    "gemma3": _PICTURES,
    "qwen3_vl_moe": _PICTURES,
    "glm4v": _PICTURES,
    "idefics2": _PICTURES,
    "aya_vision": _PICTURES,
    "vipllava": _PICTURES,
    "idefics3": _PICTURES,
    "internvl": _PICTURES,
    "llava": _PICTURES,
    "llava_next": _PICTURES,
    "llava_onevision": _PICTURES,
    "paligemma": _PICTURES,
    "qwen2_5_vl": _PICTURES,
    "qwen2_vl": _PICTURES,
    "qwen3_vl": _PICTURES,
    "smolvlm": _PICTURES,
}
"""By `model_type`: the families whose sounds and pictures are read here."""
_MIN_WHISPER_VOCABULARY = 51_864
"""Tokens of the English-only Whisper; the others have more."""
_TEXT_HEADS = ("ForCausalLM", "LMHeadModel")
_IMAGE_CLASSES = {"GitForCausalLM"}
"""Heads named as those of text alone, that take pictures."""
_UNSUPPORTED_CLASSES = {"BlipForQuestionAnswering", "BlipForImageTextRetrieval", "BlipModel"}
"""Heads of such a family that write nothing, or in another way."""


def modalities_of(config: Mapping[str, object]) -> Takes:
    """What the model of that configuration reads; text alone where one of its architectures is the text half of a
    larger one."""
    names = config.get("architectures")
    heads = [str(name) for name in names] if isinstance(names, list) else []
    if heads and all(name.endswith(_TEXT_HEADS) and name not in _IMAGE_CLASSES for name in heads):
        return TEXT
    if _UNSUPPORTED_CLASSES & {*heads}:
        return TEXT
    found = _FAMILIES.get(str(config.get("model_type", "")), TEXT)
    return found._replace(text=False) if found.sound and found.text and not _reads_prompt(config) else found


def _reads_prompt(config: Mapping[str, object]) -> bool:
    """Whether it is of a vocabulary as large as Whisper's own: those alone have a mark for text before the sound."""
    size = config.get("vocab_size")
    return isinstance(size, int) and size >= _MIN_WHISPER_VOCABULARY
