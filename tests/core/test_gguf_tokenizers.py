"""Tokenizers in GGUF files, compared with llama.cpp itself (the package `xllamacpp`) token for token."""

from __future__ import annotations

import random
import resource
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from decodescope import core
from decodescope.core.errors import TokenizerMissingError, UnpackableError
from decodescope.core.models.gguf import vocabulary as vocabularies
from decodescope.core.models.gguf.gguf_file import read_gguf
from decodescope.core.models.gguf.pre_tokenizer_rules import RULES
from decodescope.core.models.gguf.tokenizer import load_gguf_tokenizer
from decodescope.core.models.gguf.tokenizer_export import tokenizer_metadata
from decodescope.core.models.gguf.tokenizer_samples import TEXTS
from decodescope.core.models.gguf.vocabulary import CONTROL, UNKNOWN, read_vocabulary
from tests.core import gguf_vocabularies
from tests.core.gguf_vocabularies import bpe_metadata, byte_level, marked, sentencepiece_metadata, write
from tests.llama_cpp_vocabulary import IS_INSTALLED, LlamaCppVocabulary

needs_llama_cpp = pytest.mark.skipif(not IS_INSTALLED, reason="xllamacpp (llama.cpp's library) is missing")
COMPOSED = {"qwen2", "deepseek-r1-qwen", "qwen35"}
"""Rules of models whose own tokenizers compose characters (NFC); llama.cpp leaves them apart."""


@pytest.fixture(scope="module")
def theirs() -> Iterator[LlamaCppVocabulary]:
    with LlamaCppVocabulary() as process:
        yield process


def loaded(path: Path) -> Any:
    tokenizer = load_gguf_tokenizer(read_gguf(path))
    assert tokenizer is not None
    return tokenizer


def differences(path: Path, theirs: LlamaCppVocabulary, texts: tuple[str, ...] = TEXTS) -> list[str]:
    """Return the texts that have other ids here, with and without BOS and EOS and special tokens in the text."""
    assert theirs.load(path) == ""
    tokenizer = loaded(path)
    different = []
    for adds_special, parses_special in ((False, False), (True, True)):
        expected = theirs.tokenize(texts, adds_special, parses_special)
        for text, ids in zip(texts, expected, strict=True):
            own = tokenizer(text, add_special_tokens=adds_special, split_special_tokens=not parses_special)["input_ids"]
            if own != ids:
                different.append(text)
    return list(dict.fromkeys(different))


def wrong_decodings(path: Path, theirs: LlamaCppVocabulary) -> list[str]:
    """Return the decoded texts that are not what llama.cpp writes token by token."""
    assert theirs.load(path) == ""
    tokenizer, facts, vocabulary = loaded(path), theirs.facts(), read_vocabulary(read_gguf(path))
    assert vocabulary is not None
    wrong = []
    for ids in theirs.tokenize(TEXTS):
        for skips in (False, True):
            pieces = [b"" if skips and facts.hidden[number] else facts.pieces[number] for number in ids]
            expected = b"".join(pieces).decode("utf-8", "replace")
            expected = expected.removeprefix(" ") if vocabulary.adds_space else expected
            if (found := tokenizer.decode(ids, skip_special_tokens=skips)) != expected:
                wrong.append(found)
    return wrong


@needs_llama_cpp
@pytest.mark.every(24)
@pytest.mark.parametrize("rule", [*RULES, None])
def test_rule_splits_all_texts_as_llama_cpp(rule: str | None, theirs: LlamaCppVocabulary, tmp_path: Path) -> None:
    marks_spaces = rule is not None and RULES[rule].marks_spaces
    path = write(tmp_path / "rule.gguf", bpe_metadata(marked() if marks_spaces else byte_level(), rule))
    different = differences(path, theirs)
    if rule in COMPOSED:
        from unicodedata import normalize

        assert all(text != normalize("NFC", text) for text in different)
        assert len(different) < len(TEXTS) / 20
    else:
        assert different == []
    assert wrong_decodings(path, theirs) == []


@needs_llama_cpp
def test_unknown_rule_is_refused_by_name_like_in_llama_cpp(theirs: LlamaCppVocabulary, tmp_path: Path) -> None:
    path = write(tmp_path / "rule.gguf", bpe_metadata(byte_level(), "no-such-rule"))
    assert "no-such-rule" in theirs.load(path)
    with pytest.raises(TokenizerMissingError, match="its rule for splitting words, “no-such-rule”, is unknown"):
        loaded(path)


@needs_llama_cpp
@pytest.mark.parametrize(
    "flags",
    [
        {}, {"scores": None}, {"scores": [-1000.0] * len(marked().words)}, {"add_space_prefix": False},
        {"add_bos_token": False}, {"add_eos_token": True}, {"token_type": None},
        {"bos_token_id": 5, "eos_token_id": 10**6},
    ],
)  # fmt: skip
def test_sentencepiece_splits_all_texts_as_llama_cpp(
    flags: dict[str, Any], theirs: LlamaCppVocabulary, tmp_path: Path
) -> None:
    metadata = {**sentencepiece_metadata(marked()), **{f"tokenizer.ggml.{key}": flags[key] for key in flags}}
    path = write(tmp_path / "spm.gguf", {key: value for key, value in metadata.items() if value is not None})
    assert differences(path, theirs) == []
    assert wrong_decodings(path, theirs) == []


@needs_llama_cpp
@pytest.mark.parametrize("kind", ["rwkv", "plamo"])
def test_vocabulary_without_merges_splits_all_texts_as_llama_cpp(
    kind: str, theirs: LlamaCppVocabulary, tmp_path: Path
) -> None:
    metadata = getattr(gguf_vocabularies, f"{kind}_metadata")()
    path = write(tmp_path / f"{kind}.gguf", metadata)
    assert differences(path, theirs) == []
    assert wrong_decodings(path, theirs) == []


@needs_llama_cpp
def test_gemma_4_vocabulary_splits_all_texts_as_llama_cpp(theirs: LlamaCppVocabulary, tmp_path: Path) -> None:
    metadata = {**bpe_metadata(marked(), None, "gemma4"), "tokenizer.ggml.add_bos_token": False}
    path = write(tmp_path / "gemma4.gguf", metadata)
    assert differences(path, theirs) == []
    assert loaded(path)("a")["input_ids"][0] == 1


@needs_llama_cpp
@pytest.mark.parametrize("name", ["Phi-3 mini", "phi3", "other"])
def test_special_tokens_of_phi_3_swallow_white_space(name: str, theirs: LlamaCppVocabulary, tmp_path: Path) -> None:
    words = ["<|endoftext|>" if word == "<|im_start|>" else word for word in marked().words]
    metadata = {**sentencepiece_metadata(marked()._replace(words=words)), "general.name": name}
    path = write(tmp_path / "phi.gguf", metadata)
    texts = (*TEXTS, "a<|im_end|> b", "<|im_end|>\n\tb", "<|endoftext|> a", "<s> a", "x</s>  y", "<tool>  z <tool>\n")
    assert differences(path, theirs, texts) == []
    ids = [loaded(path)(text)["input_ids"] for text in ("<|im_end|> b", "<|im_end|>b")]
    assert (ids[0] == ids[1]) == (name != "other")


@needs_llama_cpp
@pytest.mark.parametrize("rule", ["jina-v2-code", "jina-v2-es", "jina-v1-en"])
def test_mask_of_jina_swallows_white_space_before_it(rule: str, theirs: LlamaCppVocabulary, tmp_path: Path) -> None:
    words = ["<mask>" if word == "<tool>" else word for word in byte_level().words]
    path = write(tmp_path / "jina.gguf", bpe_metadata(renamed(words), rule))
    texts = ("a <mask> b", "a<mask>", " \n<mask>", "a  <mask><mask>")
    assert differences(path, theirs, texts) == []
    same = loaded(path)("a <mask>")["input_ids"] == loaded(path)("a<mask>")["input_ids"]
    assert same == (rule != "jina-v1-en")


def renamed(words: list[str]) -> gguf_vocabularies.Vocabulary:
    """Return the byte-level vocabulary with other words, and the merges of those that are left."""
    known = set(words)
    merges = [merge for merge in byte_level().merges if {*merge.split(" "), merge.replace(" ", "")} <= known]
    return gguf_vocabularies.Vocabulary(words, byte_level().kinds, merges)


SPELLINGS = sorted(
    {spelling for _, spellings in vocabularies._FILL_IN.values() for spelling in spellings}
    | vocabularies._ENDS | vocabularies._SHOWN | {"<s>", "<bos>", "<|EOT|>", "<|unused|>", "<pad>", "<|plamo:eos|>"}
)  # fmt: skip
ID_KEYS = (
    "bos", "eos", "eot", "eom", "fim_pre", "prefix", "fim_pad", "fim_rep", "fim_sep", "padding", "unknown", "seperator",
)  # fmt: skip
COMPARED_IDS = ("bos", "eos", "sep", "pad", "mask", "fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep")


def random_vocabulary(numbers: random.Random) -> dict[str, Any]:
    """Return a vocabulary with some of all known spellings, in random kinds, and with some keys."""
    spellings = numbers.sample(SPELLINGS, numbers.randint(1, numbers.choice([12, len(SPELLINGS)])))
    fill = [f"w{number}" for number in range(numbers.choice([0, 5, 300, 1500]))]
    words = ["h", "e", "he", *sorted(set(pre_tokenizers.ByteLevel.alphabet()) - {"h", "e"}), *fill, *spellings]
    numbers.shuffle(words)
    known = set(spellings)
    found: dict[str, Any] = {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": words, "tokenizer.ggml.merges": ["h e"],
        "tokenizer.ggml.pre": numbers.choice(["gpt-2", "llama-bpe", "glm4", "qwen2", "tekken"]),
        "tokenizer.ggml.token_type": [
            numbers.choice([0, 1, 2, 3, 3, 3, 4, 5]) if word in known else 1 for word in words
        ],
    }  # fmt: skip
    if numbers.random() < 0.3:
        found |= {
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.scores": [-float(rank) for rank in range(len(words))],
        }
    for key in ID_KEYS:
        if numbers.random() < 0.25:
            choices = [words.index(numbers.choice(spellings)), numbers.randrange(len(words)), len(words) + 5]
            found[f"tokenizer.ggml.{key}_token_id"] = numbers.choice(choices)
    for key in ("add_bos_token", "add_eos_token"):
        if numbers.random() < 0.3:
            found[f"tokenizer.ggml.{key}"] = numbers.random() < 0.5
    return found


def refusal(path: Path) -> str:
    """Return the reason for which a vocabulary is refused here, or an empty text."""
    try:
        read_vocabulary(read_gguf(path))
    except TokenizerMissingError as error:
        return error.cause
    return ""


@needs_llama_cpp
@pytest.mark.parametrize("count", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_end_tokens_and_defaults_equal_those_of_llama_cpp(
    count: int, theirs: LlamaCppVocabulary, tmp_path: Path
) -> None:
    numbers = random.Random(count)
    for _ in range(count):
        path = write(tmp_path / "random.gguf", random_vocabulary(numbers))
        assert theirs.load(path) == ""
        if reason := refusal(path):  # llama.cpp's process ends where it needs the missing token
            assert "does not say which one" in reason
            with pytest.raises(RuntimeError):
                theirs.tokenize(["a"], adds_special=True)
            continue
        own, facts = read_vocabulary(read_gguf(path)), theirs.facts()
        assert own is not None
        assert [own.words[number] for number in own.ends] == [own.words[number] for number in facts.ends]
        assert {name: own.special.get(name, -1) for name in COMPARED_IDS} == {
            name: facts.special[name] for name in COMPARED_IDS
        }
        assert [kind in (CONTROL, UNKNOWN) for kind in own.kinds] == facts.hidden
        assert (own.adds_bos, own.adds_eos) == (facts.adds["bos"], facts.adds["eos"])


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        (("<|return|>", "<|call|>", "<|end|>", "<|channel|>"), {"<|return|>", "<|call|>"}),
        (("<|flush|>", "<|calls|>", "<|end|>"), {"<|flush|>", "<|calls|>"}),
        (("<|end|>", "<|return|>"), {"<|end|>", "<|return|>"}),
        (("<turn|>", "<|tool_response>", "<eos>", "</s>"), {"<turn|>", "<|tool_response>", "<eos>"}),
        (("[EOT]", "[EOS]", "<|file_sep|>", "<|repo_name|>"), {"[EOT]", "[EOS]", "<|file_sep|>", "<|repo_name|>"}),
    ],
)
def test_end_tokens_follow_the_format_of_the_model(words: tuple[str, ...], ends: set[str], tmp_path: Path) -> None:
    unused = [f"<|other {number}|>" for number in range(len(gguf_vocabularies.SPECIAL) - len(words))]
    listed = [*words, *unused, *byte_level().words[len(gguf_vocabularies.SPECIAL) :]]
    metadata = {**bpe_metadata(renamed(listed), "gpt-4o"), "tokenizer.ggml.eos_token_id": 0}
    file = read_gguf(write(tmp_path / "ends.gguf", metadata))
    assert {listed[number] for number in vocabularies.end_tokens(file)} == ends


def test_missing_rule_is_reported_in_the_run(tmp_path: Path) -> None:
    model = core.load(write(tmp_path / "rule.gguf", bpe_metadata(byte_level(), None)), device="cpu")
    events = core.run(model, core.Request("don't wait 12345", {"max_new_tokens": 1})).events
    messages = [event.message for event in events if isinstance(event, core.events.Notice)]
    assert any("does not say how its tokenizer splits words" in message for message in messages)


def test_suppressed_tokens_are_never_chosen(tmp_path: Path) -> None:
    metadata = bpe_metadata(byte_level(), "gpt-2")
    request = core.Request("Once", {"max_new_tokens": 3, "do_sample": False, "eos_token_id": None})
    free = core.run(core.load(write(tmp_path / "free.gguf", metadata), device="cpu"), request).sequences[0]
    metadata["tokenizer.ggml.suppress_tokens"] = [free[0], 10**6]
    bound = core.run(core.load(write(tmp_path / "bound.gguf", metadata), device="cpu"), request).sequences[0]
    assert free[0] not in bound


def broken(change: dict[str, Any], kind: str = "gpt2") -> dict[str, Any]:
    whole = bpe_metadata(byte_level(), "gpt-2") if kind == "gpt2" else sentencepiece_metadata(marked())
    found = {**whole, **{f"tokenizer.ggml.{key}": value for key, value in change.items()}}
    return {key: value for key, value in found.items() if value is not None}


WORDS, MERGES = byte_level().words, byte_level().merges
BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "no merges": (broken({"merges": None}), "no merges, so that every text would be split into single bytes"),
    "unknown token in a merge": (broken({"merges": [*MERGES, "h qqqq"]}), "names “qqqq”, which is no token"),
    "unknown result of a merge": (broken({"merges": ["Q Z"]}), "names “QZ”, which is no token"),
    "merge of one part": (broken({"merges": [*MERGES, "he"]}), "which is no token"),
    "same token twice": (broken({"tokens": [*WORDS[:-1], "a"]}), "are both “a”"),
    "too few kinds": (broken({"token_type": [1]}), "1 kinds for"),
    "kinds that are fractions": (broken({"token_type": [1.5] * len(WORDS)}), "not whole numbers"),
    "bos wanted without an id": (
        broken({"pre": "glm4", "bos_token_id": None, "add_bos_token": True}), "does not say which one"
    ),
    "hybrid": (broken({"model": "hybriddna"}), "its kind “hybriddna” is not supported here"),
    "plamo without bytes": (broken({"model": "plamo2", "scores": [0.0] * len(WORDS)}), "no token for the byte 0"),
    "unknown kind": (broken({"model": "word2vec"}), "“word2vec” is unknown"),
    "scores that are texts": (broken({"scores": ["a"]}, "llama"), "it has no scores"),
    "too few scores": (broken({"scores": [1.0]}, "llama"), "1 scores for"),
    "scores that are not numbers": (broken({"scores": [float("nan")] * len(marked().words)}, "llama"), "not numbers"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_vocabulary_is_refused_with_its_reason(case: str, tmp_path: Path) -> None:
    metadata, reason = BROKEN[case]
    with pytest.raises(TokenizerMissingError, match=reason) as caught:
        loaded(write(tmp_path / "broken.gguf", metadata))
    assert caught.value.remedy


def test_token_that_is_no_text_is_refused_by_its_number(tmp_path: Path) -> None:
    path = write(tmp_path / "bytes.gguf", bpe_metadata(byte_level(), "gpt-2"))
    data, word = path.read_bytes(), byte_level().words[500].encode()
    place = data.index(struct.pack("<Q", len(word)) + word) + 8
    path.write_bytes(data[:place] + b"\xff" * len(word) + data[place + len(word) :])
    with pytest.raises(TokenizerMissingError, match=r"token \d+ is not text \(UTF-8\)"):
        loaded(path)


def test_tokens_of_one_letter_are_refused_before_they_fill_the_memory(tmp_path: Path) -> None:
    """2,000 runs of a letter join to each other in two million ways, of four gigabytes."""
    words = [*marked().words[:300], *("x" * length for length in range(1, 2001))]
    metadata = sentencepiece_metadata(gguf_vocabularies.Vocabulary(words, [1] * len(words), []))
    path = write(tmp_path / "runs.gguf", metadata)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TokenizerMissingError, match="join to each other in too many ways"):
        loaded(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000


@pytest.mark.parametrize(
    "data", [b"\1\0\0", struct.pack("<I", 2**32 - 8) + b"abcdefgh", struct.pack("<I", 5) + b"a" * 20]
)
def test_character_map_with_a_false_length_is_refused(data: bytes, tmp_path: Path) -> None:
    words = ["<pad>", "</s>", "<unk>", "▁", "a"]
    metadata = {
        "tokenizer.ggml.model": "t5", "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.scores": [0.0, 0.0, 0.0, -1.0, -2.0], "tokenizer.ggml.token_type": [3, 3, 2, 1, 1],
        "tokenizer.ggml.precompiled_charsmap": list(data),
    }  # fmt: skip
    path = write(tmp_path / "map.gguf", metadata)
    with pytest.raises(TokenizerMissingError, match="its map of characters is"):
        loaded(path)


QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def in_transformers(kind: str) -> Any:
    """Return a tokenizer as transformers has it: bytes with Qwen's or GPT-2's pattern, or SentencePiece's merges."""
    vocabulary = marked() if kind.startswith("sentencepiece") else byte_level()
    numbers = {word: number for number, word in enumerate(vocabulary.words)}
    merges = [(left, right) for left, _, right in (merge.partition(" ") for merge in vocabulary.merges)]
    spm = kind.startswith("sentencepiece")
    backend = Tokenizer(
        models.BPE(numbers, merges, byte_fallback=spm, unk_token="<unk>" if spm else None, fuse_unk=spm)
    )
    if spm:
        backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    elif kind == "lower case":
        backend.normalizer = normalizers.Lowercase()
    if kind == "qwen":
        backend.normalizer = normalizers.NFC()
    if kind in ("qwen", "own words"):
        split = pre_tokenizers.Split(Regex(QWEN_PATTERN if kind == "qwen" else r"\w+|\W+"), "isolated")
        backend.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    elif not spm:
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<s>", "</s>", "<|im_start|>", "<|im_end|>", *(["<unk>"] if spm else [])])
    backend.add_tokens([AddedToken("<tool>", rstrip=kind == "swallows spaces", normalized=False)])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>" if spm else None
    )


@pytest.mark.parametrize("kind", ["gpt-2", "qwen", "sentencepiece"])
def test_exported_tokenizer_gives_the_same_ids(kind: str, tmp_path: Path) -> None:
    tokenizer = in_transformers(kind)
    metadata = tokenizer_metadata("tiny", tokenizer, len(tokenizer), [2, 4])
    path = write(tmp_path / "exported.gguf", metadata)
    again = loaded(path)
    for text in TEXTS:
        for special in (True, False):
            ids = tokenizer(text, add_special_tokens=special)["input_ids"]
            assert again(text, add_special_tokens=special)["input_ids"] == ids
    assert vocabularies.end_tokens(read_gguf(path)) == [2, 4]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("lower case", "would read texts otherwise from GGUF"), ("own words", "a rule that llama.cpp has no name for"),
        ("swallows spaces", "would read texts otherwise from GGUF"),
    ],
)  # fmt: skip
def test_tokenizer_that_gguf_cannot_express_is_refused(kind: str, reason: str) -> None:
    tokenizer = in_transformers(kind)
    with pytest.raises(UnpackableError, match=reason):
        tokenizer_metadata("tiny", tokenizer, len(tokenizer), [2])


def test_end_token_without_a_key_is_refused_by_name() -> None:
    tokenizer = in_transformers("gpt-2")
    with pytest.raises(UnpackableError, match=r"ends texts at “.+”, which GGUF has no key for"):
        tokenizer_metadata("tiny", tokenizer, len(tokenizer), [2, 40, 41, 42])


def test_tokenizer_with_parts_in_python_is_not_written(tmp_path: Path) -> None:
    tokenizer = loaded(write(tmp_path / "rwkv.gguf", gguf_vocabularies.rwkv_metadata()))
    with pytest.raises(UnpackableError, match="has parts that cannot be written"):
        tokenizer_metadata("tiny", tokenizer, len(tokenizer), [0])


def test_vocabulary_read_from_gguf_is_written_again(tmp_path: Path) -> None:
    path = write(tmp_path / "first.gguf", bpe_metadata(byte_level(), "deepseek-v3"))
    tokenizer = loaded(path)
    metadata = tokenizer_metadata("tiny", tokenizer, len(tokenizer), [2, 4])
    assert metadata["tokenizer.ggml.pre"] == "deepseek-v3"
    again = loaded(write(tmp_path / "second.gguf", metadata))
    assert [again(text)["input_ids"] for text in TEXTS] == [tokenizer(text)["input_ids"] for text in TEXTS]
