"""What a model is for, where it is not for continuing text; by its configuration alone, without torch."""

from __future__ import annotations

from collections.abc import Mapping

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
