"""Every failure names its cause and what to do about it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from transformers import GenerationConfig

from decodescope import core
from decodescope.core import errors
from decodescope.core.system.device_memory import is_out_of_memory
from tests.core import tiny


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good model folder, without a tokenizer."""
    tiny.make("llama").model.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def edit_config(folder: Path, **changes: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def pickle_weights(folder: Path) -> None:
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def assert_error_contains(error: errors.DecodescopeError, *words: str) -> None:
    assert error.remedy, "no remedy"
    for word in words:
        assert word in f"{error.cause} {error.remedy}", (word, str(error))


def test_intact_folder_loads(folder: Path) -> None:
    model = core.load(folder)
    assert model.tokenizer is None
    assert model.dtype == torch.float32
    assert core.run(model, core.Request([5, 6], GenerationConfig(max_new_tokens=3))).sequences


@pytest.mark.parametrize("name", ["/no/such/folder", "./nowhere", "nobody/nothing", "never-heard-of"])
def test_missing_model_raises_model_not_found(name: str) -> None:
    with pytest.raises(errors.ModelNotFoundError) as caught:
        core.load(name)
    assert_error_contains(caught.value, name, "bundled")


def test_missing_config_raises_config_missing(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(errors.ConfigMissingError) as caught:
        core.load(folder)
    assert_error_contains(caught.value, "no config.json")


@pytest.mark.parametrize("text", ["{", "[]", "\x00"])
def test_malformed_config_raises_config_missing(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(errors.ConfigMissingError):
        core.load(folder)


@pytest.mark.parametrize("kind", ["flux-capacitor", "vit", None])
def test_unknown_model_type_raises_unknown_architecture(folder: Path, kind: str | None) -> None:
    edit_config(folder, model_type=kind)
    with pytest.raises(errors.UnknownArchitectureError) as caught:
        core.load(folder)
    assert_error_contains(caught.value, kind or "does not state its model type", "transformers")


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1000])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def garble(file: Path) -> None:
    file.write_bytes(b"\xff" * 64 + file.read_bytes()[64:])


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (truncate, "bytes are present"),
        (empty, "0 bytes"),
        (garble, "header cannot be read"),
        (Path.unlink, "no weights"),
    ],
)
def test_corrupt_weights_raise_corrupt_weights_error(folder: Path, damage: Callable[[Path], Any], words: str) -> None:
    damage(folder / "model.safetensors")
    with pytest.raises(errors.CorruptWeightsError) as caught:
        core.load(folder)
    assert_error_contains(caught.value, words, "again")


def test_missing_shard_raises_corrupt_weights_error(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    index = {"metadata": {}, "weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(errors.CorruptWeightsError) as caught:
        core.load(folder)
    assert_error_contains(caught.value, "model-00002-of-00002.safetensors", "missing")


@pytest.mark.parametrize("changes", [{"num_hidden_layers": 6}, {"intermediate_size": 80}])
def test_weights_of_another_shape_raise_an_error(folder: Path, changes: dict[str, int]) -> None:
    edit_config(folder, **changes)
    with pytest.raises(errors.CorruptWeightsError) as caught:
        core.load(folder)
    assert_error_contains(caught.value, "match its config.json")


def test_pickled_weights_need_permission(folder: Path) -> None:
    pickle_weights(folder)
    with pytest.raises(errors.PickledWeightsError) as caught:
        core.load(folder)
    assert_error_contains(caught.value, "pytorch_model.bin", "Allow")
    assert core.load(folder, allow_pickle=True).layers == 4


REMOTE = """
from transformers import LlamaConfig, LlamaForCausalLM
import pathlib
pathlib.Path(__file__).with_name("ran").touch()
class OddConfig(LlamaConfig):
    model_type = "odd"
class OddForCausalLM(LlamaForCausalLM):
    config_class = OddConfig
"""


def test_remote_code_needs_permission(folder: Path) -> None:
    (folder / "odd.py").write_text(REMOTE)
    edit_config(
        folder, model_type="odd", auto_map={"AutoConfig": "odd.OddConfig", "AutoModelForCausalLM": "odd.OddForCausalLM"}
    )
    with pytest.raises(errors.RemoteCodeError) as caught:
        core.load(folder)
    assert_error_contains(caught.value, "its own program code", "Allow")
    assert not (folder / "ran").exists()
    assert type(core.load(folder, allow_remote_code=True).model).__name__ == "OddForCausalLM"


def test_text_prompt_without_a_tokenizer_raises_an_error(folder: Path) -> None:
    model = core.load(folder)
    with pytest.raises(errors.TokenizerMissingError) as caught:
        core.run(model, core.Request("Once"))
    assert_error_contains(caught.value, "no tokenizer", "token ids")
    with pytest.raises(errors.TokenizerMissingError, match="chat template"):
        core.run(model, core.Request([{"role": "user", "content": "Hi"}]))


def test_malformed_tokenizer_raises_an_error(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(errors.TokenizerMissingError) as caught:
        core.load(folder)
    assert_error_contains(caught.value, "cannot be loaded")


_PIECES = ["<unk>", "a", "b", "ab"]
_UNIGRAM = {"type": "Unigram", "unk_id": 0, "vocab": [[piece, -1.5] for piece in _PIECES]}
_BPE: dict[str, Any] = {
    "type": "BPE",
    "vocab": {piece: place for place, piece in enumerate(_PIECES)},
    "merges": ["a b"],
}


@pytest.mark.parametrize(
    "model",
    [
        {**_UNIGRAM, "vocab": dict.fromkeys(_PIECES, -1.5)},
        {**_UNIGRAM, "vocab": [[piece, float("inf")] for piece in _PIECES]},
        {**_UNIGRAM, "vocab": [[piece, float("nan")] for piece in _PIECES]},
        {**_UNIGRAM, "vocab": [[piece, "high"] for piece in _PIECES]},
        {**_UNIGRAM, "vocab": []},
        {**_UNIGRAM, "unk_id": 10**9},
        {**_BPE, "vocab": _PIECES},
        {**_BPE, "vocab": {piece: 2**40 for piece in _PIECES}},
        {**_BPE, "vocab": {piece: -place for place, piece in enumerate(_PIECES)}},
        {**_BPE, "merges": ["a"]},
        {**_BPE, "merges": ["a missing"]},
    ],
)
def test_invalid_vocabulary_error_is_a_full_sentence(folder: Path, model: dict[str, Any]) -> None:
    rest = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "decoder": None}
    for good in (_UNIGRAM, _BPE):
        (folder / "tokenizer.json").write_text(json.dumps({**rest, "model": good}))
        assert core.load(folder).tokenizer is not None
    (folder / "tokenizer.json").write_text(json.dumps({**rest, "model": model}))
    with pytest.raises(errors.TokenizerMissingError) as caught:
        core.load(folder)
    assert_error_contains(caught.value, "cannot be loaded: ", "again.")
    assert caught.value.cause.endswith(".")


def test_empty_prompt_without_bos_raises_an_error() -> None:
    """A BOS token is enough to begin; without one the prompt is empty."""
    assert core.run(tiny.shared("llama"), core.Request([], GenerationConfig(max_new_tokens=2))).sequences[0]
    for model in (tiny.make("llama", bos_token_id=None), tiny.shared("t5")):
        with pytest.raises(errors.EmptyPromptError) as caught:
            core.run(model, core.Request([]))
        assert_error_contains(caught.value, "empty", "Write")


def test_too_long_prompt_error_states_the_excess() -> None:
    with pytest.raises(errors.PromptTooLongError) as caught:
        core.run(tiny.shared("llama"), core.Request(tiny.prompt(300)))
    assert_error_contains(caught.value, "300", "44 more", "256")


def test_text_ends_with_the_context() -> None:
    config = GenerationConfig(max_new_tokens=50, suppress_tokens=[2])
    result = core.run(tiny.shared("gpt2"), core.Request(tiny.prompt(250), config))
    assert len(result.sequences[0]) == 7
    assert any(getattr(event, "reason", "") == "context" for event in result.events)


def test_unknown_token_id_raises_an_error() -> None:
    with pytest.raises(errors.ParameterError, match="Token id 61"):
        core.run(tiny.shared("llama"), core.Request([5, 61]))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"do_sample": True, "temperature": 0.0}, ("temperature", "0.0", "greater than 0")),
        ({"do_sample": True, "temperature": -1.0}, ("temperature",)),
        ({"do_sample": True, "top_p": 1.5}, ("top_p", "1.5", "0 to 1")),
        ({"do_sample": True, "top_k": -3}, ("top_k", "-3")),
        ({"do_sample": True, "top_k": 2.5}, ("top_k", "an integer")),
        ({"do_sample": True, "min_p": 2.0}, ("min_p",)),
        ({"repetition_penalty": 0.0}, ("repetition_penalty",)),
        ({"repetition_penalty": float("nan")}, ("repetition_penalty",)),
        ({"max_new_tokens": 0}, ("max_new_tokens", "from 1")),
        ({"penalty_alpha": 1.5, "top_k": 4}, ("penalty_alpha",)),
        ({"no_repeat_ngram_size": -1}, ("no_repeat_ngram_size",)),
        ({"dola_layers": "middle"}, ("dola_layers", "low, high")),
        ({"bad_words_ids": [[-4]]}, ("bad_words_ids",)),
        ({"suppress_tokens": list(range(61))}, ("No token", "banned")),
        ({"max_length": 3}, ("max_length", "12 tokens")),
    ],
)
def test_settings_out_of_range_raise_an_error(settings: dict[str, Any], words: tuple[str, ...]) -> None:
    config = core.make_config(settings)
    with pytest.raises(errors.DecodescopeError) as caught:
        core.run(tiny.shared("llama"), core.Request(tiny.prompt(), config))
    assert_error_contains(caught.value, *words)


def test_unknown_strategy_cache_option_device_or_dtype_raises() -> None:
    model, ids = tiny.shared("llama"), tiny.prompt()
    with pytest.raises(errors.StrategyError, match="astrology"):
        core.run(model, core.Request(ids, strategy="astrology"))
    with pytest.raises(errors.CacheError, match="attic"):
        core.run(model, core.Request(ids, cache="attic"))
    with pytest.raises(errors.ParameterError, match="colour"):
        core.run(model, core.Request(ids, strategy="greedy", options={"colour": 1}))
    with pytest.raises(errors.DeviceError):
        core.load("storyteller", device="warp-drive")
    with pytest.raises(errors.ParameterError, match="float12"):
        core.load("storyteller", dtype="float12")


def test_unavailable_device_raises_device_error() -> None:
    with pytest.raises(errors.DeviceError) as caught:
        core.load("storyteller", device="cuda:31")
    assert_error_contains(caught.value, "cuda:31", "cpu")


def test_nan_logits_raise_numeric_error() -> None:
    model = tiny.make("llama")
    with torch.no_grad():
        model.model.model.norm.weight[3] = float("nan")
    for config in (GenerationConfig(max_new_tokens=4), GenerationConfig(max_new_tokens=4, do_sample=True)):
        with pytest.raises(errors.NumericError) as caught:
            core.run(model, core.Request(tiny.prompt(), config))
        assert_error_contains(caught.value, "NaN", "step 1", "float32")
    repaired = GenerationConfig(max_new_tokens=4, remove_invalid_values=True)
    assert len(core.run(model, core.Request(tiny.prompt(), repaired)).sequences[0]) == 4


@pytest.mark.parametrize(
    "failure",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:128] err == 0. DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("unable to mmap 4096 bytes from file </tmp/x>: Cannot allocate memory (12)"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("CUDA error: out of memory\nCompile with `TORCH_USE_CUDA_DSA`"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("MPS backend out of memory (MPS allocated: 9.0 GB, max allowed: 9.07 GB)."),
        RuntimeError("[enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: not enough memory"),
        OSError(12, "Cannot allocate memory"),
        SafetensorError("Error while serializing: I/O error: Cannot allocate memory (os error 12)"),
    ],
    ids=str,
)
def test_out_of_memory_raises_an_error_with_a_remedy(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.make("llama")
    calls: list[int] = []

    def forward(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) > 5:
            raise failure
        return original(*args, **kwargs)

    original = model.model.forward
    monkeypatch.setattr(model.model, "forward", forward)
    _ = model.forward_parameters
    written: list[core.events.Event] = []
    with pytest.raises(errors.OutOfMemoryError) as caught:
        written.extend(core.stream(model, core.Request(tiny.prompt(), GenerationConfig(max_new_tokens=20))))
    assert_error_contains(caught.value, "memory", "smaller")
    assert sum(type(event).__name__ == "TokenChosen" for event in written) >= 5


@pytest.mark.parametrize(
    "error",
    [RuntimeError("bug"), OSError(28, "No space left on device"), ValueError("memory format"), KeyboardInterrupt(),
     errors.CacheError("The disk ran out of memory.", "Free some.")],
)  # fmt: skip
def test_other_errors_are_not_out_of_memory(error: BaseException) -> None:
    assert not is_out_of_memory(error)


def test_out_of_memory_is_recognized_in_the_cause() -> None:
    error = RuntimeError("the kernel failed")
    error.__cause__ = MemoryError()
    assert is_out_of_memory(error)


def test_other_failures_are_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.make("llama")
    monkeypatch.setattr(model.model, "forward", lambda *a, **k: (_ for _ in ()).throw(RuntimeError("bug")))
    with pytest.raises(errors.UnforeseenError, match="RuntimeError: bug"):
        core.run(model, core.Request(tiny.prompt()))


def test_wrap_refuses_a_model_without_a_head() -> None:
    with pytest.raises(errors.UnknownArchitectureError, match="LlamaModel"):
        core.wrap(tiny.make("llama").model.model)


def test_encoder_decoder_without_start_token_raises_an_error(tmp_path: Path) -> None:
    model = tiny.make("t5")
    model.model.generation_config.decoder_start_token_id = None
    model.model.generation_config.bos_token_id = None
    with pytest.raises(errors.PromptError, match="start token of its decoder"):
        core.run(model, core.Request(tiny.prompt()))


def test_hub_cache_and_folder_are_found(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = tmp_path / "hub"
    snapshot = hub / "models--someone--tiny" / "snapshots" / "abc"
    shutil.copytree(folder, snapshot)
    monkeypatch.setenv("HF_HUB_CACHE", str(hub))
    assert [entry.name for entry in core.catalog.hub_cached()] == ["someone/tiny"]
    assert core.load("someone/tiny").name == "someone/tiny"
    entry = core.catalog.inspect(folder)
    assert (entry.source, entry.architecture, entry.problem) == ("folder", "Llama · 4 layers × 32", None)
    assert entry.parameters == core.load(folder).parameters
    assert core.catalog.fits(entry).ok
    pickle_weights(folder)
    assert "pickled" in (core.catalog.inspect(folder).problem or "")


@pytest.mark.parametrize(
    "prompt",
    [None, 5, 2.5, True, b"text", {"role": "user", "content": "x"}, ["one", "two"], [5, "six"], [5, None],
     [[5, 6], [7, 8]], [5.5], [True], {5, 6}, torch.tensor([[5, 6]]), torch.tensor(5), object(), iter([5]),
     [{"role": "user"}, 5], [-1], [10**30], [{}]],
    ids=lambda prompt: re.sub(r" object at \w+", "", repr(prompt)),  # the same in every process
)  # fmt: skip
def test_invalid_prompt_type_raises_an_error(prompt: Any) -> None:
    with pytest.raises(errors.DecodescopeError) as caught:
        core.run(tiny.shared("llama"), core.Request(prompt))
    assert_error_contains(caught.value)


def test_a_tensor_of_ids_is_a_prompt() -> None:
    assert core.encode(tiny.shared("llama"), torch.tensor([5, 6])) == [5, 6]


def test_text_that_cannot_be_tokenized_raises_prompt_error() -> None:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    model = tiny.make("llama")
    model.tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"cat": 5})))
    assert core.encode(model, "cat") == [5]
    for text, words in (("dog", "cannot convert this text to tokens"), ("cat \ud83d", "half a character")):
        with pytest.raises(errors.PromptError, match=words):
            core.encode(model, text)


@pytest.mark.parametrize(
    ("cause", "shown"),
    [("it ends at line 1", "it ends at line 1. Copy it."), ("It is gone.", "It is gone. Copy it."),
     ("What now?", "What now? Copy it."), ("It says “no.”", "It says “no.” Copy it."),
     ("it needs (a map)", "it needs (a map). Copy it."), ("", "Copy it.")],
)  # fmt: skip
def test_library_message_in_a_cause_becomes_a_sentence(cause: str, shown: str) -> None:
    assert str(errors.DecodescopeError(cause, "Copy it.")) == shown
    assert errors.DecodescopeError(cause).cause == cause
