"""Build a tokenizer from the vocabulary in a GGUF file.

llama.cpp stores tokens, their kinds, merges or scores, and the name of the rule that splits text into words
(`tokenizer.ggml.pre`). What the rules are: the tokenizer.json files of the models that they are named after, and
https://github.com/ggml-org/llama.cpp/blob/master/src/llama-vocab.cpp.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from decodescope.core.errors import TokenizerMissingError
from decodescope.core.models.gguf.gguf_file import GgufFile, TextArray
from decodescope.core.models.model_files import is_library_failure
from decodescope.resources.language import mark, tr

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""Kinds of tokens in `tokenizer.ggml.token_type`."""
_REMEDY = mark("Choose the model in safetensors format, or another GGUF file.")
MAX_TOKEN_CHARACTERS = 4096
"""Longest text of a token in a vocabulary. The library frees the tree of a unigram vocabulary by recursion, one level
for each byte: a token of a million would end the process.
"""

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_CASED = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+{s}"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*{s}"
    r"|\p{N}{d}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_TEKKEN = _CASED.replace("{s}", "").replace("{d}", "")
_GPT4O = _CASED.replace("{s}", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?").replace("{d}", "{1,3}")
_QWEN35 = _QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
_SPLITS = {
    **dict.fromkeys(
        (
            "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "dbrx",
            "smaug-bpe", "jina-v5-nano", "chatglm-bpe", "glm4",
        ),
        _LLAMA3,
    ),
    **dict.fromkeys(
        ("qwen2", "deepseek-r1-qwen", "kormo", "megrez", "f2llmv2", "stablelm2", "hunyuan", "solar-open"), _QWEN2
    ),
    "qwen35": _QWEN35,
    "tekken": _TEKKEN,
    **dict.fromkeys(("gpt-4o", "llama4", "kanana2", "minimax-m2"), _GPT4O),
}  # fmt: skip
"""The patterns that split text, by `tokenizer.ggml.pre`; others use GPT-2's."""
_SINGLE_DIGITS = frozenset({
    "starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b",
})  # fmt: skip
"""Rules that split digits one by one and then use GPT-2's pattern."""
_GPT2_RULES = frozenset({
    "default", "gpt-2", "gpt2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v2-code", "gigachat",
    "mpt", "olmo", "jais", "trillion", "granite-docling", "roberta-bpe", "exaone4", "modern-bert", "a.x-4.0", "mellum",
})  # fmt: skip
_NFC = frozenset({"qwen2", "deepseek-r1-qwen", "qwen35"})
"""Rules of models whose tokenizers compose characters first (Unicode's form C)."""
_IGNORE_MERGES = frozenset({"llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral", "tekken", "midm-2.0"})
"""Rules of models that take a word as it is where it is a token."""
_ADDS_BOS = frozenset({"llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral", "tekken"})
"""Rules with which llama.cpp begins every prompt with the first token if the file does not say whether to."""
_DEEPSEEK = {
    "deepseek-coder": (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"),
    "deepseek-v3": (
        r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+",
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
        r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    ),
}  # fmt: skip
"""Patterns that are applied one after the other."""


def load_gguf_tokenizer(file: GgufFile) -> PreTrainedTokenizerBase | None:
    """Return the tokenizer in a GGUF file, or None if it has none. Raises TokenizerMissingError."""
    kind = file.text("tokenizer.ggml.model")
    if kind in (None, "none", "no_vocab"):
        return None
    build = _BUILDERS.get(kind or "")
    if build is None:
        raise _tokenizer_error(file, tr("its kind “{kind}” is unknown").format(kind=str(kind)[:40]))
    tokens = file.metadata.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, TextArray) or not len(tokens):
        raise _tokenizer_error(file, tr("it has no tokens"))
    words = list(tokens)
    if (longest := max(map(len, words))) > MAX_TOKEN_CHARACTERS:
        raise _tokenizer_error(file, tr("it has a token of {count:,} characters").format(count=longest))
    kinds = _kinds(file, len(words))
    try:
        backend = build(file, words, kinds)
    except TokenizerMissingError:
        raise
    except BaseException as error:  # the library's own exceptions
        if not is_library_failure(error):
            raise
        raise _tokenizer_error(file, str(error).strip()[:200]) from error
    return _wrapped(file, backend, words)


def _kinds(file: GgufFile, count: int) -> Sequence[int]:
    found = file.metadata.get("tokenizer.ggml.token_type")
    if isinstance(found, memoryview) and len(found) == count:
        return [int(kind) for kind in found]
    return [NORMAL] * count


def _byte_level(file: GgufFile, words: list[str], kinds: Sequence[int]) -> Tokenizer:
    """Byte-level BPE, as of GPT-2 and most models since."""
    rule = file.text("tokenizer.ggml.pre") or "default"
    merges = file.metadata.get("tokenizer.ggml.merges")
    pairs = [_pair(merge) for merge in merges] if isinstance(merges, TextArray) else []
    vocabulary = _numbered(words)
    backend = Tokenizer(
        models.BPE(
            vocab=vocabulary,
            merges=[pair for pair in pairs if pair[0] in vocabulary and pair[1] in vocabulary],
            fuse_unk=False,
            byte_fallback=False,
            ignore_merges=rule in _IGNORE_MERGES,
        )
    )
    if rule in _NFC:
        backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = _pre_tokenizer(file, rule)
    backend.decoder = decoders.ByteLevel()
    _add_tokens(backend, words, kinds)
    return backend


def pre_tokenizer_rules() -> dict[str, str]:
    """Return the names of the rules for splitting words, by the JSON of the pre-tokenizer that follows them."""
    found: dict[str, str] = {}
    for rule in (*_SPLITS, *_DEEPSEEK, *_SINGLE_DIGITS, "gpt-2"):
        backend = Tokenizer(models.BPE())
        backend.pre_tokenizer = _rule_pre_tokenizer(rule)
        found.setdefault(json.dumps(json.loads(backend.to_str())["pre_tokenizer"], sort_keys=True), rule)
    return found


def _pre_tokenizer(file: GgufFile, rule: str) -> pre_tokenizers.PreTokenizer:
    found = _rule_pre_tokenizer(rule)
    if found is None:
        raise _tokenizer_error(file, tr("its rule for splitting words, “{rule}”, is unknown").format(rule=rule[:40]))
    return found


def _rule_pre_tokenizer(rule: str) -> pre_tokenizers.PreTokenizer | None:
    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if rule in _DEEPSEEK:
        parts = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in _DEEPSEEK[rule]]
        return pre_tokenizers.Sequence([*parts, bytes_only])
    if rule in _SPLITS:
        return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(_SPLITS[rule]), "isolated"), bytes_only])
    whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if rule in _SINGLE_DIGITS:
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), whole])
    return whole if rule in _GPT2_RULES else None


def _sentencepiece(file: GgufFile, words: list[str], kinds: Sequence[int]) -> Tokenizer:
    """SentencePiece's BPE with byte tokens, as of Llama 2, Mistral, Phi-3 and Gemma.

    The files contain scores instead of merges: of all pairs of tokens that join to a token, the one with the highest
    score is joined first (Kudo and Richardson 2018, https://arxiv.org/abs/1808.06226).
    """
    ranks = _scores(file, len(words))
    added = {number for number, kind in enumerate(kinds) if kind in (CONTROL, USER_DEFINED, BYTE, UNKNOWN)}
    vocabulary = _numbered(words)
    unknown = next((word for word, kind in zip(words, kinds, strict=True) if kind == UNKNOWN), None)
    has_bytes = BYTE in kinds
    backend = Tokenizer(
        models.BPE(
            vocab=vocabulary,
            merges=_merges_by_score(words, ranks, vocabulary, added),
            unk_token=unknown,
            fuse_unk=True,
            byte_fallback=has_bytes,
        )
    )
    prefix = bool(file.metadata.get("tokenizer.ggml.add_space_prefix", True))
    backend.normalizer = normalizers.Replace(" ", "▁")
    if prefix:
        backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = _sentencepiece_decoder(prefix)
    _add_tokens(backend, words, kinds)
    return backend


def _sentencepiece_decoder(prefix: bool) -> decoders.Decoder:
    """Return a decoder of pieces; `prefix`: without the space that every text begins with."""
    steps: list[Any] = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence([*steps, *([decoders.Strip(" ", 1, 0)] if prefix else [])])


def _scores(file: GgufFile, count: int) -> list[float]:
    """Return the score of each token. Raises TokenizerMissingError."""
    found = file.metadata.get("tokenizer.ggml.scores")
    if not isinstance(found, memoryview):
        raise _tokenizer_error(file, tr("it has no scores"))
    if len(found) != count:
        raise _tokenizer_error(
            file, tr("it has {scores:,} scores for {tokens:,} tokens").format(scores=len(found), tokens=count)
        )
    scores = [float(score) for score in found]
    if any(score != score for score in scores):
        raise _tokenizer_error(file, tr("it has scores that are not numbers"))
    return scores


def _merges_by_score(
    words: Sequence[str], scores: Sequence[float], vocabulary: dict[str, int], added: set[int]
) -> list[tuple[str, str]]:
    """Return every pair of tokens that joins to a token, those of the highest score first."""
    found: list[tuple[float, int, int, str, str]] = []
    for number, word in enumerate(words):
        if number in added or len(word) < 2:
            continue
        for cut in range(1, len(word)):
            left, right = vocabulary.get(word[:cut]), vocabulary.get(word[cut:])
            if left is not None and right is not None and left not in added and right not in added:
                found.append((-scores[number], left, right, word[:cut], word[cut:]))
    found.sort()
    return [(left, right) for *_, left, right in found]


def _unigram(file: GgufFile, words: list[str], kinds: Sequence[int]) -> Tokenizer:
    """SentencePiece's unigram model, as of T5: the split of a text whose scores have the highest sum (Kudo 2018,
    https://arxiv.org/abs/1804.10959).
    """
    _name_blanks(file, words, kinds)
    scores = _scores(file, len(words))
    lowest = min((score for score, kind in zip(scores, kinds, strict=True) if kind == NORMAL), default=0.0)
    unknown = next((number for number, kind in enumerate(kinds) if kind == UNKNOWN), 2)
    # the library takes the lowest of all scores for the cost of an unknown character, llama.cpp that of normal tokens
    pieces = [(word, max(score, lowest)) for word, score in zip(_numbered(words), scores, strict=True)]
    backend = Tokenizer(models.Unigram(pieces, unk_id=min(unknown, len(words) - 1), byte_fallback=BYTE in kinds))
    prefix = bool(file.metadata.get("tokenizer.ggml.add_space_prefix", False))
    steps: list[normalizers.Normalizer] = []
    characters = file.metadata.get("tokenizer.ggml.precompiled_charsmap")
    if isinstance(characters, memoryview) and len(characters):
        steps.append(normalizers.Precompiled(bytes(characters)))
    if file.metadata.get("tokenizer.ggml.remove_extra_whitespaces", False):
        steps += [normalizers.Replace(Regex(r"\A +| +\z"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
        prefix = True
    steps += [normalizers.Prepend("▁")] if prefix else []
    backend.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
    backend.decoder = _sentencepiece_decoder(prefix)
    _add_tokens(backend, words, kinds)
    return backend


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


def _wordpiece(file: GgufFile, words: list[str], kinds: Sequence[int]) -> Tokenizer:
    """WordPiece, as of BERT: the longest piece at the beginning of a word, then of the rest, until none is left.

    The files mark the pieces that begin a word, the library those that do not.
    """
    spelled = [
        word if kind != NORMAL else word.removeprefix(_WORD_START) if word.startswith(_WORD_START) else f"##{word}"
        for word, kind in zip(words, kinds, strict=True)
    ]
    words[:] = spelled
    number = file.number("tokenizer.ggml.unknown_token_id", 100)
    unknown = spelled[number] if isinstance(number, int) and 0 <= number < len(spelled) else "[UNK]"
    backend = Tokenizer(models.WordPiece(_numbered(spelled), unk_token=unknown))
    lowers = bool(file.metadata.get("tokenizer.ggml.normalizer.lowercase", True))
    strips = bool(file.metadata.get("tokenizer.ggml.normalizer.strip_accents", lowers))
    backend.normalizer = normalizers.BertNormalizer(lowercase=lowers, strip_accents=strips)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    _add_tokens(backend, words, kinds)
    return backend


_BUILDERS: dict[str, Callable[[GgufFile, list[str], Sequence[int]], Tokenizer]] = {
    "gpt2": _byte_level,
    "llama": _sentencepiece,
    "t5": _unigram,
    "bert": _wordpiece,
}


def _pair(merge: str) -> tuple[str, str]:
    left, _, right = merge.partition(" ")
    return left, right


def _numbered(words: Sequence[str]) -> dict[str, int]:
    """Return the ids by token; of tokens that are spelled alike, the first has the spelling, as in llama.cpp."""
    numbers: dict[str, int] = {}
    for number, word in enumerate(words):
        spelling = word
        while spelling in numbers:
            spelling = f"{spelling}\0{number}"
        numbers[spelling] = number
    return numbers


def _add_tokens(backend: Tokenizer, words: Sequence[str], kinds: Sequence[int]) -> None:
    """Make control tokens special, and let user-defined ones match as a whole."""
    for kind, special in ((CONTROL, True), (USER_DEFINED, False)):
        chosen = [
            AddedToken(word, normalized=False, special=special)
            for word, own in zip(words, kinds, strict=True)
            if own == kind and word
        ]
        if chosen:
            backend.add_special_tokens(chosen) if special else backend.add_tokens(chosen)


SPECIAL_TOKENS = {
    "bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding", "sep": "seperator", "mask": "mask", "cls": "cls",
}  # fmt: skip
"""Keys of special tokens by transformers' names; the format spells one of them so."""
_DEFAULT_IDS = {
    "t5": {"eos": 1, "unk": 2, "pad": 0}, "bert": {"bos": 101, "unk": 100, "sep": 102, "pad": 0, "mask": 103},
}  # fmt: skip
"""Ids that llama.cpp takes where a file names none."""


def _wrapped(file: GgufFile, backend: Tokenizer, words: list[str]) -> PreTrainedTokenizerBase:
    """Return transformers' tokenizer with the special tokens and the chat template of the file."""
    special: dict[str, str] = {}
    kind = file.text("tokenizer.ggml.model")
    for name, key in SPECIAL_TOKENS.items():
        number = file.number(f"tokenizer.ggml.{key}_token_id", _DEFAULT_IDS.get(kind or "", {}).get(name))
        if isinstance(number, int) and 0 <= number < len(words):
            special[f"{name}_token"] = words[number]
    begins, ends = _frame(file, special)
    if begins or ends:
        backend.post_processor = processors.TemplateProcessing(
            single=[*begins, "$A", *ends],
            pair=[*begins, "$A", *ends, *begins, "$B", *ends],
            special_tokens=[(token, words.index(token)) for token in dict.fromkeys((*begins, *ends))],
        )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_TokenizerReference(backend), clean_up_tokenization_spaces=False,
        model_max_length=_length(file), **special,
    )  # fmt: skip
    template: Any = _chat_templates(file)
    if template is not None:
        tokenizer.chat_template = template
    return tokenizer


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


def _frame(file: GgufFile, special: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the tokens that begin and end every text."""
    kind, rule = file.text("tokenizer.ggml.model"), file.text("tokenizer.ggml.pre")
    if kind == "bert":
        first, last = special.get("bos_token") or special.get("cls_token"), special.get("sep_token")
        return [first] if first else [], [last] if last else []
    begins = file.metadata.get("tokenizer.ggml.add_bos_token", kind == "llama" or rule in _ADDS_BOS)
    ends = file.metadata.get("tokenizer.ggml.add_eos_token", kind == "t5")
    first, last = special.get("bos_token"), special.get("eos_token")
    return [first] if begins and first else [], [last] if ends and last else []


def _length(file: GgufFile) -> int:
    context = file.number(f"{file.architecture}.context_length")
    return context if isinstance(context, int) and context > 0 else 2**30


_ENDS_OF_TURN = re.compile(
    r"^(<\|eot_id\|>|<\|im_end\|>|<\|end\|>|<end_of_turn>|<\|endoftext\|>|<\|eom_id\|>|<EOT>|_<EOT>|<\|end_of_text\|>"
    r"|<end_of_utterance>|<\|return\|>|<\|call\|>|<eos>|</s>|<｜end▁of▁sentence｜>)$"
)
"""Control tokens with which llama.cpp ends a text, whatever else the file says."""


def end_tokens(file: GgufFile) -> list[int]:
    """Return the ids that end a text: those that the metadata name, and control tokens with the usual spellings."""
    tokens, kinds = file.metadata.get("tokenizer.ggml.tokens"), file.metadata.get("tokenizer.ggml.token_type")
    if not isinstance(tokens, TextArray):
        return []
    named = [file.number(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")]
    found = [number for number in named if isinstance(number, int) and 0 <= number < len(tokens)]
    if isinstance(kinds, memoryview) and len(kinds) == len(tokens):
        controls = (number for number, kind in enumerate(kinds) if kind in (CONTROL, USER_DEFINED))
        found += [number for number in controls if _ENDS_OF_TURN.match(tokens[number])]
    return list(dict.fromkeys(found))


def _tokenizer_error(file: GgufFile, reason: str) -> TokenizerMissingError:
    return TokenizerMissingError(
        tr("The tokenizer in {file} cannot be used: {reason}.").format(file=file.files[0].name, reason=reason),
        tr(_REMEDY),
    )
