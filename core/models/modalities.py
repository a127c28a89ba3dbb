"""What a model reads: text, sound, pictures; by its configuration alone, without torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from resources.language import mark, tr

_HEARS = {"audio_config", "num_mel_bins", "input_feat_per_channel", "feat_extract_norm", "audio_encoder"}
_SEES = {"vision_config", "image_size", "image_token_id", "image_token_index", "num_channels", "patch_size"}
_SPEAKS = {"num_codebooks", "codebook_size", "audio_channels"}
_HEADS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
_MODALITY_SENTENCES = {
    "hears": mark("{name} (“{kind}”) takes sound, and for models of its kind Decodescope reads and writes text only."),
    "sees": mark(
        "{name} (“{kind}”) takes pictures, and for models of its kind Decodescope reads and writes text only."
    ),
    "speaks": mark("{name} (“{kind}”) writes sound; Decodescope reads and writes text only."),
}
_LIBRARIES: Mapping[str, str] = {
    **dict.fromkeys((
        "cohere2_vision", "inkling2", "inkling_mm_model", "kimi_k25", "lfm2_vl", "minicpm_ocr",
        "minimax_m3_vl", "mistral3", "mistral_large4", "molmo2", "muse_glimmer", "muse_spark", "nemotron_h_omni",
        "perception_lm", "pi0", "pp_formulanet", "step3p7", "unlimited_ocr",
    ), "torchvision"),
    "pop2piano": "librosa",
}  # fmt: skip
"""What turns their sounds or pictures into numbers is made, in transformers, by a library that this program has not."""
_BY_LIBRARY = mark("{name} (“{kind}”) hears or sees by way of {library}, a library that is not part of Decodescope.")
_NO_TEXT = mark("{name} (“{kind}”) does not continue a text: transformers has no language model of this type.")


OTHER_DRAFTS = mark(
    "Draft with a small model, with the model's own first layers (early exit), or with lookahead. An EAGLE head of the "
    "first two forms drafts for the model that it was made for: name its folder under “Prediction heads”."
)
"""What to do where a draft head cannot be used."""
_DRAFTERS = ("eagle", "dflash", "medusa")
"""In the names of architectures that guess from another model's hidden states."""


def is_draft_head(config: Mapping[str, object]) -> bool:
    """Whether it is a draft head: it reads another model's hidden states, and no text by itself (EAGLE, DFlash, Medusa,
    the assistants of transformers)."""
    names = config.get("architectures")
    named = " ".join(map(str, names)).lower() if isinstance(names, list) else ""
    assists = str(config.get("model_type", "")).endswith("_assistant")
    return assists or "medusa_num_heads" in config or any(name in named for name in _DRAFTERS)


def non_text_modality(config: Mapping[str, object]) -> str | None:
    """hears, sees or speaks: by the names that only such models' configurations hold; None for plain text."""
    for sense, names in (("hears", _HEARS), ("sees", _SEES), ("speaks", _SPEAKS)):
        if any(config.get(name) is not None for name in names):
            return sense
    return None


def has_language_head(config: Mapping[str, object]) -> bool:
    """Whether one of its architectures is named as those that write text are."""
    names = config.get("architectures")
    return isinstance(names, list) and any(str(name).endswith(_HEADS) for name in names)


def not_text_reason(name: str, kind: object, sense: str | None) -> str:
    """The sentence for a model that is not one of plain text."""
    if library := _LIBRARIES.get(str(kind)):
        return tr(_BY_LIBRARY).format(name=name, kind=kind, library=library)
    return tr(_MODALITY_SENTENCES.get(sense or "", _NO_TEXT)).format(name=name, kind=kind)


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
