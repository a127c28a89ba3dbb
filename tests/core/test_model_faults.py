"""Invalid model folders raise an error with cause and remedy before memory is allocated."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transformers as t

from decodescope import core
from decodescope.core import errors
from decodescope.core.models import catalog
from tests.core import tiny


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model with the bundled tokenizer's files."""
    folder = tmp_path_factory.mktemp("good") / "model"
    tiny.make("llama").model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(catalog.BUNDLED / "storyteller" / name, folder)
    return folder


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "model"))


def edit(folder: Path, name: str = "config.json", **changes: Any) -> None:
    file = folder / name
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def assert_refused(folder: Path, *words: str) -> errors.DecodescopeError:
    """Loading, outlining and listing all end well, and the cause names what is wrong."""
    with pytest.raises(errors.DecodescopeError) as caught:
        core.load(folder)
    assert caught.value.remedy
    for word in words:
        assert word in str(caught.value), (word, str(caught.value))
    catalog.describe(folder, "model", "folder")
    return caught.value


VALUES: list[tuple[dict[str, Any], str]] = [
    ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
    ({"num_hidden_layers": -1}, "num_hidden_layers is -1"),
    ({"num_hidden_layers": 10**5}, "num_hidden_layers is 100000"),
    ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
    ({"num_hidden_layers": 10**400}, "a number of"),
    ({"num_hidden_layers": 2.5}, "not a whole number"),
    ({"num_hidden_layers": True}, "not a whole number"),
    ({"num_labels": 10**9}, "num_labels"),
    ({"hidden_size": "32"}, "hidden_size is “32”"),
    ({"hidden_size": [32, "x"]}, "hidden_size is “x”"),
    ({"hidden_size": {}}, "hidden_size"),
    ({"hidden_size": 10**6}, "numbers"),
    ({"hidden_size": 33}, "config.json"),
    ({"num_attention_heads": 0}, "config.json"),
    ({"num_attention_heads": 10**9}, "num_attention_heads"),
    ({"vocab_size": 0}, "vocab_size is 0"),
    ({"vocab_size": -5}, "vocab_size is -5"),
    ({"vocab_size": 10**9}, "numbers"),
    ({"vocab_size": 10**12}, "which is not possible"),
    ({"intermediate_size": 10**9}, "numbers"),
    ({"rms_norm_eps": "small"}, "config.json"),
    ({"rope_parameters": {"rope_type": "spiral", "rope_theta": 1.0}}, "config.json"),
    ({"hidden_act": "abracadabra"}, "config.json"),
    ({"is_encoder_decoder": "yes"}, "neither true nor false"),
    ({"model_type": 5}, "model_type is 5"),
    ({"model_type": ["llama"]}, "model_type"),
    ({"auto_map": None}, "auto_map"),
    ({"auto_map": {"AutoConfig": 5}}, "auto_map"),
    ({"attn_implementation": "someone/kernel"}, "someone/kernel"),
    ({"_attn_implementation": "someone/kernel"}, "compiled code"),
    ({"text_config": {"attn_implementation": "someone/kernel"}}, "compiled code"),
    ({"_attn_implementation": "flex_attention"}, "flex_attention"),
    ({"_attn_implementation": "telepathy"}, "telepathy"),
    ({"_attn_implementation": 5}, "not a name"),
    ({"configuration_files": ["config.4.0.0.json"]}, "other files"),
    ({"dtype": "float99"}, "config.json"),
    ({"quantization_config": {}}, "names no method"),
    ({"quantization_config": 4}, "names no method"),
]


@pytest.mark.parametrize(("changes", "words"), VALUES, ids=lambda value: str(value)[:50])
def test_impossible_config_value_is_named(folder: Path, changes: dict[str, Any], words: str) -> None:
    edit(folder, **changes)
    assert_refused(folder, words)
    if words != "numbers":  # too large for its files: the outline alone can still be drawn
        with pytest.raises(errors.DecodescopeError):
            core.blueprint(folder)


def deep(file: Path) -> None:
    file.write_text('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}")


def nested(file: Path) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), "a": json.loads("[" * 200 + "]" * 200)}))


def to_list(file: Path) -> None:
    file.write_text("[1, 2]")


def not_text(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00" * 9)


def huge(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.truncate(2**31)


def to_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def device(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


def to_socket(file: Path) -> None:
    file.unlink()
    here = Path.cwd()
    os.chdir(file.parent)  # a socket's whole path must be short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(file.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"])
@pytest.mark.parametrize("damage", [deep, nested, to_list, not_text, huge, to_folder, pipe, device, to_socket])
def test_damaged_file_is_named_in_the_error(folder: Path, name: str, damage: Callable[[Path], None]) -> None:
    damage(folder / name)
    if damage is nested and name.startswith("tokenizer"):
        return  # one library or another may take it
    assert_refused(folder, name if name == "config.json" else "")


@pytest.mark.parametrize("damage", [to_list, not_text, to_folder, pipe, device, to_socket])
def test_damaged_weights_are_named_in_the_error(folder: Path, damage: Callable[[Path], None]) -> None:
    damage(folder / "model.safetensors")
    assert_refused(folder, "model.safetensors")


@pytest.mark.parametrize(
    "header",
    [
        "[1]",
        "5",
        '{"a": 1}',
        '{"a": {"shape": "x", "data_offsets": [0, 1]}}',
        '{"a": {"data_offsets": null}}',
        '{"a": {"shape": [1.0], "data_offsets": [0, 4]}}',
        '{"a": {"shape": [true], "data_offsets": [0, 4]}}',
        '{"a": {"shape": [1], "data_offsets": [0, 4, 8]}}',
        '{"a": {"shape": [1], "data_offsets": [0, 4]}, "b": {"data_offsets": [4, 8]}}',
        "[" * 999,
    ],
)
def test_invalid_safetensors_header_is_named(folder: Path, header: str) -> None:
    data = header.encode()
    (folder / "model.safetensors").write_bytes(len(data).to_bytes(8, "little") + data)
    assert_refused(folder, "model.safetensors", "header cannot be read")


@pytest.mark.parametrize(
    "index",
    [
        "{}",
        "[]",
        '{"weight_map": 5}',
        '{"weight_map": {}}',
        '{"weight_map": {"a": 5}}',
        '{"weight_map": {"a": "../x"}}',
    ],
)
def test_invalid_weight_index_is_named(folder: Path, index: str) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    (folder / "model.safetensors.index.json").write_text(index)
    assert_refused(folder, "model.safetensors.index.json")
    assert catalog.describe(folder, "model", "folder").problem


@pytest.mark.parametrize("settings", [{"temperature": "hot"}, {"max_new_tokens": {}}, {"eos_token_id": "</s>"}])
def test_unusual_generation_defaults_load_or_raise_core_errors(folder: Path, settings: dict[str, Any]) -> None:
    (folder / "generation_config.json").write_text(json.dumps(settings))
    with contextlib.suppress(errors.DecodescopeError):
        core.load(folder)


@pytest.mark.parametrize(
    "settings",
    [
        {"max_new_tokens": -5},
        {"num_return_sequences": 5},
        {"early_stopping": "x"},
        {"cache_implementation": "pocket"},
        {"watermarking_config": {"greenlist_ratio": "x"}},
        {"watermarking_config": 5},
    ],
    ids=str,
)
def test_invalid_generation_defaults_name_their_file(folder: Path, settings: dict[str, Any]) -> None:
    (folder / "generation_config.json").write_text(json.dumps(settings))
    error = assert_refused(folder, "generation_config.json", "Correct or delete the file")
    assert "weights" not in str(error)


@pytest.mark.parametrize("kind", ["LlamaTokenizer", "T5Tokenizer", "BertTokenizer", "GPT2Tokenizer", "Qwen2Tokenizer"])
def test_tokenizer_without_a_vocabulary_raises_an_error(folder: Path, kind: str) -> None:
    """transformers makes one of nothing but special tokens, which reads every prompt as empty."""
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind}))
    assert_refused(folder, "its vocabulary file is missing")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", {"rope_parameters": {"rope_type": "spiral", "rope_theta": 1.0}}),
        ("config.json", {"num_key_value_heads": 0}),
        ("config.json", {"dtype": "float99"}),
        ("tokenizer_config.json", {"tokenizer_class": 5}),
        ("special_tokens_map.json", [5]),
        ("added_tokens.json", {"a": "b"}),
    ],
    ids=str,
)
def test_python_error_messages_appear_only_in_the_details(folder: Path, file: str, content: Any) -> None:
    old = json.loads((folder / file).read_text()) if (folder / file).exists() else {}
    (folder / file).write_text(json.dumps({**old, **content} if isinstance(content, dict) else content))
    error = assert_refused(folder)
    assert not re.search(r"object has no|not supported between|has no attribute|modulo|: '\w+'$", error.cause)
    assert error.details


OTHERS = [
    (lambda: t.Wav2Vec2Config(), "audio"),
    (lambda: t.BlipConfig(architectures=["BlipForQuestionAnswering"]), "images"),
    (lambda: t.Blip2Config(), "images"),
    (lambda: t.BertConfig(is_decoder=False), None),
    (lambda: t.ViTConfig(), "images"),
]


@pytest.mark.parametrize(("make", "word"), OTHERS)
def test_model_for_another_task_is_named_with_its_task(folder: Path, make: Callable[[], Any], word: str | None) -> None:
    make().save_pretrained(folder)
    error = assert_refused(folder)
    if word is not None:
        assert isinstance(error, errors.UnknownArchitectureError)
        assert word in error.cause
        assert "text only" in error.cause
        assert "Update" not in error.remedy


def test_wrap_without_a_processor_refuses_models_that_need_sound_and_accepts_those_that_read_text() -> None:
    small = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
             "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}  # fmt: skip
    hears = t.WhisperForConditionalGeneration(t.WhisperConfig(**small))
    with pytest.raises(errors.UnknownArchitectureError, match="processor"):
        core.wrap(hears)
    text = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
            "intermediate_size": 16, "vocab_size": 20}  # fmt: skip
    eyes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    sees = t.LlavaForConditionalGeneration(
        t.LlavaConfig(text_config=t.LlamaConfig(**text), vision_config=t.CLIPVisionConfig(**eyes))
    )
    assert not core.wrap(sees).modalities.media


def test_modules_that_would_return_tuples_return_outputs(folder: Path) -> None:
    edit(folder, return_dict=False)
    request = core.Request([5, 6], t.GenerationConfig(max_new_tokens=3))
    expected = core.run(core.load(folder), request).sequences
    network = tiny.make("llama").model
    network.config.return_dict = False
    assert core.run(core.wrap(network), request).sequences == expected


@pytest.mark.parametrize(
    "name", ["", "~nobody/x", "a\0b", "x" * 5000, "\ud800", "/dev/null", "..", "/", "//", "models--x", "a/b/c", None, 5]
)
def test_invalid_model_names_raise_an_error(name: Any) -> None:
    with pytest.raises(errors.ModelError) as caught:
        core.load(name)
    assert caught.value.remedy
    assert len(caught.value.cause) < 1000


def test_file_instead_of_a_folder_raises_model_not_found(folder: Path) -> None:
    with pytest.raises(errors.ModelNotFoundError, match="is not a model"):
        core.load(folder / "model.safetensors")


def test_unreadable_folder_raises_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the operating system's refusal is simulated."""

    def refusing(function: Callable[..., Any], beginning: str) -> Callable[..., Any]:
        def refuse(path: Any = ".", *arguments: Any, **named: Any) -> Any:
            if isinstance(path, (str, os.PathLike)) and str(path).startswith(beginning):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return function(path, *arguments, **named)

        return refuse

    for name in ("stat", "open"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name), f"{folder}{os.sep}"))
    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name), str(folder)))
    for name in ("io.open", "builtins.open"):
        monkeypatch.setattr(name, refusing(open, f"{folder}{os.sep}"))
    assert_refused(folder)


def test_context_of_minus_one_means_unlimited() -> None:
    model = tiny.make("llama")
    model.model.config.max_position_embeddings = -1
    assert model.context is None


@pytest.mark.parametrize("changes", [{"architectures": ["LlamaForCausalLMEagle3"]}, {"medusa_num_heads": 3}])
def test_draft_head_alone_is_refused_by_name(folder: Path, changes: dict[str, Any]) -> None:
    edit(folder, **changes)
    with pytest.raises(errors.UnknownArchitectureError, match="only a draft head") as found:
        core.load(str(folder))
    assert "early exit" in found.value.remedy
