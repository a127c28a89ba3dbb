"""Find sentences and labels in Python code that are not marked for translation, by the syntax tree alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MARKS = frozenset({"tr", "trn", "trc", "mark"})
LOGS = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
UNSAID = frozenset({"getLogger", "cast", "TypeVar", "NewType", "compile", "import_module", "setObjectName"})
"""Functions whose texts are not shown to users."""
PROGRAMMERS = frozenset({"AttributeError", "TypeError", "NotImplementedError", "AssertionError"})
"""Errors that report a mistake in the program to its developers."""
SHOWS = frozenset(
    {"setText", "setToolTip", "setPlaceholderText", "setPrefix", "setSuffix", "setTitle", "setWindowTitle",
     "setAccessibleName", "setAccessibleDescription", "addAction", "addSection", "QLabel", "QPushButton", "Axis"}
)  # fmt: skip
"""Functions that show what they are given: in them a single word is read, too."""
SHOWN_KEYWORDS = frozenset({"accessible_name", "description", "tooltip"})
"""The same for arguments of `set_up`."""
UNREAD_KEYWORDS = frozenset({"paper", "objectName", "pattern"})
"""Arguments that are no words of the program: a paper keeps its title in every language."""
UNREAD_OF = {"EntryDescription": frozenset({"source", "address", "also"})}
"""The same for single functions."""
_SENTENCE = re.compile(r"[^\W\d_]{2,}[^\n]* [^\n]*[^\W\d_]{2,}")
_COUNTED = re.compile(r"\{…\} [^\W\d_]{2,}|[^\W\d_]{2,}[,:]? \{…\}")
_LABEL = re.compile(r"[A-Z][a-z]+(-[a-z]+)*[.:…]?")
_WORD = re.compile(r"[^\W\d_]{2,}")
_TYPE = re.compile(r"\w+(\[.*\])?( \| \w+(\[.*\])?)*")


class Found(NamedTuple):
    """A text that looks as if it is shown to users; computed parts appear as {…}."""

    line: int
    text: str


def looks_read(text: str) -> bool:
    """Return whether a text has two words, a word next to a computed part, or a capitalized word."""
    is_type = _TYPE.fullmatch(text) and not text.isalpha()
    return not is_type and bool(_SENTENCE.search(text) or _COUNTED.search(text) or _LABEL.fullmatch(text.strip()))


def unmarked(path: Path) -> list[Found]:
    """Return the texts of a file that look shown to users and are not marked."""
    return sorted(_of(ast.parse(path.read_text(encoding="utf-8"))))


def _of(node: ast.AST) -> Iterator[Found]:
    if isinstance(node, ast.FunctionDef) and (node.name == "__repr__" or node.name.endswith("_repr")):
        return  # for programmers, in English
    if isinstance(node, ast.Constant | ast.JoinedStr):
        text = _text(node)
        if text is not None and looks_read(text):
            yield Found(node.lineno, text)
    if isinstance(node, ast.Call) and _name(node.func) in SHOWS:
        yield from (found for given in node.args for found in _words(given))
    if isinstance(node, ast.Call) and _name(node.func) == "set_up":
        shown = (one.value for one in node.keywords if one.arg in SHOWN_KEYWORDS)
        yield from (found for given in shown for found in _words(given))
    for child in _read(node):
        yield from _of(child)


def _words(given: ast.expr) -> Iterator[Found]:
    """Return texts that are certainly shown, even if they would not look so elsewhere."""
    if isinstance(given, ast.IfExp):
        yield from (*_words(given.body), *_words(given.orelse))
    elif isinstance(given, ast.Constant | ast.JoinedStr):
        text = _text(given) or ""
        if _WORD.search(text) and not looks_read(text):
            yield Found(given.lineno, text)


def _text(node: ast.Constant | ast.JoinedStr) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    return "".join(part.value if isinstance(part, ast.Constant) else "{…}" for part in node.values)


def _read(node: ast.AST) -> Iterator[ast.AST]:
    """Return the parts of an expression that may contain text for users."""
    match node:
        case ast.JoinedStr():
            # What is worked out may hold texts of its own: f"… {'one' if single else 'several'}".
            yield from (part.value for part in node.values if isinstance(part, ast.FormattedValue))
        case ast.Expr(value=ast.Constant()) | ast.Assert() | ast.Compare() | ast.MatchValue():
            pass
        case ast.Subscript():
            yield node.value
        case ast.AnnAssign():
            yield from () if node.value is None else (node.value,)
        case ast.arg():
            pass
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from (*node.decorator_list, node.args, *node.body)
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            pass
        case ast.Call():
            yield from _read_call(node)
        case _:
            yield from ast.iter_child_nodes(node)


def _read_call(node: ast.Call) -> Iterator[ast.AST]:
    name = _name(node.func)
    if name in MARKS | UNSAID | PROGRAMMERS or (name in LOGS and isinstance(node.func, ast.Attribute)):
        return
    yield node.func
    yield from node.args
    unread = UNREAD_KEYWORDS | UNREAD_OF.get(name, frozenset())
    yield from (keyword.value for keyword in node.keywords if keyword.arg not in unread)


def _name(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


_SCRIPT_TEXT = re.compile(
    r"""(?P<said>\b(?:tr|trn|trAround)\(\s*(?:"[^"]*",\s*)?)?(?P<text>"(?:[^"\\]|\\.)*"|`[^`]*`)"""
)
_COMMENT = re.compile(r"^\s*(//|/\*\*|\*).*$", re.MULTILINE)


def unmarked_in_script(path: Path) -> list[Found]:
    """The same of a script of the page, where `tr`, `trn` and `trAround` are the marks."""
    script = _COMMENT.sub("", path.read_text(encoding="utf-8"))
    found = []
    for one in _SCRIPT_TEXT.finditer(script):
        text = re.sub(r"\$\{[^}]*\}", "{…}", one["text"][1:-1])
        if one["said"] is None and looks_read(text):
            found.append(Found(script.count("\n", 0, one.start()) + 1, text))
    return found
