"""Tiny random models for audio and images, created without a download."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
import transformers as t
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers

from decodescope import core
from decodescope.core.models.tokenizers import text_image_processor
from tests.core import media_families

VOCABULARY = 61
BEGIN, END, PAD = 1, 2, 0
LANGUAGES = {"<|de|>": 50, "<|en|>": 51, "<|fr|>": 52}
_LOOKING = ("encoder_attn.out_proj", "crossattention.c_proj", "visual_projection", "embed_positions", "wpe")
"""Weights by which what is heard and seen, and where the text stands, decides more than in a random model."""
_SIZES = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}


def _whisper(**more: Any) -> tuple[Any, Any]:
    config = t.WhisperConfig(
        vocab_size=VOCABULARY, num_mel_bins=16, d_model=32, encoder_layers=2, decoder_layers=3,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
        max_source_positions=80, max_target_positions=96, decoder_start_token_id=3, bos_token_id=END,
        eos_token_id=END, pad_token_id=END, tie_word_embeddings=False,
    )  # fmt: skip
    network = t.WhisperForConditionalGeneration(config)
    network.generation_config = t.GenerationConfig(
        decoder_start_token_id=3, eos_token_id=END, pad_token_id=END, no_timestamps_token_id=60, max_length=96,
        suppress_tokens=[17, 34], begin_suppress_tokens=[44, END], is_multilingual=bool(more), **more,
    )  # fmt: skip
    return network, t.WhisperFeatureExtractor(feature_size=16, hop_length=400, n_fft=512, chunk_length=4)


def _many_languages() -> tuple[Any, Any]:
    return _whisper(
        lang_to_id=LANGUAGES, task_to_id={"transcribe": 55, "translate": 56}, prev_sot_token_id=57, task="transcribe"
    )


def _git() -> tuple[Any, Any]:
    vision = {**_SIZES, "num_hidden_layers": 2, "image_size": 48, "patch_size": 16}
    config = t.GitConfig(
        vision_config=vision, vocab_size=VOCABULARY, **_SIZES, num_hidden_layers=3, max_position_embeddings=96,
        bos_token_id=BEGIN, eos_token_id=END, pad_token_id=PAD,
    )  # fmt: skip
    return t.GitForCausalLM(config), _pixels(48)


def _pixels(side: int) -> Any:
    size = {"height": side, "width": side}
    return t.CLIPImageProcessorPil(size={"shortest_edge": side}, crop_size=size)


def _captioner() -> tuple[Any, Any]:
    """Create a ViT and a GPT-2 that attends to it, as in TrOCR."""
    sizes = {**_SIZES, "num_hidden_layers": 2}
    eyes = t.ViTConfig(**sizes, image_size=48, patch_size=16)
    writer = t.GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=32,
        n_layer=3,
        n_head=4,
        n_positions=96,
        add_cross_attention=True,
        is_decoder=True,
        tie_word_embeddings=False,
    )
    config = t.VisionEncoderDecoderConfig.from_encoder_decoder_configs(eyes, writer)
    config.decoder_start_token_id, config.eos_token_id, config.pad_token_id = BEGIN, END, PAD
    network = t.VisionEncoderDecoderModel(config=config)
    network.generation_config = t.GenerationConfig(
        decoder_start_token_id=BEGIN, bos_token_id=BEGIN, eos_token_id=END, pad_token_id=PAD
    )
    return network, _pixels(48)


_MARKS = ("<pad>", "<s>", "</s>", "<unk>", "<image>", "<|image_pad|>", "<|vision_start|>", "<|vision_end|>")


def _words() -> Any:
    """A tokenizer of one token a word: w8, w9 …"""
    words = [*_MARKS, *(f"w{number}" for number in range(len(_MARKS), VOCABULARY))]
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return t.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>",
        additional_special_tokens=list(_MARKS[4:]),
    )  # fmt: skip


def _writer() -> dict[str, Any]:
    return {
        **_SIZES, "vocab_size": VOCABULARY, "num_hidden_layers": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 128, "bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": PAD,
    }  # fmt: skip


def _llava() -> tuple[Any, Any]:
    """Create a CLIP with a Llama; an image takes nine tokens of the prompt."""
    eyes = t.CLIPVisionConfig(**_SIZES, num_hidden_layers=2, image_size=48, patch_size=16)
    config = t.LlavaConfig(text_config=t.LlamaConfig(**_writer()), vision_config=eyes, image_token_id=4)
    processor = t.LlavaProcessor(
        image_processor=_pixels(48), tokenizer=_words(), patch_size=16, vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )  # fmt: skip
    return t.LlavaForConditionalGeneration(config), processor


def _qwen() -> tuple[Any, Any]:
    """Places by row and column: a picture takes fewer of them than it has tokens."""
    eyes = {"embed_dim": 32, "hidden_size": 32, "depth": 2, "num_heads": 4, "mlp_ratio": 2, "patch_size": 14}
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
    config = t.Qwen2VLConfig(
        text_config={**_writer(), "rope_parameters": rope}, vision_config=eyes, image_token_id=5, video_token_id=3,
        vision_start_token_id=6, vision_end_token_id=7,
    )  # fmt: skip
    pixels = t.Qwen2VLImageProcessorPil(min_pixels=28 * 28 * 6, max_pixels=28 * 28 * 12)
    return t.Qwen2VLForConditionalGeneration(config), text_image_processor("qwen2_vl")(pixels, _words())


_MAKERS = {
    "whisper": _whisper, "languages": _many_languages, "git": _git, "captioner": _captioner, "llava": _llava,
    "qwen": _qwen, **media_families.MAKERS,
}  # fmt: skip
KINDS = ("whisper", "languages", "git", "captioner", "llava", "qwen")
ONE_OF_EACH = ("whisper", "git", "captioner", "llava", "qwen")
_ASKED = "w10 w11 w12"
PROMPTS = dict.fromkeys(("llava", "qwen", *media_families.SEEING), _ASKED)
"""Prompt of such a model in addition to the image."""
HEARING = ("whisper", "languages", *media_families.HEARING)


@torch.random.fork_rng()  # keeps the state of the global random generator
def make(kind: str, seed: int = 0, scale: float = 4.0) -> core.LoadedModel:
    """A fresh tiny model; its logits are sharpened by `scale` so that argmax is far from a tie."""
    torch.manual_seed(seed)
    network, processor = _MAKERS[kind]()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.dim() > 1:
                parameter.mul_(scale * (4.0 if any(word in name for word in _LOOKING) else 1.0))
    tokenizer = getattr(processor, "tokenizer", None)
    return core.wrap(network.float().eval(), tokenizer, name=f"tiny-{kind}", processor=processor)


@cache
def shared(kind: str) -> core.LoadedModel:
    """The same, made once; do not change it."""
    return make(kind)


def given(kind: str, folder: Path, number: int = 0) -> str:
    """A file that such a model takes, of noise: another for each number, which is its seconds of sound less one."""
    random = np.random.default_rng(number)
    if kind in HEARING:
        path = folder / f"{number}.wav"
        soundfile.write(path, random.normal(0, 0.2, (1 + number) * 16_000), 16_000)
    else:
        path = folder / f"{number}.png"
        Image.fromarray(random.integers(0, 256, (6, 9, 3), np.uint8)).save(path)
    return str(path)


def inputs(model: core.LoadedModel, path: str) -> dict[str, torch.Tensor]:
    """Return transformers' inputs for a file, as `generate` receives them."""
    if core.media.kind_of(path) == "sound":
        return dict(model.processor(core.media.samples(path, 16_000), sampling_rate=16_000, return_tensors="pt"))
    picture = core.media.picture(path)
    if not hasattr(model.processor, "tokenizer"):
        return dict(model.processor(picture, return_tensors="pt"))
    mark = media_families.MARKS.get(model.name.removeprefix("tiny-"), "<image>")
    read = dict(model.processor(text=[mark + _ASKED], images=[picture], return_tensors="pt"))
    return {name: value for name, value in read.items() if name != "labels"}


def reference(model: core.LoadedModel, path: str, **settings: Any) -> list[list[int]]:
    """transformers' own generate on the same model, as lists of new tokens without the end mark. Whisper's own takes
    no beams that sample, and writes the best beam as often as several are asked for: there the general one."""
    network, skipped, given = model.model, 0 if model.model.config.model_type == "whisper" else 1, inputs(model, path)
    generate = network.generate
    skipped = given["input_ids"].shape[1] if "input_ids" in given else skipped
    if not skipped and (settings.get("num_beams") or 1) > 1:
        generate, skipped = partial(t.GenerationMixin.generate, network), 2
        given["decoder_input_ids"] = torch.tensor([[3, 60]])
    out = generate(**given, **settings)
    return [without_end(row[skipped:].tolist()) for row in out]


def without_end(ids: list[int]) -> list[int]:
    """Up to the end mark: Whisper's `generate` leaves it out."""
    return ids[: ids.index(END)] if END in ids else ids
