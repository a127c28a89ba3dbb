"""Almost valid model folders: small ones of several families, and modifications of their files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from decodescope.core.models import catalog
from tests.core import tiny
from tests.fuzz.values import json_odd

KINDS = ("llama", "gpt2", "mistral", "t5", "mamba")
FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json")
_NAMES = (
    "architectures", "attn_implementation", "_attn_implementation", "auto_map", "bos_token_id", "cache_implementation",
    "d_model", "dtype", "eos_token_id", "head_dim", "hidden_act", "hidden_size", "id2label", "intermediate_size",
    "is_encoder_decoder", "layer_types", "max_position_embeddings", "mlp_bias", "model_type", "n_embd", "n_head",
    "n_layer", "n_positions", "num_attention_heads", "num_hidden_layers", "num_key_value_heads", "num_labels",
    "pad_token_id", "quantization_config", "return_dict", "rms_norm_eps", "rope_parameters", "rope_scaling",
    "sliding_window", "state_size", "text_config", "tie_word_embeddings", "torch_dtype", "transformers_version",
    "use_cache", "vocab_size", "vision_config", "initializer_range", "output_attentions", "problem_type", "d_kv",
)  # fmt: skip
_TOKENIZER = (
    "added_tokens_decoder", "additional_special_tokens", "bos_token", "chat_template", "clean_up_tokenization_spaces",
    "eos_token", "model_max_length", "padding_side", "tokenizer_class", "unk_token", "auto_map", "backend",
    "add_bos_token", "add_prefix_space", "legacy", "extra_special_tokens",
)  # fmt: skip
_PARTS = ("added_tokens", "decoder", "model", "normalizer", "post_processor", "pre_tokenizer", "truncation", "padding",
          "version")  # fmt: skip
_SETTINGS = (
    "bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "temperature", "top_k", "top_p",
    "do_sample", "num_beams", "max_new_tokens", "max_length", "min_length", "repetition_penalty", "penalty_alpha",
    "stop_strings", "suppress_tokens", "force_words_ids", "forced_bos_token_id", "forced_eos_token_id", "dola_layers",
    "cache_implementation", "watermarking_config", "sequence_bias", "bad_words_ids", "num_beam_groups",
    "guidance_scale",
    "prompt_lookup_num_tokens", "num_return_sequences", "min_p", "max_time", "no_repeat_ngram_size", "use_cache",
    "renormalize_logits", "exponential_decay_length_penalty", "length_penalty", "early_stopping",
)  # fmt: skip
_TEMPLATES = (
    "{{ messages[0].content }}", "{% for m in messages %}{{ m.content * 10**9 }}{% endfor %}", "{% if %}",
    "{{ x.y.z }}",
    "{{ '%1000000000d' % 1 }}", "{{ raise_exception('no') }}", "{% for a in range(9**9) %}{% endfor %}", "",
)  # fmt: skip


@dataclass(frozen=True)
class FileChange:
    """One thing done to one file: `how` names it."""

    file: str
    how: str
    name: str = ""
    value: Any = None


_ALL = (*FILES, "model.safetensors")
_INDEX = "model.safetensors.index.json"
_SPECIAL = ("pipe", "device", "folder", "lost", "nowhere")


changes = st.one_of(
    st.builds(FileChange, st.just("config.json"), st.just("set"), st.sampled_from(_NAMES), json_odd),
    st.builds(FileChange, st.just("config.json"), st.just("drop"), st.sampled_from(_NAMES)),
    st.builds(FileChange, st.just("tokenizer_config.json"), st.just("set"), st.sampled_from(_TOKENIZER), json_odd),
    st.builds(
        FileChange,
        st.just("tokenizer_config.json"),
        st.just("set"),
        st.just("chat_template"),
        st.sampled_from(_TEMPLATES),
    ),
    st.builds(FileChange, st.just("tokenizer.json"), st.just("set"), st.sampled_from(_PARTS), json_odd),
    st.builds(FileChange, st.just("tokenizer.json"), st.just("drop"), st.sampled_from(_PARTS)),
    st.builds(FileChange, st.just("generation_config.json"), st.just("set"), st.sampled_from(_SETTINGS), json_odd),
    st.builds(FileChange, st.sampled_from(_ALL), st.just("cut"), st.just(""), st.integers(0, 3000)),
    st.builds(FileChange, st.sampled_from(_ALL), st.just("flip"), st.just(""), st.integers(0, 3000)),
    st.builds(FileChange, st.sampled_from(_ALL), st.just("replace"), st.just(""), json_odd),
    st.builds(FileChange, st.sampled_from((*_ALL, _INDEX)), st.sampled_from(_SPECIAL)),
    st.builds(FileChange, st.just(_INDEX), st.just("replace"), st.just(""), json_odd),
    st.builds(FileChange, st.just("model.safetensors"), st.just("header"), st.just(""), json_odd),
)  # fmt: skip
cases = st.tuples(st.sampled_from(KINDS), st.lists(changes, min_size=1, max_size=3))


def make_folders(root: Path) -> dict[str, Path]:
    """One good folder of each family, with the storyteller's tokenizer."""
    made = {}
    for kind in KINDS:
        folder = root / kind
        tiny.make(kind, **_vocabulary(kind)).model.save_pretrained(folder)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(catalog.BUNDLED / "storyteller" / name, folder)
        made[kind] = folder
    return made


def _vocabulary(kind: str) -> dict[str, int]:
    return {"vocab_size": 2048} if kind in ("llama", "mistral") else {}


def damaged(good: Path, where: Path, done: list[FileChange]) -> Path:
    """A copy (of links, but for what is changed) with these changes made."""
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    for file in good.iterdir():
        (where / file.name).symlink_to(file)
    for change in done:
        _WAYS[change.how](where / change.file, change)
    return where


def _data(file: Path) -> bytes:
    return file.read_bytes() if file.is_file() and not file.is_char_device() else b"{}"


def _write(file: Path, data: bytes) -> None:
    _lose(file)
    file.write_bytes(data)


def _lose(file: Path) -> None:
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file)
    else:
        file.unlink(missing_ok=True)


def _edit(file: Path, change: FileChange) -> None:
    try:
        data = json.loads(_data(file))
    except ValueError:
        data = {}
    data = data if isinstance(data, dict) else {}
    data.pop(change.name, None)
    if change.how == "set":
        data[change.name] = change.value
    _write(file, json.dumps(data).encode())


def _cut(file: Path, change: FileChange) -> None:
    _write(file, _data(file)[: change.value])


def _flip(file: Path, change: FileChange) -> None:
    data = bytearray(_data(file))
    if data:
        data[change.value % len(data)] ^= 0x41
    _write(file, bytes(data))


def _replace(file: Path, change: FileChange) -> None:
    _write(file, json.dumps(change.value).encode())


def _header(file: Path, change: FileChange) -> None:
    header = json.dumps({"lm_head.weight": change.value}).encode()
    _write(file, len(header).to_bytes(8, "little") + header)


def _special(file: Path, change: FileChange) -> None:
    _lose(file)
    if change.how == "pipe":
        os.mkfifo(file)
    elif change.how == "device":
        file.symlink_to("/dev/zero")
    elif change.how == "folder":
        file.mkdir()
    elif change.how == "nowhere":
        file.symlink_to("/nowhere/at/all")


_WAYS: dict[str, Callable[[Path, FileChange], None]] = {
    "set": _edit, "drop": _edit, "cut": _cut, "flip": _flip, "replace": _replace, "header": _header,
    "pipe": _special, "device": _special, "folder": _special, "lost": _special, "nowhere": _special,
}  # fmt: skip
