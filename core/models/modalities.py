"""The modalities a model reads (text, audio, images), from its config alone and without torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from decodescope.resources.language import mark, tr

_HEARS = {"audio_config", "num_mel_bins", "input_feat_per_channel", "feat_extract_norm", "audio_encoder"}
_SEES = {"vision_config", "image_size", "image_token_id", "image_token_index", "num_channels", "patch_size"}
_SPEAKS = {"num_codebooks", "codebook_size", "audio_channels"}
_HEADS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
_MODALITY_SENTENCES = {
    "hears": mark("{name} (“{kind}”) takes audio; for this model type, Decodescope supports text only."),
    "sees": mark("{name} (“{kind}”) takes images; for this model type, Decodescope supports text only."),
    "speaks": mark("{name} (“{kind}”) generates audio; Decodescope supports text only."),
}
_LIBRARIES: Mapping[str, str] = {
    **dict.fromkeys((
        "cohere2_vision", "inkling2", "inkling_mm_model", "kimi_k25", "lfm2_vl", "minicpm_ocr",
        "minimax_m3_vl", "mistral3", "mistral_large4", "molmo2", "muse_glimmer", "muse_spark", "nemotron_h_omni",
        "perception_lm", "pi0", "pp_formulanet", "step3p7", "unlimited_ocr",
    ), "torchvision"),
    "pop2piano": "librosa",
}  # fmt: skip
"""Model types whose audio or image processor in transformers requires a library that this program does not include."""
_BY_LIBRARY = mark(
    "{name} (“{kind}”) needs {library} to process audio or images, a library that is not part of Decodescope."
)
_NO_TEXT = mark("{name} (“{kind}”) does not generate text: transformers has no language model of this type.")


OTHER_DRAFTS = mark(
    "Draft with a small model, with the model's own first layers (early exit), or with lookahead. An "
    "EAGLE 1 or 2 head can draft for the model it was made for: enter its folder under “Prediction "
    "heads”."
)
"""Remedy if a draft head cannot be used."""
_DRAFTERS = ("eagle", "dflash", "medusa")
"""Parts of the names of architectures that predict from another model's hidden states."""


def is_draft_head(config: Mapping[str, object]) -> bool:
    """Return whether it is a draft head that reads another model's hidden states and no text (EAGLE, DFlash, Medusa,
    transformers' assistants).
    """
    names = config.get("architectures")
    named = " ".join(map(str, names)).lower() if isinstance(names, list) else ""
    assists = str(config.get("model_type", "")).endswith("_assistant")
    return assists or "medusa_num_heads" in config or any(name in named for name in _DRAFTERS)


def non_text_modality(config: Mapping[str, object]) -> str | None:
    """Return which non-text input or output a config has, according to keys that only such configs contain: audio
    input, images or audio output; None for text models.
    """
    for sense, names in (("hears", _HEARS), ("sees", _SEES), ("speaks", _SPEAKS)):
        if not names.isdisjoint(config) and any(config.get(name) is not None for name in names):
            return sense
    return None


def has_language_head(config: Mapping[str, object]) -> bool:
    """Return whether one of its architectures has a name of text-generating classes."""
    names = config.get("architectures")
    return isinstance(names, list) and any(str(name).endswith(_HEADS) for name in names)


def not_text_reason(name: str, kind: object, modality: str | None) -> str:
    """Return the sentence for a model that is not a plain text model."""
    if library := _LIBRARIES.get(str(kind)):
        return tr(_BY_LIBRARY).format(name=name, kind=kind, library=library)
    return tr(_MODALITY_SENTENCES.get(modality or "", _NO_TEXT)).format(name=name, kind=kind)


class Modalities(NamedTuple):
    """The modalities a model reads, and the maximum number of audio clips or images per run."""

    text: bool = True
    """Whether it reads a prompt; otherwise the prompt must be empty, because only the audio or image is read."""
    sound: bool = False
    picture: bool = False
    needs: bool = False
    """Whether it cannot generate without audio or an image."""
    max_count: int | None = 0
    """Maximum number of audio clips or images; None: unlimited."""

    @property
    def media(self) -> bool:
        """Whether it accepts audio or images."""
        return self.sound or self.picture


TEXT = Modalities()
_SPEECH = Modalities(text=False, sound=True, needs=True, max_count=1)
_CAPTION = Modalities(text=False, picture=True, needs=True, max_count=1)
_PICTURES = Modalities(picture=True, max_count=None)
_FAMILIES: Mapping[str, Modalities] = {
    "whisper": Modalities(sound=True, needs=True, max_count=1),
    "moonshine": _SPEECH,
    "moonshine_streaming": _SPEECH,
    "speech_to_text": _SPEECH,
    "speech-encoder-decoder": _SPEECH,
    "vision-encoder-decoder": _CAPTION,
    "blip": Modalities(picture=True, needs=True, max_count=1),
    "git": Modalities(picture=True, max_count=1),
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
"""Model families by `model_type` whose audio and images are supported."""
_MIN_WHISPER_VOCABULARY = 51_864
"""Vocabulary size of the English-only Whisper; the others are larger."""
_TEXT_HEADS = ("ForCausalLM", "LMHeadModel")
_IMAGE_CLASSES = {"GitForCausalLM"}
"""Classes named like text-only heads that accept images."""
_UNSUPPORTED_CLASSES = {"BlipForQuestionAnswering", "BlipForImageTextRetrieval", "BlipModel"}
"""Classes of such families that do not generate text, or do so differently."""


def modalities_of(config: Mapping[str, object]) -> Modalities:
    """Return the modalities of a model with that config; text only if an architecture is the text half of a larger
    one.
    """
    names = config.get("architectures")
    heads = [str(name) for name in names] if isinstance(names, list) else []
    if heads and all(name.endswith(_TEXT_HEADS) and name not in _IMAGE_CLASSES for name in heads):
        return TEXT
    if _UNSUPPORTED_CLASSES & {*heads}:
        return TEXT
    found = _FAMILIES.get(str(config.get("model_type", "")), TEXT)
    return found._replace(text=False) if found.sound and found.text and not _reads_prompt(config) else found


def _reads_prompt(config: Mapping[str, object]) -> bool:
    """Return whether the vocabulary is as large as Whisper's: only those have a token for text before the audio."""
    size = config.get("vocab_size")
    return isinstance(size, int) and size >= _MIN_WHISPER_VOCABULARY
