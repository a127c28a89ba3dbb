"""Build a tokenizer from the vocabulary in a GGUF file.

llama.cpp stores tokens, their kinds, merges or scores, and the name of the rule that splits text into words
(`pre_tokenizer_rules.py`). What it assumes where a key is missing is in `vocabulary.py`. How texts become tokens:
https://github.com/ggml-org/llama.cpp/blob/master/src/llama-vocab.cpp. `docs/gguf-tokenizers.md` lists the known
differences.
"""

from __future__ import annotations

import heapq
import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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
from decodescope.core.models.token_scheme import byte_alphabet
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
    if rule.marks_lines:
        steps.append(normalizers.Replace(Regex(r"(?:\A|(?<=\n))(?=[^▁\n])"), "▁"))
    if steps:
        backend.normalizer = steps[0] if len(steps) == 1 else normalizers.Sequence(steps)
    backend.pre_tokenizer = pre_tokenizer(rule)
    backend.decoder = (
        decoders.ByteLevel() if rule.reads_bytes else _sentencepiece_decoder(False, BYTE in vocabulary.kinds)
    )
    return backend


def _merges(file: GgufFile, vocabulary: GgufVocabulary, numbers: Mapping[str, int]) -> list[tuple[str, str]]:
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
    score is joined first (Kudo and Richardson 2018, https://arxiv.org/abs/1808.06226), of equal ones the first in the
    text.
    """
    words = vocabulary.words
    scores = _scores(file, len(words))
    numbers = _numbered(words)
    joined = _joining_pairs(file, vocabulary, numbers)
    tokens = {pair.token for pair in joined if vocabulary.kinds[pair.token] not in (CONTROL, UNKNOWN)}
    has_ties = len({scores[number] for number in tokens}) < len(tokens)
    joined.sort(key=lambda pair: (-scores[pair.token], pair.left, pair.right))
    unknown = vocabulary.special.get("unk")
    backend = Tokenizer(
        models.BPE(
            vocab=numbers,
            merges=[] if has_ties else [(words[pair.left], words[pair.right]) for pair in joined],
            unk_token=None if unknown is None else words[unknown],
            fuse_unk=True,
            byte_fallback="<0x00>" in numbers,
            ignore_merges=has_ties,
        )
    )
    if has_ties:  # the library has an order of merges, in which no two are equal
        merging: Any = ScoredMerging({words[pair.token]: scores[pair.token] for pair in joined})
        backend.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(merging)
    backend.normalizer = normalizers.Replace(" ", "▁")
    if vocabulary.adds_space:
        backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = _sentencepiece_decoder(vocabulary.adds_space, BYTE in vocabulary.kinds)
    return backend


class _TokenCutter:
    """A pre-tokenizer of a Tokenizer whose words are the tokens."""

    def pre_tokenize(self, text: Any) -> None:
        """Split a PreTokenizedString into tokens."""
        text.split(lambda _, part: _slices(part, 0, self.token_ends(str(part))))

    def token_ends(self, text: str) -> list[int]:
        """Return the positions in a text where its tokens end."""
        raise NotImplementedError

    @staticmethod
    def sizes_by_start(words: Iterable[str]) -> dict[str, list[int]]:
        """Return the lengths of the words by their first letter, longest first."""
        sizes: dict[str, set[int]] = {}
        for word in words:
            sizes.setdefault(word[:1], set()).add(len(word))
        return {start: sorted(found, reverse=True) for start, found in sizes.items()}


class ScoredMerging(_TokenCutter):
    """Joins characters to tokens by their scores, from left to right where scores are equal.

    Converters without scores write the same one for all tokens.
    """

    def __init__(self, scores: Mapping[str, float]) -> None:
        self._scores = scores

    def token_ends(self, text: str) -> list[int]:
        """Return the positions in a text where its tokens end."""
        sizes, before = [1] * len(text), list(range(-1, len(text) - 1))
        waiting: list[tuple[float, int, int, int]] = []

        def add(left: int, right: int) -> None:
            if left >= 0 and right < len(text):
                score = self._scores.get(text[left : right + sizes[right]])
                if score is not None:
                    heapq.heappush(waiting, (-score, left, right, sizes[left] + sizes[right]))

        for place in range(1, len(text)):
            add(place - 1, place)
        while waiting:
            _, left, right, size = heapq.heappop(waiting)
            if not sizes[left] or not sizes[right] or sizes[left] + sizes[right] != size:
                continue
            sizes[left], sizes[right] = size, 0
            after = left + size
            if after < len(text):
                before[after] = left
            add(before[left], left)
            add(left, after)
        return [place + size for place, size in enumerate(sizes) if size]


def _slices(text: Any, start: int, ends: Sequence[int]) -> list[Any]:
    """Return the parts of a NormalizedString between positions; in halves, because a slice costs its text's length."""
    if len(ends) < 32:
        starts = [start, *ends[:-1]]
        return [text[first - start : last - start] for first, last in zip(starts, ends, strict=True)]
    half = len(ends) // 2
    middle = ends[half - 1]
    left, right = text[: middle - start], text[middle - start :]
    return [*_slices(left, start, ends[:half]), *_slices(right, middle, ends[half:])]


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
    if found is None and file.text("tokenizer.ggml.model") == "llama":
        return [0.0] * count
    if not isinstance(found, memoryview) or found.format not in ("f", "i", "d"):
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


class _JoiningPair(NamedTuple):
    """Two tokens that join to a third one, by their ids."""

    token: int
    left: int
    right: int


def _can_be_joined(vocabulary: GgufVocabulary, number: int) -> bool:
    return vocabulary.kinds[number] != USER_DEFINED or "▁" in vocabulary.words[number]


def _joining_pairs(file: GgufFile, vocabulary: GgufVocabulary, numbers: Mapping[str, int]) -> list[_JoiningPair]:
    """Return every pair of tokens that joins to a token. Raises TokenizerMissingError for a vocabulary with too many.

    User-defined tokens are cut out of a text before, so that no pair joins to one, unless it has spaces: those become
    marks (▁) only afterwards.
    """
    found: list[_JoiningPair] = []
    limit = _MAX_MERGE_CHARACTERS * sum(map(len, vocabulary.words)) + _FREE_CHARACTERS
    joined, compared = 0, 0
    for number, word in enumerate(vocabulary.words):
        if len(word) == 1 or not _can_be_joined(vocabulary, number):
            continue
        compared += len(word) ** 2
        for cut in range(1, len(word)):
            left = numbers.get(word[:cut])
            if left is None:
                continue
            right = numbers.get(word[cut:])
            if right is not None:
                found.append(_JoiningPair(number, left, right))
                joined += len(word)
        if joined > limit or compared > _MAX_CUT_CHARACTERS:
            raise damaged_error(
                file, tr("its tokens are long and join to each other in too many ways; no real vocabulary is like that")
            )
    return found


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


def _longest_bytes(file: GgufFile, vocabulary: GgufVocabulary) -> Tokenizer:
    """RWKV's vocabulary: at each place of a text the token of the most bytes."""
    words, kinds = vocabulary.words, vocabulary.kinds
    alphabet = {byte: character for character, byte in byte_alphabet().items()}
    for number, word in enumerate(words):
        if kinds[number] not in (CONTROL, USER_DEFINED, UNKNOWN):
            words[number] = "".join(alphabet[byte] for byte in _unescaped(word))
    if len(set(words)) < len(words):
        raise damaged_error(file, tr("two of its tokens have the same bytes"))
    backend = Tokenizer(models.BPE(vocab=_numbered(words), merges=[], ignore_merges=True))
    longest: Any = LongestMatching(word for word in words if word)
    backend.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), pre_tokenizers.PreTokenizer.custom(longest),
    ])  # fmt: skip
    backend.decoder = decoders.ByteLevel()
    return backend


_ESCAPES = {ord("t"): b"\t", ord("n"): b"\n", ord("r"): b"\r"}


def _unescaped(word: str) -> bytes:
    """Return the bytes of a token of RWKV, which is written like a literal of Python."""
    return re.sub(
        rb"\\(?:x([0-9a-fA-F]{2})|(.))",
        lambda found: bytes.fromhex(found[1].decode()) if found[1] else _ESCAPES.get(found[2][0], found[2]),
        word.encode(), flags=re.DOTALL,
    )  # fmt: skip


class LongestMatching(_TokenCutter):
    """Cuts a text into the longest tokens, from left to right."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = frozenset(words)
        self._lengths = self.sizes_by_start(self._words)

    def token_ends(self, text: str) -> list[int]:
        """Return the positions in a text where its tokens end; a character that begins none is a word of its own."""
        found, place = [], 0
        while place < len(text):
            lengths = self._lengths.get(text[place], ())
            place += next((size for size in lengths if text[place : place + size] in self._words), 1)
            found.append(place)
        return found


def _best_sum(file: GgufFile, vocabulary: GgufVocabulary) -> Tokenizer:
    """PLaMo 2's vocabulary: the split of a text whose scores have the highest sum, unknown characters as bytes."""
    words, scores = vocabulary.words, _scores(file, len(vocabulary.words))
    numbers = _numbered(words)
    missing = next((byte for byte in range(256) if f"<0x{byte:02X}>" not in numbers), None)
    if missing is not None:
        raise damaged_error(file, tr("it has no token for the byte {byte}").format(byte=missing))
    backend = Tokenizer(models.BPE(vocab=numbers, merges=[], ignore_merges=True, byte_fallback=True))
    backend.normalizer = normalizers.Replace(Regex(r"\A\uFEFF"), "")
    best: Any = BestSum({
        word: round(score * 1e4)
        for word, score, kind in zip(words, scores, vocabulary.stored_kinds, strict=True)
        if kind != BYTE and math.isfinite(score)
    })  # fmt: skip
    backend.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(best)
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return backend


class BestSum(_TokenCutter):
    """Cuts a text so that the sum of the tokens' scores, in ten-thousandths, is highest; of equal ones, takes the
    longest first token.
    """

    _UNKNOWN_SCORE, _LOWEST_SCORE = -10_000_000, -20_000_000

    def __init__(self, scores: Mapping[str, int]) -> None:
        self._scores = {word: score for word, score in scores.items() if score > self._LOWEST_SCORE}
        self._lengths = self.sizes_by_start(self._scores)

    def token_ends(self, text: str) -> list[int]:
        """Return the positions in a text where its tokens end; an unknown character is a word of its own."""
        sums, sizes = [0] * (len(text) + 1), [1] * len(text)
        for place in range(len(text) - 1, -1, -1):
            best: int | None = None
            for size in self._lengths.get(text[place], ()):
                score = self._scores.get(text[place : place + size])
                if score is None or place + size > len(text):
                    continue
                if best is None or sums[place + size] + score > best:
                    best, sizes[place] = sums[place + size] + score, size
            unknown = sums[place + 1] + self._UNKNOWN_SCORE
            if best is None or unknown > best:
                best, sizes[place] = unknown, 1
            sums[place] = best
        found, place = [], 0
        while place < len(text):
            place += sizes[place]
            found.append(place)
        return found


_BUILDERS: dict[str, Callable[[GgufFile, GgufVocabulary], Tokenizer]] = {
    "gpt2": _byte_level,
    "gemma4": _byte_level,
    "llama": _sentencepiece,
    "t5": _unigram,
    "bert": _wordpiece,
    "rwkv": _longest_bytes,
    "plamo2": _best_sum,
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
    if vocabulary.model in ("rwkv", "plamo2"):
        return [], []
    if vocabulary.model == "bert":
        return [special["bos"]] if "bos" in special else [], [special["sep"]] if "sep" in special else []
    return [special["bos"]] if vocabulary.adds_bos else [], [special["eos"]] if vocabulary.adds_eos else []


def _length(file: GgufFile) -> int:
    context = file.number(f"{file.architecture}.context_length")
    return context if isinstance(context, int) and context > 0 else 2**30
