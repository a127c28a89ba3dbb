"""Explain how two prompts differ: special tokens at the start, the chat template, white space, or a missing part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from decodescope.core.differences.compared_run import ComparedRun, piece_of
from decodescope.core.events import PromptToken
from decodescope.core.explain.words import label
from decodescope.resources.language import tr, trn

PromptCause = Literal["first_tokens", "template", "white_space", "truncation", "tokenization", "prompt", "media"]
"""What differs: special tokens at the start; special tokens elsewhere or a frame around the same text; white space; a
part that only one prompt has; the division of one text into tokens; other text; sounds or pictures.
"""
_MIN_CUT_TOKENS = 8
"""Tokens in the middle of a prompt whose absence counts as truncation, not as another text."""


class PromptDifference(NamedTuple):
    """The difference of two prompts."""

    cause: PromptCause
    sentence: str


def prompt_difference(a: ComparedRun, b: ComparedRun) -> PromptDifference | None:
    """Return how the prompts (with the given beginnings of the answers) differ; None if they have the same tokens, or
    the same text where an engine does not report its tokens.
    """
    if (media := _media_difference(a, b)) is not None:
        return media
    ours, theirs = _tokens(a), _tokens(b)
    if has_known_ids(a) and has_known_ids(b):
        if [token.id for token in ours] == [token.id for token in theirs]:
            return None
    elif _text(_without_first_special(ours)) == _text(_without_first_special(theirs)):
        return None
    return _classify(ours, theirs, _is_same_chat(a, b))


def has_known_ids(run: ComparedRun) -> bool:
    """Return whether the ids of all prompt tokens are known."""
    return all(token.id >= 0 for token in _tokens(run))


def _tokens(run: ComparedRun) -> tuple[PromptToken, ...]:
    return (*run.started.prompt, *run.started.beginning)


def _is_same_chat(a: ComparedRun, b: ComparedRun) -> bool:
    """Return whether both requests contain the same messages, which templates turned into different text."""
    ours, theirs = (run.request.prompt if run.request is not None else None for run in (a, b))
    is_chat = isinstance(ours, list | tuple) and bool(ours) and isinstance(ours[0], dict)
    return is_chat and ours == theirs


def _media_difference(a: ComparedRun, b: ComparedRun) -> PromptDifference | None:
    ours, theirs = ([medium.digest for medium in run.started.media] for run in (a, b))
    if ours == theirs:
        return None
    return PromptDifference("media", tr("The sounds or pictures differ: {a} in A, {b} in B.").format(
        a=len(ours), b=len(theirs)
    ))  # fmt: skip


def _classify(a: Sequence[PromptToken], b: Sequence[PromptToken], is_same_chat: bool) -> PromptDifference:
    first_a, first_b = _first_special(a), _first_special(b)
    rest_a, rest_b = a[len(first_a) :], b[len(first_b) :]
    if _spellings(rest_a) == _spellings(rest_b):
        sentence = tr("A begins with {a}, B with {b}; all other tokens are equal.")
        return PromptDifference("first_tokens", sentence.format(a=_shown(first_a), b=_shown(first_b)))
    specials = [[piece_of(token) for token in tokens if token.special] for tokens in (a, b)]
    text_a, text_b = _text(a), _text(b)
    if "".join(text_a.split()) == "".join(text_b.split()):
        if specials[0] != specials[1]:
            return _template(a, b)
        if text_a == text_b:
            sentence = tr("The text is the same, but it is divided into other tokens: {a} in A, {b} in B.")
            return PromptDifference("tokenization", sentence.format(a=len(a), b=len(b)))
        place = _first_unequal(text_a, text_b)
        return PromptDifference("white_space", tr("The prompts differ in white space: A has {a}, B has {b}.").format(
            a=_excerpt(text_a, place), b=_excerpt(text_b, place)
        ))  # fmt: skip
    if is_same_chat or _inner_specials(rest_a) != _inner_specials(rest_b):
        return _template(a, b)
    return (
        _truncation(rest_a, rest_b) or _cut_text(text_a, text_b) or _framed(text_a, text_b)
        or _other_text(text_a, text_b)
    )  # fmt: skip


def _template(a: Sequence[PromptToken], b: Sequence[PromptToken]) -> PromptDifference:
    place = _first_unequal(_spellings(a), _spellings(b))
    sentence = tr("The prompts have different chat templates: after {count} equal tokens, A has {a}, B has {b}.")
    return PromptDifference("template", sentence.format(
        count=place, a=_shown(a[place : place + 3]), b=_shown(b[place : place + 3])
    ))  # fmt: skip


def _truncation(a: Sequence[PromptToken], b: Sequence[PromptToken]) -> PromptDifference | None:
    """Return the difference if one prompt has all tokens of the other, and further ones in one place."""
    is_a_shorter = len(a) < len(b)
    short, long = (_spellings(a), _spellings(b)) if is_a_shorter else (_spellings(b), _spellings(a))
    count = len(long) - len(short)
    start = _first_unequal(short, long)
    end = _first_unequal(short[::-1], long[::-1])
    if not short or start + end < len(short):
        return None
    name = "A" if is_a_shorter else "B"
    if start == len(short):
        sentence = trn("{name} lacks the last token.", "{name} lacks the last {count} tokens.", count)
    elif end >= len(short):
        sentence = trn("{name} lacks the first token.", "{name} lacks the first {count} tokens.", count)
    elif count >= _MIN_CUT_TOKENS and 3 * count >= len(short):
        sentence = tr("{name} lacks {count} tokens in the middle.")
    else:
        return None
    return PromptDifference("truncation", sentence.format(name=name, count=count))


def _cut_text(a: str, b: str) -> PromptDifference | None:
    """Return the difference if one text is the beginning or the end of the other, divided into other tokens."""
    name, short, long = ("A", a.strip(), b.strip()) if len(a) < len(b) else ("B", b.strip(), a.strip())
    missing = long[len(short) :] if long.startswith(short) else long[: -len(short)] if long.endswith(short) else ""
    if not short or not missing:
        return None
    sentence = tr("{name} lacks {text}.")
    return PromptDifference("truncation", sentence.format(name=name, text=_excerpt(missing, 0)))


def _framed(a: str, b: str) -> PromptDifference | None:
    """Return the difference if one text is part of the other, as in a template without special tokens."""
    name, short, long = ("B", a.strip(), b.strip()) if len(a) < len(b) else ("A", b.strip(), a.strip())
    if not short or short not in long or long.startswith(short) or long.endswith(short):
        return None
    before, after = long.split(short, 1)
    sentence = tr("{name} puts {before} before the same text and {after} after it, as a chat template does.")
    return PromptDifference("template", sentence.format(
        name=name, before=f"“{label(before[-24:])}”", after=f"“{label(after[:24])}”"
    ))  # fmt: skip


def _other_text(a: str, b: str) -> PromptDifference:
    place = _first_unequal(a, b)
    return PromptDifference("prompt", tr("The prompts have different text: A has {a}, B has {b}.").format(
        a=_excerpt(a, place), b=_excerpt(b, place)
    ))  # fmt: skip


def _first_special(tokens: Sequence[PromptToken]) -> Sequence[PromptToken]:
    """Return the special tokens at the start."""
    return tokens[: next((place for place, token in enumerate(tokens) if not token.special), len(tokens))]


def _without_first_special(tokens: Sequence[PromptToken]) -> Sequence[PromptToken]:
    return tokens[len(_first_special(tokens)) :]


def _inner_specials(tokens: Sequence[PromptToken]) -> list[str]:
    return [piece_of(token) for token in tokens if token.special]


def _spellings(tokens: Sequence[PromptToken]) -> list[object]:
    """Return what distinguishes the tokens: ids, or texts where an id is unknown."""
    return [token.id if token.id >= 0 else token.text for token in tokens]


def _text(tokens: Sequence[PromptToken]) -> str:
    return "".join(token.text for token in tokens if not token.special)


def _shown(tokens: Sequence[PromptToken]) -> str:
    if not tokens:
        return tr("none")
    return " ".join(label(piece_of(token), token.special) for token in tokens)


def _first_unequal(a: Sequence[object], b: Sequence[object]) -> int:
    return next((place for place, (one, other) in enumerate(zip(a, b, strict=False)) if one != other),
        min(len(a), len(b)))  # fmt: skip


def _excerpt(text: str, place: int) -> str:
    """Return the text around a place, with visible white space."""
    start, stop = max(0, place - 12), place + 12
    shown = label(text[start:stop])
    return f"“{'…' * (start > 0)}{shown}{'…' * (stop < len(text))}”"
