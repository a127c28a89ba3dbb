"""Check the wording of Chinese texts: full-width punctuation, one form of the ellipsis, spaces, and one word per term.

`packaging/translations.py check` applies it to the catalogues, the tests to the pages of the documentation as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

HAN = "\u4e00-\u9fff"
_CJK = f"{HAN}\u3000-\u303f\uff00-\uffef“”"
"""Chinese characters, and the punctuation that is written between them."""
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_IGNORED = re.compile(r"`[^`\n]*`|\[(?:[^\[\]]|\[[^\[\]]*\])*\]|https?://\S+|\(\*[^()]*\)|\(&.\)")
"""What is not prose: code, lists as they are typed, addresses, patterns of file dialogs, and mnemonics of menus."""

PUNCTUATION = {
    "half-width punctuation": re.compile(rf"(?<=[{_CJK}])(?<!“)[,:;?!]|(?<!“)[,:;?!](?=\s?[{HAN}])"),
    "half-width parentheses": re.compile(rf"[{HAN}]\(|\)[{HAN}]|[{HAN}] \([^()]*[{HAN}][^()]*\)"),
    "an ellipsis that is not ……": re.compile(
        rf"(?<=[{_CJK}])(?<!…)…(?!…)|(?<!…)…(?=[{_CJK}]|$|\n)|(?<=[{_CJK}])\.\.\.|\.\.\.(?=[{_CJK}])|。。+",
        re.MULTILINE,
    ),
    "a space between Chinese characters": re.compile(
        rf"(?<=[{_CJK}]) (?=[“”])|(?<=[“”]) (?=[{HAN}])|(?<=[{HAN}]) (?=[{HAN}])"
    ),
    "no space between Chinese and Latin letters": re.compile(rf"[{HAN}][A-Za-z0-9]|[A-Za-z0-9%](?![年月日])[{HAN}]"),
    "a space before %": re.compile(r"\d %"),
}  # fmt: skip
"""Faults of punctuation, each with the pattern that finds it."""

TERMS = {
    "前向传播": r"前向(?!传播)|正向传播|前馈传播",
    "静态": r"静止缓存|定长缓存|固定长度缓存",
    "词元/秒": r"每秒词元|词元每秒|词元 / 秒|tokens?/s|每秒\s?\{[^{}]*\}\s?个词元|每秒 \d[\d.,]* 个词元",
    "运行记录": r"录制文件|录制内容|(?:打开|保存)录制|运行录像",
    "草稿模型": r"起草者|起草器|起草模型|草稿器",
    "多个草稿模型：合并": r"草稿模型[，,、]\s?合并",
    "词元": r"令牌化|标记化|单词元",
    "词片段": r"词片(?!段)|词块",
    "你": r"您",
    "复用": r"重用",
    "检视器": r"检查器",
    "束搜索": r"集束搜索|波束搜索|定向搜索",
    "推测解码": r"投机解码|猜测解码|推测性解码|投机采样",
    "意外度": r"惊讶|惊奇度|出乎意料度",
    "停止字符串": r"停止文本|停止词(?!元)|终止字符串",
    "KV 缓存": r"键值缓存|键–值缓存|KV缓存",
    "提前退出": r"早退|早期退出",
    "JSON Schema": r"JSON 模式|JSON模式",
    "n 中选优": r"Best-of-n",
    "激活值": r"激活(?!值)(?=检查点|重计算|：|占)|重计算激活(?!值)",
    "logit 透镜": r"logit lens|Logit lens",
    "对话": r"聊天",
    "提示词": r"提示语|提示符|提示文本",
    "分词器": r"标记器|词元化器|令牌器",
}
"""The word of a term, and its variants, which confuse a reader as if they were other things."""
_VARIANTS = {term: re.compile(pattern) for term, pattern in TERMS.items()}

_NAMES = re.compile(
    r"--[a-z][\w-]+|\b[A-Za-z]\w*(?:\.[a-z_]\w+)+\b|\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b|\b(?:(?:Ctrl|Alt|Shift)\+)+[A-Z0-9]\b|\bF\d+\b"
)
"""Names of code, files, options and keys. A sample file name of capitals (FILE.csv) may be translated."""
_PLACEHOLDERS = re.compile(r"\{[^{}]*\}")


def wording_faults(text: str) -> Iterator[str]:
    """Yield the faults of a Chinese text, each with the place where it is."""
    prose = _IGNORED.sub("\u00a0", _LINK.sub(r"\1", text))
    for fault, pattern in PUNCTUATION.items():
        yield from (f"{fault}: …{_around(prose, found)}…" for found in pattern.finditer(prose))
    for term, pattern in _VARIANTS.items():
        yield from (f"“{found[0]}” instead of “{term}”: …{_around(prose, found)}…" for found in pattern.finditer(prose))


def lost_names(source: str, text: str) -> list[str]:
    """Return the names in a source that its translation does not contain."""
    names = _NAMES.findall(_PLACEHOLDERS.sub(" ", source))
    return sorted({name for name in names if name not in text and not name.startswith("FILE.")})


def _around(text: str, found: re.Match[str]) -> str:
    return text[max(found.start() - 8, 0) : found.end() + 8].replace("\n", "⏎")
