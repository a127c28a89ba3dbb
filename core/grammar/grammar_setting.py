"""The grammar setting: one of five kinds, with its content. Imports neither torch nor llguidance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, get_args

from decodescope.resources.language import join_names, mark, tr

GrammarKind = Literal["json_schema", "regex", "lark", "gbnf", "choice"]
GrammarProgress = Literal["open", "whole", "closed"]
"""open: the beginning of a text of the grammar; whole: a complete text that may continue; closed: one that may not."""
KINDS: tuple[GrammarKind, ...] = get_args(GrammarKind)
TITLES: dict[GrammarKind, str] = {
    "json_schema": mark("JSON schema"),
    "regex": mark("regular expression"),
    "lark": mark("Lark grammar"),
    "gbnf": mark("GBNF grammar"),
    "choice": mark("choice"),
}
MAX_LENGTH = 100_000
"""Maximum number of characters of a grammar; the time to read it grows with their square."""
MAX_CHOICES = 1_000
MAX_DEPTH = 64
"""Maximum nesting depth of brackets in a schema."""


def grammar_format_problem(value: object) -> str:
    """Return why `value` is not a grammar, as a sentence; empty if its structure is valid. Its content is checked by a
    run.
    """
    if not isinstance(value, Mapping) or len(value) != 1:
        return tr("Specify one of {kinds} with its content.").format(kinds=join_names(KINDS))
    ((kind, content),) = value.items()
    if kind not in KINDS:
        return tr("There is no grammar type {kind}. Choose one of {kinds}.").format(
            kind=f"“{kind}”"[:40], kinds=join_names(KINDS)
        )
    return _PROBLEMS[kind](content)


def grammar_kind(value: Mapping[str, object]) -> GrammarKind:
    """Return the kind of a valid grammar."""
    return next(kind for kind in KINDS if kind in value)


def schema_of(content: object) -> object:
    """Return a JSON schema as a value; it may be given as text. Raises ValueError."""
    return json.loads(content) if isinstance(content, str) else content


def _schema_problem(content: object) -> str:
    try:
        schema = schema_of(content)
        if _depth(schema) > MAX_DEPTH:
            return tr("The schema is nested more than {most} levels deep.").format(most=MAX_DEPTH)
        written = json.dumps(schema, allow_nan=False, ensure_ascii=False)
        written.encode()
    except RecursionError:
        return tr("The schema is nested more than {most} levels deep.").format(most=MAX_DEPTH)
    except json.JSONDecodeError as error:
        return tr("The schema is not valid JSON: line {line}, character {column}: {reason}.").format(
            line=error.lineno, column=error.colno, reason=error.msg
        )
    except (TypeError, ValueError):
        return tr("The schema contains values that JSON cannot represent.")
    if not isinstance(schema, (Mapping, bool)):
        return tr("A JSON schema is an object, for example {example}.").format(example='{"type": "object"}')
    return _length_problem(len(written))


def _text_problem(content: object) -> str:
    if not isinstance(content, str) or "\0" in content:
        return tr("The grammar is not text. Pass it as a string.")
    if not content.strip():
        return tr("The grammar is empty.")
    return _length_problem(len(content)) or _encoding_problem(content)


def _regex_problem(content: object) -> str:
    if reason := _text_problem(content):
        return reason
    slashes = len(str(content)) - len(str(content).rstrip("\\"))
    return tr("The regular expression ends with an incomplete backslash escape.") if slashes % 2 else ""


def _gbnf_problem(content: object) -> str:
    from decodescope.core.grammar.gbnf import gbnf_problem  # rarely needed

    return _text_problem(content) or gbnf_problem(str(content))


def _choice_problem(content: object) -> str:
    if not isinstance(content, (list, tuple)) or not all(isinstance(word, str) for word in content):
        return tr("The choice is not a list of strings. Pass a list of strings.")
    if not content or not all(content):
        return tr("The choice is empty.") if not any(content) else tr("One of the choices is empty.")
    if len(content) > MAX_CHOICES:
        return tr("There are {count:,} choices; the maximum is {most:,}.").format(count=len(content), most=MAX_CHOICES)
    return _length_problem(sum(map(len, content))) or _encoding_problem("".join(content))


def _encoding_problem(text: str) -> str:
    """Return an error if the text contains a lone surrogate, which cannot be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return tr("The grammar contains half a character (a lone surrogate), which no text can contain.")
    return ""


def _length_problem(length: int) -> str:
    if length <= MAX_LENGTH:
        return ""
    return tr("The grammar has {length:,} characters; the maximum is {most:,}.").format(length=length, most=MAX_LENGTH)


def _depth(value: object) -> int:
    """Return the levels of objects and lists; raise RecursionError at Python's own limit."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else None
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)


_PROBLEMS = {
    "json_schema": _schema_problem, "regex": _regex_problem, "lark": _text_problem, "gbnf": _gbnf_problem,
    "choice": _choice_problem,
}  # fmt: skip
