"""Tiny random models of the audio and image families, one factory each; `tiny_media` has their common parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as t
from tokenizers import Tokenizer, models, pre_tokenizers

from decodescope.core.models.tokenizers import text_image_processor

BEGIN, END, PAD = 1, 2, 0
VOCABULARY, FIRST = 61, 10
"""Tokens, and the first of them that is a word."""
_IMAGE, _START, _STOP, _FILM = 4, 5, 6, 7
"""Places of the marks in `words`."""
_SIZES = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}
_EYES = {**_SIZES, "num_hidden_layers": 2}
Made = tuple[Any, Any]


def words(*marks: str, **named: str) -> Any:
    """Create a tokenizer with one token per word, w10, w11 …; `marks`: special tokens 4, 5 …; `named`: their attribute
    names.
    """
    special = ["<pad>", "<s>", "</s>", "<unk>", *(marks or ("<image>",))]
    special += [f"<r{number}>" for number in range(len(special), FIRST)]
    known = [*special, *(f"w{number}" for number in range(FIRST, VOCABULARY))]
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(known)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return t.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>",
        extra_special_tokens=named or special[4:],
    )  # fmt: skip


def writer(**more: Any) -> dict[str, Any]:
    """Sizes of the half that writes."""
    return {
        **_SIZES, "vocab_size": VOCABULARY, "num_hidden_layers": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 256, "bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": PAD, **more,
    }  # fmt: skip


def clip() -> Any:
    """Vision encoder with nine patches and a summary."""
    return t.CLIPVisionConfig(**_EYES, image_size=48, patch_size=16)


def siglip() -> Any:
    """Vision encoder with nine patches."""
    return t.SiglipVisionConfig(**_EYES, image_size=48, patch_size=16, vision_use_head=False)


def _side(length: int) -> dict[str, int]:
    return {"height": length, "width": length}


# -- pictures among the tokens of a prompt


def _llava_next() -> Made:
    pins = [[48, 96], [96, 48], [96, 96]]
    config = t.LlavaNextConfig(
        text_config=t.LlamaConfig(**writer()), vision_config=clip(), image_token_index=_IMAGE,
        image_grid_pinpoints=pins, image_seq_length=9,
    )  # fmt: skip
    pixels = t.LlavaNextImageProcessorPil(size={"shortest_edge": 48}, crop_size=_side(48), image_grid_pinpoints=pins)
    processor = t.LlavaNextProcessor(
        pixels, words(), patch_size=16, vision_feature_select_strategy="default", num_additional_image_tokens=1
    )
    return t.LlavaNextForConditionalGeneration(config), processor


def _llava_onevision() -> Made:
    pins = [[48, 48], [48, 96], [96, 48]]
    config = t.LlavaOnevisionConfig(
        text_config=t.Qwen2Config(**writer()), vision_config=siglip(), image_token_index=_IMAGE,
        video_token_index=_FILM, image_grid_pinpoints=pins,
    )  # fmt: skip
    pixels = t.LlavaOnevisionImageProcessorPil(size=_side(48), image_grid_pinpoints=pins)
    processor = text_image_processor("llava_onevision")(
        pixels, words("<image>", "<5>", "<6>", "<video>"), num_image_tokens=9, vision_feature_select_strategy="full"
    )
    return t.LlavaOnevisionForConditionalGeneration(config), processor


def _gemma3() -> Made:
    config = t.Gemma3Config(
        text_config=t.Gemma3TextConfig(**writer(head_dim=8, query_pre_attn_scalar=8, sliding_window=8,
                                                layer_types=["sliding_attention", "full_attention"] * 2)),
        vision_config=t.SiglipVisionConfig(**_EYES, image_size=64, patch_size=16, vision_use_head=False),
        mm_tokens_per_image=4, boi_token_index=_START, eoi_token_index=_STOP, image_token_index=_IMAGE,
    )  # fmt: skip
    named = {"boi_token": "<start>", "eoi_token": "<stop>", "image_token": "<image>"}
    processor = t.Gemma3Processor(
        t.Gemma3ImageProcessorPil(size=_side(64)), words("<image>", "<start>", "<stop>", **named), image_seq_length=4
    )
    network = t.Gemma3ForConditionalGeneration(config)
    torch.nn.init.normal_(network.model.multi_modal_projector.mm_input_projection_weight)  # zeros, until it is trained
    return network, processor


def _paligemma() -> Made:
    config = t.PaliGemmaConfig(
        text_config=t.GemmaConfig(**writer(head_dim=8)),
        vision_config=t.SiglipVisionConfig(**_EYES, image_size=48, patch_size=16, vision_use_head=False,
                                           projection_dim=32),
        image_token_index=_IMAGE, projection_dim=32, hidden_size=32, vocab_size=VOCABULARY,
    )  # fmt: skip
    pixels = t.SiglipImageProcessorPil(size=_side(48))
    pixels.image_seq_length = 9
    return t.PaliGemmaForConditionalGeneration(config), t.PaliGemmaProcessor(pixels, words(image_token="<image>"))


_IDEFICS = ("<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>", "<row_1_col_1>")


def _idefics3() -> Made:
    eyes = t.models.idefics3.Idefics3VisionConfig(**_EYES, image_size=48, patch_size=12)
    config = t.Idefics3Config(
        text_config=t.LlamaConfig(**writer()), vision_config=eyes, image_token_id=_IMAGE, scale_factor=2
    )
    pixels = t.Idefics3ImageProcessorPil(size={"longest_edge": 48}, max_image_size={"longest_edge": 48})
    return t.Idefics3ForConditionalGeneration(config), t.Idefics3Processor(pixels, words(*_IDEFICS), image_seq_len=4)


def _smolvlm() -> Made:
    eyes = t.models.smolvlm.SmolVLMVisionConfig(**_EYES, image_size=48, patch_size=12)
    config = t.SmolVLMConfig(
        text_config=t.LlamaConfig(**writer()), vision_config=eyes, image_token_id=_IMAGE, scale_factor=2
    )
    pixels = t.SmolVLMImageProcessorPil(size={"longest_edge": 48}, max_image_size={"longest_edge": 48})
    processor = text_image_processor("smolvlm")(pixels, words(*_IDEFICS), image_seq_len=4)
    return t.SmolVLMForConditionalGeneration(config), processor


def _internvl() -> Made:
    eyes = t.InternVLVisionConfig(**_EYES, image_size=[48, 48], patch_size=[12, 12])
    config = t.InternVLConfig(
        text_config=t.Qwen2Config(**writer()), vision_config=eyes, image_token_id=_IMAGE, image_seq_length=4
    )
    named = {
        "start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }  # fmt: skip
    processor = text_image_processor("internvl")(
        t.GotOcr2ImageProcessorPil(size=_side(48)), words("<IMG_CONTEXT>", "<img>", "</img>", "<video>", **named),
        image_seq_length=4,
    )  # fmt: skip
    return t.InternVLForConditionalGeneration(config), processor


_QWEN = ("<|image_pad|>", "<|vision_start|>", "<|vision_end|>", "<|video_pad|>")
_QWEN_IDS = {
    "image_token_id": _IMAGE, "video_token_id": _FILM, "vision_start_token_id": _START, "vision_end_token_id": _STOP,
}  # fmt: skip
_ROPE = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}


def _qwen_pixels(patch: int) -> Any:
    area = (2 * patch) ** 2
    return t.Qwen2VLImageProcessorPil(min_pixels=area * 6, max_pixels=area * 12, patch_size=patch)


def _qwen2_5_vl() -> Made:
    eyes = {
        "hidden_size": 32, "depth": 2, "num_heads": 4, "intermediate_size": 64, "patch_size": 14, "out_hidden_size": 32,
        "window_size": 56, "fullatt_block_indexes": [1],
    }  # fmt: skip
    config = t.Qwen2_5_VLConfig(text_config=writer(rope_parameters=_ROPE), vision_config=eyes, **_QWEN_IDS)
    processor = text_image_processor("qwen2_5_vl")(_qwen_pixels(14), words(*_QWEN))
    return t.Qwen2_5_VLForConditionalGeneration(config), processor


def _qwen3_vl() -> Made:
    eyes = {
        "hidden_size": 32, "depth": 2, "num_heads": 4, "intermediate_size": 64, "patch_size": 16, "out_hidden_size": 32,
        "num_position_embeddings": 16, "deepstack_visual_indexes": [0],
    }  # fmt: skip
    rope = {**_ROPE, "mrope_interleaved": True}
    config = t.Qwen3VLConfig(text_config=writer(rope_parameters=rope, head_dim=8), vision_config=eyes, **_QWEN_IDS)
    return t.Qwen3VLForConditionalGeneration(config), text_image_processor("qwen3_vl")(_qwen_pixels(16), words(*_QWEN))


def _vipllava() -> Made:
    config = t.VipLlavaConfig(
        text_config=t.LlamaConfig(**writer()), vision_config=clip(), image_token_index=_IMAGE, image_seq_length=9,
        vision_feature_layers=[-1, -2],
    )  # fmt: skip
    pixels = t.CLIPImageProcessorPil(size={"shortest_edge": 48}, crop_size=_side(48))
    processor = t.LlavaProcessor(
        pixels, words(), patch_size=16, vision_feature_select_strategy="default", num_additional_image_tokens=1
    )
    return t.VipLlavaForConditionalGeneration(config), processor


def _aya_vision() -> Made:
    eyes = t.SiglipVisionConfig(**_EYES, image_size=48, patch_size=12, vision_use_head=False)
    text = t.Cohere2Config(**writer(sliding_window=8, layer_types=["sliding_attention", "full_attention"] * 2))
    config = t.AyaVisionConfig(text_config=text, vision_config=eyes, image_token_index=_FILM, downsample_factor=2)
    known = words("<image>", "<|START_OF_IMG|>", "<|END_OF_IMG|>", "<|IMG_PATCH|>", "TILE_GLOBAL")
    pixels = t.GotOcr2ImageProcessorPil(size=_side(48))
    processor = t.AyaVisionProcessor(pixels, known, patch_size=12, img_size=48, downsample_factor=2)
    return t.AyaVisionForConditionalGeneration(config), processor


def _idefics2() -> Made:
    eyes = t.models.idefics2.Idefics2VisionConfig(**_EYES, image_size=48, patch_size=12)
    reader = {
        "hidden_size": 32, "resampler_n_latents": 4, "resampler_depth": 1, "resampler_n_heads": 4,
        "resampler_head_dim": 8, "num_key_value_heads": 2,
    }  # fmt: skip
    config = t.Idefics2Config(
        text_config=t.MistralConfig(**writer(sliding_window=None)), vision_config=eyes, perceiver_config=reader,
        image_token_id=_IMAGE,
    )  # fmt: skip
    pixels = t.Idefics2ImageProcessorPil(size={"shortest_edge": 36, "longest_edge": 48}, do_image_splitting=False)
    return t.Idefics2ForConditionalGeneration(config), t.Idefics2Processor(pixels, words(*_IDEFICS), image_seq_len=4)


def _glm4v() -> Made:
    eyes = {
        "depth": 2, "hidden_size": 32, "num_heads": 4, "intermediate_size": 64, "out_hidden_size": 32, "patch_size": 14,
        "image_size": 56,
    }  # fmt: skip
    rope = {**_ROPE, "partial_rotary_factor": 1.0}
    config = t.Glm4vConfig(
        text_config=writer(rope_parameters=rope), vision_config=eyes, image_token_id=_IMAGE, video_token_id=_FILM,
        image_start_token_id=_START, image_end_token_id=_STOP, video_start_token_id=8, video_end_token_id=9,
    )  # fmt: skip
    pixels = t.Glm4vImageProcessorPil(size={"shortest_edge": 28 * 28 * 6, "longest_edge": 28 * 28 * 24})
    known = words("<|image|>", "<|begin_of_image|>", "<|end_of_image|>", "<|video|>")
    return t.Glm4vForConditionalGeneration(config), text_image_processor("glm4v")(pixels, known)


def _qwen3_vl_moe() -> Made:
    eyes = {
        "hidden_size": 32, "depth": 2, "num_heads": 4, "intermediate_size": 64, "patch_size": 16, "out_hidden_size": 32,
        "num_position_embeddings": 16, "deepstack_visual_indexes": [0],
    }  # fmt: skip
    text = writer(rope_parameters={**_ROPE, "mrope_interleaved": True}, head_dim=8, num_experts=4,
                  num_experts_per_tok=2, moe_intermediate_size=32)  # fmt: skip
    config = t.Qwen3VLMoeConfig(text_config=text, vision_config=eyes, **_QWEN_IDS)
    processor = text_image_processor("qwen3_vl_moe")(_qwen_pixels(16), words(*_QWEN))
    return t.Qwen3VLMoeForConditionalGeneration(config), processor


# -- image encoders


def _blip() -> Made:
    config = t.BlipConfig(
        text_config={**_EYES, "vocab_size": VOCABULARY, "max_position_embeddings": 96, "encoder_hidden_size": 32,
                     "bos_token_id": BEGIN, "eos_token_id": 3, "sep_token_id": END, "pad_token_id": PAD},
        vision_config={**_EYES, "image_size": 48, "patch_size": 16, "initializer_range": 0.3},
    )  # fmt: skip
    return t.BlipForConditionalGeneration(config), t.BlipImageProcessorPil(size=_side(48))


# -- sounds


def _moonshine() -> Made:
    config = t.MoonshineConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, encoder_num_hidden_layers=2,
        decoder_num_hidden_layers=2, encoder_num_attention_heads=4, decoder_num_attention_heads=4,
        max_position_embeddings=256, decoder_start_token_id=BEGIN, bos_token_id=BEGIN, eos_token_id=END,
        pad_token_id=PAD,
    )  # fmt: skip
    return t.MoonshineForConditionalGeneration(config), t.Wav2Vec2FeatureExtractor(do_normalize=False)


def _moonshine_streaming() -> Made:
    ears = {**_EYES, "num_key_value_heads": 4, "head_dim": 8, "sliding_windows": [[16, 4], [16, 0]]}
    config = t.MoonshineStreamingConfig(
        encoder_config=ears, **writer(num_key_value_heads=4, head_dim=8), decoder_start_token_id=BEGIN
    )
    return t.MoonshineStreamingForConditionalGeneration(config), t.Wav2Vec2FeatureExtractor(
        do_normalize=False, return_attention_mask=True
    )


def _speech_to_text() -> Made:
    config = t.Speech2TextConfig(
        vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=256,
        max_target_positions=96, conv_channels=32, input_feat_per_channel=24, decoder_start_token_id=BEGIN,
        bos_token_id=BEGIN, eos_token_id=END, pad_token_id=PAD,
    )  # fmt: skip
    ears = t.Speech2TextFeatureExtractor(feature_size=24, num_mel_bins=24)
    return t.Speech2TextForConditionalGeneration(config), ears


def _speech_encoder_decoder() -> Made:
    ears = t.Wav2Vec2Config(
        **_EYES, vocab_size=VOCABULARY, conv_dim=(32, 32), conv_stride=(40, 8), conv_kernel=(40, 8),
        num_feat_extract_layers=2, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4,
    )  # fmt: skip
    decoder = t.BartConfig(
        vocab_size=VOCABULARY, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=64,
        max_position_embeddings=128, is_decoder=True, add_cross_attention=True, bos_token_id=BEGIN, eos_token_id=END,
        pad_token_id=PAD,
    )  # fmt: skip
    config = t.SpeechEncoderDecoderConfig.from_encoder_decoder_configs(ears, decoder)
    config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = BEGIN, PAD, END
    network = t.SpeechEncoderDecoderModel(config=config)
    network.generation_config = t.GenerationConfig(
        decoder_start_token_id=BEGIN, bos_token_id=BEGIN, eos_token_id=END, pad_token_id=PAD
    )
    return network, t.Wav2Vec2FeatureExtractor()


SEEING: dict[str, Callable[[], Made]] = {
    "gemma3": _gemma3,
    "idefics3": _idefics3,
    "internvl": _internvl,
    "llava_next": _llava_next,
    "llava_onevision": _llava_onevision,
    "paligemma": _paligemma,
    "qwen2_5_vl": _qwen2_5_vl,
    "qwen3_vl": _qwen3_vl,
    "smolvlm": _smolvlm,
    "vipllava": _vipllava,
    "aya_vision": _aya_vision,
    "idefics2": _idefics2,
    "glm4v": _glm4v,
    "qwen3_vl_moe": _qwen3_vl_moe,
}
"""By `model_type`: pictures among the tokens of a prompt."""
HEARING: dict[str, Callable[[], Made]] = {
    "moonshine": _moonshine,
    "moonshine_streaming": _moonshine_streaming,
    "speech-encoder-decoder": _speech_encoder_decoder,
    "speech_to_text": _speech_to_text,
}
MAKERS = {**SEEING, "blip": _blip, **HEARING}
MARKS = {
    "glm4v": "<|begin_of_image|><|image|><|end_of_image|>",
    "gemma3": "<start>", "internvl": "<IMG_CONTEXT>",
    **dict.fromkeys(("qwen", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe"), "<|vision_start|><|image_pad|><|vision_end|>"),
}  # fmt: skip
"""What a prompt holds for a picture, of families that have something else than <image> for it."""
