"""Marks of thinking: known ones, and those of a model, derived from its chat template and its added tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple


class ThinkingMark(NamedTuple):
    """The texts around thinking. Special tokens are written as their names, although decoding skips them."""

    opening: str
    closing: str
    header: str = ""
    """Text that may follow the closing mark before the answer begins, and belongs to neither."""


KNOWN_MARKS: tuple[ThinkingMark, ...] = (
    *(ThinkingMark(f"<{name}>", f"</{name}>") for name in ("think", "thinking", "thought", "reasoning", "seed:think")),
    ThinkingMark("[THINK]", "[/THINK]"),
    ThinkingMark("<|START_THINKING|>", "<|END_THINKING|>"),
    ThinkingMark("◁think▷", "◁/think▷"),
    ThinkingMark("<|begin_of_thought|>", "<|end_of_thought|>"),
    ThinkingMark("<|inner_prefix|>", "<|inner_suffix|>"),
    ThinkingMark("<|channel>thought", "<channel|>"),
    ThinkingMark(
        "<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant<|channel|>final<|message|>"
    ),
)  # fmt: skip
"""Marks of DeepSeek, Qwen and many others; Seed; Magistral; Cohere; Kimi; OpenThinker; Apertus; Gemma 4; gpt-oss."""

_WORD = r"(?:think|thought|reason|inner|cot\b|scratchpad|reflect)"
_TAG = re.compile(rf"(?P<open>[<\[◁]\|?)/(?P<name>[\w:.-]*{_WORD}[\w:.-]*)(?P<close>\|?[>\]▷])", re.IGNORECASE)
"""A closing tag whose name means thinking: `</seed:think>`, `[/THINK]`, `◁/think▷`."""
_ENDS = (
    ("start", "end"), ("begin", "end"), ("open", "close"), ("prefix", "suffix"), ("bos", "eos"),
)  # fmt: skip
"""Words by which the names of an opening and of a closing token differ."""
_REASONING, _ANSWER, _QUESTION = "7340918265", "5918273640", "5"
"""Digits look the same in any case and in JSON."""
_MARK_LIKE = re.compile(r"<\|[^<>|\s]{1,40}\|?>|<[^<>\s]{1,40}\|?>|\[/?[A-Z_]{2,30}\]|◁[^◁▷\s]{1,30}▷")
_MAX_MARK_LENGTH = 120


def derive_marks(
    render: Callable[[Sequence[Mapping[str, object]]], str] | None, template: str, tokens: Iterable[str]
) -> tuple[ThinkingMark, ...]:
    """Return the marks of a model, the likeliest first; () if neither its template nor its tokens have any.

    `render`: renders messages with the chat template, up to the next answer, and may raise anything; None without a
    template. `template`: the template's source. `tokens`: the names of the added tokens.
    """
    names = list(tokens)
    known = [mark for mark in KNOWN_MARKS if _is_named(mark, template, names)]
    found = (*_rendered_marks(render), *known, *_source_marks(template), *_token_marks(names))
    unique: dict[str, ThinkingMark] = {}
    for mark in found:
        if mark.opening != mark.closing:
            unique.setdefault(mark.opening, mark)
    return tuple(unique.values())


def _is_named(mark: ThinkingMark, template: str, tokens: Sequence[str]) -> bool:
    """Return whether the template or the tokens contain a known mark."""
    if mark.header:  # a template may assemble it from its parts
        parts = filter(None, re.split(rf"({_MARK_LIKE.pattern})", mark.opening))
        return all(part in template or part in tokens for part in parts)
    return mark.closing in template or {mark.opening, mark.closing} <= set(tokens)


def _rendered_marks(render: Callable[[Sequence[Mapping[str, object]]], str] | None) -> list[ThinkingMark]:
    """Return the marks that the template writes around the reasoning of an earlier answer."""
    if render is None:
        return []
    question = {"role": "user", "content": _QUESTION}
    parts = [{"type": "thinking", "thinking": _REASONING}, {"type": "text", "text": _ANSWER}]
    answers: tuple[Mapping[str, object], ...] = (
        {"role": "assistant", "content": _ANSWER, "reasoning_content": _REASONING},
        {"role": "assistant", "content": parts},
    )
    for answer in answers:
        text = _try(render, [question, answer])
        before, has_reasoning, rest = text.partition(_REASONING)
        between, has_answer, _ = rest.partition(_ANSWER)
        is_written_out = re.search(r"""['"]type\\*['"]\s*:""", between) is not None  # the list of parts as source text
        if has_reasoning and has_answer and between.strip() and not is_written_out:
            plain = _try(render, [question, {"role": "assistant", "content": _ANSWER}]).partition(_ANSWER)[0]
            opening, closing = _opening_of(before, plain, between.strip()), between.strip()
            if opening and max(len(opening), len(closing)) <= _MAX_MARK_LENGTH:
                return [ThinkingMark(opening, *_split_header(closing))]
    return []


def _opening_of(before: str, plain: str, closing: str) -> str:
    """Return the opening mark at the end of `before`, the text before the reasoning. `plain`: the text before an answer
    without reasoning.
    """
    before = before.rstrip()
    tag = _TAG.match(closing)
    if tag is not None and before.endswith(partner := f"{tag['open']}{tag['name']}{tag['close']}"):
        return partner
    pairs = enumerate(zip(before, plain, strict=False))
    common = next((index for index, (one, other) in pairs if one != other), min(len(before), len(plain)))
    marks = list(_MARK_LIKE.finditer(before))
    if not before[common:].strip():  # every answer begins with it
        return marks[-1][0] if marks else ""
    if _MARK_LIKE.match(before[common:].lstrip()) is None:  # the difference begins inside a mark, or just after one
        common = next((mark.start() for mark in marks if mark.start() <= common <= mark.end()), common)
    return before[common:].strip()


def _split_header(closing: str) -> tuple[str, str]:
    """Return the closing mark and what follows it before the answer."""
    first = _MARK_LIKE.match(closing)
    if first is None or first.end() == len(closing):
        return closing, ""
    return first[0], closing[first.end() :].strip()


def _source_marks(template: str) -> list[ThinkingMark]:
    """Return the marks whose closing tag is in the source of the template, as code that removes earlier thinking."""
    return [_from_tag(tag) for tag in _TAG.finditer(template)]


def _from_tag(tag: re.Match[str]) -> ThinkingMark:
    return ThinkingMark(f"{tag['open']}{tag['name']}{tag['close']}", tag[0])


def _token_marks(tokens: Sequence[str]) -> list[ThinkingMark]:
    """Return the pairs of added tokens whose names mean thinking."""
    known, found = set(tokens), []
    for token in tokens:
        if (tag := _TAG.fullmatch(token)) is not None:
            mark = _from_tag(tag)
            found += [mark] if mark.opening in known else []
        elif re.search(_WORD, token, re.IGNORECASE):
            found += [ThinkingMark(token, other) for other in _partners(token) if other in known]
    return found


def _partners(token: str) -> list[str]:
    """Return the possible names of the closing token of an opening one."""
    pairs = [pair for low in _ENDS for pair in (low, tuple(map(str.upper, low)), tuple(map(str.capitalize, low)))]
    return [token.replace(first, last, 1) for first, last in pairs if first in token]


def _try(render: Callable[[Sequence[Mapping[str, object]]], str], messages: Sequence[Mapping[str, object]]) -> str:
    try:
        return render(messages)
    except Exception:  # a template rejects messages that it does not support with any exception
        return ""
