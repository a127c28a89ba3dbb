"""SentencePiece's unigram and WordPiece vocabularies in GGUF files, written with llama.cpp's own package, and T5."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer

from decodescope import core
from decodescope.core.errors import ConfigInvalidError, TokenizerMissingError, UnknownArchitectureError
from decodescope.core.models.gguf.architectures import unsupported_reason
from decodescope.core.models.gguf.file_summary import summarize_gguf
from decodescope.core.models.gguf.gguf_file import read_gguf
from decodescope.core.models.gguf.tokenizer import load_gguf_tokenizer
from decodescope.core.models.gguf.tokenizer_samples import TEXTS as ALL_TEXTS
from tests import gguf_files
from tests.core import gguf_models, tiny
from tests.llama_cpp_server import IS_INSTALLED, LlamaCppServer
from tests.llama_cpp_vocabulary import IS_INSTALLED as VOCABULARY_IS_READABLE
from tests.llama_cpp_vocabulary import LlamaCppVocabulary

gguf: Any = pytest.importorskip("gguf")

LESSON = """A language model gives every token a probability. The decoder chooses one of them, appends it to the text
and begins again. Greedy decoding takes the likeliest token at every step; beam search keeps several texts and compares
their probabilities. Sampling draws a token at random. Temperature makes the distribution flatter or sharper, and a
filter removes the tail of unlikely tokens before the draw. Repetition is a common fault of greedy texts."""
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED = 1, 2, 3, 4, 5
REPLACED = {"\n": " ", "\t": " ", "ﬁ": "fi", "Ⅳ": "IV", "\u00ad": ""}


def character_map(replaced: dict[str, str]) -> bytes:
    """Return SentencePiece's precompiled map: a double array in which each node has 256 places of its own."""
    units, values = [0] * 256, b""
    labels: dict[bytes, int] = {b"": 0}
    keys = {key.encode(): text.encode() for key, text in replaced.items()}
    nodes = sorted({key[:end] for key in keys for end in range(len(key) + 1)})
    for node in nodes:
        units += [0] * 256
        place, block = labels[node], len(units) - 256
        units[place] |= (place ^ block) << 10
        if node in keys:
            units[place] |= 1 << 8
            units[block] = len(values) | 1 << 31
            values += keys[node] + b"\0"
        for child in (other for other in nodes if len(other) == len(node) + 1 and other.startswith(node)):
            labels[child] = block ^ child[-1]
            units[labels[child]] |= child[-1]
    array = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(array)) + array + values


@cache
def unigram_vocabulary() -> tuple[list[str], list[float], list[int]]:
    """Return pieces, scores and kinds as llama.cpp's converter orders those of T5."""
    backend = Tokenizer(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=160, show_progress=False, special_tokens=["<unk>"], unk_token="<unk>")
    backend.train_from_iterator(LESSON.splitlines(), trainer)
    pieces = sorted((backend.id_to_token(number) or "") for number in range(backend.get_vocab_size()))
    trained = dict(json.loads(backend.to_str())["model"]["vocab"])
    words = [piece for piece in pieces if piece not in ("<unk>", "</s>", "<pad>")]
    found = ["<pad>", "</s>", "<unk>", *words, "<keep me>", *(f"[PAD{number}]" for number in range(110))]
    scores = [0.0, 0.0, 0.0, *(trained[word] for word in words), -1000.0, *[-10000.0] * 110]
    kinds = [_CONTROL, _CONTROL, _UNKNOWN, *[_NORMAL] * len(words), _USER_DEFINED, *[_UNUSED] * 110]
    return found, scores, kinds


def write_unigram(writer: Any, **changed: bool) -> None:
    words, scores, kinds = unigram_vocabulary()
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(words)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.add_add_space_prefix(changed.get("prefix", True))
    writer.add_remove_extra_whitespaces(changed.get("merges", True))
    if changed.get("maps", True):
        writer.add_precompiled_charsmap(character_map(REPLACED))
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(2)
    writer.add_pad_token_id(0)


@cache
def wordpiece_vocabulary() -> tuple[list[str], list[int]]:
    """Return pieces as llama.cpp's converter marks them, and their kinds."""
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=150, show_progress=False, special_tokens=special)
    backend.train_from_iterator(LESSON.splitlines(), trainer)
    pieces = [backend.id_to_token(number) or "" for number in range(backend.get_vocab_size())]
    marked = [piece[2:] if piece.startswith("##") else "▁" + piece for piece in pieces[5:]]
    return [*special, *marked], [_CONTROL, _UNKNOWN, _CONTROL, _CONTROL, _CONTROL, *[_NORMAL] * len(marked)]


def write_wordpiece(writer: Any) -> None:
    words, kinds = wordpiece_vocabulary()
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(words)
    writer.add_token_types(kinds)
    writer.add_token_type_count(2)
    for name, number in (("pad", 0), ("unk", 1), ("bos", 2), ("sep", 3), ("mask", 4)):
        getattr(writer, f"add_{name}_token_id")(number)


TEXTS = (
    "A language model gives every token a probability.", "Greedy decoding", "  two  spaces\nand\ta tab ",
    "ﬁlter the Ⅳ tail", "soft\u00adhyphen", "ünknown žš characters", "<keep me>", "a<keep me>b", "one</s>two",
    "你好 token", "Sampling, draws: (a) token!", "probabilitiesprobabilities", "é", "x",
)  # fmt: skip
VOCABULARIES: dict[str, Callable[[Any], None]] = {"unigram": write_unigram, "wordpiece": write_wordpiece}


def llama_with(path: Path, write: Callable[[Any], None], size: int) -> Path:
    """Write a Llama with another model's vocabulary, which llama.cpp's server can serve."""
    model = gguf_models.make("llama", vocab_size=size, bos_token_id=0, eos_token_id=1, pad_token_id=0)
    return gguf_files.write(model, path, "f32", write)


def loaded_tokenizer(path: Path) -> Any:
    tokenizer = load_gguf_tokenizer(read_gguf(path))
    assert tokenizer is not None
    return tokenizer


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("vocabularies")
    sizes = {"unigram": len(unigram_vocabulary()[0]), "wordpiece": len(wordpiece_vocabulary()[0])}
    return {kind: llama_with(folder / f"{kind}.gguf", VOCABULARIES[kind], size) for kind, size in sizes.items()}


@pytest.mark.slow
@pytest.mark.skipif(not IS_INSTALLED, reason="xllamacpp (llama.cpp's server) is missing")
@pytest.mark.parametrize("kind", VOCABULARIES)
def test_llama_cpp_splits_texts_the_same_way(kind: str, files: dict[str, Path]) -> None:
    tokenizer = loaded_tokenizer(files[kind])
    with LlamaCppServer(files[kind]) as server:
        for text in TEXTS:
            for special in (False, True):
                ids = tokenizer(text, add_special_tokens=special)["input_ids"]
                assert ids == server.tokenize(text, special), text


@pytest.mark.skipif(not VOCABULARY_IS_READABLE, reason="xllamacpp (llama.cpp's library) is missing")
@pytest.mark.parametrize("flags", [{}, {"prefix": False}, {"merges": False}, {"maps": False, "merges": False}])
def test_unigram_splits_all_texts_as_llama_cpp(flags: dict[str, bool], tmp_path: Path) -> None:
    size = len(unigram_vocabulary()[0])
    path = llama_with(tmp_path / "unigram.gguf", lambda writer: write_unigram(writer, **flags), size)
    different = differences(path)
    assert all(any(word in text for word in ("</s>", "<unk>", "<pad>")) for text in different[False])
    assert different[True] == []


@pytest.mark.skipif(not VOCABULARY_IS_READABLE, reason="xllamacpp (llama.cpp's library) is missing")
def test_wordpiece_splits_texts_as_llama_cpp_with_known_differences(files: dict[str, Path]) -> None:
    """As in BERT's own tokenizer, a word of more than 100 characters is unknown, control characters vanish, and no
    enclosing mark does.
    """
    for text in {text for texts in differences(files["wordpiece"]).values() for text in texts}:
        is_long = max(map(len, text.split())) > 100
        assert is_long or any(character in text for character in "\x85\x0b\x0c\u20dd"), text


def differences(path: Path) -> dict[bool, list[str]]:
    """Return the texts that have other ids in llama.cpp, without and with special tokens in the text."""
    tokenizer = loaded_tokenizer(path)
    found = {}
    with LlamaCppVocabulary() as theirs:
        assert theirs.load(path) == ""
        for parses in (False, True):
            expected = theirs.tokenize(ALL_TEXTS, True, parses)
            found[parses] = [
                text for text, ids in zip(ALL_TEXTS, expected, strict=True)
                if tokenizer(text, split_special_tokens=not parses)["input_ids"] != ids
            ]  # fmt: skip
    return found


def test_unigram_vocabularies_equal_those_of_transformers(tmp_path: Path) -> None:
    """transformers ignores the file's character map and its flags, so the file has none."""
    size = len(unigram_vocabulary()[0])
    path = llama_with(tmp_path / "plain.gguf", lambda writer: write_unigram(writer, maps=False, merges=False), size)
    ours, theirs = loaded_tokenizer(path), AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name)
    for text in (LESSON.replace("\n", " "), "Greedy decoding", "ünknown", "one</s>two"):
        ids = ours(text)["input_ids"]
        assert ids == theirs(text)["input_ids"]
        assert ours.decode(ids, skip_special_tokens=True) == theirs.decode(ids, skip_special_tokens=True)


def test_wordpiece_vocabularies_equal_those_of_transformers(files: dict[str, Path]) -> None:
    from transformers import BertTokenizer

    words, _ = wordpiece_vocabulary()
    spelled = [*words[:5], *(word[1:] if word.startswith("▁") else f"##{word}" for word in words[5:])]
    theirs = BertTokenizer(vocab={word: number for number, word in enumerate(spelled)})
    ours = loaded_tokenizer(files["wordpiece"])
    assert ours.get_vocab() == theirs.get_vocab()
    for text in (*TEXTS, LESSON):
        assert ours(text)["input_ids"] == theirs(text)["input_ids"]
    ids = ours("Sampling draws a token", add_special_tokens=False)["input_ids"]
    assert ours.decode(ids) == "sampling draws a token"


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_model_with_a_loaded_vocabulary_generates(kind: str, files: dict[str, Path]) -> None:
    model = core.load(files[kind], device="cpu")
    request = core.Request("Greedy decoding takes", {"max_new_tokens": 4, "do_sample": False})
    assert prompt_ids(core.run(model, request)) == model.tokenizer(request.prompt)["input_ids"]


def prompt_ids(result: core.Result) -> list[int]:
    return [token.id for event in result.events if isinstance(event, core.events.RunStarted) for token in event.prompt]


def hostile(path: Path, change: Callable[[Any], None]) -> Path:
    def write(writer: Any) -> None:
        write_unigram(writer, maps=False)
        change(writer)

    return llama_with(path, write, len(unigram_vocabulary()[0]))


DAMAGED_MAPS = {
    "short": b"\1\0", "length": struct.pack("<I", 2**31) + b"abcd",
    "offset": struct.pack("<II", 4, 0xFFFFFC00) + b"a\0",
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGED_MAPS)
def test_a_damaged_character_map_is_an_error(damage: str, tmp_path: Path) -> None:
    data = DAMAGED_MAPS[damage]
    path = hostile(tmp_path / "map.gguf", lambda writer: writer.add_precompiled_charsmap(data))
    with pytest.raises((TokenizerMissingError, core.errors.PromptError), match=r"tokenizer (in|of)"):
        core.run(core.load(path, device="cpu"), core.Request("text\n", {"max_new_tokens": 1}))


@pytest.mark.parametrize("kind", ["gguf", "tokenizer.json", "spiece.model"])
def test_a_token_of_a_million_characters_is_refused(kind: str, tmp_path: Path) -> None:
    """The library would end the process when it frees the vocabulary."""
    words, scores, kinds = unigram_vocabulary()
    words = [*words[:-1], "x" * 1_000_000]
    path = tmp_path
    if kind == "gguf":

        def write(writer: Any) -> None:
            writer.add_tokenizer_model("t5")
            writer.add_token_list(words)
            writer.add_token_scores(scores)
            writer.add_token_types(kinds)

        path = llama_with(tmp_path / "m.gguf", write, len(words))
    else:
        tiny.make("llama").model.save_pretrained(tmp_path)
        if kind == "tokenizer.json":
            text = json.dumps({"model": {"type": "Unigram", "vocab": list(zip(words, scores, strict=True))}})
            (tmp_path / kind).write_text(text)
        else:
            pieces = [b"\n" + _varint(len(word)) + word for word in (word.encode() for word in words)]
            (tmp_path / kind).write_bytes(b"".join(b"\n" + _varint(len(piece)) + piece for piece in pieces))
    with pytest.raises(TokenizerMissingError, match=r"a token of 1,000,\d{3} characters"):
        core.load(path, device="cpu")


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number > 127:
        digits.append(128 | number & 127)
        number >>= 7
    return bytes([*digits, number])


def t5(kind: str, **shape: Any) -> Any:
    """Return a tiny random encoder–decoder: `t5` ties its head, `t5v1.1` and `umt5` do not."""
    torch.manual_seed(3)
    own = kind != "t5"
    config = AutoConfig.for_model(
        "umt5" if kind == "umt5" else "t5", vocab_size=len(unigram_vocabulary()[0]), d_model=64, d_kv=16, d_ff=128,
        num_layers=2, num_decoder_layers=3, num_heads=4, feed_forward_proj="gated-gelu" if own else "relu",
        tie_word_embeddings=not own, decoder_start_token_id=0, **shape,
    )  # fmt: skip
    network = AutoModelForSeq2SeqLM.from_config(config).eval()
    if own:
        network.lm_head.weight = torch.nn.Parameter(torch.randn_like(network.lm_head.weight))
    return network


def write_t5(network: Any, path: Path, quantized: bool = False) -> Path:
    """Write a T5 with llama.cpp's package: its names, its order of dimensions, its metadata."""
    config, writer = network.config, gguf.GGUFWriter(str(path), "t5")
    write_unigram(writer)
    writer.add_context_length(512)
    writer.add_embedding_length(config.d_model)
    writer.add_feed_forward_length(config.d_ff)
    writer.add_block_count(config.num_layers)
    writer.add_decoder_block_count(config.num_decoder_layers)
    writer.add_head_count(config.num_heads)
    writer.add_key_length(config.d_kv)
    writer.add_value_length(config.d_kv)
    writer.add_layer_norm_eps(config.layer_norm_epsilon)
    writer.add_relative_attn_buckets_count(config.relative_attention_num_buckets)
    writer.add_layer_norm_rms_eps(config.layer_norm_epsilon)
    writer.add_decoder_start_token_id(config.decoder_start_token_id)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.T5, max(config.num_layers, config.num_decoder_layers))
    for name, tensor in network.state_dict().items():
        if name.endswith("embed_tokens.weight") or (name == "lm_head.weight" and config.scale_decoder_outputs):
            continue
        called, array = names.get_name(name, try_suffixes=(".weight",)), tensor.float().numpy()
        assert called is not None, name
        if quantized and tensor.dim() == 2 and "rel_b" not in called:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(called, gguf.quants.quantize(array, kind), raw_dtype=kind)
        else:
            writer.add_tensor(called, array)
    for finish in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        finish()
    writer.close()
    return path


GIVEN = {"input_ids": torch.tensor([[5, 9, 33, 41, 1]]), "decoder_input_ids": torch.tensor([[0, 4, 7, 21]])}


@pytest.mark.parametrize("kind", ["t5", "t5v1.1", "umt5"])
def test_encoder_decoders_keep_their_logits(kind: str, tmp_path: Path) -> None:
    network = t5(kind)
    path = write_t5(network, tmp_path / "t5.gguf")
    with torch.inference_mode():
        expected = network(**GIVEN).logits
        for weights in ("auto", "float32"):
            loaded = core.load(path, weights=weights, device="cpu")
            assert (loaded.model(**GIVEN).logits - expected).abs().max() <= 1e-5 * expected.abs().max()
            assert loaded.config.model_type == network.config.model_type


@pytest.mark.parametrize("kind", ["t5", "t5v1.1", "umt5"])
def test_packed_encoder_decoders_equal_their_float_weights(kind: str, tmp_path: Path) -> None:
    path = write_t5(t5(kind), tmp_path / "t5.gguf", quantized=True)
    blocks, floats = core.load(path, device="cpu"), core.load(path, weights="float32", device="cpu")
    with torch.inference_mode():
        expected = floats.model(**GIVEN).logits
        error = (blocks.model(**GIVEN).logits - expected).norm() / expected.norm()
    assert error < 0.03
    assert blocks.weights == "Q8_0"
    assert blocks.weight_bytes < path.stat().st_size
    request = core.Request("Greedy decoding <extra_id_0> token", {"max_new_tokens": 6, "do_sample": False})
    result = core.run(floats, request)
    ids = floats.tokenizer(request.prompt)["input_ids"]
    assert prompt_ids(result) == ids
    assert floats.tokenizer.convert_tokens_to_ids("<extra_id_0>") in ids
    written = [0]  # transformers' generate does not support stacks of different depths
    for _ in result.sequences[0]:
        with torch.inference_mode():
            scores = floats.model(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([written])).logits
        written.append(int(scores[0, -1].argmax()))
    assert result.sequences[0] == written[1:]


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_untied_head_stays_separate_in_packed_weights(weights: str, tmp_path: Path) -> None:
    """transformers lists T5's head as tied to the embedding even where the files contain both."""
    network = t5("t5v1.1")
    network.save_pretrained(tmp_path)
    packed = core.load(tmp_path, weights=weights, device="cpu")
    with torch.inference_mode():
        expected = network(**GIVEN).logits
        error = (packed.model(**GIVEN).logits - expected).norm() / expected.norm()
    assert error < (0.03 if weights == "int8" else 0.3)


def test_missing_decoder_layers_raise_config_invalid(tmp_path: Path) -> None:
    network = t5("t5")
    network.config.num_decoder_layers = 5
    with pytest.raises(ConfigInvalidError, match=r"5 as its number of layers .* but contains 3"):
        core.load(write_t5(network, tmp_path / "t5.gguf"))


def test_unsupported_architectures_have_a_reason(tmp_path: Path) -> None:
    def reasons() -> Iterator[str]:
        for name in ("bert", "t5encoder", "llada", "rwkv7", "clip", "gemma3n", "nothing"):
            writer = gguf.GGUFWriter(str(tmp_path / f"{name}.gguf"), name)
            for finish in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
                finish()
            writer.close()
            with pytest.raises(UnknownArchitectureError, match="cannot be used") as caught:
                core.load(tmp_path / f"{name}.gguf")
            assert unsupported_reason(name) in caught.value.cause
            assert summarize_gguf(tmp_path / f"{name}.gguf").problem == unsupported_reason(name)
            yield unsupported_reason(name).replace(name, "")

    assert len(set(reasons())) >= 5
