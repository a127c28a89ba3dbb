"""Build a tokenizer from the vocabulary in a GGUF file.

llama.cpp stores tokens, their kinds, merges or scores, and the name of the rule that splits text into words
(`pre_tokenizer_rules.py`). What it assumes where a key is missing is in `vocabulary.py`. How texts become tokens:
https://github.com/ggml-org/llama.cpp/blob/master/src/llama-vocab.cpp. `docs/gguf.md` lists the known differences.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from decodescope.core.errors import TokenizerMissingError
from decodescope.core.models.gguf.gguf_file import GgufFile, TextArray
from decodescope.core.models.gguf.pre_tokenizer_rules import pre_tokenizer
from decodescope.core.models.gguf.vocabulary import (
    BYTE,
    CONTROL,
    NORMAL,
    SPECIAL_TOKENS,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    GgufVocabulary,
    damaged_error,
    read_vocabulary,
    tokenizer_error,
)
from decodescope.core.models.model_files import is_library_failure
from decodescope.resources.language import tr

_NFC = frozenset({"qwen2", "deepseek-r1-qwen", "qwen35"})
"""Rules of models whose own tokenizers compose characters first (Unicode's form C), which llama.cpp does not."""


def load_gguf_tokenizer(file: GgufFile) -> PreTrainedTokenizerBase | None:
    """Return the tokenizer in a GGUF file, or None if it has none. Raises TokenizerMissingError."""
    vocabulary = read_vocabulary(file)
    if vocabulary is None:
        return None
    try:
        backend = _BUILDERS[vocabulary.model](file, vocabulary)
    except TokenizerMissingError:
        raise
    except BaseException as error:  # the library's own exceptions
        if not is_library_failure(error):
            raise
        reason = str(error).strip()[:200] or tr("the library tokenizers fails ({kind})").format(
            kind=type(error).__name__
        )
        raise tokenizer_error(file, reason) from error
    return _wrapped(file, backend, vocabulary)


def _byte_level(file: GgufFile, vocabulary: GgufVocabulary) -> Tokenizer:
    """Byte-level BPE, as of GPT-2 and most models since; and Gemma 4's, whose tokens are texts."""
    rule = vocabulary.rule
    assert rule is not None
    numbers = _numbered(vocabulary.words)
    backend = Tokenizer(
        models.BPE(
            vocab=numbers,
            merges=_merges(file, vocabulary, numbers),
            fuse_unk=False,
            byte_fallback=not rule.reads_bytes,
            ignore_merges=rule.ignores_merges,
        )
    )
    steps: list[normalizers.Normalizer] = []
    if vocabulary.rule_name in _NFC:
        steps.append(normalizers.NFC())
    if rule.marks_spaces:
        steps.append(normalizers.Replace(" ", "▁"))
    if steps:
        backend.normalizer = steps[0] if len(steps) == 1 else normalizers.Sequence(steps)
    backend.pre_tokenizer = pre_tokenizer(rule)
    backend.decoder = (
        decoders.ByteLevel() if rule.reads_bytes else _sentencepiece_decoder(False, BYTE in vocabulary.kinds)
    )
    return backend


def _merges(file: GgufFile, vocabulary: GgufVocabulary, numbers: dict[str, int]) -> list[tuple[str, str]]:
    """Return the merges, each pair once. Raises TokenizerMissingError."""
    merges = file.metadata.get("tokenizer.ggml.merges")
    if not isinstance(merges, TextArray):
        if vocabulary.rule_name == "kimi-k2" and merges is None:
            return []
        raise damaged_error(file, tr("it has no merges, so that every text would be split into single bytes"))
    pairs = dict.fromkeys(_pair(merge) for merge in merges)
    for left, right in pairs:
        missing = next((part for part in (left, right, left + right) if part not in numbers), None)
        if missing is not None:
            raise damaged_error(
                file,
                tr("its merge of “{left}” and “{right}” names “{missing}”, which is no token").format(
                    left=left[:40], right=right[:40], missing=missing[:80]
                ),
            )
    return list(pairs)


def _sentencepiece(file: GgufFile, vocabulary: GgufVocabulary) -> Tokenizer:
    """SentencePiece's BPE with byte tokens, as of Llama 2, Mistral, Phi-3 and Gemma.

    The files contain scores instead of merges: of all pairs of tokens that join to a token, the one with the highest
    score is joined first (Kudo and Richardson 2018, https://arxiv.org/abs/1808.06226).
    """
    words = vocabulary.words
    ranks = _scores(file, len(words))
    numbers = _numbered(words)
    unknown = vocabulary.special.get("unk")
    backend = Tokenizer(
        models.BPE(
            vocab=numbers,
            merges=_merges_by_score(file, words, ranks, numbers),
            unk_token=None if unknown is None else words[unknown],
            fuse_unk=True,
            byte_fallback="<0x00>" in numbers,
        )
    )
    backend.normalizer = normalizers.Replace(" ", "▁")
    if vocabulary.adds_space:
        backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = _sentencepiece_decoder(vocabulary.adds_space, BYTE in vocabulary.kinds)
    return backend


def _sentencepiece_decoder(prefix: bool, has_bytes: bool) -> decoders.Decoder:
    """Return a decoder of pieces; `prefix`: without the space that every text begins with; `has_bytes`: some tokens
    are bytes, by their kind.
    """
    fallback = [decoders.ByteFallback()] if has_bytes else []
    steps: list[Any] = [decoders.Replace("▁", " "), *fallback, decoders.Fuse()]
    return decoders.Sequence([*steps, *([decoders.Strip(" ", 1, 0)] if prefix else [])])


def _scores(file: GgufFile, count: int) -> list[float]:
    """Return the score of each token. Raises TokenizerMissingError."""
    found = file.metadata.get("tokenizer.ggml.scores")
    if not isinstance(found, memoryview):
        raise damaged_error(file, tr("it has no scores"))
    if len(found) < count:
        raise damaged_error(
            file, tr("it has {scores:,} scores for {tokens:,} tokens").format(scores=len(found), tokens=count)
        )
    scores = [float(score) for score in found[:count]]
    if any(score != score for score in scores):
        raise damaged_error(file, tr("it has scores that are not numbers"))
    return scores


_MAX_MERGE_CHARACTERS = 16
"""Characters of all pairs that join to a token, as a multiple of the characters of all tokens. Real vocabularies have
up to 4; runs of one letter, which join in every way, have thousands.
"""
_FREE_CHARACTERS = 4_000_000
_MAX_CUT_CHARACTERS = 2_000_000_000
"""Characters that are compared in the search for these pairs: a second's work."""


def _merges_by_score(
    file: GgufFile, words: Sequence[str], scores: Sequence[float], numbers: dict[str, int]
) -> list[tuple[str, str]]:
    """Return every pair of tokens that joins to a token, those of the highest score first.

    Raises TokenizerMissingError for a vocabulary with too many of them.
    """
    found: list[tuple[float, int, int]] = []
    limit = _MAX_MERGE_CHARACTERS * sum(map(len, words)) + _FREE_CHARACTERS
    joined, compared = 0, 0
    for number, word in enumerate(words):
        compared += len(word) ** 2
        for cut in range(1, len(word)):
            left = numbers.get(word[:cut])
            if left is None:
                continue
            right = numbers.get(word[cut:])
            if right is not None:
                found.append((-scores[number], left, right))
                joined += len(word)
        if joined > limit or compared > _MAX_CUT_CHARACTERS:
            raise damaged_error(
                file, tr("its tokens are long and join to each other in too many ways; no real vocabulary is like that")
            )
    found.sort()
    return [(words[left], words[right]) for _, left, right in found]


def _unigram(file: GgufFile, vocabulary: GgufVocabulary) -> Tokenizer:
    """SentencePiece's unigram model, as of T5: the split of a text whose scores have the highest sum (Kudo 2018,
    https://arxiv.org/abs/1804.10959).
    """
    words, kinds = vocabulary.words, vocabulary.stored_kinds
    _name_blanks(file, words, kinds)
    scores = _scores(file, len(words))
    lowest = min((score for score, kind in zip(scores, kinds, strict=True) if kind == NORMAL), default=0.0)
    # the library takes the lowest of all scores for the cost of an unknown character, llama.cpp that of normal tokens
    pieces = [(word, max(score, lowest)) for word, score in zip(_numbered(words), scores, strict=True)]
    unknown = vocabulary.special.get("unk")
    if unknown is None:
        raise damaged_error(file, tr("it has no token for unknown characters"))
    backend = Tokenizer(models.Unigram(pieces, unk_id=unknown, byte_fallback=False))
    prefix = vocabulary.adds_space
    steps: list[normalizers.Normalizer] = []
    characters = file.metadata.get("tokenizer.ggml.precompiled_charsmap")
    if characters is not None:
        steps.append(normalizers.Precompiled(_character_map(file, characters)))
    if vocabulary.merges_spaces:
        steps += [normalizers.Replace(Regex(r"\A +| +\z"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
        prefix = True
    steps += [normalizers.Replace(Regex(r"\A(?= *[^ ])"), "▁")] if prefix else []
    backend.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
    backend.decoder = _sentencepiece_decoder(vocabulary.adds_space, BYTE in kinds)
    return backend


def _character_map(file: GgufFile, characters: object) -> bytes:
    """Return SentencePiece's map of characters after a check of its header, because the library reserves what that
    says: the bytes of a double array, the array, and replacements. Raises TokenizerMissingError.
    """
    if not isinstance(characters, memoryview) or characters.itemsize != 1:
        raise damaged_error(file, tr("its map of characters is no list of bytes"))
    data = bytes(characters)
    size = struct.unpack_from("<I", data)[0] if len(data) >= 4 else 0
    if size + 4 >= len(data) or size % 4:
        raise damaged_error(file, tr("its map of characters is cut or damaged"))
    return data


_BLANKS = 100
"""Number of tokens that stand for a blank in T5's prompts."""
_PLACEHOLDER = re.compile(r"\[PAD\d+\]")


def _name_blanks(file: GgufFile, words: list[str], kinds: Sequence[int]) -> None:
    """Name the tokens <extra_id_99> … <extra_id_0> of T5, which llama.cpp's converter replaces by placeholders."""
    unused = (number for number, kind in enumerate(kinds) if kind == UNUSED)
    free = [number for number in unused if _PLACEHOLDER.fullmatch(words[number])]
    if file.architecture == "t5" and len(free) >= _BLANKS and not any("<extra_id_" in word for word in words):
        for blank, number in enumerate(free[:_BLANKS]):
            words[number] = f"<extra_id_{_BLANKS - 1 - blank}>"


_WORD_START = "▁"


def _wordpiece(file: GgufFile, vocabulary: GgufVocabulary) -> Tokenizer:
    """WordPiece, as of BERT: the longest piece at the beginning of a word, then of the rest, until none is left.

    The files mark the pieces that begin a word, the library those that do not.
    """
    words = vocabulary.words
    spelled = [
        word if kind != NORMAL else word.removeprefix(_WORD_START) if word.startswith(_WORD_START) else f"##{word}"
        for word, kind in zip(words, vocabulary.stored_kinds, strict=True)
    ]
    if len(set(spelled)) < len(spelled):
        raise damaged_error(file, tr("two of its tokens differ only in the mark of a word's beginning"))
    words[:] = spelled
    unknown = vocabulary.special.get("unk")
    if unknown is None:
        raise damaged_error(file, tr("it has no token for unknown words"))
    backend = Tokenizer(models.WordPiece(_numbered(spelled), unk_token=spelled[unknown]))
    lowers = bool(file.metadata.get("tokenizer.ggml.normalizer.lowercase", True))
    strips = bool(file.metadata.get("tokenizer.ggml.normalizer.strip_accents", lowers))
    backend.normalizer = normalizers.BertNormalizer(lowercase=lowers, strip_accents=strips)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    return backend


_BUILDERS: dict[str, Callable[[GgufFile, GgufVocabulary], Tokenizer]] = {
    "gpt2": _byte_level,
    "gemma4": _byte_level,
    "llama": _sentencepiece,
    "t5": _unigram,
    "bert": _wordpiece,
}


def _pair(merge: str) -> tuple[str, str]:
    """Return the two parts of a merge, which a space separates; the first part may begin with a space."""
    place = merge.find(" ", 1)
    return (merge[:place], merge[place + 1 :]) if place > 0 else (merge, "")


def _numbered(words: Sequence[str]) -> dict[str, int]:
    return {word: number for number, word in enumerate(words)}


def _add_tokens(backend: Tokenizer, vocabulary: GgufVocabulary) -> None:
    """Make control tokens special, and let user-defined ones match as a whole."""
    groups: dict[bool, list[AddedToken]] = {True: [], False: []}
    for number, (word, kind) in enumerate(zip(vocabulary.words, vocabulary.kinds, strict=True)):
        if kind in (CONTROL, UNKNOWN, USER_DEFINED):
            is_special = kind != USER_DEFINED
            groups[is_special].append(
                AddedToken(
                    word, normalized=False, special=is_special, lstrip=number in vocabulary.strips_left,
                    rstrip=number in vocabulary.strips_right,
                )
            )  # fmt: skip
    backend.add_special_tokens(groups[True])
    backend.add_tokens(groups[False])


def _wrapped(file: GgufFile, backend: Tokenizer, vocabulary: GgufVocabulary) -> PreTrainedTokenizerBase:
    """Return transformers' tokenizer with the special tokens and the chat template of the file."""
    _add_tokens(backend, vocabulary)
    words, special = vocabulary.words, vocabulary.special
    begins, ends = _frame(vocabulary)
    if begins or ends:
        first, last = [words[number] for number in begins], [words[number] for number in ends]
        backend.post_processor = processors.TemplateProcessing(
            single=[*first, "$A", *last],
            pair=[*first, "$A", *last, *first, "$B", *last],
            special_tokens=[(words[number], number) for number in dict.fromkeys((*begins, *ends))],
        )
    tokenizer: Any = PreTrainedTokenizerFast(
        tokenizer_object=_TokenizerReference(backend), clean_up_tokenization_spaces=False,
        model_max_length=_length(file),
    )  # fmt: skip
    for name in SPECIAL_TOKENS:
        if name in special:  # named afterwards: transformers would make a normal token special
            setattr(tokenizer, f"{name}_token", words[special[name]])
    template: Any = _chat_templates(file)
    if template is not None:
        tokenizer.chat_template = template
    if vocabulary.rule is not None and vocabulary.rule_name is None:
        tokenizer.notices = (
            tr(
                "{file} does not say how its tokenizer splits words (tokenizer.ggml.pre). llama.cpp's default rule is"
                " used; the model may read texts otherwise than it was trained to. Choose a newer GGUF file."
            ).format(file=file.files[0].name),
        )
    loaded: PreTrainedTokenizerBase = tokenizer
    return loaded


def _chat_templates(file: GgufFile) -> str | dict[str, str] | None:
    """Return the file's chat template; several by name if there are; None without one."""
    default = file.text("tokenizer.chat_template")
    names = file.metadata.get("tokenizer.chat_templates")
    several = {
        name: text
        for name in (names if isinstance(names, TextArray) else ())
        if (text := file.text(f"tokenizer.chat_template.{name}")) is not None
    }
    if several and default is not None:
        several.setdefault("default", default)
    return several or default


class _TokenizerReference:
    """Passes a tokenizer to transformers, which would copy it: a fifth of the time of loading a small model."""

    def __init__(self, backend: Tokenizer) -> None:
        self._backend = backend

    def __deepcopy__(self, memo: object) -> Tokenizer:
        return self._backend


def _frame(vocabulary: GgufVocabulary) -> tuple[list[int], list[int]]:
    """Return the tokens that begin and end every text."""
    special = vocabulary.special
    if vocabulary.model == "bert":
        return [special["bos"]] if "bos" in special else [], [special["sep"]] if "sep" in special else []
    return [special["bos"]] if vocabulary.adds_bos else [], [special["eos"]] if vocabulary.adds_eos else []


def _length(file: GgufFile) -> int:
    context = file.number(f"{file.architecture}.context_length")
    return context if isinstance(context, int) and context > 0 else 2**30
