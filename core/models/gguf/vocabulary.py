"""The vocabulary in a GGUF file, with what llama.cpp assumes where the file says nothing.

Source of the defaults, of the spellings and of their exceptions: `llama_vocab::impl::load` in
https://github.com/ggml-org/llama.cpp/blob/master/src/llama-vocab.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from decodescope.core.errors import TokenizerMissingError
from decodescope.core.models.gguf.gguf_file import GgufFile, TextArray
from decodescope.core.models.gguf.pre_tokenizer_rules import DEFAULT_RULE, RULES, PreTokenizerRule
from decodescope.resources.language import mark, tr

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""Kinds of tokens in `tokenizer.ggml.token_type`."""
MAX_TOKEN_CHARACTERS = 4096
"""Longest text of a token in a vocabulary. The library frees the tree of a unigram vocabulary by recursion, one level
for each byte: a token of a million would end the process.
"""
_REMEDY = mark("Choose the model in safetensors format, or another GGUF file.")
_DAMAGED = mark("Copy or download the file again, or choose another GGUF file.")

SPECIAL_TOKENS = {
    "bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding", "sep": "seperator", "mask": "mask", "cls": "cls",
}  # fmt: skip
"""Keys of special tokens by transformers' names; the format spells one of them so."""


class _ModelDefaults(NamedTuple):
    """Defaults of llama.cpp for vocabularies of one kind, `tokenizer.ggml.model`."""

    ids: Mapping[str, int]
    adds_bos: bool = False
    adds_eos: bool = False
    adds_space: bool = False


_MODELS = {
    "llama": _ModelDefaults({"bos": 1, "eos": 2, "unk": 0}, adds_bos=True, adds_space=True),
    "gpt2": _ModelDefaults({"bos": 11, "eos": 11}),
    "gemma4": _ModelDefaults({}),
    "bert": _ModelDefaults({"bos": 101, "unk": 100, "sep": 102, "pad": 0, "mask": 103}, adds_bos=True),
    "t5": _ModelDefaults({"eos": 1, "unk": 2, "pad": 0}, adds_eos=True),
    "rwkv": _ModelDefaults({}),
    "plamo2": _ModelDefaults({"bos": 1, "eos": 2, "unk": 0, "pad": 3}),
}  # fmt: skip
_UNSUPPORTED_MODELS = frozenset({"hybriddna", "whitespace"})
"""Kinds that llama.cpp reads and this program does not: no architecture here is published with them."""

_ENDS_OF_TURN = frozenset({
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>",
    "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>",
})  # fmt: skip
_ENDS = _ENDS_OF_TURN | {
    "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "</s>", "<|eom_id|>", "[EOS]", "<eos>", "<turn|>",
    "<|tool_response>", "[e~[", "<|ifm|im_end|>",
}  # fmt: skip
"""Tokens that end a text whatever the file says about them."""
_SHOWN = frozenset({"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"})
"""Tokens of gpt-oss's format that are part of the text."""
_FILL_IN = {
    "fim_pre": (
        ("fim_pre", "prefix"),
        ("<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>",
         "<|prefix|>", "<|plamo:fim_prefix|>"),
    ),
    "fim_suf": (
        ("fim_suf", "suffix"),
        ("<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>",
         "<|suffix|>", "<|plamo:fim_suffix|>"),
    ),
    "fim_mid": (
        ("fim_mid", "middle"),
        ("<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>",
         "<|middle|>", "<|plamo:fim_middle|>"),
    ),
    "fim_pad": (("fim_pad",), ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]")),
    "fim_rep": (("fim_rep",), ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>")),
    "fim_sep": (("fim_sep",), ("<|file_sep|>", "<|plamo:file_separator|>")),
}  # fmt: skip
"""Tokens that fill in the middle of a text: keys of their ids, and spellings if the file names none."""
_FILL_IN_ENDS = ("fim_pad", "fim_rep", "fim_sep")


class GgufVocabulary(NamedTuple):
    """A vocabulary as llama.cpp reads it."""

    model: str
    """`tokenizer.ggml.model`."""
    rule: PreTokenizerRule | None
    """How texts are split into words; None for kinds without a rule."""
    rule_name: str | None
    """`tokenizer.ggml.pre`; None if the file does not say."""
    words: list[str]
    """Text of each token."""
    stored_kinds: list[int]
    """Kind of each token, as the file says."""
    kinds: list[int]
    """Kind of each token, after the known spellings."""
    special: dict[str, int]
    """Ids of special tokens, by the names of SPECIAL_TOKENS and of the tokens that fill in."""
    adds_bos: bool
    adds_eos: bool
    adds_space: bool
    """Whether texts begin with a space that is not in them."""
    merges_spaces: bool
    ends: list[int]
    """Ids of the tokens that end a text."""
    strips_left: frozenset[int]
    """Tokens that absorb white space before them."""
    strips_right: frozenset[int]
    """Tokens that absorb white space after them."""


def read_vocabulary(file: GgufFile) -> GgufVocabulary | None:
    """Return the vocabulary in a file, or None if it has none. Raises TokenizerMissingError."""
    model = file.metadata.get("tokenizer.ggml.model")
    if model in (None, "none", "no_vocab"):
        return None
    if not isinstance(model, str) or model not in _MODELS:
        raise tokenizer_error(file, _unknown_model_reason(str(model)))
    defaults = _MODELS[model]
    rule_name, rule = _rule(file, model)
    words = _words(file)
    stored = _kinds(file, len(words))
    ids = dict(defaults.ids)
    if rule is not None and not rule.has_default_bos:
        del ids["bos"]
    special = {
        name: number
        for name, key in SPECIAL_TOKENS.items()
        if (number := _special_id(file, key, ids.get(name), len(words))) is not None
    }
    adds_bos = _flag(file, "add_bos_token", rule.adds_bos if rule is not None else defaults.adds_bos)
    if rule is not None and rule.always_adds_bos:
        adds_bos = True
    adds_eos = _flag(file, "add_eos_token", defaults.adds_eos)
    for name, is_added in (("bos", adds_bos), ("eos", adds_eos)):
        if is_added and name not in special:
            raise tokenizer_error(
                file,
                tr("texts get a token of the kind {name}, but the file does not say which one ({key})").format(
                    name=name.upper(), key=f"tokenizer.ggml.{SPECIAL_TOKENS[name]}_token_id"
                ),
            )
    kinds, ends, special = _resolve_kinds(file, words, stored, special)
    strips_left, strips_right = _stripping_tokens(file, words, kinds)
    merges_spaces = _flag(file, "remove_extra_whitespaces", False)
    adds_space = _flag(file, "add_space_prefix", defaults.adds_space)
    return GgufVocabulary(
        model, rule, rule_name, words, stored, kinds, special, adds_bos, adds_eos, adds_space, merges_spaces, ends,
        strips_left, strips_right,
    )  # fmt: skip


def end_tokens(file: GgufFile) -> list[int]:
    """Return the ids that end a text; none if the vocabulary cannot be used, which loading the tokenizer reports."""
    try:
        vocabulary = read_vocabulary(file)
    except TokenizerMissingError:
        return []
    return vocabulary.ends if vocabulary is not None else []


def tokenizer_error(file: GgufFile, reason: str, remedy: str = _REMEDY) -> TokenizerMissingError:
    """Return the error for a tokenizer that cannot be used; `reason` is a clause."""
    return TokenizerMissingError(
        tr("The tokenizer in {file} cannot be used: {reason}.").format(file=file.files[0].name, reason=reason),
        tr(remedy),
    )


def damaged_error(file: GgufFile, reason: str) -> TokenizerMissingError:
    """Return the error for a vocabulary that contradicts itself; `reason` is a clause."""
    return tokenizer_error(file, reason, _DAMAGED)


def _unknown_model_reason(model: str) -> str:
    if model in _UNSUPPORTED_MODELS:
        return tr("its kind “{kind}” is not supported here").format(kind=model)
    return tr("its kind “{kind}” is unknown").format(kind=model[:40])


def _rule(file: GgufFile, model: str) -> tuple[str | None, PreTokenizerRule | None]:
    """Return the rule that splits texts into words, and its name in the file."""
    if model == "gemma4":
        return "gemma4", RULES["gemma4"]
    if model != "gpt2":
        return None, None
    name = file.metadata.get("tokenizer.ggml.pre") or None
    rule = RULES.get(str(name or DEFAULT_RULE))
    if rule is None:
        raise tokenizer_error(
            file, tr("its rule for splitting words, “{rule}”, is unknown").format(rule=str(name)[:40])
        )
    return None if name is None else str(name), rule


def _words(file: GgufFile) -> list[str]:
    tokens = file.metadata.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, TextArray) or not len(tokens):
        raise tokenizer_error(file, tr("it has no tokens"))
    # llama.cpp reads a token up to its first NUL
    words = [word.partition("\0")[0] or f"[EMPTY_{number}]" for number, word in enumerate(tokens)]
    if (longest := max(map(len, words))) > MAX_TOKEN_CHARACTERS:
        raise tokenizer_error(file, tr("it has a token of {count:,} characters").format(count=longest))
    for number, word in enumerate(words):
        if "\ufffd" in word and not tokens.is_text(number):
            raise damaged_error(file, tr("token {number:,} is not text (UTF-8)").format(number=number))
    if len(set(words)) < len(words):
        first: dict[str, int] = {}
        for number, word in enumerate(words):
            if (other := first.setdefault(word, number)) != number:
                raise damaged_error(
                    file,
                    tr("the tokens {first:,} and {second:,} are both “{word}”").format(
                        first=other, second=number, word=word[:40]
                    ),
                )
    return words


def _kinds(file: GgufFile, count: int) -> list[int]:
    """Return the kind of each token, normal if the file has no kinds."""
    found = file.metadata.get("tokenizer.ggml.token_type")
    if found is None:
        return [NORMAL] * count
    if not isinstance(found, memoryview) or found.format not in tuple("bBhHiIqQ"):
        raise damaged_error(file, tr("its kinds of tokens are not whole numbers"))
    if len(found) < count:
        raise damaged_error(
            file, tr("it has {kinds:,} kinds for {tokens:,} tokens").format(kinds=len(found), tokens=count)
        )
    return found[:count].tolist()


def _special_id(file: GgufFile, key: str, default: int | None, count: int) -> int | None:
    """Return the id that a file names; llama.cpp's default if it names none, or one outside the vocabulary."""
    number = file.number(f"tokenizer.ggml.{key}_token_id")
    if isinstance(number, int) and 0 <= number < count:
        return number
    return default if default is not None and default < count else None


def _flag(file: GgufFile, key: str, default: bool) -> bool:
    value = file.metadata.get(f"tokenizer.ggml.{key}", default)
    return value if isinstance(value, bool) else default


def _resolve_kinds(
    file: GgufFile, words: Sequence[str], stored: Sequence[int], special: Mapping[str, int]
) -> tuple[list[int], list[int], dict[str, int]]:
    """Return the kinds of tokens after the known spellings, the tokens that end a text, and the special tokens with
    those that fill in.
    """
    kinds, found = list(stored), dict(special)
    known = _ENDS | _SHOWN | {spelling for _, spellings in _FILL_IN.values() for spelling in spellings}
    places = {word: number for number, word in enumerate(words) if word in known}
    for name, (keys, spellings) in _FILL_IN.items():
        numbers = [_special_id(file, key, None, len(words)) for key in keys]
        named = [number for number in numbers if number is not None]
        there = [places[spelling] for spelling in spellings if spelling in places]
        if named:
            found[name] = named[-1]
        elif there:
            found[name] = there[0] if len(there) == 1 else _first_in_hash_table(words, there)
            kinds[found[name]] = CONTROL
    ends = {found[name] for name in _FILL_IN_ENDS if name in found}
    for spelling in _ENDS & places.keys():
        ends.add(places[spelling])
        kinds[places[spelling]] = CONTROL
    for spelling in _SHOWN & places.keys():
        kinds[places[spelling]] = USER_DEFINED
    ends |= {special["eos"]} if "eos" in special else set()
    for key in ("eot", "eom"):
        number = _special_id(file, key, None, len(words))
        ends |= {number} if number is not None else set()
    there_too = {words[number] for number in ends}
    if "<|end|>" in there_too and _has_format_of_turns(there_too):
        ends.discard(places["<|end|>"])
        kinds[places["<|end|>"]] = USER_DEFINED
    if {"</s>", "<|tool_response>"} <= there_too:
        ends.discard(places["</s>"])
        kinds[places["</s>"]] = NORMAL
    return kinds, sorted(ends), found


def _has_format_of_turns(ends: set[str]) -> bool:
    """Return whether `<|end|>` only ends a part of an answer, as in the formats of gpt-oss and Solar Open."""
    return bool(ends & {"<|call|>", "<|calls|>"} and ends & {"<|return|>", "<|flush|>"})


def _stripping_tokens(
    file: GgufFile, words: Sequence[str], kinds: Sequence[int]
) -> tuple[frozenset[int], frozenset[int]]:  # fmt: skip
    """Return the tokens that absorb white space before and after them; GGUF has no key for that."""
    rule, name = file.text("tokenizer.ggml.pre") or "", (file.text("general.name") or "").lower()
    masks: Iterable[str] = ()
    if any(part in rule for part in ("jina-v2-de", "jina-v2-es", "jina-v2-code")) or any(
        part in file.architecture for part in ("nomic-bert-moe", "jina-bert-v3")
    ):
        masks = ("<mask>",)
    elif "phi-3" in name or "phi3" in name:
        plain = {"<unk>", "<s>", "<|endoftext|>"}
        special = (CONTROL, USER_DEFINED, UNKNOWN)
        return frozenset(), frozenset(
            number
            for number, (word, kind) in enumerate(zip(words, kinds, strict=True))
            if (kind in special and word not in plain) or word == "</s>"
        )
    elif "modern-bert" in name:
        masks = ("[MASK]",)
    return frozenset(number for number, word in enumerate(words) if word in masks), frozenset()


_BUCKETS = (
    1, 13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061, 712697, 1447153,
    2938679,
)  # fmt: skip
"""Sizes of a hash table of GCC's library as it grows."""


def _first_in_hash_table(words: Sequence[str], candidates: Sequence[int]) -> int:
    """Return which of several tokens llama.cpp meets first when it goes through its hash table of all tokens.

    Where a vocabulary has several spellings of one purpose, that decides. The table is std::unordered_map of GCC's
    library, which puts the first element of a bucket before all others, and a further one behind that bucket's head.
    """
    end = -1
    hashes = [_hash(word.encode("utf-8")) for word in words]
    following = [end] * len(words)
    head, size, before = end, 1, dict[int, int]()
    for number in range(len(words)):
        if number + 1 > (size if size > 1 else 0):
            size = next(bucket for bucket in _BUCKETS if bucket > size)
            head, before = _rehash(head, following, hashes, size)
        head = _insert(number, head, following, hashes, size, before)
    while head not in candidates:
        head = following[head]
    return head


def _insert(
    number: int, head: int, following: list[int], hashes: Sequence[int], size: int, before: dict[int, int]
) -> int:  # fmt: skip
    """Link an element into the list; return the list's head. `before`: the element before each bucket, −1 for none."""
    bucket = hashes[number] % size
    if bucket in before and before[bucket] >= 0:
        following[number] = following[before[bucket]]
        following[before[bucket]] = number
        return head
    if bucket in before:
        following[number] = head
        return number
    following[number] = head
    if head >= 0:
        before[hashes[head] % size] = number
    before[bucket] = -1
    return number


def _rehash(head: int, following: list[int], hashes: Sequence[int], size: int) -> tuple[int, dict[int, int]]:
    """Distribute all elements over `size` buckets; return the list's head, and the element before each bucket."""
    order = []
    while head >= 0:
        order.append(head)
        head = following[head]
    before: dict[int, int] = {}
    last_bucket = -1
    for number in order:
        bucket = hashes[number] % size
        if bucket not in before:
            following[number] = head
            if head >= 0:
                before[last_bucket] = number
            head, last_bucket = number, bucket
            before[bucket] = -1
        elif before[bucket] < 0:
            following[number], head = head, number
        else:
            following[number] = following[before[bucket]]
            following[before[bucket]] = number
    return head, before


_MASK, _MULTIPLIER = (1 << 64) - 1, 0xC6A4A7935BD1E995


def _hash(data: bytes) -> int:
    """Return std::hash of a string in GCC's library: MurmurHash64A with its seed (Austin Appleby, public domain)."""
    found = 0xC70F6907 ^ (len(data) * _MULTIPLIER & _MASK)
    whole = len(data) & ~7
    for start in range(0, whole, 8):
        block = int.from_bytes(data[start : start + 8], "little") * _MULTIPLIER & _MASK
        block = (block ^ block >> 47) * _MULTIPLIER & _MASK
        found = (found ^ block) * _MULTIPLIER & _MASK
    if len(data) > whole:
        found = (found ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    found = (found ^ found >> 47) * _MULTIPLIER & _MASK
    return found ^ found >> 47
