"""The setting: one of four kinds with what it is made of. Knows neither torch nor llguidance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, get_args

from resources.language import mark, tr

GrammarKind = Literal["json_schema", "regex", "lark", "choice"]
GrammarProgress = Literal["open", "whole", "closed"]
"""A text that is the beginning of a grammar's, a whole one that may go on, a whole one that may not."""
KINDS: tuple[GrammarKind, ...] = get_args(GrammarKind)
TITLES: dict[GrammarKind, str] = {
    "json_schema": mark("JSON schema"),
    "regex": mark("regular expression"),
    "lark": mark("Lark grammar"),
    "choice": mark("choice"),
}
MAX_LENGTH = 100_000
"""Characters of a grammar; what it takes to read one grows with their square."""
MAX_CHOICES = 1_000
MAX_DEPTH = 64
"""Brackets within brackets of a schema."""


def grammar_format_problem(value: object) -> str:
    """Why `value` is no grammar, as a sentence; empty where its shape is right. What it says is read by a run."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return tr("Give one of {kinds} with what it is made of.").format(kinds=", ".join(KINDS))
    ((kind, content),) = value.items()
    if kind not in KINDS:
        return tr("There is no grammar of the kind {kind}; there are {kinds}.").format(
            kind=f"“{kind}”"[:40], kinds=", ".join(KINDS)
        )
    return _PROBLEMS[kind](content)


def kind_of(value: Mapping[str, object]) -> GrammarKind:
    """Which of the four a grammar without a problem is."""
    return next(kind for kind in KINDS if kind in value)


def schema_of(content: object) -> object:
    """A JSON schema as a value; it may stand there as text. Raises ValueError."""
    return json.loads(content) if isinstance(content, str) else content


def _schema_problem(content: object) -> str:
    try:
        schema = schema_of(content)
        if _depth(schema) > MAX_DEPTH:
            return tr("The schema has more than {most} brackets within each other.").format(most=MAX_DEPTH)
        written = json.dumps(schema, allow_nan=False, ensure_ascii=False)
        written.encode()
    except RecursionError:
        return tr("The schema has more than {most} brackets within each other.").format(most=MAX_DEPTH)
    except json.JSONDecodeError as error:
        return tr("The schema is not valid JSON: line {line}, character {column}: {reason}.").format(
            line=error.lineno, column=error.colno, reason=error.msg
        )
    except (TypeError, ValueError):
        return tr("The schema holds what JSON cannot say.")
    if not isinstance(schema, (Mapping, bool)):
        return tr("A JSON schema is an object, as in {example}.").format(example='{"type": "object"}')
    return _length_problem(len(written))


def _text_problem(content: object) -> str:
    if not isinstance(content, str) or "\0" in content:
        return tr("Give the grammar as a text.")
    if not content.strip():
        return tr("The grammar is empty.")
    return _length_problem(len(content)) or _encoding_problem(content)


def _regex_problem(content: object) -> str:
    if reason := _text_problem(content):
        return reason
    slashes = len(str(content)) - len(str(content).rstrip("\\"))
    return tr("The regular expression ends with a backslash that nothing follows.") if slashes % 2 else ""


def _choice_problem(content: object) -> str:
    if not isinstance(content, (list, tuple)) or not all(isinstance(word, str) for word in content):
        return tr("Give the choice as a list of texts.")
    if not content or not all(content):
        return tr("The choice is empty.") if not any(content) else tr("One of the texts to choose from is empty.")
    if len(content) > MAX_CHOICES:
        return tr("There are {count:,} texts to choose from; {most:,} are the most.").format(
            count=len(content), most=MAX_CHOICES
        )
    return _length_problem(sum(map(len, content))) or _encoding_problem("".join(content))


def _encoding_problem(text: str) -> str:
    """Half a character, as damaged text has it, is one that nothing can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return tr("The grammar holds half a character, which no text can.")
    return ""


def _length_problem(length: int) -> str:
    if length <= MAX_LENGTH:
        return ""
    return tr("The grammar has {length:,} characters; {most:,} are the most.").format(length=length, most=MAX_LENGTH)


def _depth(value: object) -> int:
    """Levels of objects and lists; raises RecursionError where Python itself gives up."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else None
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)


_PROBLEMS = {"json_schema": _schema_problem, "regex": _regex_problem, "lark": _text_problem, "choice": _choice_problem}
