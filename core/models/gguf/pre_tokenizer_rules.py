"""The rules by which llama.cpp splits a text into words before it merges bytes, by their names in
`tokenizer.ggml.pre`.

Source of names, patterns and flags: `llama_vocab::impl::load` and `llm_tokenizer_bpe` in
https://github.com/ggml-org/llama.cpp/blob/master/src/llama-vocab.cpp, and `unicode_regex_split` in `unicode.cpp`, which
says what a pattern matches there: the five categories of letters are one, `~` is no symbol, `\\d` and `\\b` know ASCII
only. The patterns here are written for Oniguruma, the regular expressions of the library `tokenizers`, and match the
same.
"""

from __future__ import annotations

from typing import NamedTuple

from tokenizers import Regex, pre_tokenizers


class PreTokenizerRule(NamedTuple):
    """A rule, and what llama.cpp assumes about vocabularies with it."""

    patterns: tuple[str, ...]
    """Applied one after the other; what lies between the matches of a pattern are words too."""
    ignores_merges: bool = False
    """Whether a word that is a token is taken as it is, whatever the merges make of it."""
    adds_bos: bool = False
    """Whether texts begin with the BOS token if the file does not say so."""
    always_adds_bos: bool = False
    """Whether texts begin with the BOS token even if the file says no."""
    has_default_bos: bool = True
    """Whether there is a BOS token if the file names none."""
    reads_bytes: bool = True
    """Whether tokens are written in GPT-2's alphabet of bytes; otherwise as text."""
    marks_spaces: bool = False
    """Whether spaces are written as ▁ in tokens."""
    marks_lines: bool = False
    """Whether a line that does not begin with a space gets one."""


_CONTRACTION = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_SPACES = r"\s+(?!\S)|\s+"
_LINES = rf"\s*[\r\n]+|{_SPACES}"
_MARKS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"


def _character_class(ranges: str) -> str:
    """Return a class of characters from code points in hexadecimal digits."""
    return "".join("-".join(chr(int(point, 16)) for point in part.split("-")) for part in ranges.split())


GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _words(digits: str) -> str:
    """Return the pattern of Llama 3 and Qwen 2, which differ in the number of digits."""
    return rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}|{_MARKS}|{_LINES}"


def _cased_words(letters: str, suffix: str, digits: str) -> str:
    """Return the pattern of GPT-4o, which splits words before capitals of ASCII."""
    start, upper, lower = r"[^\r\n\p{L}\p{N}]?", f"[{letters}&&[^a-z]]", f"[{letters}&&[^A-Z]]"
    return (
        rf"{start}{upper}*{lower}+{suffix}|{start}{upper}+{lower}*{suffix}|{digits}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_LINES}"
    )


def _uncased_words(digits: str) -> str:
    """Return the pattern of GPT-4o as llama.cpp reads it where it is written with categories of letters."""
    return (
        rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+{_CONTRACTION}?|{digits}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_LINES}"
    )


_PUNCTUATED = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
    r"""|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+"""
)
_LLAMA3 = _words(r"\p{N}{1,3}")
_QWEN2 = _words(r"\p{N}")
_HAN = _character_class("4E00-9FFF 3400-4DBF 20000-2A6DF 2A700-2EBEF F900-FAFF 2F800-2FA1F")
_CASED_LETTERS = _character_class(
    "41-5A 61-7A B5 C0-D6 D8-F6 F8-1BA 1BC-1BF 1C4-293 295-2AF 370-373 376 377 37B-37D 37F 386 388-38A 38C "
    "38E-3A1 3A3-3F5 3F7-481 48A-52F 531-556 10A0-10C5 13A0-13F5 13F8-13FD 1C90-1CBA 1CBD-1CBF 1D00-1D2B "
    "1D6B-1D77 1D79-1D9A 1E00-1F15 1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57 1F59 1F5B 1F5D 1F5F-1F7D 1F80-1FB4 "
    "1FB6-1FBC 1FBE 1FC2-1FC4 1FC6-1FCC 1FD0-1FD3 1FD6-1FDB 1FE0-1FEC 1FF2-1FF4 1FF6-1FFC 2102 2107 210A-2113 "
    "2115 2119-211D 2124 2126 2128 212A-212D 212F-2134 2139 213C-213F 2145-2149 214E 2183 2184 2C00-2C7B "
    "2C7E-2CE4 2CEB-2CEE 2CF2 2CF3 A640-A66D A680-A69B A722-A76F A771-A787 A78B-A78E AB70-ABBF FB00-FB06 "
    "FB13-FB17 FF21-FF3A FF41-FF5A 10400-1044F 104B0-104D3 104D8-104FB 10C80-10CB2 10CC0-10CF2 118A0-118DF "
    "1E900-1E943"
)
_CJK = "[一-龥\u3040-ゟ゠-ヿ]+"
_BEYOND_INDIC = r"[[一-龥ࠀ-一가-\uD7FF]&&\S]+"
_NO_PUNCTUATION = r" ?[^(\s|.,!?…。，、।۔،)]+"
_THOUSANDS = r"\P{N}*\p{N}{1,3}?(?=(?:\p{N}{3})*(?!\p{N}))"
"""Groups of three digits from the end of a number; the first group has the text before it."""
_HALVED_SPACES = "|".join([*(rf"\s{{{2**size}}}(?!\S)" for size in range(9, 1, -1)), r"\s{1,2}(?!\S)|\s"])
_MARKED_SPACES = PreTokenizerRule((r"[^\n]+|\n+",), reads_bytes=False, marks_spaces=True)

DEFAULT_RULE = "default"
"""The rule of files that name none."""

_TABLE: tuple[tuple[PreTokenizerRule, str], ...] = (
    (PreTokenizerRule((r"[\p{P}$+<=>^~|]+", GPT2_PATTERN, r"\p{N}+", "[0-9][0-9][0-9]")), DEFAULT_RULE),
    (
        PreTokenizerRule((GPT2_PATTERN,)),
        "gpt-2 phi-2 mpt olmo jais trillion granite-docling exaone4 gigachat a.x-4.0 mellum modern-bert jina-es jina-de"
        " jina-v1-en jina-v2-es jina-v2-de jina-v2-code roberta-bpe",
    ),
    (
        PreTokenizerRule((r"\p{N}", GPT2_PATTERN)),
        "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2",
    ),
    (
        PreTokenizerRule((_LLAMA3,), ignores_merges=True, adds_bos=True),
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
    ),
    (PreTokenizerRule((_LLAMA3,)), "dbrx smaug-bpe"),
    (PreTokenizerRule((_LLAMA3,), has_default_bos=False), "glm4 chatglm-bpe glm5"),
    (
        PreTokenizerRule((_LLAMA3.replace(r"?\p{L}+", r"?[\p{L}\p{M}\u200C\u200D]+"),)),
        "k2-horizon",
    ),
    (PreTokenizerRule((_LLAMA3.replace(_SPACES, _HALVED_SPACES),)), "jais-2"),
    (PreTokenizerRule((r"\p{N}{1,3}", _words(r"\p{N}+")), ignores_merges=True), "minicpm5"),
    (
        PreTokenizerRule((_QWEN2,)),
        "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2",
    ),
    (
        PreTokenizerRule((
            _QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]"),
        )),
        "qwen35",
    ),
    (PreTokenizerRule((_QWEN2.removeprefix(f"{_CONTRACTION}|"),)), "ufakzeka"),
    (PreTokenizerRule((r"[^\n]+|\n+", _QWEN2)), "laguna"),
    (
        PreTokenizerRule((_QWEN2.replace(r"[^\s\p{L}\p{N}]+[\r\n]*", r"[^\s\p{L}\p{N}\r\n]+"),)),
        "seed-coder",
    ),
    (PreTokenizerRule((_QWEN2.replace(r"\s*[\r\n]+", r"\s*[\r\n]"),)), "bailingmoe bailingmoe2 llada-moe"),
    (
        PreTokenizerRule((
            rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
            rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?|\s*[\r\n]|{_SPACES}",
        )),
        "exaone-moe",
    ),
    (
        PreTokenizerRule((
            r"[\r\n]", rf"\s?[{_CASED_LETTERS}]+", r"\s?[!-/:-~！-／：-～‘-‟\u3001-。]+", r"\s+\z", _BEYOND_INDIC,
            r"\p{N}+",
        )),
        "deepseek-llm",
    ),
    (PreTokenizerRule((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _BEYOND_INDIC, r"\p{N}")), "deepseek-coder"),
    (
        PreTokenizerRule((r"\p{N}{1,3}", _CJK, rf"{_PUNCTUATED}[\r\n]*|{_LINES}")),
        "deepseek-v3 hunyuan-dense joyai-llm hy_v4",
    ),
    (PreTokenizerRule((r"\p{N}{1,3}", _CJK, rf"{_PUNCTUATED}|[\r\n]|{_SPACES}", r"\p{N}")), "spark2_5"),
    (
        PreTokenizerRule((
            _THOUSANDS,
            "[一-鿿㐀-䶿\u8C48-\uFAFF\u3040-ゟ゠-ヿ･-ﾟ⼀-\u2FDFเ-\u0E7F\u0E80-\u0EFFក-\u17FFက-႟ꩠ-ꩿꧠ-\uA9FF가-\uD7AFᄀ-ᇿ]+",
            rf"{_PUNCTUATED}[\r\n]*|{_LINES}",
        )),
        "afmoe",
    ),
    (
        PreTokenizerRule(
            ("[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|" + _CJK, _uncased_words(r"\p{N}")), ignores_merges=True
        ),
        "youtu",
    ),
    (PreTokenizerRule((_THOUSANDS, _uncased_words(r"\p{N}{1,3}"))), "tiny_aya cohere2moe"),
    (
        PreTokenizerRule((_cased_words(r"\p{L}", f"{_CONTRACTION}?", r"\p{N}{1,3}"),)),
        "gpt-4o llama4 kanana2 talkie minimax-m2",
    ),
    (
        PreTokenizerRule((_cased_words(r"\p{L}\p{M}", f"{_CONTRACTION}?", r"\p{N}{1,3}"),), ignores_merges=True),
        "granite-embed-multi-97m",
    ),
    (PreTokenizerRule((_cased_words(r"\p{L}", "", r"\p{N}"),), ignores_merges=True, adds_bos=True), "tekken"),
    (
        PreTokenizerRule((
            rf"[{_HAN}]+|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}&&[^{_HAN}]]+{_CONTRACTION}?|\p{{N}}{{1,3}}|{_MARKS}|{_LINES}",
        )),
        "kimi-k2",
    ),
    (PreTokenizerRule((r"[\p{P}$+<=>^~|`]+", GPT2_PATTERN, "[0-9][0-9][0-9]")), "falcon"),
    (PreTokenizerRule((_NO_PUNCTUATION,)), "poro-chat bloom gpt3-finnish"),
    (PreTokenizerRule((_NO_PUNCTUATION, r"\p{N}")), "viking"),
    (
        PreTokenizerRule(
            (
                "<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", r"[\t\n]|    |  ", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]",
                GPT2_PATTERN,
            ),
            adds_bos=True,
        ),
        "chameleon",
    ),
    (PreTokenizerRule((r"\p{N}+", "(?=([0-9]{3})+(?![0-9]))")), "superbpe"),
    (_MARKED_SPACES._replace(adds_bos=True, always_adds_bos=True), "gemma4 granite-embed-multi-311m"),
    (_MARKED_SPACES, "sarvam-moe"),
    (
        _MARKED_SPACES._replace(patterns=(*_MARKED_SPACES.patterns, "▁[^▁]*|[^▁]+"), marks_lines=True),
        "mmbert",
    ),
)  # fmt: skip
RULES: dict[str, PreTokenizerRule] = {name: rule for rule, names in _TABLE for name in names.split()}
"""All rules by name."""


def pre_tokenizer(rule: PreTokenizerRule) -> pre_tokenizers.PreTokenizer:
    """Return the library's pre-tokenizer that splits texts by a rule."""
    alphabet = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    parts: list[pre_tokenizers.PreTokenizer] = [
        pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in rule.patterns
    ]
    return pre_tokenizers.Sequence([*parts, *([alphabet] if rule.reads_bytes else [])])
